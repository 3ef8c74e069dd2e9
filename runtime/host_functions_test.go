package runtime

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

var (
	oneOffset  = []hostfuncs.ValueType{hostfuncs.I64}
	twoOffsets = []hostfuncs.ValueType{hostfuncs.I64, hostfuncs.I64}
)

func offering(names ...string) manifests.Grants {
	var g manifests.Grants
	for _, name := range names {
		g.Functions = append(g.Functions, manifests.NameGrant{Name: name})
	}
	return g
}

// rewriting offers a function that replaces the text of a block.
func rewriting(namespace, name string, change func(string) (string, error)) HostFunction {
	return HostFunction{Namespace: namespace, Name: name, Params: oneOffset, Results: oneOffset,
		Call: func(_ context.Context, p *CurrentPlugin, stack []uint64) error {
			text, err := p.ReadString(stack[0])
			if err != nil {
				return err
			}
			if err := p.Free(stack[0]); err != nil {
				return err
			}
			if text, err = change(text); err != nil {
				return err
			}
			stack[0], err = p.WriteString(text)
			return err
		}}
}

func upper(text string) (string, error) { return strings.ToUpper(text), nil }

// TestPluginsCallHostFunctions: those that extism/go-sdk is tested with, with numbers and with blocks
// of memory.
func TestPluginsCallHostFunctions(t *testing.T) {
	r := newRuntime(t, Options{HostFunctions: []HostFunction{
		{Name: "mult", Params: twoOffsets, Results: oneOffset, Call: func(_ context.Context, _ *CurrentPlugin, stack []uint64) error {
			stack[0] *= stack[1]
			return nil
		}},
		rewriting("host", "to_upper", upper),
		rewriting("", "hostGreenMessage", func(text string) (string, error) { return "green " + text, nil }),
		rewriting("", "hostPurpleMessage", func(text string) (string, error) { return "purple " + text, nil }),
	}})
	for name, c := range map[string]struct{ file, entry, functions, input, want string }{
		"numbers":         {"host.wasm", "run_test", "mult", "", "42 x 2 = 84"},
		"memory":          {"host_memory.wasm", "run_test", "host.to_upper", "Frodo", "FRODO"},
		"two, the first":  {"host_multiple.wasm", "say_green", "hostGreenMessage, hostPurpleMessage", "John", "green John"},
		"two, the second": {"host_multiple.wasm", "say_purple", "hostGreenMessage, hostPurpleMessage", "John", "purple John"},
	} {
		t.Run(name, func(t *testing.T) {
			names := strings.Split(c.functions, ", ")
			loaded := pluginWith(t, r, c.file, "stdout: text, entry: "+c.entry, "permissions: {functions: ["+c.functions+"]}\n", offering(names...))
			for range 3 {
				o := callPlugin(t, loaded, c.input)
				assert.Empty(t, o.Result.Error)
				assert.Contains(t, o.Result.Output, c.want)
				require.NotEmpty(t, o.HostCalls)
				assert.Equal(t, "functions.call", o.HostCalls[0].Kind)
				assert.Equal(t, "ok", o.HostCalls[0].Status)
			}
		})
	}
}

// TestHostFunctionsNeedAPermission: one that the manifest does not request is not linked, and one that
// no grant covers is not called.
func TestHostFunctionsNeedAPermission(t *testing.T) {
	calls := 0
	r := newRuntime(t, Options{HostFunctions: []HostFunction{rewriting("host", "to_upper", func(text string) (string, error) {
		calls++
		return upper(text)
	})}})
	const asks = "permissions: {functions: [host.to_upper]}\n"
	err := pluginWith(t, r, "host_memory.wasm", "entry: run_test", "", offering("host.to_upper")).Prepare(t.Context())
	require.ErrorIs(t, err, ErrModule)
	require.ErrorContains(t, err, `imports the function "to_upper" of "host", but its manifest does not ask for permissions.functions`)

	taken := offering("host.to_upper")
	taken.Deny = []manifests.Deny{{Function: "host.to_upper", Origin: "caisson.yaml:3"}}
	for want, grants := range map[string]manifests.Grants{"no grant names it": {}, "another": offering("to_upper"), "caisson.yaml:3": taken} {
		o := callPlugin(t, pluginWith(t, r, "host_memory.wasm", "entry: run_test", asks, grants), "a")
		assert.Equal(t, tool.Denied, o.Result.Kind, want)
		require.NotEmpty(t, o.Denials)
		assert.Equal(t, "functions", o.Denials[0].Permission)
		assert.Equal(t, "host.to_upper", o.Denials[0].Value)
		if len(grants.Deny) == 0 {
			assert.JSONEq(t, `{"tools": ["plugin"], "functions": ["host.to_upper"]}`, string(o.Denials[0].Allow.Grant))
		} else {
			assert.Contains(t, o.Result.Error, want)
		}
	}
	assert.Zero(t, calls)
	// Control: with the grant, it is called.
	callPlugin(t, pluginWith(t, r, "host_memory.wasm", "entry: run_test", asks, offering("host.to_upper")), "a")
	assert.Equal(t, 1, calls)
}

