package benchmark

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// instant is a tool that returns at once, so that a call consists only of its overhead.
type instant struct{ manifest *manifests.Manifest }

func (i instant) Manifest() *manifests.Manifest { return i.manifest }

func (instant) Invoke(context.Context, tool.Invocation) (tool.Outcome, error) {
	return tool.Outcome{Result: tool.Result{Success: true}}, nil
}

// callerName is the tool that only calls the other one.
const callerName = "caller"

const callerManifest = `schema: caisson/v1
name: ` + callerName + `
description: Calls another tool with its own arguments.
module: {path: tool.wasm}
permissions: {tools: [tool]}
parameters: {type: object}
`

type calling struct {
	instant
	called string
}

func (c calling) Invoke(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	arguments, err := invocation.Arguments.MarshalJSON()
	if err != nil {
		return tool.Outcome{}, err
	}
	made, err := invocation.Host.Call(ctx,
		tool.Call{Type: "function", Function: tool.Function{Name: c.called, Arguments: string(arguments)}})
	return tool.Outcome{Result: made.Result}, err
}

// measureExecutor measures the executor's overhead per call.
func measureExecutor(
	ctx context.Context, in input, what ExecutorCall, each time.Duration,
) (measured Executor, err error) {
	tools := registry.New()
	defer func() { err = errors.Join(err, tools.Close(ctx)) }()
	name, err := registerInstants(tools, what)
	if err != nil {
		return Executor{}, err
	}
	unlimited := executor.Rate{Unlimited: true}
	run, err := executor.New(tools,
		executor.Options{Rates: executor.Rates{All: unlimited, PerTenant: unlimited, PerTool: unlimited}})
	if err != nil {
		return Executor{}, err
	}
	session, err := run.NewSession(executor.SessionOptions{})
	if err != nil {
		return Executor{}, err
	}
	call := tool.Call{ID: "call_1", Type: "function",
		Function: tool.Function{Name: name, Arguments: string(in.expected.Input)}}
	batch := executor.Batch{Session: session, Calls: []tool.Call{call}}
	var took []time.Duration
	for end := time.Now().Add(each); len(took) == 0 || time.Now().Before(end); {
		start := time.Now()
		report, err := run.Execute(ctx, batch)
		took = append(took, time.Since(start))
		if err != nil {
			return Executor{}, err
		}
		if err := checkExecuted(report, what, len(took) == 1); err != nil {
			return Executor{}, err
		}
	}
	slices.Sort(took)
	return Executor{what, len(in.expected.Input), microseconds(percentile(took, 50))}, ctx.Err()
}

// registerInstants registers the tools to measure and returns the name of the one to call.
func registerInstants(tools *registry.Registry, what ExecutorCall) (name string, err error) {
	manifest, err := manifests.Parse("tool.yaml", []byte(manifestOf(guests.C, modules.ABIWASI)))
	if err != nil {
		return "", err
	}
	manifest.Behavior.ReadOnly = what == ExecutorReused
	if err := tools.Register("benchmark", instant{manifest}); err != nil || what != ExecutorNested {
		return manifest.Name, err
	}
	caller, err := manifests.Parse("caller.yaml", []byte(callerManifest))
	if err != nil {
		return "", err
	}
	return caller.Name, tools.Register("benchmark", calling{instant{caller}, manifest.Name})
}

// checkExecuted checks that a call was executed in the way that is measured.
func checkExecuted(report executor.Report, what ExecutorCall, first bool) error {
	record := report.Records[0]
	if result := record.Result; !result.Success {
		return fmt.Errorf("benchmark: executor: %s", result.Error)
	}
	if reused, nested := what == ExecutorReused && !first, what == ExecutorNested; record.Cached != reused ||
		(report.Totals.Nested == 1) != nested {
		return fmt.Errorf("benchmark: executor: a call that should be %s is not", what)
	}
	return nil
}
