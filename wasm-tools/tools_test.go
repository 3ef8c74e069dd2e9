package tools_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/cases"
	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/wasm-tools/internal/toolname"
)

// TestManifests runs the tests in the tools' manifests, each in a separate workspace, through all layers of a call.
// Only directories and context are granted: these tests check the tools' answers without the network, and
// network_test.go the rest.
func TestManifests(t *testing.T) {
	// The setting makes web_search available, which then finds that none of its services is.
	rt := newRuntime(t, runtime.Options{Settings: []string{"SEARXNG_URL"}})
	run, clients := 0, 0
	for _, m := range compiled(t) {
		if m.Execution == manifests.ExecutionClient {
			clients++ // client_test.go has what there is to test of them
			continue
		}
		run++
		t.Run(m.Name, func(t *testing.T) {
			require.GreaterOrEqual(t, len(m.Tests), 3, "our tools have examples")
			if m.Module.Language != modules.LanguageNone {
				return // its tests need an interpreter, and are run where those are installed: in internal/interpreters
			}
			for _, example := range m.Tests {
				t.Run(example.Name, func(t *testing.T) {
					assert.NoError(t, cases.Run(t.Context(), rt, m, example, t.TempDir()))
				})
			}
		})
	}
	assert.Equal(t, []int{len(toolname.All()) - 3, 3}, []int{run, clients})
}

// compiled compiles the tools, and returns their manifests.
func compiled(t testing.TB) []*manifests.Manifest {
	t.Helper()
	root, err := guests.Compile(t.Context(), moduleFolders...)
	require.NoError(t, err)
	found, err := registry.Directory(filepath.Join(root, "wasm-tools"), nil).Manifests(t.Context())
	require.NoError(t, err)
	var all []*manifests.Manifest
	for _, f := range found {
		require.Nil(t, f.Broken)
		all = append(all, f.Manifest)
	}
	return all
}

var moduleFolders = []string{"wasm-tools/calculator", "wasm-tools/files", "wasm-tools/json", "wasm-tools/knowledge", "wasm-tools/planning", "wasm-tools/plot", "wasm-tools/search", "wasm-tools/skills", "wasm-tools/text", "wasm-tools/weather", "wasm-tools/web"}

// newRuntime makes a runtime that keeps compiled code where all tests do.
func newRuntime(t testing.TB, options runtime.Options) *runtime.Runtime {
	t.Helper()
	_, cache, err := guests.CompiledCode()
	require.NoError(t, err)
	options.CacheDir = cache
	rt, err := runtime.New(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, rt.Close(context.Background())) })
	return rt
}
