package mcp_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/internal/standing"
	"github.com/caisson-run/caisson/server/mcp"
	"github.com/caisson-run/caisson/tool"
)

// post sends one message with headers, as a caller, and returns the answer.
func post(t testing.TB, w *world, caller auth.Caller, method, body string, headers map[string]string) (status int, answer string, header http.Header) {
	t.Helper()
	r := noerr.Get(http.NewRequestWithContext(t.Context(), method, w.web.URL, strings.NewReader(body)))(t)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	token := noerr.Get(json.Marshal(caller))(t)
	r.Header.Set("Authorization", string(token))
	response := noerr.Get(w.web.Client().Do(r))(t)
	defer func() { _ = response.Body.Close() }()
	content := noerr.Get(io.ReadAll(response.Body))(t)
	return response.StatusCode, string(content), response.Header
}

const initializeBody = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

// TestAttackSessionsOfOthers: only the caller who began a session reaches it; another who knows its id does not.
func TestAttackSessionsOfOthers(t *testing.T) {
	w := newWorld(t, mcp.Options{}, newFake(t, "hello", nil, says(tool.Result{Success: true, Output: "hello"})))
	mine := auth.Caller{ID: "1", Tenant: "acme", User: "ada", Scopes: everything}
	status, _, header := post(t, w, mine, http.MethodPost, initializeBody, nil)
	require.Equal(t, http.StatusOK, status)
	id := header.Get("Mcp-Session-Id")
	require.NotEmpty(t, id)
	with := map[string]string{"Mcp-Session-Id": id, "Mcp-Protocol-Version": "2025-11-25"}
	call := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello","arguments":{}}}`
	for name, other := range map[string]auth.Caller{
		"another tenant": {ID: "1", Tenant: "evil", User: "ada", Scopes: everything},
		"another token":  {ID: "2", Tenant: "acme", User: "ada", Scopes: everything},
		"another user":   {ID: "1", Tenant: "acme", User: "eve", Scopes: everything},
		"quotes":         {ID: `1" "ada`, Tenant: "acme", Scopes: everything},
	} {
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
			status, answer, _ := post(t, w, other, method, call, with)
			assert.Equal(t, http.StatusNotFound, status, "%s: %s %s", name, method, answer)
		}
	}
	status, answer, _ := post(t, w, mine, http.MethodPost, call, with) // the control
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, answer, "hello")
	status, _, _ = post(t, w, mine, http.MethodDelete, "", with)
	assert.Equal(t, http.StatusNoContent, status)
	require.Eventually(t, func() bool {
		status, _, _ := post(t, w, mine, http.MethodPost, call, with)
		return status == http.StatusNotFound
	}, 10*time.Second, time.Millisecond, "the session has ended")
}

// TestAttackOutputsOfOthers: only the caller of a result reads the parts that were cut from it.
func TestAttackOutputsOfOthers(t *testing.T) {
	for _, version := range []string{"", "2025-11-25"} {
		w := newWorld(t, mcp.Options{}, newFake(t, "long", nil, says(tool.Result{Success: true, Output: strings.Repeat("secret ", 1000)})))
		mine := auth.Caller{ID: "1", Tenant: "acme", Scopes: everything}
		c := connectWeb(version, &mine)(t, w, nil)
		uri := call(t, c, "long", nil).Content[1].(*sdk.ResourceLink).URI
		for _, other := range []auth.Caller{{ID: "1", Tenant: "evil", Scopes: everything}, {ID: "2", Tenant: "acme", Scopes: everything}, {ID: "1", Tenant: "acme", User: "eve", Scopes: everything}} {
			_, err := connectWeb(version, &other)(t, w, nil).ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
			assertCode(t, -32602, err)
		}
		if version != "" {
			_, err := connectWeb(version, &mine)(t, w, nil).ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
			assertCode(t, -32602, err) // another session of the same caller
		}
		page, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}) // the control
		require.NoError(t, err)
		assert.Contains(t, page.Contents[0].Text, "secret")
	}
}

