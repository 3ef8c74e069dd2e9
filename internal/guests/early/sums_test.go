package main

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCommittedModulesAreBuiltFromTheirSources: build.sh writes the sums of sources and
// modules together, so a source that was edited and not built, or a module that came
// from elsewhere, does not match.
func TestCommittedModulesAreBuiltFromTheirSources(t *testing.T) {
	for _, language := range []string{"c", "rust"} {
		t.Run(language, func(t *testing.T) {
			listed, err := os.ReadFile(language + "/SHA256SUMS")
			require.NoError(t, err)
			lines := strings.Split(strings.TrimSuffix(string(listed), "\n"), "\n")
			sums := sumsOf(t, os.DirFS(language))
			require.True(t, slices.ContainsFunc(sums, func(line string) bool { return strings.HasSuffix(line, "  ./early.wasm") }))
			require.ElementsMatch(t, lines, sums)
		})
	}
}

// sumsOf returns the lines that sha256sum would print of a folder's files.
func sumsOf(t *testing.T, folder fs.FS) []string {
	t.Helper()
	var lines []string
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name == "SHA256SUMS" {
			return err
		}
		content, err := fs.ReadFile(folder, name)
		lines = append(lines, fmt.Sprintf("%x  ./%s", sha256.Sum256(content), name))
		return err
	})
	require.NoError(t, err)
	return lines
}
