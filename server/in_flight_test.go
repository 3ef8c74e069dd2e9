package server

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/tooltest"
	"github.com/caisson-run/caisson/server/auth"
)

// waiting is a door whose answers begin at once and last as long as their requests.
func waiting() Endpoint {
	return Endpoint{Pattern: "/wait", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	t.Parallel() // it waits for most of its time
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

// TestRequestsWaitForAnEnd: one request too many waits for a moment, since a client that dials anew for each may have
// the whole of an answer before its request stops counting. The control is one that does not end.
func TestRequestsWaitForAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		underway, caller := newInFlight(1), auth.Caller{ID: "a"}
		left, ok := underway.enter(t.Context(), caller)
		require.True(t, ok)
		_, ok = underway.enter(t.Context(), caller)
		require.False(t, ok)
		time.AfterFunc(enterTries*enterWait/2, left)
		left, ok = underway.enter(t.Context(), caller)
		require.True(t, ok)
		left()
	})
}

// A stream that was begun with a token is read on after the token was revoked, or has expired.
func TestAttackStreamsOutliveTokens(t *testing.T) {
	t.Parallel() // it waits for most of its time
	state := stateFolder(t)
	of := tokensIn(t, state)
	revoked, id := issued(t, of, auth.Token{Scopes: []auth.Scope{auth.Read}})
	expires, _ := issued(t, of, auth.Token{Scopes: []auth.Scope{auth.Read}, Expires: time.Now().Add(2500 * time.Millisecond)})
	works, _ := issued(t, of, auth.Token{Scopes: []auth.Scope{auth.Read}})
	r := start(t, Options{Tokens: of, Limits: Limits{Drain: time.Millisecond}}, waiting())
	_, revokedEnded := r.waits(t, revoked)
	_, expiredEnded := r.waits(t, expires)
	_, control := r.waits(t, works)
	_, err := tokensIn(t, state).Revoke(t.Context(), id) // by another process
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

// TestAttackRevokedWhileSending: a token is revoked while the body of its request is on its way. The body is not waited
// for, and the handler gets an error in place of its end, so that it does nothing. The control is a token that works.
func TestAttackRevokedWhileSending(t *testing.T) {
	t.Parallel() // it waits for most of its time
	const half = "0123456789"
	for _, test := range []struct {
		name    string
		revoked bool
		rest    bool // the rest is sent, half a second later
	}{{"and the rest follows", true, true}, {"and no more comes", true, false}, {"control", false, true}} {
		t.Run(test.name, func(t *testing.T) {
			state := stateFolder(t)
			known := tokensIn(t, state)
			token, id := issued(t, known, auth.Token{Scopes: []auth.Scope{auth.Call}})
			began, done := make(chan struct{}), make(chan error, 1)
			effect := Endpoint{Pattern: "/effect", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				close(began)
				_, err := io.ReadAll(r.Body)
				done <- err
			})}
			r := start(t, Options{TLS: certificate(t), Tokens: known, Limits: Limits{Body: time.Hour}}, effect)
			c := dialTLS(t, r.address)
			send(t, c, "POST /effect HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20\r\nAuthorization: Bearer "+token+"\r\n\r\n"+half)
			<-began
			if test.revoked {
				_, err := tokensIn(t, state).Revoke(t.Context(), id) // by another process
				require.NoError(t, err)
			}
			if test.rest {
				time.Sleep(600 * time.Millisecond) // Tokens trusts what it has read for half a second
				_, _ = io.WriteString(c, half)
			}
			select {
			case err := <-done:
				if test.revoked {
					assert.ErrorIs(t, err, auth.ErrRevoked)
				} else {
					assert.NoError(t, err)
				}
			case <-time.After(8 * time.Second):
				t.Error("the body is still waited for")
			}
		})
	}
}

// TestAttackUnreadBodiesOfOneTenant: a tenant leaves the bodies of its requests unsent. The requests count until their
// connections are idle, although their handlers have ended.
func TestAttackUnreadBodiesOfOneTenant(t *testing.T) {
	known := tokens(t)
	token, _ := issued(t, known, auth.Token{Tenant: "acme", Scopes: []auth.Scope{auth.Read}})
	handled := make(chan struct{}, 1000)
	deaf := Endpoint{Pattern: "/deaf", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > 0 {
			_ = http.NewResponseController(w).EnableFullDuplex() // net/http does not wait for the body before the answer
			_, _ = io.ReadFull(r.Body, make([]byte, 1))
		}
		handled <- struct{}{}
	})}
	r := start(t, Options{Tokens: known, Limits: Limits{Requests: 1, Body: time.Hour}}, deaf)
	c := dial(t, r)
	send(t, c, "POST /deaf HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+token+"\r\nContent-Length: 100\r\n\r\nx")
	<-handled
	assert.Equal(t, http.StatusTooManyRequests, r.do(t, "GET", "/deaf", "", "Authorization", "Bearer "+token).status)
	assert.Eventually(t, func() bool {
		if r.do(t, "GET", "/deaf", "", "Authorization", "Bearer "+token).status != http.StatusOK {
			return false
		}
		<-handled
		return true
	}, 10*time.Second, 100*time.Millisecond, "the rest is not waited for")
}

