package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/tooltest"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/mcp"
	"github.com/caisson-run/caisson/tool"
)

// TestAttackLogOfClientMistakes: no client fills the log. The SDK logs each mistake of a client as an error or a
// warning: one request with a batch of 1,024 notifications writes 2,048 lines, and a token may make 200 such requests a
// second.
func TestAttackLogOfClientMistakes(t *testing.T) {
	log := &tooltest.Log{}
	w := newWorld(t, mcp.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	mine := auth.Caller{ID: "1", Tenant: "acme", Scopes: everything}
	batch := "[" + strings.TrimSuffix(strings.Repeat(`{"jsonrpc":"2.0","method":"notifications/initialized"},`, 1024), ",") + "]"

	status, _, header := post(t, w, mine, http.MethodPost, strings.Replace(initializeBody, "2025-11-25", "2025-03-26", 1), nil)
	require.Equal(t, http.StatusOK, status)
	session := map[string]string{"Mcp-Session-Id": header.Get("Mcp-Session-Id")}
	for range 2 {
		status, answer, _ := post(t, w, mine, http.MethodPost, batch, nil) // before a session
		require.Equal(t, http.StatusAccepted, status, answer)
		status, answer, _ = post(t, w, mine, http.MethodPost, batch, session) // after the first notification
		require.Equal(t, http.StatusAccepted, status, answer)
	}
	for range 100 {
		post(t, w, mine, http.MethodPost, initializeBody, session)
		post(t, w, mine, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, session)
	}
	assert.Never(t, func() bool { return strings.Count(log.String(), "\n") > 100 }, 2*time.Second, 50*time.Millisecond)
	assert.Positive(t, strings.Count(log.String(), "\n"), "the first are logged")
}

// TestAttackWrongAnswers: a client that is asked sends something else than an answer, or disconnects. It is as if its
// user had not answered: the call does not run, nothing is logged, and no text of the client's goes anywhere. It was
// logged as a failure of the server, with up to 16 MiB of the client's text each time.
func TestAttackWrongAnswers(t *testing.T) {
	long := strings.Repeat("what the client wrote ", 1<<10)
	for name, answer := range map[string]func() (*sdk.ElicitResult, error){
		"an error":          func() (*sdk.ElicitResult, error) { return nil, errors.New(long) },
		"an unknown action": func() (*sdk.ElicitResult, error) { return &sdk.ElicitResult{Action: long}, nil },
		"values of the wrong type": func() (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"approve": long}}, nil
		},
	} {
		for _, over := range transports() {
			if over.name != "lines 2025-11-25" && over.name != "sessions" {
				continue // others answer with a call of their own
			}
			t.Run(name+"/"+over.name, func(t *testing.T) {
				log := &tooltest.Log{}
				wipe, ran := newWipe(t)
				w := newWorld(t, mcp.Options{Logger: slog.New(slog.NewTextHandler(log, nil))}, wipe)
				c := over.connect(t, w, &sdk.ClientOptions{ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) { return answer() }})
				for range 3 {
					result := call(t, c, "wipe", nil)
					assert.True(t, result.IsError)
					assert.NotContains(t, text(t, result, 0), "what the client wrote")
					assert.Contains(t, text(t, result, 0), "the user d") // did not answer, or declined
				}
				assert.Zero(t, ran.Load())
				assert.Zero(t, strings.Count(log.String(), "\n"))
			})
		}
	}
}

