package server

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/server/auth"
)

// waiting is a door whose answers begin at once and last as long as their requests.
func waiting() Door {
	return Door{Pattern: "/wait", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "waiting\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})}
}

// waits begins a request that lasts, and returns its status and what ends when it does.
func (r *running) waits(t *testing.T, token string) (status int, ended <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/wait", nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := r.client.Do(request)
	require.NoError(t, err)
	body := bufio.NewReader(response.Body)
	_, err = body.ReadString('\n')
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer response.Body.Close()
		_, _ = io.Copy(io.Discard, body)
	}()
	return response.StatusCode, done
}

// One tenant holds as many streams as it can, with several tokens.
func TestAttackStreamsOfOneTenant(t *testing.T) {
	for _, test := range []struct {
		name     string
		requests int
		in       bool
	}{{"guarded", 0, true}, {"control: as many as there are connections", 4, false}} {
		t.Run(test.name, func(t *testing.T) {
			of := tokens(t)
			one, _ := issued(t, of, auth.Token{Tenant: "acme", Scopes: []auth.Scope{auth.Read}})
			two, _ := issued(t, of, auth.Token{Tenant: "acme", Scopes: []auth.Scope{auth.Call}})
			other, _ := issued(t, of, auth.Token{Tenant: "other", Scopes: []auth.Scope{auth.Read}})
			r := start(t, Options{Tokens: of, Limits: Limits{Connections: 4, Requests: test.requests, Drain: time.Millisecond}}, waiting())
			refused := 0
			for i := range 4 {
				if status, _ := r.waits(t, []string{one, two}[i%2]); status == http.StatusTooManyRequests {
					refused++
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/wait", nil)
			require.NoError(t, err)
			request.Header.Set("Authorization", "Bearer "+other)
			response, err := r.client.Do(request)
			if err == nil {
				response.Body.Close()
			}
			assert.Equal(t, test.in, err == nil, "%v", err)
			assert.Equal(t, map[bool]int{true: 3, false: 0}[test.in], refused)
		})
	}
}

func TestRequestsAtATimeAreGivenBack(t *testing.T) {
	of := tokens(t)
	token, _ := issued(t, of, auth.Token{Scopes: []auth.Scope{auth.Read}})
	r := start(t, Options{Tokens: of, Limits: Limits{Requests: 1, BodyBytes: 10}})
	for range 5 {
		assert.Equal(t, 200, r.do(t, "POST", "/echo", "x", "Authorization", "Bearer "+token).status)
		assert.Equal(t, 413, r.do(t, "POST", "/echo", "more than is allowed", "Authorization", "Bearer "+token).status)
	}
}

// A stream that was begun with a token is read on after the token was revoked, or has expired.
func TestAttackStreamsOutliveTokens(t *testing.T) {
	of := tokens(t)
	revoked, id := issued(t, of, auth.Token{Scopes: []auth.Scope{auth.Read}})
	expires, _ := issued(t, of, auth.Token{Scopes: []auth.Scope{auth.Read}, Expires: time.Now().Add(2500 * time.Millisecond)})
	works, _ := issued(t, of, auth.Token{Scopes: []auth.Scope{auth.Read}})
	r := start(t, Options{Tokens: of, Limits: Limits{Drain: time.Millisecond}}, waiting())
	_, revokedEnded := r.waits(t, revoked)
	_, expiredEnded := r.waits(t, expires)
	_, control := r.waits(t, works)
	_, err := auth.In(of.Dir()).Revoke(id) // by another process
	require.NoError(t, err)
	select {
	case <-revokedEnded:
	case <-time.After(1500 * time.Millisecond): // a second, and what a busy machine takes
		t.Error("the stream of a revoked token goes on")
	}
	select {
	case <-expiredEnded:
	case <-time.After(4 * time.Second):
		t.Error("the stream of an expired token goes on")
	}
	assert.Contains(t, r.log.String(), "token="+id)
	select {
	case <-control:
		t.Error("the stream of a token that works ended")
	default:
	}
}
