//go:build http

// Package http has only this test, which follows the README with curl and Python.
package http

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guests"
)

// serve runs the README's server in a copy of this folder, on any free port, and returns the folder and the address.
func serve(t *testing.T, flags string) (dir, address string) {
	t.Helper()
	root, err := guests.Compile(t.Context())
	require.NoError(t, err)
	outside := t.TempDir()
	dir = filepath.Join(outside, "examples", "http")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "workspaces", "demo"), 0o700))
	require.NoError(t, os.CopyFS(filepath.Join(outside, "wasm-tools"), os.DirFS(filepath.Join(root, "wasm-tools"))))
	for _, name := range []string{"caisson.yaml", "agent.py"} {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	program := filepath.Join(outside, "caisson")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s", "-o", program, filepath.Join(root, "cmd", "caisson")).CombinedOutput()
	require.NoError(t, err, string(out))

	ctx, stop := context.WithTimeout(context.Background(), 5*time.Minute)
	arguments := append(strings.Fields(flags), "--addr", "localhost:0", "--state-dir", filepath.Join(outside, "state"), "--interpreter-dir", filepath.Join(outside, "none"))
	server := exec.CommandContext(ctx, program, arguments...)
	server.Dir = dir
	stderr, err := server.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	listens := make(chan string, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if _, found, ok := strings.Cut(lines.Text(), " at http://"); ok {
				listens <- found
			}
		}
	}()
	t.Cleanup(func() {
		assert.NoError(t, server.Process.Signal(os.Interrupt))
		<-read
		assert.NoError(t, server.Wait())
		stop()
	})
	select {
	case address = <-listens:
	case <-read:
		t.Fatal("the server did not listen")
	}
	return dir, address
}

// varies are texts that differ each time, and their replacements in the README.
var varies = []struct {
	found *regexp.Regexp
	shown string
}{
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "ID"},
	{regexp.MustCompile(`run_[0-9a-f]{32}`), "run_ID"},
	{regexp.MustCompile(`"20[0-9]{2}-[^"]*Z"`), `"TIME"`},
	{regexp.MustCompile(`"(execution_time|fuel|memory_bytes|wall_ns|queue_ns|compile_ns)":[0-9.e-]+`), `"$1":N`},
}

func TestREADME(t *testing.T) {
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?ms)^```(.*?)\n(.*?)^```$").FindAllStringSubmatch(string(page), -1)
	require.Equal(t, "server", blocks[0][1])
	_, flags, found := strings.Cut(blocks[0][2], "bin/caisson ")
	require.True(t, found)
	dir, address := serve(t, flags)
	commands := 0
	for _, block := range blocks[1:] {
		for _, step := range strings.Split("\n"+block[2], "\n$ ")[1:] {
			line, want, _ := strings.Cut(step, "\n")
			command := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(line, "localhost:8711", address))
			command.Dir, command.Env = dir, append(os.Environ(), "CAISSON_URL=http://"+address)
			got := ""
			// A run may not wait yet.
			assert.Eventually(t, func() bool {
				out, _ := command.CombinedOutput() // failures show in the output
				got = string(out)
				for _, v := range varies {
					got = v.found.ReplaceAllString(got, v.shown)
				}
				again := exec.CommandContext(t.Context(), "sh", "-c", command.Args[2])
				again.Dir, again.Env = command.Dir, command.Env
				command = again
				return strings.TrimRight(got, "\n") == strings.TrimRight(want, "\n") || !strings.Contains(line, "?status=")
			}, 20*time.Second, 100*time.Millisecond, line)
			assert.Equal(t, strings.TrimRight(want, "\n"), strings.TrimRight(got, "\n"), line)
			commands++
		}
	}
	assert.Equal(t, 8, commands)
}