// TestAttackLogOfFailures: failures that a client brings about do not fill the log. The control is the first, which is
// logged.
func TestAttackLogOfFailures(t *testing.T) {
	log := &tooltest.Log{}
	w := newWorld(t, mcp.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	require.NoError(t, w.sessions.Close(t.Context())) // so that each call fails
	mine := auth.Caller{ID: "1", Tenant: "acme", Scopes: everything}
	for i := range 100 {
		status, answer, _ := post(t, w, mine, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask_user","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}}}}`,
			map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "ask_user"})
		require.Contains(t, answer, "internal error", status)
		if i == 0 {
			assert.Equal(t, 1, strings.Count(log.String(), "\n"))
		}
	}
	assert.Less(t, strings.Count(log.String(), "\n"), 30)
}

// TestAttackAbandonedQuestions: the calls of a client that went away while its user was asked leave nothing behind.
// Their goroutines and arguments, several times each, stayed until the session ended, for which DELETE waited for ever.
func TestAttackAbandonedQuestions(t *testing.T) {
	log := &tooltest.Log{}
	w := newWorld(t, mcp.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	mine := auth.Caller{ID: "1", Tenant: "acme", Scopes: everything}
	status, _, header := post(t, w, mine, http.MethodPost, strings.Replace(initializeBody, `"capabilities":{}`, `"capabilities":{"elicitation":{"form":{}}}`, 1), nil)
	require.Equal(t, http.StatusOK, status)
	session := map[string]string{"Mcp-Session-Id": header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version": "2025-11-25"}
	status, answer, _ := post(t, w, mine, http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session)
	require.Equal(t, http.StatusAccepted, status, answer)
	token := noerr.Get(json.Marshal(mine))(t)
	w.web.Client().CloseIdleConnections()
	before := runtime.NumGoroutine()
	for i := range 40 {
		ctx, leave := context.WithCancel(t.Context())
		question := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"ask_user","arguments":{"question":"Which one?"}}}`, i)
		r := noerr.Get(http.NewRequestWithContext(ctx, http.MethodPost, w.web.URL, strings.NewReader(question)))(t)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Authorization", string(token))
		for name, value := range session {
			r.Header.Set(name, value)
		}
		response := noerr.Get(w.web.Client().Do(r))(t)
		lines, asked := bufio.NewScanner(response.Body), false
		for !asked && lines.Scan() {
			asked = strings.Contains(lines.Text(), "elicitation/create")
		}
		require.True(t, asked, lines.Text())
		leave()
		_ = response.Body.Close()
		require.Eventually(t, func() bool { return w.requests.Load() == 0 }, 10*time.Second, time.Millisecond)
	}
	assert.Eventually(t, func() bool { return runtime.NumGoroutine() < before+20 }, 10*time.Second, 10*time.Millisecond, "%d goroutines, and %d before", runtime.NumGoroutine(), before)
	assert.Zero(t, strings.Count(log.String(), "\n"), "a client that disconnects is not a failure of the server")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, w.web.URL, nil)
		r.Header.Set("Authorization", string(token))
		r.Header.Set("Mcp-Session-Id", session["Mcp-Session-Id"])
		if response, err := w.web.Client().Do(r); err == nil {
			_ = response.Body.Close()
		}
	}()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the session does not end")
	}
}

// TestAttackLongQuestions: the calls of a tenant that wait for answers hold bounded memory, whoever's they are. Each
// holds five times its arguments, of up to a megabyte, for an hour after its client has gone; 1,024 held 5 GB.
func TestAttackLongQuestions(t *testing.T) {
	w := newWorld(t, mcp.Options{}, newFake(t, "wipe", fields{"behavior": fields{"destructive": true}}, says(tool.Result{Success: true})))
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wipe","arguments":{"what":"` + strings.Repeat("a", 900<<10) + `"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}},"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}}}}`
	for token := range 5 {
		for range 16 {
			status, answer, _ := post(t, w, auth.Caller{ID: string(rune('a' + token)), Tenant: "acme", Scopes: everything}, http.MethodPost, body, map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "wipe"})
			require.Equal(t, http.StatusOK, status, answer)
			require.Contains(t, answer, "requestState")
		}
	}
	held := heap() - before
	t.Logf("%d MB are held", held>>20)
	assert.Less(t, held, uint64(150<<20))
}

// TestAttackHeadersOfSessions: a session does not keep the header of the request that began it, which may be long, and
// there may be many sessions. The control are requests that are kept.
func TestAttackHeadersOfSessions(t *testing.T) {
	const sessions, size = 30, 500 << 10
	w := newWorld(t, mcp.Options{})
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var mu sync.Mutex
	var kept []*http.Request
	handler := w.web.Config.Handler
	for _, control := range []bool{false, true} {
		w.web.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if control {
				mu.Lock()
				defer mu.Unlock()
				kept = append(kept, r)
			}
			handler.ServeHTTP(rw, r)
		})
		before := heap()
		for range sessions {
			status, answer, _ := post(t, w, auth.Caller{ID: "1", Tenant: "acme", Scopes: everything}, http.MethodPost, initializeBody, map[string]string{"Long": strings.Repeat("x", size)})
			require.Equal(t, http.StatusOK, status, answer)
		}
		w.web.Client().CloseIdleConnections()
		assert.Equal(t, control, int64(heap())-int64(before) > sessions*size/2)
	}
	runtime.KeepAlive(kept)
}
