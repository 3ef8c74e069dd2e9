package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// exported is a function of a module: its name, its type and its body.
type exported struct{ name, kind, body string }

// pluginOf returns the tool of a plug-in with these functions, the first of which is its entry.
func pluginOf(t *testing.T, r *Runtime, functions ...exported) *Tool {
	t.Helper()
	kinds, indexes, exports, bodies := "", "", "", ""
	for i, f := range functions {
		kinds, indexes = kinds+"\x60"+f.kind, indexes+number(i)
		exports, bodies = exports+vector(f.name)+"\x00"+number(i), bodies+vector("\x00"+f.body+"\x0b")
	}
	count := number(len(functions))
	module := magic + section(1, count+kinds) + section(3, count+indexes) + section(7, count+exports) + section(10, count+bodies)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plugin.wasm"), []byte(module), 0o600))
	text := "schema: caisson/v1\nname: plugin\ndescription: A plug-in.\nmodule: {path: plugin.wasm, abi: extism, entry: " + functions[0].name + "}\n"
	m, err := manifests.Parse(filepath.Join(dir, "tool.yaml"), []byte(text))
	require.NoError(t, err)
	return load(t, r, m, manifests.Grants{})
}

// TestNoPluginReturnsAReference: a reference is an address in the host's memory, which the code that a plug-in
// returns would tell. The whole numbers are the control.
func TestNoPluginReturnsAReference(t *testing.T) {
	r := newRuntime(t, Options{})
	for name, f := range map[string]exported{
		"a reference to a function": {"run", "\x00\x01\x70", "\xd2\x00"},
		"a foreign reference":       {"run", "\x00\x01\x6f", "\xd0\x6f"},
		"a vector":                  {"run", "\x00\x01\x7b", "\xfd\x0c" + strings.Repeat("\x01", 16)},
		"a floating-point number":   {"run", "\x00\x01\x7d", "\x43\x01\x01\x01\x01"},
	} {
		refused := pluginOf(t, r, f)
		require.ErrorContains(t, refused.Prepare(t.Context()), "with parameters or with results other than one whole number", name)
		assert.Equal(t, tool.Internal, callPlugin(t, refused, "").Result.Kind, name)
	}
	for name, f := range map[string]exported{
		"a number":         {"run", "\x00\x01\x7f", "\x41\x07"},
		"a long number":    {"run", "\x00\x01\x7e", "\x42\x07"},
		"nothing of these": {"run", "\x00\x00", ""},
	} {
		outcome := callPlugin(t, pluginOf(t, r, f), "")
		if f.body == "" {
			assert.Empty(t, outcome.Result.Error, name)
		} else {
			assert.Contains(t, outcome.Result.Error, "returned 7", name)
		}
	}
}

// TestFunctionsThatStartNothing: a function that has the name of one that starts a plug-in, but other
// types, is none. Called with the wrong number of values, it would be the engine's failure. The
// control is one that starts the plug-in, and traps.
func TestFunctionsThatStartNothing(t *testing.T) {
	r := newRuntime(t, Options{})
	run := exported{"run", "\x00\x00", ""}
	for name, f := range map[string]exported{
		"vectors":    {"hs_init", "\x02\x7b\x7b\x00", "\x00"},
		"references": {"hs_init", "\x02\x70\x6f\x00", "\x00"},
		"a result":   {"_initialize", "\x00\x01\x6f", "\x00"},
		"parameters": {"_initialize", "\x01\x7f\x00", "\x00"},
	} {
		outcome := callPlugin(t, pluginOf(t, r, run, f), "")
		assert.Empty(t, outcome.Result.Error, name)
	}
	for _, f := range []exported{{"hs_init", "\x02\x7f\x7f\x00", "\x00"}, {"_initialize", "\x00\x00", "\x00"}, {"__wasm_call_ctors", "\x00\x00", "\x00"}} {
		outcome := callPlugin(t, pluginOf(t, r, run, f), "")
		assert.Equal(t, tool.Trap, outcome.Result.Kind, f.name)
	}
}

// TestManyExportsTakeNoTime: to list tools, modules that have not run are inspected without a deadline.
func TestManyExportsTakeNoTime(t *testing.T) {
	const imported, count = 9_000, 90_000
	var imports, exports strings.Builder
	for range imported {
		imports.WriteString(vector("extism:host/env") + vector("reset") + "\x00\x00")
	}
	for i := range count {
		exports.WriteString(vector(fmt.Sprintf("f%d", i)) + "\x00" + number(imported))
	}
	module := magic + section(1, "\x01\x60\x00\x00") + section(2, number(imported)+imports.String()) + section(3, "\x01\x00") +
		section(7, number(count)+exports.String()) + section(10, "\x01"+vector("\x00\x0b"))
	began := time.Now()
	recognised, err := Recognise([]byte(module))
	require.NoError(t, err)
	assert.Len(t, recognised.Functions, count)
	assert.Less(t, time.Since(began), 3*time.Second)
}

