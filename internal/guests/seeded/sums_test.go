package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCommittedModuleIsBuiltFromItsSource: build.sh writes the sums of source and module
// together, so a source that was edited and not built, or a module that came from
// elsewhere, does not match.
func TestCommittedModuleIsBuiltFromItsSource(t *testing.T) {
	files, err := filepath.Glob("c/*")
	require.NoError(t, err)
	require.Contains(t, files, filepath.Join("c", "seeded.wasm"))
	var sums strings.Builder
	for _, file := range files {
		if name := filepath.Base(file); name != "SHA256SUMS" {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			fmt.Fprintf(&sums, "%x  ./%s\n", sha256.Sum256(content), name)
		}
	}
	listed, err := os.ReadFile("c/SHA256SUMS")
	require.NoError(t, err)
	require.Equal(t, string(listed), sums.String())
}
