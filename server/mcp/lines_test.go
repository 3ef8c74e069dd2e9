package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/mcp"
	"github.com/caisson-run/caisson/tool"
)

// sink is standard output that a test reads at the end.
type sink struct{ bytes.Buffer }

func (*sink) Close() error { return nil }

// serve serves lines and returns the answers.
func serve(t testing.TB, w *world, lines string) (string, error) {
	t.Helper()
	session := noerr.Get(w.host.NewSession(executor.SessionOptions{}))(t)
	var out sink
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := w.server.ServeLines(ctx, session, io.NopCloser(strings.NewReader(lines)), &out)
	require.NoError(t, ctx.Err(), "it must end with its input")
	return out.String(), err
}

const hello = initializeBody + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

const listen = `{"jsonrpc":"2.0","id":3,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`

// TestLinesAtTheEnd: requests before the end of the input are answered.
func TestLinesAtTheEnd(t *testing.T) {
	w := newWorld(t, mcp.Options{})
	began := time.Now()
	out := noerr.Get(serve(t, w, hello+`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`+"\n"+listen+"\n"))(t)
	assert.Less(t, time.Since(began), 2*time.Second, "nobody waits for the end of a subscription")
	assert.Contains(t, out, `"id":2,"result"`)
	for _, broken := range []string{"hello", `{"jsonrpc":`, `{"jsonrpc":"2.0","id":` + strings.Repeat("[", 5<<20), `{"jsonrpc":"2.0","id":2,"method":"ping"} x`} {
		require.ErrorContains(t, noerr.Error(serve(t, w, hello+broken)), "the client's messages cannot be read: ")
	}
}

// TestSilentReader: a client that does not read its answers cannot keep the server from ending, neither when the
// program stops nor when the input ends. The control is a client that reads after its input has ended.
func TestSilentReader(t *testing.T) {
	for _, test := range []struct {
		name         string
		stops, reads bool
	}{{"the program stops", true, false}, {"the input ends", false, false}, {"control", false, true}} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, mcp.Options{})
			session := noerr.Get(w.host.NewSession(executor.SessionOptions{}))(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			in, sent := io.Pipe()
			read, out := io.Pipe()
			served := make(chan error, 1)
			go func() { served <- w.server.ServeLines(ctx, session, in, out) }()
			noerr.Get(io.WriteString(sent, initializeBody+"\n"))(t)
			noerr.Get(read.Read(make([]byte, 1)))(t) // the rest of the answer is being written
			if test.stops {
				cancel()
			} else {
				require.NoError(t, sent.Close())
			}
			rest := make(chan error, 1)
			if test.reads {
				go func() { rest <- noerr.Error(io.Copy(io.Discard, read)) }()
			}
			select {
			case err := <-served:
				assert.Equal(t, test.reads, err == nil, "%v", err)
			case <-time.After(15 * time.Second):
				assert.Fail(t, "it does not end")
			}
			if test.reads {
				assert.NoError(t, <-rest)
			}
			require.NoError(t, read.Close()) // so that the write that hangs ends
		})
	}
}

// client is one that writes and reads lines by hand.
type client struct {
	t     *testing.T
	in    io.Writer
	lines *bufio.Reader
}

// openLines begins a session over lines.
func openLines(t *testing.T, w *world) *client {
	t.Helper()
	session := noerr.Get(w.host.NewSession(executor.SessionOptions{}))(t)
	in, sent := io.Pipe()
	read, out := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- w.server.ServeLines(context.WithoutCancel(t.Context()), session, in, out) }()
	t.Cleanup(func() {
		assert.NoError(t, sent.Close())
		go func() { _, _ = io.Copy(io.Discard, read) }()
		assert.NoError(t, <-served)
	})
	c := &client{t, sent, bufio.NewReader(read)}
	c.send(initializeBody)
	require.Contains(t, c.line(), `"id":1,"result"`)
	return c
}

func (c *client) send(message string) {
	assert.NoError(c.t, noerr.Error(io.WriteString(c.in, message+"\n")))
}

func (c *client) line() string {
	line, err := c.lines.ReadString('\n')
	assert.NoError(c.t, err)
	return line
}