// TestDetectedPluginsHaveNoCommandLine: without an ABI in the manifest, Parse cannot know that a command line and exit
// codes are useless. A started plug-in would keep the command line of no call.
func TestDetectedPluginsHaveNoCommandLine(t *testing.T) {
	module := magic + section(1, "\x01\x60\x00\x00") + section(2, "\x01"+vector("extism:host/env")+vector("reset")+"\x00\x00") +
		section(3, "\x01\x00") + section(7, "\x01"+vector("call")+"\x00\x01") + section(10, "\x01"+vector("\x00\x0b"))
	for more, want := range map[string]string{
		"":                       "",
		"\n  args: [a]":          "is an Extism plug-in, which has no command line, but its manifest has module.args; remove module.args",
		"\n  success_codes: [3]": "is an Extism plug-in, which has no exit code, but its manifest has module.success_codes; remove module.success_codes",
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "plugin.wasm"), []byte(module), 0o600))
		m, err := manifests.Parse(filepath.Join(dir, "tool.yaml"), []byte("schema: caisson/v1\nname: plugin\ndescription: A plug-in.\nmodule:\n  path: plugin.wasm"+more+"\n"))
		require.NoError(t, err)
		err = load(t, newRuntime(t, Options{}), m, manifests.Grants{}).Prepare(t.Context())
		if want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
}

// TestPluginsGetFunctionsAlone: plug-ins cannot import the kernel's memory, its globals, its functions for the host, or
// the host's functions for the kernel.
func TestPluginsGetFunctionsAlone(t *testing.T) {
	const function, memory, global, constant = "\x00\x00", "\x02\x00\x01", "\x03\x7f\x01", "\x03\x7f\x00"
	for _, c := range []struct{ from, name, kind, want string }{
		{"extism:host/env", "memory", memory, "Extism's own libraries"},
		{"extism:host/env", "__stack_pointer", global, "Extism's own libraries"},
		{"extism:host/env", "caisson:left", constant, "Extism's own libraries"},
		{"extism:host/env", "", function, "Extism's own libraries"},
		{"caisson:extism@1", "log_level", function, "which this runtime does not offer"},
		{"extism:host/env", "reset", function, ""}, // the control
	} {
		module := magic + section(1, "\x01\x60\x00\x00") + section(2, "\x01"+vector(c.from)+vector(c.name)+c.kind) + section(3, "\x01\x00") +
			section(7, "\x01"+vector("call")+"\x00"+number(strings.Count(c.kind, "\x00\x00"))) + section(10, "\x01"+vector("\x00\x0b"))
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "plugin.wasm"), []byte(module), 0o600))
		m, err := manifests.Parse(filepath.Join(dir, "tool.yaml"), []byte("schema: caisson/v1\nname: plugin\ndescription: A plug-in.\nmodule: {path: plugin.wasm, abi: extism}\n"))
		require.NoError(t, err)
		err = load(t, newRuntime(t, Options{}), m, manifests.Grants{}).Prepare(t.Context())
		if c.want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.want, c.name)
		}
	}
}

// TestPluginsCannotExitPastTheOutputLimit: a plug-in that sets too much output fails however it ends.
func TestPluginsCannotExitPastTheOutputLimit(t *testing.T) {
	r := newRuntime(t, Options{})
	for _, exits := range []bool{true, false} {
		call := func(length int) tool.Result {
			end := "\x0b"
			if exits {
				end = "\x41\x00\x10\x02\x0b" // proc_exit(0)
			}
			body := "\x01\x01\x7e\x42" + signed(length) + "\x10\x00\x21\x00\x20\x00\x42" + signed(length) + "\x10\x01" + end // output_set(alloc(length), length)
			module := magic + section(1, "\x04\x60\x00\x00\x60\x01\x7e\x01\x7e\x60\x02\x7e\x7e\x00\x60\x01\x7f\x00") +
				section(2, "\x03"+vector("extism:host/env")+vector("alloc")+"\x00\x01"+vector("extism:host/env")+vector("output_set")+"\x00\x02"+
					vector("wasi_snapshot_preview1")+vector("proc_exit")+"\x00\x03") +
				section(3, "\x01\x00") + section(5, "\x01\x00\x01") + section(7, "\x02"+vector("memory")+"\x02\x00"+vector("call")+"\x00\x03") + section(10, "\x01"+vector(body))
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "plugin.wasm"), []byte(module), 0o600))
			m, err := manifests.Parse(filepath.Join(dir, "tool.yaml"), []byte("schema: caisson/v1\nname: plugin\ndescription: A plug-in.\nmodule: {path: plugin.wasm, abi: extism}\nlimits: {output: 1KiB}\n"))
			require.NoError(t, err)
			return callPlugin(t, load(t, r, m, manifests.Grants{}), "").Result
		}
		assert.Equal(t, tool.Output, call(1<<20).Kind, exits)
		within := call(1 << 10) // the control
		assert.True(t, within.Success, within.Error)
		assert.Len(t, within.Output, 1<<10)
	}
}

