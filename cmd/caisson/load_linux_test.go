//go:build load

package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var loadTime = flag.Duration("load", 10*time.Second, "how long TestServeLoad holds its connections")

const connections = 64

// A constantServer is this test's own binary as plain net/http, so that both servers are measured alike.
const constantServer = "CAISSON_TEST_CONSTANT"

func init() {
	if length := os.Getenv(constantServer); length != "" {
		n, _ := strconv.Atoi(length)
		constant := bytes.Repeat([]byte("x"), n)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(os.Stderr, "constant at http://%s\n", l.Addr())
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(constant)
		}))
	}
}

// measured has the measurements of a server under load.
type measured struct {
	requests, errors int64
	p50, p99         time.Duration
	processor        time.Duration // of the server, for one request
	early, late      int64         // resident memory after a fifth of the time and at the end, in bytes
}

func (m measured) print(t *testing.T, name string) {
	t.Logf("%-28s %9d requests, %d errors, p50 %8s, p99 %8s, processor %6.1f µs a request, memory %d to %d MiB", name, m.requests, m.errors,
		m.p50.Round(time.Microsecond), m.p99.Round(time.Microsecond), float64(m.processor.Nanoseconds())/1000, m.early>>20, m.late>>20)
}

// measure sends a request over many connections for a while, and measures the server's process.
func measure(t *testing.T, pid int, url, body string, header map[string]string, good func(text []byte) bool, during time.Duration) (m measured) {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var number, requests, failures atomic.Int64
	var first atomic.Value
	times := make([][]time.Duration, connections)
	ask := func() (time.Duration, bool) {
		numbered := strings.Replace(body, `"id":1,`, fmt.Sprintf(`"id":%d,`, number.Add(1)), 1) // a session has each id once at a time
		r, err := http.NewRequest("POST", url, strings.NewReader(numbered))
		if err != nil {
			return 0, false
		}
		r.Header.Set("Content-Type", "application/json")
		for name, value := range header {
			r.Header.Set(name, value)
		}
		began := time.Now()
		response, err := client.Do(r)
		if err != nil {
			first.CompareAndSwap(nil, err.Error())
			return 0, false
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != 200 || !good(text) {
			first.CompareAndSwap(nil, fmt.Sprintf("%d %s %v", response.StatusCode, text, err))
			return 0, false
		}
		return time.Since(began), true
	}
	for range 100 { // compiled, and warm
		ask()
	}
	before := processorTime(t, pid)
	ctx, cancel := context.WithTimeout(t.Context(), during)
	defer cancel()
	var all sync.WaitGroup
	for i := range connections {
		all.Go(func() {
			for ctx.Err() == nil {
				took, ok := ask()
				requests.Add(1)
				if !ok {
					failures.Add(1)
					continue
				}
				if len(times[i]) < 100_000 {
					times[i] = append(times[i], took)
				}
			}
		})
	}
	time.Sleep(during / 5)
	m.early = resident(t, pid)
	all.Wait()
	m.late = resident(t, pid)
	m.requests, m.errors = requests.Load(), failures.Load()
	m.processor = (processorTime(t, pid) - before) / time.Duration(max(1, m.requests))
	sorted := slices.Concat(times...)
	slices.Sort(sorted)
	if len(sorted) > 0 {
		m.p50, m.p99 = sorted[len(sorted)/2], sorted[len(sorted)*99/100]
	}
	if wrong := first.Load(); wrong != nil {
		t.Logf("%s: first error: %v", url, wrong)
	}
	return m
}

// processorTime returns the user and system time that a process has used.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	user, err := strconv.ParseInt(fields[11], 10, 64)
	require.NoError(t, err)
	system, err := strconv.ParseInt(fields[12], 10, 64)
	require.NoError(t, err)
	return time.Duration(user+system) * (time.Second / 100) // the kernel counts hundredths
}

func resident(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	require.NoError(t, err)
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	require.NoError(t, err)
	return pages * int64(os.Getpagesize())
}

// started starts a server that says on standard error where it listens.
func started(t *testing.T, command *exec.Cmd) (url string, pid int) {
	t.Helper()
	stderr, err := command.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
	})
	var said []byte
	for buffer := make([]byte, 4096); ; {
		n, err := stderr.Read(buffer)
		said = append(said, buffer[:n]...)
		if _, found, ok := strings.Cut(string(said), "http://"); ok && strings.Contains(found, "\n") {
			go io.Copy(io.Discard, stderr)
			return "http://" + strings.Fields(found)[0], command.Process.Pid
		}
		require.NoError(t, err, string(said))
	}
}

