package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/internal/noerr"
)

// served is "caisson serve" as a process.
type served struct {
	*exec.Cmd
	url string

	mu   sync.Mutex
	said bytes.Buffer // on standard error
}

// TestServeSaysHowToAvoidAnAddressInUse: the message names the address and the flag, and the code is that of a wrong
// command line.
func TestServeSaysHowToAvoidAnAddressInUse(t *testing.T) {
	root := noerr.Get(guests.Compile(t.Context(), "wasm-tools/calculator"))(t)
	taken := noerr.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	code, stdout, stderr := start(t.Context(), strings.NewReader(""), "serve", "--addr", taken.Addr().String(), "--tools", filepath.Join(root, "wasm-tools", "calculator"), "--state-dir", "")
	assert.Equal(t, exitUsage, code)
	assert.Empty(t, stdout)
	assert.Regexp(t, "^caisson: error: cannot listen on "+regexp.QuoteMeta(taken.Addr().String())+": .*\n"+
		"caisson: hint: listen on another address or port with --addr HOST:PORT, such as --addr localhost:8712, or with port 0 on any that is free\n$", stderr)
}

// startServe starts the command with the shipped tools on any free port, and waits until it listens.
func startServe(t *testing.T, args ...string) *served {
	t.Helper()
	return startServeIn(t, nil, args...)
}

// startServeIn does the same where a command that begins with enter is.
func startServeIn(t *testing.T, enter []string, args ...string) *served {
	t.Helper()
	root := noerr.Get(guests.Compile(t.Context(), "wasm-tools/calculator", "wasm-tools/files", "internal/guests/probe"))(t)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	args = append([]string{"serve", "--addr", "localhost:0", "--tools", filepath.Join(root, "wasm-tools", "calculator"), "--tools", filepath.Join(root, "wasm-tools", "files")}, args...)
	quiet := slices.Contains(args, "--quiet") // its address is not printed
	if quiet {
		free := noerr.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		require.NoError(t, free.Close())
		args = append(args, "--addr", free.Addr().String())
	}
	command := slices.Concat(enter, []string{"caisson"}, args)
	s := &served{Cmd: exec.CommandContext(ctx, command[0], command[1:]...)}
	stderr := noerr.Get(s.StderrPipe())(t)
	require.NoError(t, s.Start())
	listening := make(chan string, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			s.mu.Lock()
			s.said.WriteString(lines.Text() + "\n")
			s.mu.Unlock()
			if _, url, found := strings.Cut(lines.Text(), " at http"); found {
				listening <- "http" + url
			}
		}
		close(listening)
	}()
	t.Cleanup(func() {
		_ = s.Process.Kill()
		<-read
		_ = s.Wait()
		cancel()
	})
	if quiet {
		address := args[len(args)-1]
		require.Eventually(t, func() bool {
			c, err := net.Dial("tcp", address)
			return err == nil && c.Close() == nil
		}, time.Minute, 10*time.Millisecond, s.log())
		s.url = "http://" + address
		return s
	}
	select {
	case s.url = <-listening:
	case <-ctx.Done():
	}
	require.NotEmpty(t, s.url, s.log())
	return s
}

func (s *served) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said.String()
}

// end tells the process to stop, and returns its exit code.
func (s *served) end(t *testing.T) int {
	t.Helper()
	require.NoError(t, s.Process.Signal(syscall.SIGTERM))
	_ = s.Wait()
	return s.ProcessState.ExitCode()
}

func (s *served) do(t *testing.T, client *http.Client, method, path, token, body string) (status int, text string) {
	t.Helper()
	r := noerr.Get(http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body)))(t)
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response := noerr.Get(client.Do(r))(t)
	defer response.Body.Close()
	read := noerr.Get(io.ReadAll(response.Body))(t)
	return response.StatusCode, string(read)
}

// plain is a client that keeps nothing.
func plain(t *testing.T) *http.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

const sevenTimesSix = `{"name":"calculator","arguments":{"expression":"7*6"}}`

