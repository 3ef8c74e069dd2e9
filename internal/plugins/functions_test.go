package plugins

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	extism "github.com/extism/go-sdk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// functionOf is a function of the program that embeds a host, for both hosts.
type functionOf struct {
	namespace, name string
	params, results int  // of them
	narrow          bool // they are i32 rather than i64
	// run gets the parameters and returns the result. Read and write are for blocks of memory.
	run func(parameters []uint64, read func(uint64) (string, error), write func(string) (uint64, error)) (uint64, error)
}

// rewriting is a function that replaces a text.
func rewriting(namespace, name string, change func(string) string) functionOf {
	return functionOf{namespace: namespace, name: name, params: 1, results: 1,
		run: func(parameters []uint64, read func(uint64) (string, error), write func(string) (uint64, error)) (uint64, error) {
			text, err := read(parameters[0])
			if err != nil {
				return 0, err
			}
			return write(change(text))
		}}
}

// functions are those that the plug-ins of go-sdk and c/callbacks.c call.
func functions() []functionOf {
	all := []functionOf{
		{name: "mult", params: 2, results: 1, run: func(p []uint64, _ func(uint64) (string, error), _ func(string) (uint64, error)) (uint64, error) {
			return p[0] * p[1], nil
		}},
		rewriting("host", "to_upper", strings.ToUpper),
		rewriting("", "hostGreenMessage", func(text string) string { return "green " + text }),
		rewriting("", "hostPurpleMessage", func(text string) string { return "purple " + text }),
		rewriting("", "twice", func(text string) string { return text + text }),
	}
	for _, name := range []string{"instrument_enter", "instrument_exit", "instrument_memory_grow"} {
		all = append(all, functionOf{namespace: "dylibso_observe", name: name, params: 1, narrow: true, run: func([]uint64, func(uint64) (string, error), func(string) (uint64, error)) (uint64, error) {
			return 0, nil
		}})
	}
	return all
}

// calledAgain is what the function "again" of ours does: it calls the tool that called it.
var calledAgain func(ctx context.Context) error

func functionsOfOurs() []runtime.HostFunction {
	types := func(f functionOf, count int) []hostfuncs.ValueType {
		kind := hostfuncs.I64
		if f.narrow {
			kind = hostfuncs.I32
		}
		return []hostfuncs.ValueType{kind, kind}[:count]
	}
	var offered []runtime.HostFunction
	for _, f := range functions() {
		offered = append(offered, runtime.HostFunction{
			Namespace: f.namespace, Name: f.name, Params: types(f, f.params), Results: types(f, f.results),
			Call: func(_ context.Context, p *runtime.CurrentPlugin, stack []uint64) error {
				result, err := f.run(stack, p.ReadString, p.WriteString)
				if err == nil && f.results > 0 {
					stack[0] = result
				}
				return err
			},
		})
	}
	one := []hostfuncs.ValueType{hostfuncs.I64}
	return append(offered, runtime.HostFunction{Name: "again", Params: one, Results: one, Call: func(ctx context.Context, _ *runtime.CurrentPlugin, stack []uint64) error {
		stack[0] = 0
		return calledAgain(ctx)
	}})
}

func functionsOfTheirs() []extism.HostFunction {
	types := func(f functionOf, count int) []extism.ValueType {
		kind := extism.ValueTypeI64
		if f.narrow {
			kind = extism.ValueTypeI32
		}
		return []extism.ValueType{kind, kind}[:count]
	}
	var offered []extism.HostFunction
	for _, f := range functions() {
		call := func(_ context.Context, p *extism.CurrentPlugin, stack []uint64) {
			result, err := f.run(stack, p.ReadString, p.WriteString)
			if err != nil {
				panic(err) // a function fails like this on go-sdk
			}
			if f.results > 0 {
				stack[0] = result
			}
		}
		made := extism.NewHostFunctionWithStack(f.name, call, types(f, f.params), types(f, f.results))
		if f.namespace != "" {
			made.SetNamespace(f.namespace)
		}
		offered = append(offered, made)
	}
	return offered
}

