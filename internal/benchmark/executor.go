package benchmark

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// instant is a tool that answers at once, so that all of a call's time is spent around it.
type instant struct{ manifest *manifests.Manifest }

func (i instant) Manifest() *manifests.Manifest { return i.manifest }

func (instant) Invoke(context.Context, tool.Invocation) (tool.Outcome, error) {
	return tool.Outcome{Result: tool.Result{Success: true}}, nil
}

// measureExecutor measures what an executor takes for a call beside the tool itself.
func measureExecutor(ctx context.Context, in input, each time.Duration) (measured Executor, err error) {
	manifest, err := manifests.Parse("tool.yaml", []byte(manifestOf(guests.C)))
	if err != nil {
		return Executor{}, err
	}
	tools := registry.New()
	defer func() { err = errors.Join(err, tools.Close(ctx)) }()
	if err := tools.Register("benchmark", instant{manifest}); err != nil {
		return Executor{}, err
	}
	run, err := executor.New(tools, executor.Options{})
	if err != nil {
		return Executor{}, err
	}
	call := tool.Call{ID: "call_1", Type: "function", Function: tool.Function{Name: manifest.Name, Arguments: string(in.expected.Input)}}
	batch := executor.Batch{Calls: []tool.Call{call}}
	var took []time.Duration
	for end := time.Now().Add(each); len(took) == 0 || time.Now().Before(end); {
		start := time.Now()
		records, err := run.Execute(ctx, batch)
		took = append(took, time.Since(start))
		if err != nil {
			return Executor{}, err
		}
		if result := records[0].Result; !result.Success {
			return Executor{}, fmt.Errorf("benchmark: executor: %s", result.Error)
		}
	}
	slices.Sort(took)
	return Executor{Payload: len(in.expected.Input), P50: microseconds(percentile(took, 50))}, ctx.Err()
}