// TestFunctionsWithoutANameAreNoTools: a manifest cannot name them, since one without an entry calls another
// function. The control is that function.
func TestFunctionsWithoutANameAreNoTools(t *testing.T) {
	module := []byte(magic + section(1, "\x01\x60\x00\x01\x7f") + section(3, "\x02\x00\x00") +
		section(7, "\x02"+vector("")+"\x00\x00"+vector("call")+"\x00\x01") + section(10, "\x02"+vector("\x00\x41\x00\x0b")+vector("\x00\x41\x00\x0b")))
	plugin, err := Recognise(module)
	require.NoError(t, err)
	assert.Equal(t, []string{"call"}, plugin.Functions)

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plugin.wasm"), module, 0o600))
	m, err := manifests.Parse(filepath.Join(dir, "tool.yaml"), []byte("schema: caisson/v1\nname: plugin\ndescription: A plug-in.\nmodule: {path: plugin.wasm, abi: extism, entry: other}\n"))
	require.NoError(t, err)
	assert.ErrorContains(t, load(t, newRuntime(t, Options{}), m, manifests.Grants{}).Prepare(t.Context()), `write one of its functions as entry: "call"`)
	_, err = InspectModule(m)
	require.Error(t, err)
	assert.NotContains(t, err.Error(), `""`)
}

// TestAttackConfigurationOfAnotherTool: two manifests of one module, whose start reads the configuration. A program
// that is started once for all calls of a tool is not started for another tool, although their code is shared. The
// control is that calls get copies of it at all.
func TestAttackConfigurationOfAnotherTool(t *testing.T) {
	const (
		env   = "extism:host/env"
		start = "\x01\x01\x7e\x42\x01\x10\x00\x21\x00\x20\x00\x41\xeb\x00\x10\x01\x20\x00\x10\x02\x24\x00\x0b" // b = alloc(1); store_u8(b, 'k'); value = config_get(b)
		call  = "\x00\x23\x00\x42\x01\x10\x03\x41\x00\x0b"                                                     // output_set(value, 1); 0
	)
	module := magic + section(1, "\x05\x60\x01\x7e\x01\x7e\x60\x02\x7e\x7f\x00\x60\x02\x7e\x7e\x00\x60\x00\x00\x60\x00\x01\x7f") +
		section(2, "\x04"+vector(env)+vector("alloc")+"\x00\x00"+vector(env)+vector("store_u8")+"\x00\x01"+vector(env)+vector("config_get")+"\x00\x00"+
			vector(env)+vector("output_set")+"\x00\x02") +
		section(3, "\x02\x03\x04") + section(6, "\x01\x7e\x01\x42\x00\x0b") + section(7, "\x02"+vector("_initialize")+"\x00\x04"+vector("call")+"\x00\x05") +
		section(10, "\x02"+vector(start)+vector(call))
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plugin.wasm"), []byte(module), 0o600))
	r := newRuntime(t, Options{})
	tools := map[string]*Tool{}
	for _, value := range []string{"A", "B", "C"} {
		m, err := manifests.Parse(filepath.Join(dir, value+".tool.yaml"), []byte("schema: caisson/v1\nname: plugin\ndescription: A plug-in.\nmodule: {path: plugin.wasm, abi: extism, stdout: text, config: {k: "+value+"}}\n"))
		require.NoError(t, err)
		tools[value] = load(t, r, m, manifests.Grants{})
	}
	for range 10 {
		for value, loaded := range tools {
			assert.Equal(t, value, callPlugin(t, loaded, "").Result.Output)
		}
		time.Sleep(5 * time.Millisecond) // they are started in the background
	}
	for _, loaded := range tools {
		assert.True(t, isolationOf(t, loaded).Copied)
	}
}