// TestServe: any client on this machine can call tools until the server is told to stop.
func TestServe(t *testing.T) {
	s := startServe(t, "--state-dir", t.TempDir())
	client := plain(t)
	status, text := s.do(t, client, "POST", "/v1/calls", "", sevenTimesSix)
	assert.Equal(t, 200, status, text)
	assert.Contains(t, text, `\"output\":\"42\"`)
	status, text = s.do(t, client, "POST", "/mcp", "", `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	assert.NotEqual(t, 404, status, text)
	for path, want := range map[string]string{"/healthz": "ok", "/readyz": "ready", "/openapi.json": `"/v1/calls"`, "/metrics": `caisson_calls_total{outcome="success",tool="calculator"} 1`, "/v1/tools": `"name":"file_read"`} {
		status, text = s.do(t, client, "GET", path, "", "")
		assert.Equal(t, 200, status, path)
		assert.Contains(t, text, want)
	}
	assert.Contains(t, s.log(), "caisson: serving 7 tools to everybody on this machine at http://127.0.0.1:")
	assert.Equal(t, 0, s.end(t), s.log())
}

// TestServeLogsLostRecords: a record that cannot be kept does not fail its call, and is logged without --verbose. The end
// of the server has the reason, and is a success.
func TestServeLogsLostRecords(t *testing.T) {
	for _, more := range [][]string{nil, {"--quiet"}} {
		t.Run(strings.Join(more, " "), func(t *testing.T) {
			state := t.TempDir()
			require.NoError(t, os.Chmod(state, 0o700))
			s := startServe(t, append(more, "--state-dir", state)...)
			for range 2 {
				status, text := s.do(t, plain(t), "POST", "/v1/calls", "", sevenTimesSix)
				assert.Equal(t, 200, status, text)
				require.NoError(t, os.RemoveAll(filepath.Join(state, "ledger")))
			}
			assert.Eventually(t, func() bool { return strings.Contains(s.log(), `level=ERROR msg="ledger failed"`) }, 10*time.Second, time.Millisecond, s.log())
			assert.Contains(t, s.log(), "call_id=")
			assert.NotContains(t, s.log(), "level=INFO")
			assert.Equal(t, 0, s.end(t), "the server did its work")
			assert.Equal(t, more == nil, strings.Contains(s.log(), `a call was not kept for "caisson explain"`), "a hint: %s", s.log())
		})
	}
}

// TestServeReportsUnsetSecrets: a secret whose variable is not set is reported when the server starts, and once.
func TestServeReportsUnsetSecrets(t *testing.T) {
	root := noerr.Get(guests.Compile(t.Context(), "wasm-tools/search"))(t)
	for value, lines := range map[string]int{"": 1, "a-secret-that-is-long-enough": 0} {
		t.Run(fmt.Sprint(lines), func(t *testing.T) {
			const variable = "CAISSON_TEST_KEY_OF_SERVE"
			if value != "" {
				t.Setenv(variable, value)
			}
			s := startServe(t, "--state-dir", "", "--tools", filepath.Join(root, "wasm-tools", "search"), "--allow-net", "api.search.brave.com",
				"--secret", "BRAVE_API_KEY=env:"+variable+"@api.search.brave.com")
			started := s.log()
			for range 2 {
				status, text := s.do(t, plain(t), "POST", "/v1/calls", "", sevenTimesSix)
				assert.Equal(t, 200, status, text)
			}
			assert.Equal(t, 0, s.end(t), s.log())
			for _, log := range []string{started, s.log()} {
				assert.Equal(t, lines, strings.Count(log, "the environment variable "+variable+" is not set"), log)
			}
		})
	}
}

// TestServeReportsSecretsThatAreNeverSent: a secret for an origin that no tool asks for, once. Beside it, a tool whose
// name looks like another's is not served, and stops nothing.
func TestServeReportsSecretsThatAreNeverSent(t *testing.T) {
	root := noerr.Get(guests.Compile(t.Context(), "wasm-tools/search"))(t)
	alike := filepath.Join(t.TempDir(), "alike.tool.yaml")
	require.NoError(t, os.WriteFile(alike, []byte("schema: caisson/v1\nname: ca1culator\ndescription: Looks like another.\nexecution: client\n"), 0o600))
	t.Setenv("CAISSON_TEST_KEY_OF_SERVE", "a-secret-that-is-long-enough")
	s := startServe(t, "--state-dir", "", "--tools", filepath.Join(root, "wasm-tools", "search"), "--tools", filepath.Dir(alike),
		"--allow-net", "api.search.brave.com", "--secret", "BRAVE_API_KEY=env:CAISSON_TEST_KEY_OF_SERVE@example.com")
	for range 2 {
		status, text := s.do(t, plain(t), "POST", "/v1/calls", "", sevenTimesSix)
		assert.Equal(t, 200, status, text)
	}
	assert.Equal(t, 0, s.end(t), s.log())
	assert.Equal(t, 1, strings.Count(s.log(), "no tool that it applies to asks for the secret BRAVE_API_KEY for example.com"), s.log())
	assert.Contains(t, s.log(), "is kept out: it looks like \"calculator\"")
}

// TestServeBodies: the largest body is that of the help text, for all that is served.
func TestServeBodies(t *testing.T) {
	for name, args := range map[string][]string{"16 MiB": nil, "1 MiB": {"--max-body", "1MiB"}} {
		t.Run(name, func(t *testing.T) {
			s := startServe(t, append(args, "--state-dir", "")...)
			var most int
			noerr.Get(fmt.Sscanf(name, "%d MiB", &most))(t)
			for path, around := range map[string]string{"/v1/batches": `{"calls":[],"response":null}`, "/mcp": initialize[0]} {
				for more, want := range map[int]int{0: 200, 1: 413} {
					body := around + strings.Repeat(" ", most<<20-len(around)+more)
					r := noerr.Get(http.NewRequestWithContext(t.Context(), "POST", s.url+path, strings.NewReader(body)))(t)
					r.Header.Set("Content-Type", "application/json")
					r.Header.Set("Accept", "application/json, text/event-stream")
					// The server closes the connection of a body that it refuses. A client that has begun to write may
					// see that first.
					r.Header.Set("Expect", "100-continue")
					transport := &http.Transport{ExpectContinueTimeout: time.Minute}
					response := noerr.Get((&http.Client{Transport: transport}).Do(r))(t)
					assert.Equal(t, want, response.StatusCode, path)
					require.NoError(t, response.Body.Close())
					transport.CloseIdleConnections()
				}
			}
		})
	}
}

// TestServeHangUp: a terminal that is closed ends the server like any other signal, unless nohup started it. A child
// inherits whether the signal is ignored, so the test decides that, however it is run itself.
func TestServeHangUp(t *testing.T) {
	t.Cleanup(func() { signal.Reset(syscall.SIGHUP) })
	t.Run("nohup", func(t *testing.T) {
		signal.Ignore(syscall.SIGHUP)
		s := startServe(t, "--state-dir", "")
		require.NoError(t, s.Process.Signal(syscall.SIGHUP))
		status, text := s.do(t, plain(t), "POST", "/v1/calls", "", sevenTimesSix)
		assert.Equal(t, 200, status, text)
		assert.Equal(t, 0, s.end(t), s.log())
	})
	t.Run("terminal", func(t *testing.T) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // a child has the default then
		s := startServe(t, "--state-dir", "")
		require.NoError(t, s.Process.Signal(syscall.SIGHUP))
		_ = s.Wait()
		assert.Equal(t, 0, s.ProcessState.ExitCode(), s.log())
	})
}

func createToken(t *testing.T, state string, args ...string) (token, id string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "caisson", append([]string{"token", "create", "--json", "--state-dir", state}, args...)...)
	out := noerr.Get(command.Output())(t)
	var made struct{ Token, ID string }
	require.NoError(t, json.Unmarshal(out, &made))
	return made.Token, made.ID
}

// TestServeTokens: with tokens, a request without one is refused; each token sees its tenant, and its calls get its
// context values.
func TestServeTokens(t *testing.T) {
	state, work := t.TempDir(), t.TempDir()
	for _, project := range []string{"one", "two"} {
		require.NoError(t, os.Mkdir(filepath.Join(work, project), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(work, project, "a.txt"), []byte("of "+project), 0o600))
	}
	all := []string{"--scope", "read", "--scope", "call"}
	one, id := createToken(t, state, append(all, "--tenant", "one", "--context", "project_id=one")...)
	two, _ := createToken(t, state, append(all, "--tenant", "two", "--context", "project_id=two")...)
	operator, _ := createToken(t, state, "--scope", "admin")
	policy := filepath.Join(work, "caisson.yaml")
	require.NoError(t, os.WriteFile(policy, []byte(`
schema: caisson-config/v1
context: {project_id: {from: token}}
grants: [{tools: ["file_*"], context: [project_id], files: [{path: /project, host: "./{project_id}", access: read}]}]
`), 0o600))
	s := startServe(t, "--state-dir", state, "--config", policy)
	client := plain(t)
	call := `{"name":"file_read","arguments":{"path":"a.txt"}}`
	for token, want := range map[string]string{one: "of one", two: "of two"} {
		status, text := s.do(t, client, "POST", "/v1/calls", token, call)
		assert.Equal(t, 200, status, text)
		assert.Contains(t, text, want)
	}
	_, text := s.do(t, client, "POST", "/v1/calls", one, `{"name":"file_read","arguments":{"path":"a.txt","project_id":"two"}}`)
	assert.NotContains(t, text, "of two", "an argument sets no context value")
	for path, want := range map[string]int{"/v1/tools": 401, "/metrics": 401, "/mcp": 401, "/openapi.json": 401, "/healthz": 200} {
		status, _ := s.do(t, client, "GET", path, "", "")
		assert.Equal(t, want, status, path)
	}
	status, _ := s.do(t, client, "GET", "/metrics", operator, "")
	assert.Equal(t, 200, status)
	status, _ = s.do(t, client, "GET", "/metrics", one, "")
	assert.Equal(t, 403, status)
	wrong, _ := createToken(t, state, append(all, "--context", "Project_ID=one")...)
	_, text = s.do(t, client, "POST", "/v1/calls", wrong, call)
	assert.NotContains(t, text, "of one", "a name in another case is another name")
	require.NoError(t, exec.CommandContext(t.Context(), "caisson", "token", "revoke", id, "--state-dir", state).Run())
	assert.Eventually(t, func() bool {
		status, _ := s.do(t, client, "POST", "/v1/calls", one, call)
		return status == 401
	}, 10*time.Second, 100*time.Millisecond, "within a second, give or take a busy machine")
	assert.Eventually(t, func() bool { // if a request had begun, only its client learns of its end, and not the log
		status, _ := s.do(t, client, "POST", "/v1/calls", one, call)
		return status == 401 && strings.Contains(s.log(), "the token was revoked")
	}, 10*time.Second, 100*time.Millisecond)
	assert.Equal(t, 0, s.end(t), s.log())
}

// TestServeFirstToken: a running server without tokens accepts no request without one once the first is created.
func TestServeFirstToken(t *testing.T) {
	state := t.TempDir()
	s := startServe(t, "--state-dir", state, "--tenant", "local")
	client := plain(t)
	status, text := s.do(t, client, "POST", "/v1/calls", "", sevenTimesSix)
	require.Equal(t, 200, status, text)
	token, _ := createToken(t, state)
	assert.Eventually(t, func() bool {
		status, _ := s.do(t, client, "POST", "/v1/calls", "", sevenTimesSix)
		return status == 401
	}, 10*time.Second, 100*time.Millisecond, "within a second, give or take a busy machine")
	status, text = s.do(t, client, "POST", "/v1/calls", token, sevenTimesSix)
	assert.Equal(t, 200, status, text)
	assert.Equal(t, 0, s.end(t), s.log())
}

// TestServeFirstTokenWhereToolsWrite: a tool that may write to the folder of tokens cannot create one that counts,
// while the server runs. Requests without a token are refused all the same.
func TestServeFirstTokenWhereToolsWrite(t *testing.T) {
	state := t.TempDir()
	s := startServe(t, "--state-dir", state, "--mount", "/project="+state+":rw", "--context", "project_id=demo")
	client := plain(t)
	token, _ := createToken(t, state)
	assert.Eventually(t, func() bool {
		status, _ := s.do(t, client, "POST", "/v1/calls", "", sevenTimesSix)
		return status == 401
	}, 10*time.Second, 100*time.Millisecond, "within a second, give or take a busy machine")
	status, text := s.do(t, client, "POST", "/v1/calls", token, sevenTimesSix)
	assert.Equal(t, 403, status, text)
	assert.Eventually(t, func() bool { return strings.Contains(s.log(), "it could create a token") }, 10*time.Second, 10*time.Millisecond, s.log())
	assert.Equal(t, 0, s.end(t), s.log())
}

// TestServeRevokedWhileSending: a token is revoked, or expires, while the bodies of its requests are on their way. The
// requests have no effect: no approval, no run, no agent, no call, over REST and over MCP. The control is another token
// with the same requests.
func TestServeRevokedWhileSending(t *testing.T) {
	state, work := t.TempDir(), t.TempDir()
	notes := filepath.Join(work, "notes.txt")
	require.NoError(t, os.WriteFile(notes, []byte("dig"), 0o600))
	all := []string{"--tenant", "acme", "--scope", "read", "--scope", "call", "--scope", "approve", "--scope", "admin", "--context", "project_id=p1"}
	revoked, id := createToken(t, state, all...)
	control, _ := createToken(t, state, all...)
	policy := filepath.Join(work, "caisson.yaml")
	require.NoError(t, os.WriteFile(policy, []byte(`
schema: caisson-config/v1
context: {project_id: {from: token}}
grants: [{tools: ["file_*"], context: [project_id], files: [{path: /project, host: ".", access: read-write, quota: 1MiB}]}]
`), 0o600))
	s := startServe(t, "--state-dir", state, "--config", policy, "--no-reuse")
	client := plain(t)
	var waits struct {
		ID      string
		Pending []struct {
			CallID      string `json:"call_id"`
			Fingerprint string
		}
	}
	status, text := s.do(t, client, "POST", "/v1/calls", control, `{"name":"file_delete","arguments":{"path":"notes.txt"}}`)
	require.Equal(t, 202, status, text)
	require.NoError(t, json.Unmarshal([]byte(text), &waits))
	runs := func() int {
		_, text := s.do(t, client, "GET", "/v1/runs", control, "")
		return strings.Count(text, `"id":"run_`)
	}
	before := runs()
	requests := []struct{ method, path, body string }{
		{"POST", "/v1/runs/" + waits.ID + "/approvals", fmt.Sprintf(`{"approvals":[{"call_id":%q,"approve":true,"fingerprint":%q}]}`, waits.Pending[0].CallID, waits.Pending[0].Fingerprint)},
		{"POST", "/v1/runs", `{"calls":[{"name":"file_write","arguments":{"path":"run.txt","content":"x"}}]}`},
		{"POST", "/v1/calls", `{"name":"file_write","arguments":{"path":"call.txt","content":"x"}}`},
		{"POST", "/v1/batches", `{"calls":[{"name":"file_write","arguments":{"path":"batch.txt","content":"x"}}]}`},
		{"PUT", "/v1/agents/clerk", `{"allowed_tools":["calculator"]}`},
		{"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"file_write","arguments":{"path":"mcp.txt","content":"x"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`},
	}
	slow := func(token string) (answers []string, rest func()) {
		var connections []net.Conn
		for _, r := range requests {
			c := noerr.Get(net.Dial("tcp", strings.TrimPrefix(s.url, "http://")))(t)
			t.Cleanup(func() { _ = c.Close() })
			noerr.Get(fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
				"Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: file_write\r\nContent-Length: %d\r\n\r\n%s", r.method, r.path, token, len(r.body), r.body[:1]))(t)
			connections = append(connections, c)
		}
		answers = make([]string, len(requests))
		return answers, func() {
			for i, c := range connections {
				_, _ = io.WriteString(c, requests[i].body[1:]) // the server may have closed the connection
			}
			for i, c := range connections {
				require.NoError(t, c.SetReadDeadline(time.Now().Add(30*time.Second)))
				read, _ := io.ReadAll(c)
				answers[i] = string(read)
			}
		}
	}
	answers, rest := slow(revoked)
	expires, _ := createToken(t, state, append(all, "--expires", "3s")...)
	answersOfExpired, restOfExpired := slow(expires)
	require.NoError(t, exec.CommandContext(t.Context(), "caisson", "token", "revoke", id, "--state-dir", state).Run())
	time.Sleep(600 * time.Millisecond) // a token that was read is trusted for half a second
	rest()
	for i, a := range answers {
		assert.NotRegexp(t, "^HTTP/1.1 2", a, requests[i].path)
	}
	require.Eventually(t, func() bool {
		status, _ := s.do(t, client, "GET", "/v1/tools", expires, "")
		return status == http.StatusUnauthorized
	}, time.Minute, 20*time.Millisecond)
	restOfExpired()
	for i, a := range answersOfExpired {
		assert.Regexp(t, "^HTTP/1.1 401", a, requests[i].path)
	}
	assert.FileExists(t, notes)
	for _, name := range []string{"run.txt", "call.txt", "batch.txt", "mcp.txt"} {
		assert.NoFileExists(t, filepath.Join(work, name))
	}
	status, text = s.do(t, client, "GET", "/v1/agents/clerk", control, "")
	assert.Equal(t, 404, status, text)
	assert.Equal(t, before, runs())

	answers, rest = slow(control)
	rest()
	for i, a := range answers {
		assert.Regexp(t, "^HTTP/1.1 20", a, requests[i].path)
	}
	assert.Eventually(t, func() bool { _, err := os.Stat(notes); return os.IsNotExist(err) }, time.Minute, 10*time.Millisecond)
	for _, name := range []string{"run.txt", "call.txt", "batch.txt", "mcp.txt"} {
		assert.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(work, name)); return err == nil }, time.Minute, 10*time.Millisecond, name)
	}
	status, text = s.do(t, client, "GET", "/v1/agents/clerk", control, "")
	assert.Equal(t, 200, status, text)
	assert.Equal(t, 0, s.end(t), s.log())
}

