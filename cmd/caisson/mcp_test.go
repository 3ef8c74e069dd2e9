package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/internal/noerr"
)

// mcpProcess is "caisson mcp" as a process, to which a test writes lines.
type mcpProcess struct {
	*exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Scanner
	stderr bytes.Buffer
}

func startMCP(t *testing.T, args ...string) *mcpProcess {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	p := &mcpProcess{Cmd: exec.CommandContext(ctx, "caisson", append([]string{"mcp", "--state-dir", t.TempDir()}, args...)...)}
	p.Cmd.Stderr = &p.stderr
	p.stdin = noerr.Get(p.StdinPipe())(t)
	stdout := noerr.Get(p.StdoutPipe())(t)
	p.stdout = bufio.NewScanner(stdout)
	p.stdout.Buffer(nil, 4<<20)
	require.NoError(t, p.Start())
	t.Cleanup(func() {
		_ = p.stdin.Close()
		_ = p.Process.Kill()
		_ = p.Wait()
		cancel()
	})
	return p
}

func (p *mcpProcess) send(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		noerr.Get(io.WriteString(p.stdin, line+"\n"))(t)
	}
}

// message is a message of the server's, in one line.
type mcpMessage struct {
	ID     *int   `json:"id"`
	Method string `json:"method"`
	Result struct {
		IsError bool `json:"isError"`
		Content []struct{ Text string }
	} `json:"result"`
	Error *struct{ Message string } `json:"error"`
}

// answer returns the answer to a request. Every line before it must be a message, too.
func (p *mcpProcess) answer(t *testing.T, id int) mcpMessage {
	t.Helper()
	for p.stdout.Scan() {
		var m mcpMessage
		require.NoError(t, json.Unmarshal(p.stdout.Bytes(), &m), "%q is no message", p.stdout.Text())
		if m.ID != nil && *m.ID == id && m.Method == "" {
			return m
		}
	}
	require.Fail(t, "there is no answer", "%v\n%s", p.stdout.Err(), p.stderr.String())
	return mcpMessage{}
}

var initialize = []string{
	`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`,
	`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
}

// TestMCPWithTheSDKsClient: the official client starts the command, lists, calls and reads on, and the process ends
// when it leaves.
func TestMCPWithTheSDKsClient(t *testing.T) {
	root := noerr.Get(guests.Compile(t.Context(), "wasm-tools/calculator", "wasm-tools/files"))(t)
	work := t.TempDir()
	long := strings.Repeat("one line\n", 10_000)
	require.NoError(t, os.WriteFile(filepath.Join(work, "long.txt"), []byte(long), 0o600))
	command := exec.CommandContext(t.Context(), "caisson", "mcp", "--state-dir", "", "--max-output", "2KiB",
		"--tools", filepath.Join(root, "wasm-tools", "calculator"), "--tools", filepath.Join(root, "wasm-tools", "files"), "--mount", "/project="+work, "--context", "project_id=demo")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session := noerr.Get(client.Connect(t.Context(), &sdk.CommandTransport{Command: command}, nil))(t)

	list := noerr.Get(session.ListTools(t.Context(), nil))(t)
	var names []string
	for _, offered := range list.Tools {
		names = append(names, offered.Name)
	}
	assert.Subset(t, names, []string{"calculator", "file_read", "read_output"})

	call := func(name, arguments string) *sdk.CallToolResult {
		t.Helper()
		result := noerr.Get(session.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)}))(t)
		require.NotEmpty(t, result.Content)
		return result
	}
	text := func(result *sdk.CallToolResult) string { return result.Content[0].(*sdk.TextContent).Text }
	assert.Equal(t, "4", text(call("calculator", `{"expression":"2+2"}`)))
	read := call("file_read", `{"path":"long.txt"}`)
	require.False(t, read.IsError, text(read))
	assert.Contains(t, text(read), "read on with read_output")
	link, ok := read.Content[1].(*sdk.ResourceLink)
	require.True(t, ok)
	page := noerr.Get(session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: link.URI}))(t)
	assert.Contains(t, page.Contents[0].Text, "one line\n")
	denied := call("file_read", `{"path":"/etc/passwd"}`)
	assert.True(t, denied.IsError)

	require.NoError(t, session.Close())
	assert.True(t, command.ProcessState.Success(), "%s %s", command.ProcessState, &stderr)
	assert.Empty(t, stderr.String())
}

// TestMCPToolTakenFromAnAgent: the command offers and runs the tools that its agent may call now.
func TestMCPToolTakenFromAnAgent(t *testing.T) {
	root := noerr.Get(guests.Compile(t.Context(), "wasm-tools/calculator"))(t)
	tools, state := filepath.Join(root, "wasm-tools"), t.TempDir()
	set := func(names ...string) {
		out, err := exec.CommandContext(t.Context(), "caisson", append([]string{"agent", "set", "--tools", tools, "--state-dir", state, "clerk"}, names...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	set("calculator")
	p := startMCP(t, "--tools", tools, "--state-dir", state, "--agent", "clerk")
	p.send(t, initialize...)
	const sum = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"calculator","arguments":{"expression":"2+2"}}}`
	p.send(t, fmt.Sprintf(sum, 2))
	assert.Equal(t, "4", p.answer(t, 2).Result.Content[0].Text)
	set("ask_user")
	p.send(t, fmt.Sprintf(sum, 3))
	denied := p.answer(t, 3)
	require.True(t, denied.Result.IsError)
	assert.Contains(t, denied.Result.Content[0].Text, "calculator is not among the tools that this agent may call")
}

