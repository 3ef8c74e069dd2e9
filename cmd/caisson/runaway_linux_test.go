//go:build faults && linux && (amd64 || arm64)

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/overlay"
	"github.com/caisson-run/caisson/tool"
)

// These tests need guests that cannot be stopped, so they build the command with faults, each of which
// replaces a text that occurs once in a file. Those of package metered leave loops after a call without
// a check. The other faults depend on the environment: a collector that runs all the time, something that
// repeatedly stops all goroutines, as the collector does in some phases, and no kernel timer.
var faults = []overlay.Edit{
	{File: "cmd/caisson/main.go",
		Old: "\tcompiler := runtime.ChildCompiler(ctx)\n",
		New: "\tcompiler := runtime.ChildCompiler(ctx)\n" +
			"\tswitch os.Getenv(\"FAULT\") {\n" +
			"\tcase \"collect\":\n\t\tgo func() {\n\t\t\tfor {\n\t\t\t\tgoruntime.GC()\n\t\t\t}\n\t\t}()\n" +
			"\tcase \"stop\":\n\t\tgo func() {\n\t\t\tfor {\n\t\t\t\tgoruntime.ReadMemStats(new(goruntime.MemStats))\n\t\t\t}\n\t\t}()\n\t}\n"},
	{File: "cmd/caisson/runaway.go",
		Old: "\tif timer, err := lastresort.New(); err == nil {\n",
		New: "\tif timer, err := lastresort.New(); err == nil && os.Getenv(\"FAULT_NO_TIMER\") == \"\" {\n"},
	{File: "cmd/caisson/runaway.go", Old: "\t\"fmt\"\n", New: "\t\"fmt\"\n\t\"os\"\n"},
}

// hole reads the faults of package metered.
func hole(t *testing.T, root string) []overlay.Edit {
	t.Helper()
	text := noerr.Get(os.ReadFile(filepath.Join(root, "runtime", "internal", "wasm", "metered", "testdata", "faults.json")))(t)
	var all struct{ Hole, Unverified []overlay.Edit }
	require.NoError(t, json.Unmarshal(text, &all))
	require.NotEmpty(t, all.Hole)
	return append(all.Hole, all.Unverified...)
}

// faulty is the command with the faults, and tools for it.
type faulty struct {
	binary, tools, cache string
	spin                 string // the digest of its module
}

func section(id byte, content string) string { return string(id) + vector(content) }

func vector(content string) string {
	return string(binary.AppendUvarint(nil, uint64(len(content)))) + content
}

// looping is a program that loops forever after a call, before it reads its input.
var looping = "\x00asm\x01\x00\x00\x00" + section(1, "\x02\x60\x00\x00\x60\x04\x7f\x7f\x7f\x7f\x01\x7f") +
	section(2, "\x01"+vector("wasi_snapshot_preview1")+vector("fd_read")+"\x00\x01") + section(3, "\x02\x00\x00") + section(5, "\x01\x00\x01") +
	section(7, "\x02"+vector("memory")+"\x02\x00"+vector("_start")+"\x00\x01") +
	section(10, "\x02"+vector("\x00\x10\x02\x03\x40\x0c\x00\x0b\x0b")+vector("\x00\x0b"))

func newFaulty(t *testing.T) *faulty {
	t.Helper()
	root := noerr.Get(filepath.Abs(filepath.Join("..", "..")))(t)
	dir := t.TempDir()
	f := &faulty{binary: filepath.Join(dir, "caisson"), tools: filepath.Join(dir, "tools"), cache: filepath.Join(dir, "cache")}
	path := noerr.Get(overlay.Write(dir, root, append(hole(t, root), faults...)))(t)
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", path, "-o", f.binary, "./cmd/caisson")
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	compiled := noerr.Get(guests.Compile(t.Context(), "internal/guests/probe"))(t)
	probe := noerr.Get(os.ReadFile(filepath.Join(compiled, "internal", "guests", "probe", "probe.wasm")))(t)
	f.tool(t, "spin", looping, "limits: {timeout: 1s}")
	f.tool(t, "probe", string(probe), "limits: {timeout: 1s}")
	f.spin = fmt.Sprintf("%x", sha256.Sum256([]byte(looping)))
	code, _, stderr, _ := f.run(t, nil, 2*time.Minute, "call", "probe", `{"do":"print","text":"fine"}`) // and compiles it
	require.Zero(t, code, stderr)
	return f
}

