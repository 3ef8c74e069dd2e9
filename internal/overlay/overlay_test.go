package overlay_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/overlay"
)

const program = `package main

func main() { println("as it is", 1) }
`

func TestWrite(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "main.go"), []byte(program), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "go.mod"), []byte("module example.com/m\n"), 0o600))
	path, err := overlay.Write(t.TempDir(), root, []overlay.Edit{{File: "main.go", Old: "as it is", New: "edited"}, {File: "main.go", Old: "1", New: "2"}, {File: "more.go", New: "package main\n\nfunc init() { print(\"more, \") }\n"}})
	require.NoError(t, err)
	run := exec.CommandContext(t.Context(), "go", "run", "-trimpath", "-overlay", path, ".")
	run.Dir = root
	out, err := run.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, "more, edited 2\n", string(out))
	kept, err := os.ReadFile(filepath.Join(root, "main.go"))
	require.NoError(t, err)
	assert.Equal(t, program, string(kept))
}

func TestWriteFailsOnEditsThatDoNotFit(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "main.go"), []byte(program), 0o600))
	for name, e := range map[string]overlay.Edit{
		"no such text": {File: "main.go", Old: "absent"}, "a text that stands there twice": {File: "main.go", Old: "main"}, "no such file": {File: "x.go", Old: "a"}, "a file that is not new": {File: "main.go", New: "a"},
	} {
		_, err := overlay.Write(t.TempDir(), root, []overlay.Edit{e})
		assert.ErrorContains(t, err, e.File, name)
	}
}
