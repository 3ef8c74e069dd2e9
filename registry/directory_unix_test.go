//go:build unix

package registry_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/registry"
)

// TestDirectoryPipe: opening a pipe without a writer would wait forever.
func TestDirectoryPipe(t *testing.T) {
	root := write(t, map[string]string{"a/tool.yaml": named("a")})
	require.NoError(t, syscall.Mkfifo(filepath.Join(root, "tool.yaml"), 0o600))
	_, err := registry.Directory(root, nil).Manifests(t.Context())
	require.ErrorIs(t, err, registry.ErrUnread)
	assert.ErrorContains(t, err, "not a regular file")
}

// TestDirectoryLinks shows that a folder of tools cannot pull in what lies outside it.
func TestDirectoryLinks(t *testing.T) {
	outside := write(t, map[string]string{"tool.yaml": named("outside"), "sub/tool.yaml": named("outside_too")})
	root := write(t, map[string]string{"a/tool.yaml": named("a")})
	link := func(target, name string) {
		t.Helper()
		require.NoError(t, os.Symlink(target, filepath.Join(root, name)))
	}
	link(outside, "linked")
	link(root, "loop")
	link(outside, "folder.tool.yaml")

	t.Run("control: following links reads what lies outside", func(t *testing.T) {
		_, err := os.ReadFile(filepath.Join(root, "linked", "tool.yaml"))
		require.NoError(t, err)
	})
	// A gap where a tool should be would leave its name to the next source.
	files, err := registry.Files(t.Context(), root)
	require.ErrorIs(t, err, registry.ErrUnread)
	assert.Equal(t, []string{filepath.Join(root, "a", "tool.yaml")}, files)
	for _, name := range []string{"linked", "loop", "folder.tool.yaml"} {
		assert.ErrorContains(t, err, filepath.Join(root, name))
	}

	t.Run("a path that the operator names may be a link", func(t *testing.T) {
		found, err := registry.Directory(filepath.Join(root, "linked"), nil).Manifests(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"outside_too", "outside"}, names(found))
	})
	t.Run("a manifest that is a link is an error, not a gap", func(t *testing.T) {
		link(filepath.Join(outside, "tool.yaml"), "b.tool.yaml")
		_, err := registry.Directory(root, nil).Manifests(t.Context())
		require.ErrorIs(t, err, registry.ErrUnread)
		assert.ErrorContains(t, err, "b.tool.yaml")
	})
	t.Run("so is a manifest whose name differs by case", func(t *testing.T) {
		root := write(t, map[string]string{"Tool.YAML": named("a")})
		_, err := registry.Directory(root, nil).Manifests(t.Context())
		require.ErrorIs(t, err, registry.ErrUnread)
		assert.ErrorContains(t, err, "tool.yaml")
	})
}