func (f *faulty) tool(t *testing.T, name, module, more string) {
	t.Helper()
	dir := filepath.Join(f.tools, name)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tool.wasm"), []byte(module), 0o600))
	manifest := "schema: caisson/v1\nname: " + name + "\ndescription: A test's.\nmodule: {path: tool.wasm, stdout: text}\nparameters: {type: object}\n" + more + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tool.yaml"), []byte(manifest), 0o600))
}

func (f *faulty) command(t *testing.T, environment []string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), f.binary, append(args, "--tools", f.tools, "--cache-dir", f.cache, "--state-dir", "")...)
	c.Env = append(append(os.Environ(), "GOMAXPROCS=4", "GORACE=atexit_sleep_ms=0"), environment...)
	return c
}

// run runs the command, and kills it after the time. Its code is -1 then.
func (f *faulty) run(t *testing.T, environment []string, most time.Duration, args ...string) (code int, stdout, stderr string, took time.Duration) {
	t.Helper()
	var out, errs bytes.Buffer
	c := f.command(t, environment, args...)
	c.Stdout, c.Stderr = &out, &errs
	start := time.Now()
	require.NoError(t, c.Start())
	code = wait(t, c, most)
	return code, out.String(), errs.String(), time.Since(start)
}

func wait(t *testing.T, c *exec.Cmd, most time.Duration) int {
	t.Helper()
	killer := time.AfterFunc(most, func() { _ = c.Process.Kill() })
	defer killer.Stop()
	err := c.Wait()
	var exit *exec.ExitError
	require.True(t, err == nil || errors.As(err, &exit), "%v", err)
	return c.ProcessState.ExitCode()
}

var (
	quiescent = []string{"GOGC=off"}
	timerless = []string{"GOGC=off", "FAULT_NO_TIMER=1"} // as on systems without the timer
)