// TestScopes: callers do what their token may, and nothing else.
func TestScopes(t *testing.T) {
	for _, version := range []string{"", "2025-11-25"} {
		w := newWorld(t, mcp.Options{}, newFake(t, "hello", nil, says(tool.Result{Success: true, Output: strings.Repeat("hello ", 1000)})))
		all := connectWeb("", &auth.Caller{ID: "1", Tenant: "acme", Scopes: everything})(t, w, nil)
		rest := call(t, all, "hello", nil).Content[1].(*sdk.ResourceLink).URI
		for _, test := range []struct {
			scopes      []auth.Scope
			lists, runs bool
		}{{nil, false, false}, {[]auth.Scope{auth.Read}, true, false}, {[]auth.Scope{auth.Call}, true, true}, {[]auth.Scope{auth.Approve, auth.Admin}, false, false}} {
			c := connectWeb(version, &auth.Caller{ID: "1", Tenant: "acme", Scopes: test.scopes})(t, w, nil)
			_, err := c.ListTools(t.Context(), nil)
			assert.Equal(t, test.lists, err == nil, "%v: %v", test.scopes, err)
			result := call(t, c, "hello", nil)
			assert.Equal(t, test.runs, !result.IsError, test.scopes)
			if version == "" { // in which the token's requests share what is kept
				_, err = c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: rest})
				assert.Equal(t, test.runs, err == nil, "%v: %v", test.scopes, err)
			}
		}
	}
}

// TestHowAPathChooses: one path serves clients with and without sessions, as docs/mcp.md says.
func TestHowAPathChooses(t *testing.T) {
	w := newWorld(t, mcp.Options{})
	me := auth.Caller{ID: "1", Tenant: "acme", Scopes: everything}
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	status, answer, header := post(t, w, me, http.MethodPost, list, map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"})
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, answer, "ask_user")
	assert.Empty(t, header.Get("Mcp-Session-Id"))

	status, _, header = post(t, w, me, http.MethodPost, initializeBody, nil)
	assert.Equal(t, http.StatusOK, status)
	assert.NotEmpty(t, header.Get("Mcp-Session-Id"))

	_, answer, _ = post(t, w, me, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil)
	assert.Contains(t, answer, "error")
	assert.NotContains(t, answer, "ask_user")
	status, _, _ = post(t, w, me, http.MethodPost, list, map[string]string{"Mcp-Session-Id": "none"})
	assert.Equal(t, http.StatusNotFound, status)
	status, _, _ = post(t, w, me, http.MethodGet, "", map[string]string{"Mcp-Protocol-Version": "2026-07-28"})
	assert.Equal(t, http.StatusMethodNotAllowed, status)
}

// TestUnauthenticated: without a caller there is nothing to see.
func TestUnauthenticated(t *testing.T) {
	w := newWorld(t, mcp.Options{})
	for _, version := range []string{"", "2026-07-28"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader(initializeBody))
		r.Header.Set("Mcp-Protocol-Version", version)
		answer := httptest.NewRecorder()
		w.server.ServeHTTP(answer, r)
		assert.Equal(t, http.StatusUnauthorized, answer.Code)
	}
}

// TestMostSessions: one caller's sessions are bounded, and take none from another.
func TestMostSessions(t *testing.T) {
	w := newWorld(t, mcp.Options{Most: 3})
	me, other := auth.Caller{ID: "1", Tenant: "acme", Scopes: everything}, auth.Caller{ID: "2", Tenant: "acme", Scopes: everything}
	var ids []string
	for range 3 {
		status, _, header := post(t, w, me, http.MethodPost, initializeBody, nil)
		require.Equal(t, http.StatusOK, status)
		ids = append(ids, header.Get("Mcp-Session-Id"))
		assert.Equal(t, http.StatusOK, ping(t, w, me, ids[len(ids)-1]))
	}
	status, _, header := post(t, w, me, http.MethodPost, initializeBody, nil)
	assert.Equal(t, http.StatusTooManyRequests, status)
	assert.NotEmpty(t, header.Get("Retry-After"))
	status, _, _ = post(t, w, other, http.MethodPost, initializeBody, nil)
	assert.Equal(t, http.StatusOK, status)
	status, _, _ = post(t, w, me, http.MethodDelete, "", map[string]string{"Mcp-Session-Id": ids[0]})
	require.Equal(t, http.StatusNoContent, status)
	require.Eventually(t, func() bool {
		status, _, _ = post(t, w, me, http.MethodPost, initializeBody, nil)
		return status == http.StatusOK
	}, 10*time.Second, time.Millisecond)
}

