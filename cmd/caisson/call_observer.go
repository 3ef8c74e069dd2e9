package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// callObserver collects facts about calls that are for the operator and not in their records. It is the recorder of
// calls that have ended, and wraps the registry that they go through. It is safe for concurrent use; its
// maps are read only after the batch has ended.
type callObserver struct {
	*registry.Registry
	progress *progress    // may be nil
	logger   *slog.Logger // may be nil

	mu      sync.Mutex
	parents map[string]string // parents of calls made by tools
	failed  []tool.Record     // calls made by tools whose failure the operator can fix
	// profiles are the profiles that the arguments of calls name, by call id. A schema's default may have named one.
	profiles map[string]string
	// causes are the host's own failures by call id. A record may be sent to a model, so it says
	// only "internal error" and an id. The user of this command is the operator and may see them.
	causes map[string]error
}

// Record implements [executor.Recorder].
func (w *callObserver) Record(_ context.Context, entry executor.Entry) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if record := entry.Record; record.Parent != "" {
		w.parents[record.CallID] = record.Parent
		switch record.Result.Kind {
		case tool.Internal, tool.Denied, tool.UnknownTool:
			w.failed = append(w.failed, record)
		}
	}
	return nil
}

// Invoke runs one call.
func (w *callObserver) Invoke(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	if entry, ok := w.Get(invocation.Tool); ok {
		w.noteProfile(entry.Manifest.Behavior.Profile, invocation)
		if t, ok := entry.Tool.(*runtime.Tool); ok && (w.progress != nil || w.logger != nil) {
			w.prepare(ctx, entry.Name, t)
		}
	}
	outcome, err := w.Registry.Invoke(ctx, invocation)
	if failure, ok := errors.AsType[*tool.Error](err); ok && failure.Kind == tool.Internal && failure.Err != nil {
		w.mu.Lock()
		w.causes[invocation.CallID] = failure.Err
		w.mu.Unlock()
	}
	return outcome, err
}

// noteProfile keeps the profile that an argument of the call names.
func (w *callObserver) noteProfile(argument string, invocation tool.Invocation) {
	value, given := invocation.Arguments.Get(argument)
	var name string
	if argument == "" || !given || json.Unmarshal(value, &name) != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.profiles[invocation.CallID] = name
}

// prepare compiles the module of a call, so that the time for that can be told from the call's own.
func (w *callObserver) prepare(ctx context.Context, name string, t *runtime.Tool) {
	started := time.Now()
	var err error // the call itself returns it, too
	w.progress.during("compiling "+name, func() { err = t.Prepare(ctx) })
	if w.logger != nil && err == nil {
		w.logger.InfoContext(ctx, "module ready", "tool", name, "ms", float64(time.Since(started).Microseconds())/1000)
	}
}

// root returns the model's call from which a call descends.
func (w *callObserver) root(callID string) string {
	for parent, ok := w.parents[callID]; ok; parent, ok = w.parents[callID] {
		callID = parent
	}
	return callID
}
