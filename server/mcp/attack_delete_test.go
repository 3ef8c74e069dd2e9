package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/mcp"
	"github.com/caisson-run/caisson/tool"
)

// TestDeletedSessions: the calls of a session end when its client deletes it, also those that run for long or wait for
// their user, and the client is told. The control is a session with nothing in progress.
func TestDeletedSessions(t *testing.T) {
	for name, test := range map[string]struct{ call, first, last string }{
		"control":    {`{"jsonrpc":"2.0","id":2,"method":"ping"}`, `"result":{}`, ""},
		"a call":     {`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"long","arguments":{}}}`, "", `"isError":true`},
		"a question": {`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask_user","arguments":{"question":"Which one?"}}}`, "elicitation/create", "the session has ended"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			defer leave() // which ends the call if nothing else does
			began := make(chan struct{}, 1)
			w := newWorld(t, mcp.Options{}, newFake(t, "long", nil, func(ctx context.Context, _ tool.Invocation) tool.Result {
				began <- struct{}{}
				<-ctx.Done()
				return tool.Result{Error: "cancelled"}
			}))
			mine := auth.Caller{ID: "1", Tenant: "acme", Scopes: everything}
			status, _, header := post(t, w, mine, http.MethodPost, strings.Replace(initializeBody, `"capabilities":{}`, `"capabilities":{"elicitation":{"form":{}}}`, 1), nil)
			require.Equal(t, http.StatusOK, status)
			session := map[string]string{"Mcp-Session-Id": header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version": "2025-11-25"}
			status, answer, _ := post(t, w, mine, http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session)
			require.Equal(t, http.StatusAccepted, status, answer)
			request := func(ctx context.Context, method, body string) *http.Request {
				r := noerr.Get(http.NewRequestWithContext(ctx, method, w.web.URL, strings.NewReader(body)))(t)
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Accept", "application/json, text/event-stream")
				r.Header.Set("Authorization", string(noerr.Get(json.Marshal(mine))(t)))
				for name, value := range session {
					r.Header.Set(name, value)
				}
				return r
			}
			lines := make(chan string, 100)
			called := request(ctx, http.MethodPost, test.call)
			go func() {
				defer close(lines)
				response, err := w.web.Client().Do(called)
				if err != nil {
					return // leave was called
				}
				defer func() { _ = response.Body.Close() }()
				for text := bufio.NewScanner(response.Body); text.Scan(); {
					lines <- text.Text()
				}
			}()
			wait := func(said string) {
				t.Helper()
				for late := time.After(10 * time.Second); said != ""; {
					select {
					case line, ok := <-lines:
						if strings.Contains(line, said) {
							return
						}
						require.True(t, ok, "the answer lacks %s", said)
					case <-late:
						require.Fail(t, "the answer lacks "+said)
					}
				}
			}
			if name == "a call" {
				<-began
			}
			wait(test.first)

			soon, late := context.WithTimeout(t.Context(), 10*time.Second)
			defer late()
			response, err := w.web.Client().Do(request(soon, http.MethodDelete, ""))
			if !assert.NoError(t, err, "the session waits for its calls") {
				return
			}
			_ = response.Body.Close()
			assert.Equal(t, http.StatusNoContent, response.StatusCode)
			wait(test.last)
			status, _, _ = post(t, w, mine, http.MethodPost, `{"jsonrpc":"2.0","id":3,"method":"ping"}`, session)
			assert.Equal(t, http.StatusNotFound, status)
		})
	}
}
