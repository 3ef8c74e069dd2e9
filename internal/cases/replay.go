package cases

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/replay"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// Record implements [executor.Recorder].
func (w *Workspace) Record(_ context.Context, entry executor.Entry) error {
	w.kept = append(w.kept, entry)
	return nil
}

// Replayed counts the replays of calls.
type Replayed struct {
	Equal  int // with the same result and the same fuel
	NotRun int // calls that have ended before their guests began, so that there is nothing to replay
}

// Replay makes the call of a test some times, removes its files, and replays each call. The error has all calls whose
// replays differ.
func Replay(
	ctx context.Context, rt *runtime.Runtime, m *manifests.Manifest, test manifests.Test, dir string, calls int,
) (of Replayed, err error) {
	w, err := Open(ctx, rt, m, test, dir)
	if err != nil {
		return of, err
	}
	for range calls {
		if _, err := w.Call(ctx, test.Arguments); err != nil {
			return of, err
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return of, err
	}
	var failed []error
	for _, entry := range w.kept {
		if entry.Inputs == nil {
			of.NotRun++
		} else if err := w.replay(ctx, entry); err != nil {
			failed = append(failed, err)
		} else {
			of.Equal++
		}
	}
	return of, errors.Join(failed...)
}

func (w *Workspace) replay(ctx context.Context, entry executor.Entry) error {
	again, err := w.tool.Invoke(ctx, tool.Invocation{CallID: entry.Record.CallID, Tool: w.name, Replay: entry.Inputs})
	if err != nil {
		return fmt.Errorf("cases: %w", err)
	}
	if d := replay.Compare(entry.Whole, again.Result, entry.Record.Usage.Fuel, again.Usage.Fuel); len(d) > 0 {
		return fmt.Errorf("%w: the replay: %v", errDiffers, d)
	}
	return nil
}
