//go:build http

package caisson_test

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guests"
)

// TestServerOfTheREADME: the README's requests with curl get the answers that it shows.
func TestServerOfTheREADME(t *testing.T) {
	root, err := guests.Compile(t.Context(), "wasm-tools/calculator")
	require.NoError(t, err)
	dir, err := command()
	require.NoError(t, err)
	shown := readme(t, "From any agent", "From Go")
	require.Len(t, shown, 3)
	serve := exec.CommandContext(t.Context(), filepath.Join(dir, "caisson"), "serve", "--addr", "localhost:0", "--tools", filepath.Join(root, "wasm-tools", "calculator"), "--state-dir", "")
	stderr, err := serve.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, serve.Start())
	defer func() {
		_ = serve.Process.Kill()
		_ = serve.Wait()
	}()
	line, err := bufio.NewReader(stderr).ReadString('\n')
	require.NoError(t, err)
	_, address, found := strings.Cut(strings.TrimSpace(line), "http://")
	require.True(t, found, line)
	for _, b := range shown[1:] {
		commandLine, want, _ := strings.Cut(strings.TrimPrefix(b.text, "$ "), "\n")
		assert.Contains(t, commandLine, "localhost:8711")
		got, err := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(commandLine, "localhost:8711", address, 1)).Output()
		require.NoError(t, err)
		pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(want)), "…", ".*")
		assert.Regexp(t, "^"+pattern+"$", strings.TrimSpace(string(got)))
	}
}