// TestFailuresOfHostFunctionsEndThePlugin: with the function's own words, and the next call is fine.
func TestFailuresOfHostFunctionsEndThePlugin(t *testing.T) {
	for name, c := range map[string]struct {
		call func(ctx context.Context, p *CurrentPlugin, stack []uint64) error
		kind tool.Kind
		want string
	}{
		"an error": {func(context.Context, *CurrentPlugin, []uint64) error { return errors.New("out of letters") }, tool.ToolFailed, "its call of host.to_upper failed: out of letters"},
		"a panic":  {func(context.Context, *CurrentPlugin, []uint64) error { panic("bug") }, tool.Internal, "internal error"},
		"a block that is not one": {func(_ context.Context, p *CurrentPlugin, stack []uint64) error {
			_, err := p.ReadBytes(stack[0] + 8)
			return err
		}, tool.Trap, "has no such block"},
		"an offset beyond 32 bits": {func(_ context.Context, p *CurrentPlugin, stack []uint64) error {
			_, err := p.ReadBytes(stack[0] + 1<<40)
			return err
		}, tool.Trap, "has no such block"},
		"more than the memory limit": {func(_ context.Context, p *CurrentPlugin, _ []uint64) error {
			_, err := p.WriteBytes(make([]byte, 5<<20))
			return err
		}, tool.Memory, "more memory than its limit of 4MiB"},
		"a wait beyond the deadline": {func(ctx context.Context, _ *CurrentPlugin, _ []uint64) error {
			<-ctx.Done()
			return ctx.Err()
		}, tool.Deadline, "deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			works, limits := false, Limits{Memory: 4 << 20}
			if c.kind == tool.Deadline {
				limits.Timeout = time.Second
			}
			r := newRuntime(t, Options{Limits: limits, HostFunctions: []HostFunction{{Namespace: "host", Name: "to_upper", Params: oneOffset, Results: oneOffset,
				Call: func(ctx context.Context, p *CurrentPlugin, stack []uint64) error {
					if works {
						return nil
					}
					return c.call(ctx, p, stack)
				}}}})
			loaded := pluginWith(t, r, "host_memory.wasm", "entry: run_test, stdout: text", "permissions: {functions: [host.to_upper]}\n", offering("host.to_upper"))
			o, err := loaded.Invoke(t.Context(), tool.Invocation{CallID: "1", Tool: "plugin", Arguments: tool.Arguments{}.With("input", []byte(`"letters"`))})
			if name == "a panic" {
				failed, ok := errors.AsType[*tool.Error](err)
				require.True(t, ok)
				require.ErrorContains(t, failed.Err, "bug", "the program is told")
			}
			assert.Equal(t, c.kind, o.Result.Kind)
			assert.Contains(t, o.Result.Error, c.want)
			require.Len(t, o.HostCalls, 1)
			assert.Equal(t, "failed", o.HostCalls[0].Status)
			works = true
			o = callPlugin(t, loaded, "letters")
			assert.Empty(t, o.Result.Error)
			assert.Equal(t, "Hello letters!", o.Result.Output)
		})
	}
}

