package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/mcp"
)

// heard is an answer whose reader passes on the bytes that it takes.
type heard struct {
	*slowly
	said chan string
}

func (h heard) Write(p []byte) (int, error) {
	n, err := h.slowly.Write(p)
	h.said <- string(p)
	return n, err
}

// TestAttackUnreadChanges: a client does not take its stream, on which it is to be told of a new tool. The clients of
// others are told all the same, and it is told itself once it takes the stream. The control is a client that does.
func TestAttackUnreadChanges(t *testing.T) {
	for version, over := range map[string]string{"sessions": "2025-11-25", "stateless": ""} {
		for name, reads := range map[string]bool{"": false, ", control": true} {
			t.Run(version+name, func(t *testing.T) {
				w := newWorld(t, mcp.Options{})
				stranger := auth.Caller{ID: "2", Tenant: "other", Scopes: []auth.Scope{auth.Read, auth.Call}}
				status, _, header := post(t, w, stranger, http.MethodPost, initializeBody, nil)
				require.Equal(t, http.StatusOK, status)
				with := map[string]string{"Mcp-Session-Id": header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version": "2025-11-25"}
				status, _, _ = post(t, w, stranger, http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, with)
				require.Equal(t, http.StatusAccepted, status)
				ctx, leave := context.WithCancel(auth.With(t.Context(), stranger))
				defer leave()
				r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/mcp", strings.NewReader(""))
				r.Header.Set("Accept", "text/event-stream")
				for k, v := range with {
					r.Header.Set(k, v)
				}
				answer, ended := heard{newSlowly(), make(chan string, 1000)}, make(chan struct{})
				if reads {
					close(answer.take)
				}
				go func() { defer close(ended); w.server.ServeHTTP(answer, r) }()
				<-answer.begun

				told := make(chan struct{}, 16)
				client := &sdk.ClientOptions{ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { told <- struct{}{} }}
				caller := auth.Caller{ID: "1", Tenant: "acme", Scopes: everything}
				c := connectWeb(over, &caller)(t, w, client)
				_, _ = names(t, c)
				isTold := false
				for n := 0; n < 5 && !isTold; n++ { // the client's stream may begin after a change
					require.NoError(t, w.host.Registry().Register("", newFake(t, fmt.Sprintf("new_%d", n), nil, nil)))
					select {
					case <-told:
						isTold = true
					case <-time.After(time.Second):
					}
				}
				assert.True(t, isTold, "the other client is not told")
				if !reads {
					close(answer.take)
				}
				late := time.After(10 * time.Second)
				for said := ""; !strings.Contains(said, "list_changed"); {
					select {
					case said = <-answer.said:
					case <-late:
						require.Fail(t, "the client that takes its stream late is not told")
					}
				}
				leave()
				<-ended
			})
		}
	}
}