// ping returns the status of a request in a session.
func ping(t testing.TB, w *world, caller auth.Caller, id string) (status int) {
	t.Helper()
	status, _, _ = post(t, w, caller, http.MethodPost, `{"jsonrpc":"2.0","id":2,"method":"ping"}`, map[string]string{"Mcp-Session-Id": id})
	return status
}

// TestAttackLostSessions: a client disconnects whenever its initialize has arrived, so that it has no id by which to
// end these sessions. The oldest end when another begins. The control is a session that its client has used.
func TestAttackLostSessions(t *testing.T) {
	w := newWorld(t, mcp.Options{Most: 3})
	me := auth.Caller{ID: "1", Tenant: "acme", Scopes: everything}
	var ids []string
	for n := range 5 {
		status, _, header := post(t, w, me, http.MethodPost, initializeBody, nil)
		require.Equal(t, http.StatusOK, status)
		ids = append(ids, header.Get("Mcp-Session-Id"))
		if n == 0 {
			require.Equal(t, http.StatusOK, ping(t, w, me, ids[n]))
		}
	}
	for n, status := range []int{http.StatusOK, http.StatusNotFound, http.StatusNotFound, http.StatusOK, http.StatusOK} {
		assert.Equal(t, status, ping(t, w, me, ids[n]), n)
	}
}

