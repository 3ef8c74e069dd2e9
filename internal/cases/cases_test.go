package cases_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/cases"
	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
)

// TestRunNoticesDifferences: each part of what a test expects is compared.
func TestRunNoticesDifferences(t *testing.T) {
	root, err := guests.Compile(t.Context(), "wasm-tools/files")
	require.NoError(t, err)
	shipped, err := os.ReadFile(filepath.Join(root, "wasm-tools", "files", "file_write.tool.yaml"))
	require.NoError(t, err)
	m, err := manifests.Parse(filepath.Join(root, "wasm-tools", "files", "file_write.tool.yaml"), shipped)
	require.NoError(t, err)
	_, cache, err := guests.CompiledCode()
	require.NoError(t, err)
	rt, err := runtime.New(t.Context(), runtime.Options{CacheDir: cache})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, rt.Close(context.Background())) })
	for expect, want := range map[string]string{
		`{}`:                                        "",
		`{"success": true}`:                         "",
		`{"files": {"/project/a.txt": "one"}}`:      "",
		`{"success": false}`:                        "success: got true",
		`{"kind": "denied"}`:                        "kind: got \"\"",
		`{"output": "nothing"}`:                     "output: got",
		`{"error": "no space"}`:                     "error: got \"\"",
		`{"data": {"path": "b.txt"}}`:               "data: got {",
		`{"files": {"/project/a.txt": "two"}}`:      `file /project/a.txt: got "one", want "two"`,
		`{"files": {"/project/absent.txt": "two"}}`: "file /project/absent.txt",
	} {
		source := fmt.Sprintf(`{"schema": "caisson/v1", "name": "a", "description": "b", "module": {"path": "a.wasm"}, "context": ["project_id"],
			"permissions": {"files": [{"path": "/project"}]}, "tests": [{"name": "a", "context": {"project_id": "demo"},
			"arguments": {"path": "a.txt", "content": "one"}, "expect": %s}]}`, expect)
		written, err := manifests.Parse("tool.json", []byte(source))
		require.NoError(t, err)
		err = cases.Run(t.Context(), rt, m, written.Tests[0], t.TempDir())
		if want == "" {
			assert.NoError(t, err, expect)
		} else {
			assert.ErrorContains(t, err, want, expect)
		}
	}
}