// TestServeRate: a token has bursts of twice the rate, rounded up, and no more.
func TestServeRate(t *testing.T) {
	state := t.TempDir()
	token, _ := createToken(t, state)
	s := startServe(t, "--state-dir", state, "--rate", "0.01")
	client := plain(t)
	status, text := s.do(t, client, "GET", "/v1/tools", token, "")
	assert.Equal(t, 200, status, text)
	status, text = s.do(t, client, "GET", "/v1/tools", token, "")
	assert.Equal(t, 429, status, text)
	assert.Equal(t, 0, s.end(t), s.log())
}

// TestServeStopsUnderLoad: every request that was accepted is answered or told that its call was cancelled, and no
// process or temporary file remains.
func TestServeStopsUnderLoad(t *testing.T) {
	s := startServe(t, "--state-dir", t.TempDir(), "--drain", "300ms", "--no-reuse")
	client := plain(t)
	s.do(t, client, "POST", "/v1/calls", "", sevenTimesSix) // compiled
	const callers = 16
	var mu sync.Mutex
	answered, refused := 0, 0
	var all sync.WaitGroup
	stopping := make(chan struct{})
	for i := range callers {
		all.Go(func() {
			for n := 0; ; n++ {
				expression := fmt.Sprintf(`{"name":"calculator","arguments":{"expression":"%d+%d"}}`, i, n)
				response, err := client.Post(s.url+"/v1/calls", "application/json", strings.NewReader(expression))
				if err != nil { // not accepted, or cut off; only the first is right
					mu.Lock()
					defer mu.Unlock()
					if strings.Contains(err.Error(), "EOF") || strings.Contains(err.Error(), "reset") {
						select {
						case <-stopping: // an idle connection that the server closes while a request is on its way
						default:
							t.Error(err)
						}
					}
					return
				}
				text, err := io.ReadAll(response.Body)
				response.Body.Close()
				assert.NoError(t, err, "an answer was cut off")
				mu.Lock()
				switch response.StatusCode {
				case 200:
					answered++
					assert.True(t, json.Valid(text))
				case 503:
					refused++
				default:
					t.Errorf("status %d: %s", response.StatusCode, text)
				}
				mu.Unlock()
			}
		})
	}
	time.Sleep(500 * time.Millisecond)
	close(stopping)
	assert.Equal(t, 0, s.end(t), s.log())
	all.Wait()
	assert.Positive(t, answered)
	t.Logf("%d calls answered, %d refused while stopping", answered, refused)
	assert.NotContains(t, s.log(), "level=ERROR")
}

