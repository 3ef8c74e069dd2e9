//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAttackPrintedCommands: a command that a hint prints can be pasted into a shell, whatever the files of
// a tool's author are called. The control, Go's quoting, runs what the name says.
func TestAttackPrintedCommands(t *testing.T) {
	t.Chdir(t.TempDir())
	pasted := func(command string) string {
		output, err := exec.CommandContext(t.Context(), "sh", "-c", `caisson() { printf '%s\n' "$@"; }; `+command).CombinedOutput()
		require.NoError(t, err, "%s: %s", command, output)
		return string(output)
	}
	for _, name := range []string{"$(touch ran)", "`touch ran`", "it's; touch ran", `a "b" $HOME`, `back\slash`, "a&touch ran", "$((1", "~"} {
		folder := filepath.Join("tools", name)
		file := filepath.Join(folder, name+".tool.yaml")
		require.NoError(t, os.MkdirAll(folder, 0o700))
		require.NoError(t, os.WriteFile(file, []byte("schema: caisson/v1\nname: broken\n"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "tool.yaml"), []byte("schema: caisson/v1\nname: asks\ndescription: Ask.\nexecution: client\n"), 0o600))
		_, _, stderr := start(t.Context(), strings.NewReader(""), "list", "--tools", folder, "--cache-dir", "")
		found := regexp.MustCompile(`run "(caisson validate .*)"\n`).FindStringSubmatch(stderr)
		require.NotNil(t, found, stderr)
		assert.Equal(t, "validate\n"+file+"\n", pasted(found[1]))
		assert.NoFileExists(t, "ran")

		_, _, stderr = start(t.Context(), strings.NewReader(""), "call", "none", "--tools", folder, "--cache-dir", "")
		found = regexp.MustCompile(`run "(caisson list .*)" to see`).FindStringSubmatch(stderr)
		require.NotNil(t, found, stderr)
		assert.Equal(t, "list\n--tools\n"+folder+"\n", pasted(found[1]))
		assert.NoFileExists(t, "ran")
	}
	pasted(fmt.Sprintf("caisson validate %q", "$(touch ran)"))
	assert.FileExists(t, "ran")
}