// TestIdleSessions: a session that is not used ends, and so does the executor's.
func TestIdleSessions(t *testing.T) {
	const idle = 500 * time.Millisecond
	w := newWorld(t, mcp.Options{Idle: idle}, newFake(t, "hello", nil, says(tool.Result{Success: true, Output: "hello"})))
	me := auth.Caller{ID: "1", Tenant: "acme", Scopes: everything}
	_, _, header := post(t, w, me, http.MethodPost, initializeBody, nil)
	id := header.Get("Mcp-Session-Id")
	_, answer, _ := post(t, w, me, http.MethodPost, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello"}}`, map[string]string{"Mcp-Session-Id": id})
	require.Contains(t, answer, `"text":"hello"`)
	before, done := noerr.Get2(w.sessions.Get(t.Context(), me, "mcp."+id))(t)
	done()
	require.Eventually(t, func() bool {
		time.Sleep(2 * idle)
		status, _, _ := post(t, w, me, http.MethodPost, `{"jsonrpc":"2.0","id":2,"method":"ping"}`, map[string]string{"Mcp-Session-Id": id})
		return status == http.StatusNotFound
	}, 20*time.Second, time.Millisecond)
	require.Eventually(t, func() bool {
		after, done := noerr.Get2(w.sessions.Get(t.Context(), me, "mcp."+id))(t)
		done()
		return before != after
	}, 10*time.Second, time.Millisecond, "the executor's session has ended, too")
}

// TestAttackHeaders: a client cannot name another's request.
func TestAttackHeaders(t *testing.T) {
	e := newEndless(t)
	w := newWorld(t, mcp.Options{}, e.fake)
	status, answer, _ := post(t, w, auth.Caller{ID: "1", Tenant: "acme"}, http.MethodPost,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Caisson-Mcp-Request": "x", "Mcp-Method": "tools/list"})
	assert.NotContains(t, answer, "endless", "%d", status)
	assert.Contains(t, answer, "scope")
}

// TestContextComesFromTheToken: what the host fills in is what the caller's token says, whatever the request says.
func TestContextComesFromTheToken(t *testing.T) {
	for _, version := range []string{"", "2025-11-25"} {
		w := newWorld(t, mcp.Options{}, newFake(t, "where", fields{
			"context": []string{"project_id"}, "parameters": fields{"type": "object", "properties": fields{"project_id": fields{"type": "string"}}},
		}, func(_ context.Context, invocation tool.Invocation) tool.Result {
			given, _ := invocation.Arguments.MarshalJSON()
			return tool.Result{Success: true, Output: string(given)}
		}))
		c := connectWeb(version, &auth.Caller{ID: "1", Tenant: "acme", Scopes: everything, Context: map[string]string{"project_id": "mine"}})(t, w, nil)
		assert.Equal(t, `{"project_id":"mine"}`, text(t, call(t, c, "where", nil), 0))
		forged := call(t, c, "where", map[string]any{"Project_ID": "yours"})
		assert.True(t, forged.IsError, text(t, forged, 0))
		meta := noerr.Get(c.CallTool(t.Context(), &sdk.CallToolParams{Name: "where", Meta: sdk.Meta{"project_id": "yours", "context": map[string]any{"project_id": "yours"}}}))(t)
		assert.Equal(t, `{"project_id":"mine"}`, text(t, meta, 0))
	}
}

// TestDrain: a server that stops lets calls go on, takes no new ones, and then ends what only waits.
func TestDrain(t *testing.T) {
	for _, version := range []string{"", "2025-11-25"} {
		w := newWorld(t, mcp.Options{})
		release := make(chan struct{})
		began := make(chan struct{}, 1)
		require.NoError(t, w.host.Registry().Register("", newFake(t, "patient", nil, func(context.Context, tool.Invocation) tool.Result {
			began <- struct{}{}
			<-release
			return tool.Result{Success: true, Output: "done"}
		})))
		c := connectWeb(version, nil)(t, w, &sdk.ClientOptions{ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {}})
		require.Eventually(t, func() bool { return w.requests.Load() == 1 }, 10*time.Second, time.Millisecond, "it listens")
		results := make(chan *sdk.CallToolResult, 1)
		go func() {
			result, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "patient"})
			assert.NoError(t, err)
			results <- result
		}()
		receives(t, began, "it does not run")
		drained := make(chan error, 1)
		go func() { drained <- w.server.Drain(t.Context()) }()
		require.Eventually(t, func() bool {
			_, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "ask_user"})
			return err != nil
		}, 10*time.Second, time.Millisecond, "new calls are refused")
		close(release)
		assert.Equal(t, "done", text(t, <-results, 0))
		require.NoError(t, <-drained)
		require.Eventually(t, func() bool { return w.requests.Load() == 0 }, 10*time.Second, time.Millisecond, "what waits has ended")
		status, _, _ := post(t, w, w.caller, http.MethodGet, "", map[string]string{"Mcp-Session-Id": "any"})
		assert.Equal(t, http.StatusServiceUnavailable, status)
	}
}

// TestDrainIsOver: a call that does not end in time is cancelled, and its client is told, although the program cancels
// the request at the same time.
func TestDrainIsOver(t *testing.T) {
	for _, version := range []string{"", "2025-11-25"} {
		w := newWorld(t, mcp.Options{})
		began := make(chan struct{}, 1)
		require.NoError(t, w.host.Registry().Register("", newFake(t, "patient", nil, func(ctx context.Context, _ tool.Invocation) tool.Result {
			began <- struct{}{}
			<-ctx.Done()
			return tool.Result{Error: "cancelled", Kind: tool.Cancelled}
		})))
		requests, cancel := context.WithCancelCause(t.Context())
		stopping := httptest.NewUnstartedServer(w.web.Config.Handler)
		stopping.Config.BaseContext = func(net.Listener) context.Context { return requests }
		stopping.Start()
		w.web.Close()
		w.web = stopping
		c := connectWeb(version, nil)(t, w, nil)
		told := make(chan error, 1)
		go func() {
			result, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "patient"})
			if err == nil && !result.IsError {
				err = errors.New("the call succeeded")
			}
			told <- err
		}()
		receives(t, began, "it does not run")
		late, stop := context.WithCancel(t.Context())
		stop()
		cancel(errors.New("the program stops"))
		require.NoError(t, w.server.Drain(late), version)
		require.NoError(t, <-told, version)
	}
}