// TestServeLoad: 64 connections that are always busy get no error, and memory stays flat. The test also prints
// latencies, processor time compared with plain net/http, and MCP compared with the SDK's own server.
func TestServeLoad(t *testing.T) {
	module, err := os.ReadFile(filepath.Join("..", "..", "internal", "benchmark", "guests", "c", "tool.wasm"))
	require.NoError(t, err)
	tools := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(tools, "tool.wasm"), module, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(tools, "tool.yaml"), []byte(`
schema: caisson/v1
name: tool
description: Puts a text in capitals and adds numbers up.
module: {path: tool.wasm, stdout: text}
parameters: {type: object, properties: {text: {type: string}, nums: {type: array, items: {type: integer}}}, required: [text, nums]}
`), 0o600))
	url, pid := started(t, exec.Command("caisson", "serve", "--addr", "localhost:0", "--tools", tools, "--state-dir", "", "--no-reuse"))

	const arguments = `{"text":"abcdefghijklmnopqrstuvwxyz","nums":[1,2,3,4,5,6,7,8,9,10]}`
	calls := measure(t, pid, url+"/v1/calls", `{"name":"tool","arguments":`+arguments+`}`, nil, func(text []byte) bool { return bytes.Contains(text, []byte(`"success":true`)) }, *loadTime)
	calls.print(t, "POST /v1/calls")
	assert.Zero(t, calls.errors)
	assert.Positive(t, calls.requests)
	assert.LessOrEqual(t, float64(calls.late), 1.15*float64(calls.early)+16<<20, "memory grows")

	protocol := map[string]string{"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "tool"}
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"load","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	isResult := func(text []byte) bool {
		return bytes.Contains(text, []byte(`"result"`)) && !bytes.Contains(text, []byte(`"isError":true`))
	}
	ours := measure(t, pid, url+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tool","arguments":`+arguments+`,`+meta+`}}`, protocol, isResult, *loadTime/5)
	ours.print(t, "POST /mcp, stateless")
	assert.Zero(t, ours.errors)
	inSession := map[string]string{"Accept": protocol["Accept"], "Mcp-Protocol-Version": "2025-11-25", "Mcp-Session-Id": mcpSession(t, url+"/mcp")}
	ours = measure(t, pid, url+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tool","arguments":`+arguments+`}}`, inSession, isResult, *loadTime/5)
	ours.print(t, "POST /mcp, in a session")
	assert.Zero(t, ours.errors)

	command := exec.Command(os.Args[0], "-test.run", "^$")
	command.Env = append(os.Environ(), constantServer+"=600")
	url, pid = started(t, command)
	constant := measure(t, pid, url, `{"name":"tool","arguments":`+arguments+`}`, nil, func([]byte) bool { return true }, *loadTime/5)
	constant.print(t, "net/http, a constant")

	everything := filepath.Join(t.TempDir(), "everything")
	build := exec.Command("go", "build", "-o", everything, "github.com/modelcontextprotocol/go-sdk/examples/server/everything")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	theirs := exec.Command(everything, "-http", address)
	require.NoError(t, theirs.Start())
	t.Cleanup(func() {
		_ = theirs.Process.Kill()
		_ = theirs.Wait()
	})
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err == nil
	}, 10*time.Second, 10*time.Millisecond)
	session := mcpSession(t, "http://"+address)
	greet := measure(t, theirs.Process.Pid, "http://"+address, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","arguments":{"name":"abcdefghijklmnopqrstuvwxyz"}}}`,
		map[string]string{"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2025-11-25", "Mcp-Session-Id": session}, isResult, *loadTime/5)
	greet.print(t, "the SDK's everything-server")
	t.Logf("a call over HTTP takes %.1f times the processor time of a constant, the sandbox included", float64(calls.processor)/float64(constant.processor))
}

// mcpSession begins a session with a server of an earlier revision.
func mcpSession(t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequest("POST", url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"load","version":"1"}}}`))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	return response.Header.Get("Mcp-Session-Id")
}