// TestAttackSecretInTheErrorOfAHostFunction: a function's error may contain the plug-in's argument.
func TestAttackSecretInTheErrorOfAHostFunction(t *testing.T) {
	const asks = "permissions: {functions: [host.to_upper], network: [{host: api.example.com}], secrets: [{name: KEY, host: api.example.com, header: X-Key}]}\n"
	r := newRuntime(t, Options{LookupEnv: func(string) (string, bool) { return secretValue, true }, HostFunctions: []HostFunction{
		rewriting("host", "to_upper", func(text string) (string, error) { return "", errors.New("no upper case for " + text) }),
	}})
	for _, holds := range []bool{false, true} { // control: without the secret
		grants := offering("host.to_upper")
		if !holds {
			grants.Secrets = []manifests.SecretGrant{{Name: "KEY", Host: "api.example.com", Schemes: []string{"https"}, From: manifests.SecretSource{Env: "KEY"}}}
		}
		o := callPlugin(t, pluginWith(t, r, "host_memory.wasm", "entry: run_test", asks, grants), secretValue)
		assert.Contains(t, o.Result.Error, "no upper case for ")
		assert.Equal(t, holds, strings.Contains(o.Result.Error, secretValue), o.Result.Error)
	}
}

// TestAttackHostFunctionAfterTheDeadline: no function of the embedding program begins after the deadline. Each may read
// a block of 100 MiB, which takes longer than the guest has then.
func TestAttackHostFunctionAfterTheDeadline(t *testing.T) {
	calls := 0
	r := newRuntime(t, Options{HostFunctions: []HostFunction{{Name: "f", Call: func(ctx context.Context, _ *CurrentPlugin, _ []uint64) error {
		calls++
		<-ctx.Done()
		return nil // as if it had not noticed
	}}}})
	module := magic + section(1, "\x02\x60\x00\x00\x60\x00\x01\x7f") + section(2, "\x01"+vector(hostNamespace)+vector("f")+"\x00\x00") +
		section(3, "\x01\x01") + section(7, "\x01"+vector("run")+"\x00\x01") +
		section(10, "\x01"+vector("\x00\x03\x40\x10\x00\x0c\x00\x0b\x00\x0b")) // loop, call 0, br 0
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plugin.wasm"), []byte(module), 0o600))
	m, err := manifests.Parse(filepath.Join(dir, "tool.yaml"), []byte(`schema: caisson/v1
name: plugin
description: A plug-in.
module: {path: plugin.wasm, abi: extism, entry: run}
limits: {timeout: 100ms}
permissions: {functions: [f]}
`))
	require.NoError(t, err)
	loaded := load(t, r, m, offering("f"))
	require.NoError(t, loaded.Prepare(t.Context()))
	assert.Equal(t, tool.Deadline, callPlugin(t, loaded, "").Result.Kind)
	assert.Equal(t, 1, calls)
}

func TestHostFunctionsAreChecked(t *testing.T) {
	nothing := func(context.Context, *CurrentPlugin, []uint64) error { return nil }
	for want, functions := range map[string][]HostFunction{
		"no name or no Call":           {{Name: "a"}},
		"has no name":                  {{Call: nothing}},
		"which is the runtime's":       {{Namespace: "extism:host/env", Name: "a", Call: nothing}},
		"cannot be of caisson:x@1":     {{Namespace: "caisson:x@1", Name: "a", Call: nothing}},
		"cannot be of wasi_":           {{Namespace: "wasi_snapshot_preview1", Name: "a", Call: nothing}},
		"two host functions a":         {{Name: "a", Call: nothing}, {Namespace: hostNamespace, Name: "a", Call: nothing}},
		`both are "a.b.c" there`:       {{Namespace: "a.b", Name: "c", Call: nothing}, {Namespace: "a", Name: "b.c", Call: nothing}},
		`both are "a.b" there`:         {{Name: "a.b", Call: nothing}, {Namespace: "a", Name: "b", Call: nothing}},
		"2 results":                    {{Name: "a", Results: twoOffsets, Call: nothing}},
		"parameter or result":          {{Name: "a", Params: []hostfuncs.ValueType{hostfuncs.I32, 0x33}, Call: nothing}},
		"that is no number":            {{Name: "a", Results: []hostfuncs.ValueType{0x6f}, Call: nothing}}, // a reference
		"that permissions cannot have": {{Name: "a b", Call: nothing}},
	} {
		_, err := New(t.Context(), Options{HostFunctions: functions})
		assert.ErrorContains(t, err, want)
	}
	newRuntime(t, Options{HostFunctions: []HostFunction{ // the control
		{Name: "a", Params: []hostfuncs.ValueType{hostfuncs.I32, hostfuncs.I64, hostfuncs.F32, hostfuncs.F64}, Results: oneOffset, Call: nothing},
		{Namespace: "a", Name: "a", Call: nothing}, {Namespace: "b", Name: "a", Call: nothing},
	}})
}
