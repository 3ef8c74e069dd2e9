package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/tooltest"
	"github.com/caisson-run/caisson/tool"
)

// start runs a command line in this process.
func start(ctx context.Context, stdin io.Reader, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(ctx, args, environment{stdin: stdin, stdout: &out, stderr: &errs})
	return code, out.String(), errs.String()
}

func TestInterruptEndsACall(t *testing.T) {
	root := noerr.Get(guests.Compile(t.Context(), "examples/turn/hostile/spin"))(t)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	code, stdout, stderr := start(ctx, nil, "call", "slow_report", "--cache-dir", "", "--state-dir", "", "--tools", filepath.Join(root, "examples", "turn", "hostile"))
	assert.Equal(t, exitInterrupted, code)
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, "caisson: error: slow_report: the call was cancelled")
}

// TestRecordsAreKeptAsCallsEnd: records are kept when calls end, not when the command does.
func TestRecordsAreKeptAsCallsEnd(t *testing.T) {
	state := t.TempDir()
	command := probeBatch(t, `[{"function":{"name":"probe","arguments":"{\"do\":\"print\",\"text\":\"done\"}"}},{"function":{"name":"probe","arguments":"{\"do\":\"sleep\",\"millis\":600000}"}}]`, "")
	ctx, cancel := context.WithCancel(t.Context())
	var first ledger.Entry
	watched := make(chan error, 1)
	go func() {
		defer cancel()
		for ctx.Err() == nil {
			if newest := tooltest.KeptCalls(t, state); len(newest) > 0 {
				first = newest[0]
				watched <- nil
				return
			}
			time.Sleep(time.Millisecond)
		}
		watched <- errors.New("the batch ended before there was a record")
	}()
	code, _, _ := start(ctx, nil, append(command, "--state-dir", state, "--timeout", "5m")...)
	require.NoError(t, <-watched)
	assert.Equal(t, exitInterrupted, code)
	assert.Equal(t, "done", first.Record.Result.Output)
	newest := tooltest.KeptCalls(t, state)
	require.Len(t, newest, 2)
	assert.Equal(t, tool.Cancelled, newest[0].Record.Result.Kind)
}

func TestInterruptEndsWaitingForInput(t *testing.T) {
	stdin, writer := io.Pipe()
	t.Cleanup(func() { _ = writer.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	code, stdout, stderr := start(ctx, stdin, "batch", "--state-dir", "", "--tools", t.TempDir())
	assert.Equal(t, exitInterrupted, code)
	assert.Empty(t, stdout)
	assert.Equal(t, "caisson: error: interrupted\n", stderr)
}

func TestInputThatNeverEndsIsRefused(t *testing.T) {
	code, _, stderr := start(t.Context(), endless{}, "call", "any", "-", "--state-dir", "", "--tools", t.TempDir())
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, "caisson: error: stdin has more than ")
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestOutputThatCannotBeWrittenIsAFailure(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"version", "--json"}, {"list", "--tools", t.TempDir()}} {
		var stderr bytes.Buffer
		code := run(t.Context(), args, environment{stdin: strings.NewReader(""), stdout: full{}, stderr: &stderr})
		assert.Equal(t, exitFailed, code, args)
		assert.Equal(t, "caisson: error: cannot write the output: no room\n", stderr.String(), args)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no room") }

// TestEveryCommandHasHelp: each command describes itself, starting in lower case.
func TestEveryCommandHasHelp(t *testing.T) {
	root := newRoot(environment{stdin: os.Stdin, stdout: io.Discard, stderr: io.Discard})
	for _, command := range root.Commands() {
		assert.NotEmpty(t, command.Short)
		assert.Equal(t, strings.ToLower(command.Short[:1]), command.Short[:1], command.Name())
		code, stdout, stderr := start(t.Context(), nil, command.Name(), "--help")
		assert.Zero(t, code, command.Name())
		assert.Contains(t, stdout, "Usage:\n  caisson "+command.Name(), command.Name())
		assert.Empty(t, stderr, command.Name())
	}
}

func TestProgress(t *testing.T) {
	var screen bytes.Buffer
	p := &progress{w: &screen}
	p.during("compiling fast", func() {})
	assert.Empty(t, screen.String(), "quick operations are not shown")

	p.during("compiling slow", func() {
		time.Sleep(2 * patience)
		p.during("compiling another", func() { time.Sleep(2 * patience) })
	})
	assert.Equal(t, "compiling slow …\r"+strings.Repeat(" ", 16)+"\r", screen.String(), "one operation at a time, and erased afterwards")
	assert.Nil(t, (&options{environment: environment{stderr: &screen}}).newProgress(), "a buffer is no terminal")
}
