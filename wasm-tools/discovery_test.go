package tools_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// TestToolsOfAFolderAreFoundAndRegistered: a program names only a folder. The tools in it, at any depth,
// are found, offered to models and called, and added tools are there at the next start; no list and no
// code names the tools.
func TestToolsOfAFolderAreFoundAndRegistered(t *testing.T) {
	rt := newRuntime(t, runtime.Options{})
	folder := t.TempDir()
	assert.Empty(t, start(t, rt, folder).Definitions(), "an empty folder has no tools")

	copyFiles(t, filepath.Join(folder, "math", "calculator"), "wasm-tools/calculator", "tool.yaml", "calculator.wasm")
	copyFiles(t, filepath.Join(folder, "people"), "wasm-tools/client", "ask_user.tool.yaml")
	copyFiles(t, filepath.Join(folder, ".drafts"), "wasm-tools/client", "local_shell.tool.yaml")
	copyFiles(t, folder, "wasm-tools/client", "README.md")
	tools := start(t, rt, folder)
	assert.Equal(t, []string{"ask_user", "calculator"}, offered(tools))

	run, err := executor.New(tools, executor.Options{})
	require.NoError(t, err)
	report, err := run.Execute(t.Context(), executor.Batch{Calls: []tool.Call{
		{ID: "1", Type: tool.FunctionCall, Function: tool.Function{Name: "calculator", Arguments: `{"expression":"6*7"}`}},
	}})
	require.NoError(t, err)
	assert.Equal(t, "42", report.Records[0].Result.Output)

	copyFiles(t, filepath.Join(folder, "people"), "wasm-tools/client", "apply_patch.tool.yaml")
	assert.Equal(t, []string{"apply_patch", "ask_user", "calculator"}, offered(start(t, rt, folder)))
	assert.Equal(t, []string{"ask_user", "calculator"}, offered(tools), "a running program keeps its tools")

	require.NoError(t, os.WriteFile(filepath.Join(folder, "broken.tool.yaml"), []byte("name: broken\n"), 0o600))
	tools = start(t, rt, folder)
	assert.Equal(t, []string{"apply_patch", "ask_user", "calculator"}, offered(tools))
	require.Len(t, tools.Broken(), 1, "a broken manifest is not passed over")
	assert.ErrorContains(t, tools.Broken()[0], "broken.tool.yaml")
}

// start does what a program does that starts: it loads a folder.
func start(t *testing.T, rt *runtime.Runtime, folder string) *registry.Registry {
	t.Helper()
	tools := registry.New()
	require.NoError(t, tools.Load(t.Context(), registry.Directory(folder, nil), opener(rt)))
	return tools
}

func opener(rt *runtime.Runtime) func(context.Context, *manifests.Manifest) (registry.Tool, error) {
	return func(ctx context.Context, m *manifests.Manifest) (registry.Tool, error) {
		return rt.Load(ctx, m, manifests.Grants{})
	}
}

func offered(tools *registry.Registry) []string {
	var names []string
	for _, definition := range tools.Definitions() {
		names = append(names, definition.Name)
	}
	return names
}

// copyFiles copies files of a folder of the repository, whose modules it compiles.
func copyFiles(t *testing.T, to, from string, names ...string) {
	t.Helper()
	root, err := guests.Compile(t.Context(), moduleFolders...)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(to, 0o700))
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(from), name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(to, name), content, 0o600))
	}
}
