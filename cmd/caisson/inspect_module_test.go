package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// TestManyFunctionsAreNotAllPrinted: a module may export tens of thousands.
func TestManyFunctionsAreNotAllPrinted(t *testing.T) {
	plugin := func(count int) string {
		shown := recognised{File: "a.wasm", recognised: runtime.Recognised{Kind: runtime.ModulePlugin}}
		for i := range count {
			shown.Functions = append(shown.Functions, fmt.Sprintf("f%d", i))
		}
		return shown.text()
	}
	assert.Contains(t, plugin(3), "functions    f0 f1 f2\n")
	assert.Contains(t, plugin(shownFunctions), " f39\n")
	assert.Contains(t, plugin(100_000), " f39 and 99960 more\n")
}

// TestStartingManifestsAreValid: whatever a module and its functions are called, the manifest to start from
// is valid, and calls one of them.
func TestStartingManifestsAreValid(t *testing.T) {
	for name, c := range map[string]struct {
		path      string
		functions []string
		entry     string
	}{
		"words that YAML reads as something else": {"null.wasm", []string{"null"}, "null"},
		"a boolean":                       {"true.wasm", []string{"True"}, "True"},
		"numbers":                         {"2048.wasm", []string{"0x1f", "1"}, "0x1f"},
		"the default entry":               {"a.wasm", []string{"first", "call", "last"}, "call"},
		"an entry that cannot be written": {"a.wasm", []string{"a b", "", "\u202e", "x"}, "x"},
		"a file without a name":           {".wasm", []string{"call"}, "call"},
		"a file with a space":             {"a – b'.wasm", []string{"call"}, "call"},
	} {
		text := startingManifest(filepath.Join("folder", c.path), runtime.Recognised{Kind: runtime.ModulePlugin, Functions: c.functions})
		m, err := manifests.Parse("tool.yaml", []byte(text))
		require.NoError(t, err, "%s: %s", name, text)
		assert.Equal(t, c.entry, m.Module.Entry, name)
		assert.Equal(t, c.path, m.Module.Path, name)
		for _, c := range strings.ReplaceAll(text, "\n", "") {
			assert.False(t, tool.Deceives(c), "%s: %q", name, text)
		}
	}
	others := startingManifest("a.wasm", runtime.Recognised{Kind: runtime.ModulePlugin, Functions: []string{"first", "call", "a b", "last"}})
	assert.Contains(t, others, "# other functions, each for a manifest of its own: first, last\n")

	strange := runtime.Recognised{Kind: runtime.ModulePlugin, Functions: []string{"a b", "caisson: error: no\nfix: "}}
	assert.Empty(t, startingManifest("a.wasm", strange))
	shown := recognised{File: "a.wasm", Functions: strange.Functions, recognised: strange}.text()
	assert.Contains(t, shown, `functions    "a b" "caisson: error: no\U0000000afix: "`+"\n")
	assert.Contains(t, shown, "has no function that a tool could call")
}

// TestAPluginWithoutAnEntryHasNoManifest: a plug-in whose only function has a parameter is recognised, and no
// manifest is written that names a function which it lacks.
func TestAPluginWithoutAnEntryHasNoManifest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plugin.wasm")
	require.NoError(t, os.WriteFile(file, []byte("\x00asm\x01\x00\x00\x00"+
		"\x01\x09\x02\x60\x00\x01\x7e\x60\x01\x7f\x00"+ // the types () -> i64 and (i32) -> ()
		"\x02\x20\x01\x0fextism:host/env\x0cinput_length\x00\x00"+
		"\x03\x02\x01\x01\x07\x05\x01\x01f\x00\x01\x0a\x04\x01\x02\x00\x0b"), 0o600)) // exports f, of the second type
	for _, arguments := range [][]string{{"inspect", "--manifest", file}, {"inspect", file}} {
		var out, err strings.Builder
		code := run(t.Context(), arguments, environment{stdin: strings.NewReader(""), stdout: &out, stderr: &err})
		text := out.String() + err.String()
		assert.Equal(t, map[bool]int{true: exitUsage, false: exitSuccess}[len(arguments) == 3], code, text)
		assert.Contains(t, text, "exports no function that a tool could call")
		assert.Contains(t, text, "export one that has no parameters, and returns nothing or a whole number")
		assert.NotContains(t, text, "entry: call")
	}
}

// TestLimitsAreRaisedWhereTheyAre: manifests of Extism have other members, and lack some.
func TestLimitsAreRaisedWhereTheyAre(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plugin.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"wasm": []}`), 0o600))
	assert.Equal(t, "raise memory.max_pages in plugin.json:1", limits[tool.Memory].raise(file, "plugin.json:1"))
	assert.Equal(t, "raise limits.output in a manifest of Caisson: those of Extism, such as plugin.json, cannot have it", limits[tool.Output].raise(file, "plugin.json"))
	assert.Equal(t, "raise limits.memory in tool.yaml:3", limits[tool.Memory].raise("tool.yaml", "tool.yaml:3"))
}
