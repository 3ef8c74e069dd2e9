package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/server/auth"
)

// TestAttackConnectionsOutliveTokens: a proxy's connection carries the requests of many clients. The token
// of one is revoked while its request runs. The connection ends with that request, so that what ended the request does
// not end those of other clients. The control is a token that works.
func TestAttackConnectionsOutliveTokens(t *testing.T) {
	t.Parallel() // it waits for most of its time
	const body = "0123456789"
	for _, test := range []struct {
		name      string
		begins    bool // the answer has begun when the token is revoked
		pipelined bool // the next request has arrived by then
		revoked   bool
	}{
		{"an answer that begins late", false, false, true},
		{"an answer that has begun", true, false, true},
		{"an answer that has begun, and a request that waits", true, true, true},
		{"control", true, false, false},
		{"control with a request that waits", true, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			state := stateFolder(t)
			of := tokensIn(t, state)
			token, id := issued(t, of, auth.Token{Tenant: "acme", Scopes: []auth.Scope{auth.Call}})
			other, _ := issued(t, of, auth.Token{Tenant: "other", Scopes: []auth.Scope{auth.Call}})
			began, end := make(chan struct{}), make(chan struct{})
			long := Endpoint{Pattern: "/long", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if test.begins {
					_, _ = io.WriteString(w, "begun\n")
					_ = http.NewResponseController(w).Flush()
				}
				close(began)
				select {
				case <-end:
				case <-r.Context().Done():
				}
				_, _ = io.WriteString(w, "ended\n")
			})}
			var ran atomic.Int32
			next := Endpoint{Pattern: "/next", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				ran.Add(1)
				assert.NoError(t, r.Context().Err(), "the request of another client was cancelled")
			})}
			r := start(t, Options{Tokens: of}, long, next)
			c := dial(t, r)
			request := func(path, token string) string {
				return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\nAuthorization: Bearer " + token + "\r\n\r\n" + body
			}
			requests := request("/long", token)
			if test.pipelined {
				requests += request("/next", other)
			}
			send(t, c, requests)
			<-began
			if test.revoked {
				_, err := tokensIn(t, state).Revoke(t.Context(), id) // by another process
				require.NoError(t, err)
			} else {
				close(end)
			}
			require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
			in := bufio.NewReader(c)
			answer, err := http.ReadResponse(in, nil)
			require.NoError(t, err)
			text, err := io.ReadAll(answer.Body)
			if !test.revoked {
				require.NoError(t, err)
				if !test.pipelined {
					send(t, c, request("/next", other))
				}
				answer, err = http.ReadResponse(in, nil)
				require.NoError(t, err)
				assert.Equal(t, http.StatusOK, answer.StatusCode)
				assert.EqualValues(t, 1, ran.Load())
				return
			}
			if err == nil { // else the machine was too busy for the last words
				assert.True(t, strings.HasSuffix(string(text), "ended\n"), "%q", text)
			}
			assert.Equal(t, !test.begins, answer.Close)
			_, err = in.ReadByte()
			require.Error(t, err, "the connection is still there")
			assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the connection is still there")
			assert.Zero(t, ran.Load())
		})
	}
}

// TestAttackConnectionsAfterTokens: the server notices that a token was revoked just after its request has been
// answered whole. The connection takes other clients' requests. The control is a request that is being answered.
func TestAttackConnectionsAfterTokens(t *testing.T) {
	for _, ended := range []bool{true, false} {
		t.Run("request has ended: "+strconv.FormatBool(ended), func(t *testing.T) {
			l, err := net.Listen("tcp", "localhost:0")
			require.NoError(t, err)
			held := newConnections(l, nil, Limits{Connections: 1, Refusal: time.Hour, Stall: time.Hour})
			defer held.Close()
			client, err := net.Dial("tcp", l.Addr().String())
			require.NoError(t, err)
			defer client.Close()
			accepted, err := held.Accept()
			require.NoError(t, err)
			c := accepted.(*connection)
			answering, answered := context.WithCancel(t.Context())
			defer answered()
			answer := &answerWriter{ResponseWriter: httptest.NewRecorder(), connection: c}
			held.follow(c, http.StateActive)
			end := c.begin(nil, answered)
			answer.begins(http.StatusOK)
			end()
			if !ended {
				answer.end(answering, auth.ErrRevoked)
			}
			held.follow(c, http.StateIdle)
			held.follow(c, http.StateActive)
			if ended {
				answer.end(answering, auth.ErrRevoked)
			}
			assert.Equal(t, ended, c.handles())
			time.Sleep(2 * lastWords)
			assert.Equal(t, ended, c.handles())
		})
	}
}

