package guests_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
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
			require.Equal(t, readSums(t, language+"/SHA256SUMS"), sumsOf(t, os.DirFS(language)))
		})
	}
}

func TestCommittedModulesAreSmall(t *testing.T) {
	for language, most := range map[string]int64{"c": 100 << 10, "rust": 200 << 10} {
		for _, form := range []string{"kernels", "kernelcommand", "tool", "plugin"} {
			info, err := os.Stat(language + "/" + form + ".wasm")
			require.NoError(t, err)
			require.Less(t, info.Size(), most, "%s %s", language, form)
		}
	}
}

func readSums(t *testing.T, name string) map[string]string {
	t.Helper()
	file, err := os.Open(name)
	require.NoError(t, err)
	defer file.Close()
	sums := map[string]string{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		sum, name, ok := strings.Cut(lines.Text(), "  ./")
		require.True(t, ok, lines.Text())
		sums[name] = sum
	}
	require.NoError(t, lines.Err())
	return sums
}

func sumsOf(t *testing.T, folder fs.FS) map[string]string {
	t.Helper()
	sums := map[string]string{}
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name == "SHA256SUMS" {
			return err
		}
		content, err := fs.ReadFile(folder, name)
		sum := sha256.Sum256(content)
		sums[name] = hex.EncodeToString(sum[:])
		return err
	})
	require.NoError(t, err)
	return sums
}
