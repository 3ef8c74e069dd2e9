package guests

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCommittedModulesAreBuiltFromTheirSources: a build.sh writes the sums of sources and
// modules together, so a source that was edited and not built, or a module that came from
// elsewhere, does not match.
func TestCommittedModulesAreBuiltFromTheirSources(t *testing.T) {
	root := os.DirFS("../..")
	var folders []string
	for _, top := range []string{"internal", "wasm-tools"} {
		require.NoError(t, fs.WalkDir(root, top, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Name() == sumsFile {
				folders = append(folders, path.Dir(name))
			}
			return err
		}))
	}
	require.ElementsMatch(t, []string{
		"internal/benchmark/guests/assemblyscript", "internal/benchmark/guests/c", "internal/benchmark/guests/rust",
		"internal/guests/early/c", "internal/guests/early/rust",
		"internal/guests/endless/assemblyscript", "internal/guests/endless/c", "internal/guests/endless/rust", "internal/guests/endless/zig",
		"internal/guests/failing/c", "internal/guests/seeded/c",
		"wasm-tools/sql/guest",
		"internal/plugins/assemblyscript", "internal/plugins/c", "internal/plugins/rust",
	}, folders)
	for _, folder := range folders {
		listed, err := fs.ReadFile(root, path.Join(folder, sumsFile))
		require.NoError(t, err)
		files, err := fs.Sub(root, folder)
		require.NoError(t, err)
		sums := sumsOf(t, files)
		assert.True(t, slices.ContainsFunc(sums, func(line string) bool { return strings.HasSuffix(line, ".wasm") }), folder)
		assert.ElementsMatch(t, strings.Split(strings.TrimSuffix(string(listed), "\n"), "\n"), sums, folder)
	}
}

const sumsFile = "SHA256SUMS"

// sumsOf returns the lines that sha256sum would print of a folder's files.
func sumsOf(t *testing.T, folder fs.FS) []string {
	t.Helper()
	var lines []string
	require.NoError(t, fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name == sumsFile {
			return err
		}
		content, err := fs.ReadFile(folder, name)
		lines = append(lines, fmt.Sprintf("%x  ./%s", sha256.Sum256(content), name))
		return err
	}))
	return lines
}
