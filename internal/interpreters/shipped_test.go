package interpreters

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/cases"
	"github.com/caisson-run/caisson/manifests"
)

// TestRowS3_11: the tests in the manifests of execute_python and execute_javascript hold.
func TestRowS3_11(t *testing.T) {
	r := newRuntime(t)
	for _, name := range []string{"execute_python", "execute_javascript"} {
		m, err := manifests.Load(filepath.Join("..", "..", "wasm-tools", name, "tool.yaml"))
		require.NoError(t, err)
		require.Greater(t, len(m.Tests), 5)
		for _, c := range m.Tests {
			t.Run(name+" "+c.Name, func(t *testing.T) {
				assert.NoError(t, cases.Run(t.Context(), r, m, c, t.TempDir()))
			})
		}
	}
}