// TestAttackFirstToken: a server that is open until there is a token accepts no caller without one from then on, and
// ends what such callers have begun, also if the token is removed.
func TestAttackFirstToken(t *testing.T) {
	t.Parallel() // it waits for most of its time
	state := stateFolder(t)
	known := tokensIn(t, state)
	_, err := New(Options{Addr: ":0", Tokens: known, Open: true})
	require.ErrorIs(t, err, ErrOpen)
	_, err = New(Options{Open: true})
	require.ErrorIs(t, err, ErrInvalidOptions)
	r := start(t, Options{Tokens: known, Open: true, Local: auth.Caller{User: "me"}, Limits: Limits{Drain: time.Millisecond}}, waiting(), Endpoint{Pattern: "/echo", Handler: http.HandlerFunc(echo)})
	assert.Equal(t, "|me|[read call approve admin]|", r.do(t, "GET", "/echo", "").body)
	_, ended := r.waits(t, "")
	body := dial(t, r)
	send(t, body, "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nx")

	token, id := issued(t, tokensIn(t, state), auth.Token{User: "ada", Scopes: []auth.Scope{auth.Read}}) // by another process
	refused := func() bool { return r.do(t, "GET", "/echo", "").status == http.StatusUnauthorized }
	require.Eventually(t, refused, 10*time.Second, 10*time.Millisecond)
	assert.Equal(t, "|ada|[read]|", r.do(t, "GET", "/echo", "", "Authorization", "Bearer "+token).body)
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("a stream continues without a token")
	}
	require.NoError(t, body.SetReadDeadline(time.Now().Add(10*time.Second)))
	assert.Contains(t, firstLine(t, body), "413", "echo's answer to a body that it cannot read")
	tooltest.Place(t, state, ledger.TokenKind, "", id, nil)
	time.Sleep(600 * time.Millisecond) // Tokens trusts what it has read for half a second
	assert.True(t, refused())
	assert.Contains(t, r.log.String(), "requests need a token from now on")
}

// A client reads a long answer slowly, and its token is revoked meanwhile. It gets what the operating system holds, and
// no more. The control is a token that works.
func TestAttackLongAnswersOutliveTokens(t *testing.T) {
	t.Parallel() // it waits for most of its time
	const long = 16 << 20
	door := Endpoint{Pattern: "/long", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(long))
		_, _ = w.Write(make([]byte, long))
	})}
	for _, revoke := range []bool{true, false} {
		t.Run("revoked: "+strconv.FormatBool(revoke), func(t *testing.T) {
			state := stateFolder(t)
			of := tokensIn(t, state)
			token, id := issued(t, of, auth.Token{Scopes: []auth.Scope{auth.Read}})
			r := start(t, Options{Tokens: of, Limits: Limits{Drain: time.Millisecond}}, door)
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/long", nil)
			require.NoError(t, err)
			request.Header.Set("Authorization", "Bearer "+token)
			response, err := r.client.Do(request)
			require.NoError(t, err)
			defer response.Body.Close()
			if revoke {
				_, err = tokensIn(t, state).Revoke(t.Context(), id) // by another process
				require.NoError(t, err)
				time.Sleep(1500 * time.Millisecond) // a second, and what a busy machine takes
			}
			n, err := io.Copy(io.Discard, response.Body)
			if !revoke {
				require.NoError(t, err)
				assert.EqualValues(t, long, n)
				return
			}
			require.Error(t, err)
			assert.Less(t, n, int64(long-long/8))
		})
	}
}

// A token is revoked before the long answer to its request begins. Its client, which reads fast, gets one piece of it.
func TestAttackLateAnswers(t *testing.T) {
	t.Parallel() // it waits for most of its time
	began, written := make(chan struct{}), make(chan int, 1)
	door := Endpoint{Pattern: "/late", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		n, _ := w.Write(make([]byte, 1<<20))
		written <- n
	})}
	state := stateFolder(t)
	of := tokensIn(t, state)
	token, id := issued(t, of, auth.Token{Scopes: []auth.Scope{auth.Read}})
	r := start(t, Options{Tokens: of}, door)
	c := dial(t, r)
	send(t, c, "GET /late HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+token+"\r\n\r\n")
	go func() { _, _ = io.Copy(io.Discard, c) }()
	<-began
	_, err := tokensIn(t, state).Revoke(t.Context(), id) // by another process
	require.NoError(t, err)
	assert.Equal(t, piece, <-written)
}
