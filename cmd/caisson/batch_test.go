package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/tool"
)

// probeTools writes files into a folder, beside the module that does what its arguments say.
func probeTools(t *testing.T, files map[string]string) string {
	t.Helper()
	root, err := guests.Compile(t.Context(), "internal/guests/probe")
	require.NoError(t, err)
	module, err := os.ReadFile(filepath.Join(root, "internal", "guests", "probe", "probe.wasm"))
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "probe.wasm"), module, 0o600))
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return dir
}

// testCache is the folder for compiled code that all tests share, so that each module is compiled
// once.
func testCache(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	return filepath.Join(cache, "caisson", "test", "scripts")
}

const destructiveProbe = "schema: caisson/v1\nname: remove\ndescription: Does what its arguments say.\nmodule: {path: probe.wasm, stdout: text}\nparameters: {type: object}\nbehavior: {destructive: true}\n"

// TestABatchIsResumedOnce: of many who go on with a batch at the same time, from its file, from a copy
// and by its id, and from its file with a state folder of their own, one does.
func TestABatchIsResumedOnce(t *testing.T) {
	state := t.TempDir()
	tools := probeTools(t, map[string]string{
		"tool.yaml":  destructiveProbe,
		"calls.json": `{"id":"call_1","function":{"name":"remove","arguments":"{\"do\":\"print\",\"text\":\"removed\"}"}}`,
	})
	flags := []string{"--cache-dir", testCache(t), "--tools", tools, "--state-dir"}
	code, stdout, stderr := start(t.Context(), nil, append(append([]string{"batch", filepath.Join(tools, "calls.json")}, flags...), state)...)
	require.Equal(t, exitWaits, code, stderr)
	told := outcome{waiting: &waiting{}}
	require.NoError(t, json.Unmarshal([]byte(stdout), &told))
	content, err := os.ReadFile(told.State)
	require.NoError(t, err)
	copied := filepath.Join(t.TempDir(), "copy.json")
	require.NoError(t, os.WriteFile(copied, content, 0o600))

	var mu sync.Mutex
	var group sync.WaitGroup
	ended := map[int]int{}
	for i := range 8 {
		name, folder := []string{told.Batch, told.State, copied, told.State}[i%4], state
		if i%4 == 3 {
			folder = t.TempDir()
		}
		group.Go(func() {
			command := append([]string{"batch", "--resume", name, "--approve", "call_1@" + told.Approvals[0].Fingerprint}, flags...)
			code, stdout, stderr := start(t.Context(), nil, append(command, folder)...)
			mu.Lock()
			defer mu.Unlock()
			ended[code]++
			if code == exitSuccess {
				assert.Contains(t, stdout, "removed")
				return
			}
			assert.Empty(t, stdout)
			assert.True(t, strings.Contains(stderr, "the batch no longer waits") || strings.Contains(stderr, "has ended"), stderr)
		})
	}
	group.Wait()
	assert.Equal(t, map[int]int{exitSuccess: 1, exitUsage: 7}, ended)
}

// TestAnInterruptIsShownToTheEnd: the stream of a batch that is interrupted says what became of its
// calls.
func TestAnInterruptIsShownToTheEnd(t *testing.T) {
	tools := probeTools(t, map[string]string{
		"tool.yaml":  strings.Replace(destructiveProbe, "behavior: {destructive: true}\n", "", 1),
		"calls.json": `[{"id":"call_1","function":{"name":"remove","arguments":"{\"do\":\"sleep\",\"millis\":600000}"}},{"id":"call_2","function":{"name":"remove","arguments":"{}"}}]`,
	})
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs bytes.Buffer
	watched := writerFunc(func(p []byte) (int, error) {
		if bytes.Contains(p, []byte(`"type":"call_started"`)) {
			cancel()
		}
		return out.Write(p)
	})
	args := []string{"batch", filepath.Join(tools, "calls.json"), "--stream", "--timeout", "5m", "--cache-dir", testCache(t), "--state-dir", "", "--tools", tools}
	code := run(ctx, args, environment{stdout: watched, stderr: &errs})
	assert.Equal(t, exitInterrupted, code, errs.String())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var last struct {
		Status  string
		Results []tool.Record
	}
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &last))
	assert.Equal(t, "completed", last.Status)
	require.Len(t, last.Results, 2)
	for _, record := range last.Results {
		assert.Equal(t, tool.Cancelled, record.Result.Kind)
	}
	assert.Contains(t, out.String(), `"type":"batch_finished"`)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestAStreamThatCannotBeWrittenIsAFailure: the calls run all the same, and the command says so, and