const endlessManifest = `
schema: caisson/v1
name: endless
description: Never ends.
version: 1.0.0
module: {path: spin.wasm}
parameters: {type: object}
limits: {timeout: 1h}
`

// TestMCPEnds: the command ends with its input and with a signal. A call that runs is cancelled, and its client is
// told before the process is gone.
func TestMCPEnds(t *testing.T) {
	root := noerr.Get(guests.Compile(t.Context(), "examples/turn/hostile/spin"))(t)
	tools := t.TempDir()
	module := noerr.Get(os.ReadFile(filepath.Join(root, "examples", "turn", "hostile", "spin", "spin.wasm")))(t)
	require.NoError(t, os.WriteFile(filepath.Join(tools, "spin.wasm"), module, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(tools, "tool.yaml"), []byte(endlessManifest), 0o600))
	for name, end := range map[string]func(p *mcpProcess) error{
		"input":   func(p *mcpProcess) error { return p.stdin.Close() },
		"SIGINT":  func(p *mcpProcess) error { return p.Process.Signal(os.Interrupt) },
		"SIGTERM": func(p *mcpProcess) error { return p.Process.Signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			p := startMCP(t, "--tools", tools, "--timeout", "1h")
			p.send(t, initialize...)
			p.answer(t, 1)
			p.send(t, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"endless","arguments":{}}}`, `{"jsonrpc":"2.0","id":3,"method":"ping"}`)
			p.answer(t, 3)
			time.Sleep(300 * time.Millisecond) // the module is compiled, or the call runs; either can be cancelled
			began := time.Now()
			require.NoError(t, end(p))
			answer := p.answer(t, 2)
			assert.True(t, answer.Result.IsError)
			assert.Contains(t, answer.Result.Content[0].Text, "cancelled")
			assert.False(t, p.stdout.Scan(), "nothing follows: %s", p.stdout.Text())
			require.NoError(t, p.Wait(), "%s", &p.stderr)
			assert.Less(t, time.Since(began), 10*time.Second)
			assert.Empty(t, p.stderr.String())
		})
	}
}

// TestAttackMCPUnread: a client sends requests until no more are taken, and reads no answer. A signal ends the command
// nevertheless.
func TestAttackMCPUnread(t *testing.T) {
	p := startMCP(t, "--tools", t.TempDir())
	p.send(t, initialize...)
	sent := make(chan struct{})
	go func() { // it ends when the command has
		defer close(sent)
		for i := range 200_000 {
			_, err := fmt.Fprintf(p.stdin, `{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`+"\n", i+2)
			if err != nil {
				return
			}
		}
	}()
	select {
	case <-sent:
		t.Fatal("all requests were taken, although no answer was read")
	case <-time.After(3 * time.Second):
	}
	began := time.Now()
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	_, err := p.Process.Wait() // p.Wait would close the pipe that the command waits for
	require.NoError(t, err)
	assert.Less(t, time.Since(began), 12*time.Second)
}

// TestMCPOutputIsOnlyMessages: whatever a client sends, standard output has only messages of the protocol, and messages
// to people are on standard error.
func TestMCPOutputIsOnlyMessages(t *testing.T) {
	root := noerr.Get(guests.Compile(t.Context(), "wasm-tools/calculator"))(t)
	for name, line := range map[string]string{
		"not JSON": "hello?", "half": `{"jsonrpc":"2.0"`,
		"too long": `{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":"` + strings.Repeat("a", 5<<20) + `"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := startMCP(t, "--verbose", "--tools", filepath.Join(root, "wasm-tools", "calculator"))
			p.send(t, initialize...)
			p.answer(t, 1)
			_, _ = fmt.Fprintln(p.stdin, line) // the process may end before it has read all
			_ = p.stdin.Close()
			for p.stdout.Scan() {
				assert.True(t, json.Valid(p.stdout.Bytes()), p.stdout.Text())
			}
			err := p.Wait()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, "%s", &p.stderr)
			assert.Equal(t, exitFailed, exit.ExitCode())
			assert.Contains(t, p.stderr.String(), "caisson: error: mcp: the client's messages cannot be read: ")
			assert.NotContains(t, p.stderr.String(), strings.Repeat("a", 1000))
		})
	}
}

// TestMCPAgent: an agent's client sees and calls the agent's tools, and the tool that reads the rest of their results.
func TestMCPAgent(t *testing.T) {
	root := noerr.Get(guests.Compile(t.Context(), "wasm-tools/calculator", "wasm-tools/files"))(t)
	state := t.TempDir()
	tools := []string{"--state-dir", state, "--tools", filepath.Join(root, "wasm-tools", "calculator"), "--tools", filepath.Join(root, "wasm-tools", "files")}
	code, _, stderr := start(t.Context(), nil, append([]string{"agent", "set", "clerk", "calculator"}, tools...)...)
	require.Zero(t, code, stderr)
	p := startMCP(t, append(tools, "--agent", "clerk")...)
	p.send(t, initialize...)
	p.answer(t, 1)
	p.send(t, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	require.True(t, p.stdout.Scan())
	var list struct {
		Result struct{ Tools []struct{ Name string } }
	}
	require.NoError(t, json.Unmarshal(p.stdout.Bytes(), &list))
	assert.Equal(t, []struct{ Name string }{{"calculator"}, {"read_output"}}, list.Result.Tools)
	p.send(t, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"file_read","arguments":{"path":"x"}}}`)
	refused := p.answer(t, 3)
	assert.True(t, refused.Error != nil || refused.Result.IsError)
}