// TestAttackLastPiecesOutliveTokens: net/http writes the last bytes of an answer after the handler has
// ended. A client sends many requests over one connection and takes no answer, until one waits like this, and its token
// is revoked. The tenant has the place of the request again. The control is a token that works.
func TestAttackLastPiecesOutliveTokens(t *testing.T) {
	t.Parallel() // it waits for most of its time
	for _, test := range []struct {
		name    string
		revoked bool
	}{{"revoked", true}, {"control", false}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			state := stateFolder(t)
			of := tokensIn(t, state)
			token, id := issued(t, of, auth.Token{Tenant: "acme", Scopes: []auth.Scope{auth.Read}})
			other, _ := issued(t, of, auth.Token{Tenant: "acme", Scopes: []auth.Scope{auth.Read}})
			var running, ended atomic.Int32
			small := Endpoint{Pattern: "/small", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				running.Add(1)
				_, _ = w.Write(make([]byte, 3<<10)) // less than net/http buffers
				running.Add(-1)
				ended.Add(1)
			})}
			limits := Limits{Requests: 1, Rate: 1e6, Burst: 1e6, Stall: time.Hour, Drain: time.Millisecond}
			r := start(t, Options{Tokens: of, Limits: limits}, small, Endpoint{Pattern: "/echo", Handler: http.HandlerFunc(echo)})
			c := dial(t, r)
			go func() { // until the server reads no more, or the test ends
				request := "GET /small HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token + "\r\n\r\n"
				for {
					if _, err := io.WriteString(c, request); err != nil {
						return
					}
				}
			}()
			isFree := func() bool {
				return r.do(t, "GET", "/echo", "", "Authorization", "Bearer "+other).status == http.StatusOK
			}
			for before := int32(-1); before != ended.Load() || isFree(); time.Sleep(500 * time.Millisecond) {
				before = ended.Load()
			}
			require.Zero(t, running.Load(), "the handler waits for the client, not net/http")
			if !test.revoked {
				time.Sleep(2 * time.Second)
				assert.False(t, isFree())
				return
			}
			_, err := tokensIn(t, state).Revoke(t.Context(), id) // by another process
			require.NoError(t, err)
			assert.Eventually(t, isFree, 8*time.Second, 50*time.Millisecond, "the tenant has its place again")
		})
	}
}

// TestAttackConnectionsOutliveRefusals: an answer that says that the token stopped working meanwhile ends the
// connection. The controls are another answer, and one to a request whose token never worked.
func TestAttackConnectionsOutliveRefusals(t *testing.T) {
	of := tokens(t)
	token, _ := issued(t, of, auth.Token{Scopes: []auth.Scope{auth.Read}})
	r := start(t, Options{Tokens: of}, Endpoint{Pattern: "/{status}", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, err := strconv.Atoi(r.PathValue("status"))
		assert.NoError(t, err)
		w.WriteHeader(status)
	})})
	for _, test := range []struct {
		path, token string
		ends        bool
	}{{"/401", token, true}, {"/403", token, false}, {"/401", "", false}} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+test.path, http.NoBody)
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+test.token)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, test.ends, response.Close, test)
	}
}

// TestAttackHandlersThatWait: a token is revoked while the handler of its request waits for the client and cannot be
// cancelled. The connection ends soon. The control is a token that works.
func TestAttackHandlersThatWait(t *testing.T) {
	t.Parallel()
	for name, revoked := range map[string]bool{"revoked": true, "control": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := stateFolder(t)
			of := tokensIn(t, state)
			token, id := issued(t, of, auth.Token{Tenant: "acme", Scopes: []auth.Scope{auth.Call}})
			began, end := make(chan struct{}), make(chan struct{})
			r := start(t, Options{Tokens: of}, Endpoint{Pattern: "/stuck", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				close(began)
				<-end
			})})
			t.Cleanup(func() { close(end) })
			c := dial(t, r)
			send(t, c, "POST /stuck HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nAuthorization: Bearer "+token+"\r\n\r\n")
			<-began
			if revoked {
				noerr.Get(tokensIn(t, state).Revoke(t.Context(), id))(t)
			}
			require.NoError(t, c.SetReadDeadline(time.Now().Add(noWords+2*time.Second)))
			_, err := c.Read(make([]byte, 1))
			assert.Equal(t, !revoked, errors.Is(err, os.ErrDeadlineExceeded), "%v", err)
		})
	}
}