// TestNobodyCachesAnswers: what a caller sees is said to be that caller's alone.
func TestNobodyCachesAnswers(t *testing.T) {
	w := newWorld(t, mcp.Options{}, newFake(t, "long", nil, says(tool.Result{Success: true, Output: strings.Repeat("hello ", 1000)})))
	c := connectWeb("", nil)(t, w, nil)
	list := noerr.Get(c.ListTools(t.Context(), nil))(t)
	page := noerr.Get(c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: call(t, c, "long", nil).Content[1].(*sdk.ResourceLink).URI}))(t)
	templates := noerr.Get(c.ListResourceTemplates(t.Context(), nil))(t)
	for _, answer := range []sdk.CacheableResult{list, page, templates} {
		assert.Equal(t, "private", answer.GetCacheScope(), "%T", answer)
		assert.Zero(t, answer.GetTTLMs())
	}
}

// TestAttackRevokedBeforeTheEffect: a token is revoked when its request has passed the server's gate. The tool is not
// called, and nothing is listed. The control is the same request with a token that works.
func TestAttackRevokedBeforeTheEffect(t *testing.T) {
	var calls atomic.Int32
	w := newWorld(t, mcp.Options{}, newFake(t, "effect", nil, func(context.Context, tool.Invocation) tool.Result {
		calls.Add(1)
		return tool.Result{Success: true, Output: "done"}
	}))
	var revoked atomic.Bool
	gate := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.server.ServeHTTP(rw, r.WithContext(standing.With(r.Context(), w.caller, func() error {
			if revoked.Load() {
				return auth.ErrRevoked
			}
			return nil
		})))
	}))
	defer gate.Close()
	ask := func(method, params string) string {
		r := noerr.Get(http.NewRequestWithContext(t.Context(), "POST", gate.URL, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`)))(t)
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method} {
			r.Header.Set(name, value)
		}
		if method == "tools/call" {
			r.Header.Set("Mcp-Name", "effect")
		}
		response := noerr.Get(http.DefaultClient.Do(r))(t)
		defer response.Body.Close()
		text := noerr.Get(io.ReadAll(response.Body))(t)
		return string(text)
	}
	requests := map[string]string{"tools/call": `"name":"effect","arguments":{},`, "tools/list": ""}
	for method, params := range requests {
		assert.Contains(t, ask(method, params), `"result"`, method)
	}
	require.EqualValues(t, 1, calls.Load())
	revoked.Store(true)
	for method, params := range requests {
		assert.Contains(t, ask(method, params), "the token is unknown, has expired or was revoked", method)
	}
	assert.EqualValues(t, 1, calls.Load())
}

// TestAttackRevokedWhileSending: a request whose token is revoked while its body arrives, or cannot be read at its end,
// is refused, and not for its body. The control is a token that works.
func TestAttackRevokedWhileSending(t *testing.T) {
	w := newWorld(t, mcp.Options{})
	for ended, want := range map[error]int{
		auth.ErrRevoked: http.StatusUnauthorized, standing.ErrUnreadable: http.StatusServiceUnavailable,
		nil: http.StatusBadRequest,
	} {
		ctx := standing.With(t.Context(), w.caller, func() error { return ended })
		rest := iotest.ErrReader(cmp.Or(ended, io.ErrUnexpectedEOF))
		body := io.MultiReader(strings.NewReader(`{"jsonrpc":`), rest)
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/mcp", body)
		r.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		w.server.ServeHTTP(answer, r)
		assert.Equal(t, want, answer.Code)
		assert.Equal(t, ended == auth.ErrRevoked, answer.Header().Get("WWW-Authenticate") != "")
	}
}

// A client listens, and its token is revoked. Its stream ends at once, and not when the client of a cancelled call has
// been told. The control is a request that is cancelled for another reason: its stream ends later.
func TestAttackStreamsOutliveTokens(t *testing.T) {
	for cause, soon := range map[error]bool{auth.ErrRevoked: true, errors.New("the server is stopping"): false} {
		t.Run(cause.Error(), func(t *testing.T) {
			w := newWorld(t, mcp.Options{})
			caller := auth.Caller{ID: "1", Tenant: "acme", Scopes: everything}
			ctx, cancel := context.WithCancelCause(auth.With(t.Context(), caller))
			defer cancel(nil)
			message := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + meta + `}}`
			request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/mcp", strings.NewReader(message))
			for name, value := range map[string]string{
				"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen",
			} {
				request.Header.Set(name, value)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				w.server.ServeHTTP(httptest.NewRecorder(), request)
			}()
			time.Sleep(200 * time.Millisecond)
			select {
			case <-ended:
				t.Fatal("the stream ended by itself")
			default:
			}
			cancel(cause)
			select {
			case <-ended:
				assert.True(t, soon)
			case <-time.After(time.Second):
				assert.False(t, soon)
			}
		})
	}
}

// TestAttackSessionsWhileBodiesArrive: a caller begins more sessions than it may have, with requests that all arrive
// before the first body does.
func TestAttackSessionsWhileBodiesArrive(t *testing.T) {
	for _, test := range []struct {
		name string
		most int
		want int
	}{{"guarded", 3, 3}, {"control: the caller may have more", 100, 20}} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, mcp.Options{Most: test.most})
			me := auth.Caller{ID: "1", Tenant: "acme", Scopes: everything}
			token := noerr.Get(json.Marshal(me))(t)
			connections := make([]net.Conn, 20)
			for i := range connections {
				c := noerr.Get(net.Dial("tcp", w.web.Listener.Addr().String()))(t)
				defer c.Close()
				connections[i] = c
				noerr.Get(fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n%s",
					token, len(initializeBody), initializeBody[:1]))(t)
			}
			require.Eventually(t, func() bool { return int(w.requests.Load()) == len(connections) }, 30*time.Second, time.Millisecond)
			time.Sleep(50 * time.Millisecond) // until each waits for its body; if it does not, the attack is weaker
			var ids []string
			live := 0
			for _, c := range connections {
				noerr.Get(io.WriteString(c, initializeBody[1:]))(t)
			}
			for _, c := range connections {
				response := noerr.Get(http.ReadResponse(bufio.NewReader(c), nil))(t)
				text := noerr.Get(io.ReadAll(response.Body))(t)
				require.NoError(t, response.Body.Close())
				assert.Contains(t, string(text), "serverInfo")
				ids = append(ids, response.Header.Get("Mcp-Session-Id"))
			}
			for _, id := range ids {
				if ping(t, w, me, id) == http.StatusOK {
					live++
				}
			}
			assert.Equal(t, test.want, live)
		})
	}
}

// TestNamesOfTheServer: clients reach the server under the names that package server allows, also through a proxy on
// the same machine.
func TestNamesOfTheServer(t *testing.T) {
	w := newWorld(t, mcp.Options{})
	token := noerr.Get(json.Marshal(auth.Caller{ID: "1", Tenant: "acme", Scopes: everything}))(t)
	c := noerr.Get(net.Dial("tcp", w.web.Listener.Addr().String()))(t)
	defer c.Close()
	noerr.Get(fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: tools.example.com\r\nAuthorization: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n%s",
		token, len(initializeBody), initializeBody))(t)
	response := noerr.Get(http.ReadResponse(bufio.NewReader(c), nil))(t)
	defer response.Body.Close()
	assert.Equal(t, http.StatusOK, response.StatusCode)
}