func TestRunaway(t *testing.T) {
	f := newFaulty(t)
	// The time that the process takes in addition to the call.
	_, _, _, startup := f.run(t, nil, 20*time.Second, "call", "probe", `{}`)
	// The timeout, ten seconds in which a guest can use a processor for one on a busy machine, and three to end.
	within := time.Second + 10*time.Second + 3*time.Second + startup

	// What still runs depends on the phase of the collection that waits for a guest.
	for range 2 {
		for _, arguments := range [][]string{{"call", "spin"}, {"batch", f.batch(t, "spin", "probe", "probe")}, {"inspect", "spin"}} {
			t.Run("ends the command with the collector running: "+arguments[0], func(t *testing.T) {
				code, _, stderr, took := f.run(t, []string{"FAULT=collect"}, 20*time.Second, arguments...)
				assert.Equal(t, exitLimit, code)
				assert.Less(t, took, within)
				assert.Contains(t, stderr, "caisson: error: spin: the tool ")
				assert.Contains(t, stderr, ": this is a bug in Caisson\n")
				assert.Contains(t, stderr, "caisson: hint: report it with the module, whose SHA-256 is "+f.spin)
			})
		}
	}
	t.Run("ends the command if no goroutine runs", func(t *testing.T) {
		code, stdout, stderr, took := f.run(t, []string{"GOGC=off", "FAULT=stop"}, 20*time.Second, "call", "spin")
		assert.Equal(t, exitLimit, code)
		assert.Less(t, took, within)
		assert.Empty(t, stdout)
		assert.Equal(t, "caisson: error: spin: the tool did not finish before its deadline, and nothing else runs in this process: this is a bug in Caisson\n"+
			"caisson: hint: report it with the module, whose SHA-256 is "+f.spin+"; if several calls ran, another may be the cause\n", stderr)
	})
	t.Run("control: without the timer it hangs", func(t *testing.T) {
		code, stdout, stderr, _ := f.run(t, []string{"GOGC=off", "FAULT=stop", "FAULT_NO_TIMER=1"}, 8*time.Second, "call", "spin")
		assert.Equal(t, -1, code, "it had to be killed")
		assert.Empty(t, stdout+stderr)
	})
	t.Run("leaves a record if no collection waits", func(t *testing.T) {
		code, stdout, stderr, took := f.run(t, quiescent, 20*time.Second, "call", "spin", "--json")
		assert.Equal(t, exitLimit, code)
		assert.Less(t, took, within)
		assert.Equal(t, []tool.Kind{tool.Deadline}, kinds(t, stdout))
		assert.Equal(t, "caisson: error: spin: the tool did not finish before its deadline of 1s and could not be stopped: this is a bug in Caisson\n"+
			"caisson: hint: report it with the module, whose SHA-256 is "+f.spin+"; the tool was in code of its own\n", stderr)
	})
	t.Run("ends a batch in order if no collection waits", func(t *testing.T) {
		code, stdout, stderr, took := f.run(t, quiescent, 20*time.Second, "batch", "--json", f.batch(t, "probe", "spin", "probe"))
		assert.Equal(t, exitLimit, code)
		assert.Less(t, took, within)
		assert.Equal(t, []tool.Kind{"", tool.Deadline, tool.Cancelled}, kinds(t, stdout))
		assert.Contains(t, stderr, "caisson: error: spin: the tool could not be stopped at its deadline: this is a bug in Caisson")
	})
	t.Run("ends the command on other systems while it can", func(t *testing.T) {
		for _, arguments := range [][]string{{"call", "spin"}, {"batch", f.batch(t, "spin")}, {"inspect", "spin"}} {
			code, _, stderr, took := f.run(t, timerless, 20*time.Second, arguments...)
			assert.Equal(t, exitLimit, code)
			assert.Less(t, took, within)
			assert.Contains(t, stderr, "this is a bug in Caisson")
		}
	})
	t.Run("is not what was only suspended", func(t *testing.T) {
		var errs bytes.Buffer
		c := f.command(t, nil, "call", "probe", `{"do":"sleep","millis":600000}`)
		c.Stderr = &errs
		require.NoError(t, c.Start())
		time.Sleep(startup + 300*time.Millisecond)
		require.NoError(t, c.Process.Signal(syscall.SIGSTOP))
		time.Sleep(4 * time.Second)
		require.NoError(t, c.Process.Signal(syscall.SIGCONT))
		assert.Equal(t, exitLimit, wait(t, c, 20*time.Second))
		assert.Contains(t, errs.String(), "caisson: error: probe: the tool did not finish before its deadline of 1s\n")
	})
}

// kinds returns how calls ended, by their records.
func kinds(t *testing.T, lines string) (all []tool.Kind) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		var record tool.Record
		require.NoError(t, json.Unmarshal([]byte(line), &record), lines)
		all = append(all, record.Result.Kind)
	}
	return all
}

// batch writes a file with a call of each tool.
func (f *faulty) batch(t *testing.T, names ...string) string {
	t.Helper()
	var calls []tool.Call
	for i, name := range names {
		calls = append(calls, tool.Call{ID: fmt.Sprint("call_", i), Type: tool.FunctionCall, Function: tool.Function{Name: name, Arguments: fmt.Sprintf(`{"do":"print","text":"%d"}`, i)}})
	}
	text := noerr.Get(json.Marshal(calls))(t)
	file := filepath.Join(t.TempDir(), "calls.json")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return file
}