// callbacks is the plug-in that abuses functions of the program.
func callbacks(t testing.TB) subject {
	t.Helper()
	module, err := os.ReadFile("c/callbacks.wasm")
	require.NoError(t, err)
	return subject{name: "callbacks", module: module, calls: []string{"twice", "again"}, limits: `{"timeout": "10s", "memory": "64MiB"}`}
}

// TestAttacksOnFunctionsAreContained: a plug-in that passes to functions of the program an address without a block, or
// more than memory has room for, ends with a readable error, and the next call is not affected.
func TestAttacksOnFunctionsAreContained(t *testing.T) {
	s := callbacks(t)
	next := caisson(t, s, "harmless")
	for _, a := range []attack{
		{export: "pass_nothing", output: ""},
		{export: "pass_nowhere", fails: "no such block"},
		{export: "pass_the_inside_of_a_block", fails: "no such block"},
		{export: "pass_a_freed_block", fails: "no such block"},
		{export: "pass_a_giant", fails: "memory"},
		{export: "pass_what_grows", fails: "memory"},
	} {
		t.Run(a.export, func(t *testing.T) {
			outcome, err := caisson(t, s, a.export)("")
			a.check(t, outcome, err)
			outcome, err = next("")
			require.NoError(t, err)
			assert.Equal(t, "hellohello", outcome.Result.Output)
		})
	}
}

// TestFunctionsThatAreNotGrantedAreNotCalled: the manifest asks for the functions, and the operator grants one.
// In the control, both are granted.
func TestFunctionsThatAreNotGrantedAreNotCalled(t *testing.T) {
	called := 0
	calledAgain = func(context.Context) error {
		called++
		return errors.New("that is enough")
	}
	s := callbacks(t)
	outcome, err := caisson(t, s, "recursion_through_the_host")("")
	require.Error(t, err, "control")
	assert.Contains(t, outcome.Result.Error, "that is enough")
	assert.Equal(t, 1, called)

	s.granted = []string{"twice"}
	outcome, err = caisson(t, s, "recursion_through_the_host")("")
	require.ErrorIs(t, err, tool.Denied)
	assert.Contains(t, outcome.Result.Error, "again")
	assert.Equal(t, 1, called)
}

// TestRecursionThroughFunctionsEnds: a function that calls the tool that called it, without end, takes the
// places in which tools run, and then fails.
func TestRecursionThroughFunctionsEnds(t *testing.T) {
	s := callbacks(t)
	loaded, err := loadTool(t, s, "recursion_through_the_host")
	require.NoError(t, err)
	depth := 0
	calledAgain = func(ctx context.Context) error {
		depth++
		outcome, err := loaded.Invoke(ctx, tool.Invocation{CallID: fmt.Sprint(depth), Tool: "plugin", Arguments: argument(t, "")})
		if err == nil && !outcome.Result.Success {
			err = errors.New(outcome.Result.Error)
		}
		return err
	}
	outcome, err := loaded.Invoke(t.Context(), tool.Invocation{CallID: "first", Tool: "plugin", Arguments: argument(t, "")})
	require.Error(t, err)
	assert.NotEqual(t, tool.Internal, outcome.Result.Kind)
	assert.Contains(t, outcome.Result.Error, "again")
	assert.Greater(t, depth, 4)
	assert.Less(t, depth, 1000)
	outcome, err = caisson(t, s, "harmless")("")
	require.NoError(t, err)
	assert.Equal(t, "hellohello", outcome.Result.Output)
}

// TestEndlessCallbacksAreStopped: calls of a function without end are stopped at the deadline.
func TestEndlessCallbacksAreStopped(t *testing.T) {
	s := callbacks(t)
	s.limits = `{"timeout": "100ms"}`
	call := caisson(t, s, "endless_callbacks")
	for range testsize.Of(2, 5) {
		outcome, err := call("")
		require.ErrorIs(t, err, tool.Deadline)
		assert.Less(t, outcome.Usage.Wall, time.Second)
		assert.LessOrEqual(t, len(outcome.HostCalls), tool.MaxHostCalls)
	}
}
