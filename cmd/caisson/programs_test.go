//go:build !race

package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/programs"
)

var programsToRun = flag.Int("programs", 10, "how many random programs TestEndlessProgramsEnd runs")

const (
	programTimeout = 200 * time.Millisecond
	// programSlack is the time to start a process and compile the program.
	programSlack = time.Second
	// programPatience is the time after which a process is killed.
	programPatience = 10 * time.Second
)

// TestEndlessProgramsEnd: calls of random endless programs end at the deadline. Each call is a separate
// process, because one that cannot be stopped would hang. The race detector would distort the times.
func TestEndlessProgramsEnd(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "cache") // created by the command with private access
	for seed := range uint64(*programsToRun) {
		p := programs.EndlessCommand(seed)
		tools := programAsTool(t, p)
		took := callProgram(t, tools, cache)
		for range 3 { // the machine may have been busy
			if t.Failed() || took <= programTimeout+programSlack {
				break
			}
			took = callProgram(t, tools, cache)
		}
		assert.LessOrEqual(t, took, programTimeout+programSlack, "it ends late")
		if t.Failed() {
			t.Fatalf("it is programs.EndlessCommand(%d):\n%s", seed, p)
		}
	}
}

// TestServeOutlivesEndlessPrograms: a server ends calls of programs that recurse and work on the way back, or do anything
// else for ever, and goes on serving other tools.
func TestServeOutlivesEndlessPrograms(t *testing.T) {
	for seed := range uint64(3) {
		s := startServe(t, "--state-dir", "", "--timeout", programTimeout.String(), "--tools", programAsTool(t, programs.EndlessCommand(seed)))
		for range 2 {
			status, text := s.do(t, plain(t), "POST", "/v1/calls", "", `{"name":"endless"}`)
			assert.Equal(t, 200, status, text)
			assert.Contains(t, text, "the tool did not finish before its deadline", text)
		}
		status, text := s.do(t, plain(t), "POST", "/v1/calls", "", sevenTimesSix)
		assert.Equal(t, 200, status, text)
		assert.Contains(t, text, "42")
		assert.Equal(t, 0, s.end(t), s.log())
	}
}

// programAsTool writes a program and its manifest into a folder.
func programAsTool(t *testing.T, p *programs.Program) string {
	t.Helper()
	source := noerr.Get(p.Module())(t)
	tools := t.TempDir()
	for name, content := range map[string][]byte{
		"endless.wasm": source,
		"tool.yaml": []byte("schema: caisson/v1\nname: endless\ndescription: Never ends.\n" +
			"module: {path: endless.wasm, abi: wasi, stdin: none, stdout: text}\nparameters: {type: object}\n"),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(tools, name), content, 0o600))
	}
	return tools
}

// callProgram calls the tool in a separate process, and returns how long that took.
func callProgram(t *testing.T, tools, cache string) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), programPatience)
	defer cancel()
	command := exec.CommandContext(ctx, "caisson", "call", "endless", "--tools", tools, "--timeout", programTimeout.String(),
		"--cache-dir", cache, "--state-dir", "")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	began := time.Now()
	err := command.Run()
	took := time.Since(began)
	var exit *exec.ExitError
	if !assert.ErrorAs(t, err, &exit) || !assert.Equal(t, exitLimit, exit.ExitCode(), stderr.String()) {
		return took
	}
	assert.Contains(t, stderr.String(), fmt.Sprintf("the tool did not finish before its deadline of %s", programTimeout))
	return took
}
