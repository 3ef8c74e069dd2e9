package guests

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPlace: a module is the last compiled one, whichever was there before.
func TestPlace(t *testing.T) {
	dir := t.TempDir()
	built, module := filepath.Join(dir, "probe"), filepath.Join(dir, "probe.wasm")
	for _, compiled := range []string{"one", "two"} {
		for _, before := range []string{"", "stale"} {
			require.NoError(t, os.RemoveAll(built))
			require.NoError(t, os.WriteFile(built, []byte(compiled), 0o600))
			if before != "" {
				require.NoError(t, os.RemoveAll(module))
				require.NoError(t, os.WriteFile(module, []byte(before), 0o600))
			}
			for range 2 {
				require.NoError(t, place(built, module))
				content, err := os.ReadFile(module)
				require.NoError(t, err)
				assert.Equal(t, compiled, string(content))
			}
		}
	}
	assert.ErrorIs(t, place(filepath.Join(dir, "none"), module), os.ErrNotExist)
}