// TestServeTLS: connections are encrypted with the certificate of the flags.
func TestServeTLS(t *testing.T) {
	dir := t.TempDir()
	key := noerr.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}}
	certificate := noerr.Get(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	private := noerr.Get(x509.MarshalPKCS8PrivateKey(key))(t)
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: certificate}, "key.pem": {Type: "PRIVATE KEY", Bytes: private}} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
	s := startServe(t, "--state-dir", filepath.Join(dir, "state"), "--tls-cert", filepath.Join(dir, "cert.pem"), "--tls-key", filepath.Join(dir, "key.pem"))
	require.True(t, strings.HasPrefix(s.url, "https://"))
	s.url = strings.Replace(s.url, "127.0.0.1", "localhost", 1)
	trusted := x509.NewCertPool()
	parsed := noerr.Get(x509.ParseCertificate(certificate))(t)
	trusted.AddCert(parsed)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	status, text := s.do(t, &http.Client{Transport: transport}, "POST", "/v1/calls", "", sevenTimesSix)
	assert.Equal(t, 200, status, text)
	_, err := plain(t).Get(strings.Replace(s.url, "https", "http", 1) + "/readyz")
	if err == nil { // Go answers plain HTTP with 400
		status, _ = s.do(t, &http.Client{Transport: transport}, "GET", "/readyz", "", "")
		assert.Equal(t, 200, status)
	}
	assert.Equal(t, 0, s.end(t), s.log())
}