// TestAttackUnreadAnswers: the server reads no more from a client that does not read its answers, and answers all once
// it does.
func TestAttackUnreadAnswers(t *testing.T) {
	const all = 3000
	c := openLines(t, newWorld(t, mcp.Options{}))
	var sent atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range all {
			c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"r%d","method":"tools/list"}`, i))
			sent.Add(1)
		}
	}()
	before := int64(-1)
	require.Eventually(t, func() bool {
		now := sent.Load()
		defer func() { before = now }()
		return now == before
	}, time.Minute, 500*time.Millisecond, "it goes on and on")
	assert.Less(t, sent.Load(), int64(500))
	answers := 0
	for range all {
		if strings.Contains(c.line(), `"result"`) {
			answers++
		}
	}
	assert.Equal(t, all, answers)
	<-done
}

// TestAttackOpenRequests: a client has so many calls without an answer, of so many bytes and decoded values, and no
// more. 400 calls of 46 KB with many values in _meta held 1.7 GB. The control is a call after the answers.
func TestAttackOpenRequests(t *testing.T) {
	for _, test := range []struct {
		name string
		most int
		meta string
	}{
		{"in number", 1024, `"x"`},
		{"in bytes", 15, `"` + strings.Repeat("x", 4<<20-200) + `"`},
		{"in values", 17, "[" + strings.Repeat("0,", 15_000) + "0]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			let := make(chan struct{})
			c := openLines(t, newWorld(t, mcp.Options{}, newFake(t, "wait", nil, func(context.Context, tool.Invocation) tool.Result {
				<-let
				return tool.Result{Success: true, Output: "waited"}
			})))
			call := func(i int) {
				c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"wait","_meta":{"a":%s}}}`, 10+i, test.meta))
			}
			for i := range test.most + 1 {
				call(i)
			}
			release := time.AfterFunc(10*time.Second, func() { close(let) }) // without the bound, no answer comes before
			assert.Contains(t, c.line(), fmt.Sprintf(`"id":%d,"error":{"code":-32603,"message":"%d requests have not been answered;`, 10+test.most, test.most))
			if release.Stop() {
				close(let)
			}
			for range test.most {
				assert.Contains(t, c.line(), `"text":"waited"`)
			}
			call(5000)
			assert.Contains(t, c.line(), `"id":5010,"result"`, "the control")
		})
	}
}

// seeds are messages as clients might send them.
var seeds = []string{
	``, `{}`, `[]`, `null`, `0`, `"a"`, `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":1}`, `{"jsonrpc":"2.0","id":2,"method":""}`, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
	`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"x"}}`, `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":null}`, `{"jsonrpc":"2.0","id":2,"method":"tools/call"}`,
	`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{}}`, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello"}}`,
	`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"hello","arguments":{"a":1,"a":2}}}`, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello","arguments":[1]}}`,
	`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello","arguments":{},"_meta":{"progressToken":{}}}}`, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello","requestState":"x","inputResponses":{"a":{"action":"accept"}}}}`,
	`{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"caisson://output/x?from=1"}}`, `{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"caisson://output/%zz"}}`,
	`{"jsonrpc":"2.0","id":2,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
	`{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
	`{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"x"}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled"}`,
	`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":2,"method":"initialize","params":null}`, `[{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"ping"}]`,
	`{"JSONRPC":"2.0","ID":2,"Method":"ping"}`, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"\xff\"}", `{"jsonrpc":"2.0","id":2.5,"method":"ping"}`, `{"jsonrpc":"2.0","id":1e400,"method":"ping"}`,
}

// FuzzLines: whatever lines a client sends, each line of the answer is a message, and either a request that follows is
// answered or the connection ends with an error.
func FuzzLines(f *testing.F) {
	for _, seed := range seeds {
		f.Add(seed)
	}
	w := newWorld(f, mcp.Options{}, newFake(f, "hello", nil, says(tool.Result{Success: true, Output: "hello"})))
	f.Fuzz(func(t *testing.T, line string) {
		out, err := serve(t, w, hello+line+"\n"+`{"jsonrpc":"2.0","id":"last","method":"ping"}`+"\n")
		answered := false
		scanner := bufio.NewScanner(strings.NewReader(out))
		scanner.Buffer(nil, 4<<20)
		for scanner.Scan() {
			require.True(t, json.Valid(scanner.Bytes()), scanner.Text())
			answered = answered || strings.Contains(scanner.Text(), `"id":"last"`)
		}
		require.True(t, answered || err != nil, "%q: %q", line, out)
	})
}

// FuzzBodies: whatever a client sends over HTTP is answered, and nothing panics.
func FuzzBodies(f *testing.F) {
	for _, seed := range seeds {
		f.Add(seed, "2026-07-28", "tools/call", "hello")
		f.Add(seed, "", "", "")
	}
	w := newWorld(f, mcp.Options{Idle: time.Second}, newFake(f, "hello", nil, says(tool.Result{Success: true, Output: "hello"})))
	f.Fuzz(func(t *testing.T, body, version, method, name string) {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // subscriptions last as long as their request
		defer cancel()
		r := httptest.NewRequestWithContext(auth.With(ctx, auth.Caller{ID: "1", Scopes: everything}), http.MethodPost, "/mcp", strings.NewReader(body))
		for header, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": version, "Mcp-Method": method, "Mcp-Name": name} {
			if value != "" {
				r.Header.Set(header, value)
			}
		}
		answer := httptest.NewRecorder()
		w.server.ServeHTTP(answer, r)
		require.Contains(t, []int{200, 202, 400, 404, 405, 413, 415, 429, 500, 501, 503}, answer.Code, answer.Body.String())
		require.NotContains(t, answer.Body.String(), "/work/")
	})
}
