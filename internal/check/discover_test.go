package check

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
)

func TestDiscoveryReportsWhatItCannotRead(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "real.yaml")
	require.NoError(t, os.WriteFile(target, nil, 0o600))
	require.NoError(t, os.Symlink(target, filepath.Join(dir, "tool.yaml")))
	for path, file := range map[string]string{dir: filepath.Join(dir, "tool.yaml"), filepath.Join(dir, "missing"): filepath.Join(dir, "missing")} {
		files, problems := noerr.Get2(discover(t.Context(), path))(t)
		assert.Empty(t, files)
		require.Len(t, problems, 1, path)
		assert.Equal(t, file, problems[0].File)
		assert.NotEmpty(t, problems[0].Fix)
		assert.Equal(t, 1, problems[0].Line)
		assert.NotContains(t, problems[0].Message, dir, "the message does not repeat the file")
	}
}