// what they came to.
func TestAStreamThatCannotBeWrittenIsAFailure(t *testing.T) {
	tools := probeTools(t, map[string]string{
		"tool.yaml":  destructiveProbe,
		"calls.json": `{"id":"call_1","function":{"name":"remove","arguments":"{}"}}`,
	})
	for _, form := range []string{"--stream=events", "--stream=responses", "--quiet"} {
		var stderr bytes.Buffer
		args := []string{"batch", filepath.Join(tools, "calls.json"), form, "--approve-tool", "remove", "--cache-dir", testCache(t), "--state-dir", "", "--tools", tools}
		code := run(t.Context(), args, environment{stdin: strings.NewReader(""), stdout: full{}, stderr: &stderr})
		assert.Equal(t, exitFailed, code, form)
		lines := strings.Split(stderr.String(), "\n")
		require.Len(t, lines, 3, form)
		var record tool.Record
		require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(lines[0], "caisson: record: ")), &record), form)
		assert.Equal(t, "call_1", record.Call.ID)
		assert.True(t, record.Result.Success)
		assert.Equal(t, "caisson: error: cannot write the output: no room", lines[1], form)
	}
}

// TestABatchThatWaitsIsKeptThoughNobodyReads: what has run is not lost with the output.
func TestABatchThatWaitsIsKeptThoughNobodyReads(t *testing.T) {
	tools := probeTools(t, map[string]string{
		"tool.yaml":  destructiveProbe,
		"calls.json": `{"id":"call_1","function":{"name":"remove","arguments":"{}"}}`,
	})
	for _, form := range []string{"--stream=events", "--stream=responses", "--quiet"} {
		file := filepath.Join(t.TempDir(), "batch.json")
		args := []string{"batch", filepath.Join(tools, "calls.json"), form, "--state", file, "--cache-dir", testCache(t), "--state-dir", "", "--tools", tools}
		code := run(t.Context(), args, environment{stdin: strings.NewReader(""), stdout: full{}, stderr: &bytes.Buffer{}})
		assert.Equal(t, exitFailed, code, form)
		code, stdout, stderr := start(t.Context(), nil, "batch", "--resume", file, "--refuse", "call_1", "--cache-dir", testCache(t), "--state-dir", "", "--tools", tools)
		assert.Equal(t, exitSuccess, code, stderr)
		assert.Contains(t, stdout, "not approved", form)
	}
}

// TestFlagsAreGivenAgain: those of a command line that hold for the next one, as a shell takes them.
func TestFlagsAreGivenAgain(t *testing.T) {
	for line, want := range map[string]string{
		"batch in.json --tools a --json":                         "--tools a --json",
		"batch --tools=a -- in.json":                             "--tools a",
		"batch --tools a --tools b --quiet=false --parallel=3 x": "--tools a --tools b --quiet=false --parallel 3",
		"batch --resume x --approve a --refuse b=c --stream":     "--stream",
		"batch --stream=events --dialect openai --state s":       "--stream=events",
		"batch --context a=b|c --state-dir=":                     "--context 'a=b|c' --state-dir ''",
		"--tools=a batch - --json=true --tools b":                "--tools a --json=true --tools b",
	} {
		root := newRoot(environment{})
		args := strings.Fields(line)
		command, rest, err := root.Find(args)
		require.NoError(t, err)
		require.NoError(t, command.ParseFlags(rest))
		assert.Equal(t, want, strings.Join(flagsOf(command, args), " "), line)
	}
}
