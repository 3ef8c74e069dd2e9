package interpreters

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/cases"
	"github.com/caisson-run/caisson/manifests"
)

// TestShippedInterpreterTools: the tests in the manifests of execute_python and execute_javascript hold.
func TestShippedInterpreterTools(t *testing.T) {
	checkShipped(t, "execute_python/tool.yaml", "execute_javascript/tool.yaml")
}

// TestShippedSkillScripts: the tests in the manifest of execute_skill_script hold.
func TestShippedSkillScripts(t *testing.T) { checkShipped(t, "skills/execute_skill_script.tool.yaml") }

// checkShipped runs the tests in manifests of tools that come with Caisson, and replays calls of them.
func checkShipped(t *testing.T, files ...string) {
	t.Helper()
	r, equal := newRuntime(t), 0
	for _, file := range files {
		m, err := manifests.Load(filepath.Join("..", "..", "wasm-tools", filepath.FromSlash(file)))
		require.NoError(t, err)
		require.Greater(t, len(m.Tests), 5)
		for _, c := range m.Tests {
			t.Run(m.Name+" "+c.Name, func(t *testing.T) {
				assert.NoError(t, cases.Run(t.Context(), r, m, c, t.TempDir()))
				of, err := cases.Replay(t.Context(), r, m, c, t.TempDir(), 3)
				assert.NoError(t, err, "the replays")
				assert.Equal(t, 3, of.Equal+of.NotRun)
				equal += of.Equal
			})
		}
	}
	assert.Positive(t, equal)
	t.Logf("%d replays have the same result and the same fuel", equal)
}
