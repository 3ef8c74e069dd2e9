package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/registry"
)

// TestDiscoveryFindsWhatTheRegistryLoads: what is validated is what is loaded.
func TestDiscoveryFindsWhatTheRegistryLoads(t *testing.T) {
	dir := t.TempDir()
	write := func(name, toolName string) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		manifest := "schema: caisson/v1\nname: " + toolName + "\ndescription: d\nmodule: {path: a.wasm}\n"
		require.NoError(t, os.WriteFile(file, []byte(manifest), 0o600))
	}
	for i, name := range []string{
		"tool.yaml", "b.tool.yaml", "b.tool.yml", "z/tool.yaml", "a/deep/er/tool.yaml", "a-b/tool.yaml", "a/tool.yaml",
		".hidden/tool.yaml", "node_modules/tool.yaml", "Tool.yaml", "tool.yaml.orig", "mytool.yaml", ".tool.yaml", "notes.txt",
	} {
		write(name, "t"+string(rune('a'+i)))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder.tool.yaml"), 0o700))

	loaded, err := registry.Directory(dir).Manifests(t.Context())
	require.NoError(t, err)
	var want []string
	for _, m := range loaded {
		want = append(want, m.File)
	}
	require.GreaterOrEqual(t, len(want), 7, "the fixture must hold manifests")

	var found discovery
	require.NoError(t, found.path(t.Context(), dir))
	assert.Equal(t, want, found.files)
	assert.Empty(t, found.problems)
}

func TestDiscoveryReportsWhatItCannotRead(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "real.yaml")
	require.NoError(t, os.WriteFile(target, nil, 0o600))
	if err := os.Symlink(target, filepath.Join(dir, "tool.yaml")); err != nil {
		require.NoError(t, os.Mkdir(filepath.Join(dir, "nothing"), 0o700)) // no links on this system
	}
	var found discovery
	require.NoError(t, found.path(t.Context(), dir))
	require.NoError(t, found.path(t.Context(), filepath.Join(dir, "missing")))
	assert.Empty(t, found.files)
	require.Len(t, found.problems, 2)
	for _, p := range found.problems {
		assert.NotEmpty(t, p.Fix)
		assert.Equal(t, 1, p.Line)
	}
	assert.NotContains(t, found.problems[1].Message, dir, "the file stands beside the message")
}
