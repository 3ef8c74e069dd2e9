package view

import (
	"fmt"
	"path/filepath"
	"slices"
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
		shown := Module{File: "a.wasm", recognised: runtime.Recognised{Kind: runtime.ModulePlugin}}
		for i := range count {
			shown.Functions = append(shown.Functions, fmt.Sprintf("f%d", i))
		}
		return shown.Text()
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

	for _, needed := range [][]string{{"network"}, {"secrets"}, {"tools"}, {"secrets", "network", "tools"}} {
		for _, functions := range [][]string{nil, {"lookup"}} {
			text := startingManifest("a.wasm", runtime.Recognised{Kind: runtime.ModulePlugin, Functions: []string{"call"}, Needed: needed, HostFunctions: functions, Network: true})
			m, err := manifests.Parse("tool.yaml", []byte(text))
			require.NoError(t, err, text)
			requested := map[string]bool{"network": m.Permissions.Network != nil, "secrets": m.Permissions.Secrets != nil, "tools": m.Permissions.Tools != nil}
			for kind, found := range requested {
				assert.Equal(t, slices.Contains(needed, kind), found, "%s: %s", kind, text)
			}
			assert.Equal(t, functions, m.Permissions.Functions)
		}
	}

	strange := runtime.Recognised{Kind: runtime.ModulePlugin, Functions: []string{"a b", "caisson: error: no\nfix: "}}
	assert.Empty(t, startingManifest("a.wasm", strange))
	shown := Module{File: "a.wasm", Functions: strange.Functions, recognised: strange}.Text()
	assert.Contains(t, shown, `functions    "a b" "caisson: error: no\U0000000afix: "`+"\n")
	assert.Contains(t, shown, "has no function that a tool could call")
}
