package network

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
)

// TestConnectionsAreOfOneSession: the requests of a call share connections, and those of two calls never do.
func TestConnectionsAreOfOneSession(t *testing.T) {
	for _, kind := range []protocol{plain, secure} {
		t.Run(string(kind), func(t *testing.T) {
			s := serve(t, kind, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				io.WriteString(w, "page")
			})
			first := granted(t, s, Limits{})
			second := first.client.Open(Limits{})
			defer second.Close()
			for _, session := range []*Session{first, second} {
				for _, method := range []string{"GET", "HEAD", "POST", "GET"} {
					require.NoError(t, errOf(session.Do(t.Context(), Request{Method: method, URL: s.at("127.0.0.1", "/"), Body: make([]byte, 100)})))
				}
			}
			assert.EqualValues(t, 2, s.connections.Load())
			assert.EqualValues(t, 8, s.requests.Load())
		})
	}
}

// TestConnectionsEnd: a connection is closed when its call ends, and before that when it has not been used for a while.
func TestConnectionsEnd(t *testing.T) {
	for name, end := range map[string]func(*Session){
		"session": (*Session).Close,
		"idle":    func(*Session) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			closed := make(chan time.Duration, 1)
			s := serveRaw(t, func(conn net.Conn) {
				started := time.Now()
				answerOK(conn, func(*http.Request) { started = time.Now() })
				closed <- time.Since(started)
			}, "http/1.1")
			session := s.open(t)
			require.NoError(t, errOf(get(t, session, s.url())))
			end(session)
			kept := <-closed
			assert.Less(t, kept, 15*time.Second)
			assert.Equal(t, name == "session", kept < idleTimeout/2, "%s", kept)
		})
	}
}

// TestClosedConnection: a request that meets a connection which the server closes is sent
// again where it asks for nothing to be changed, and only there.
func TestClosedConnection(t *testing.T) {
	for method, again := range map[string]bool{"GET": true, "POST": false} {
		t.Run(method, func(t *testing.T) {
			var requests, connections atomic.Int64
			s := serveRaw(t, func(conn net.Conn) {
				connections.Add(1)
				reader := bufio.NewReader(conn)
				for range 2 {
					if _, err := http.ReadRequest(reader); err != nil {
						return
					}
					if requests.Add(1) == 2 {
						return
					}
					io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				}
			})
			session := s.open(t)
			require.NoError(t, errOf(get(t, session, s.url())))
			_, err := session.Do(t.Context(), Request{Method: method, URL: s.url()})
			if again {
				require.NoError(t, err)
				assert.EqualValues(t, 3, requests.Load())
				assert.EqualValues(t, 2, connections.Load())
				return
			}
			require.ErrorIs(t, err, hostfuncs.ErrIO)
			assert.EqualValues(t, 2, requests.Load())
			assert.EqualValues(t, 1, connections.Load())
		})
	}
}

// TestServerClosesIdleConnection: an idle connection that the server closed is not used again.
func TestServerClosesIdleConnection(t *testing.T) {
	left := make(chan struct{}, 3)
	s := serveRaw(t, func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
		conn.Close()
		left <- struct{}{}
	})
	session := s.open(t)
	for range 3 {
		assert.Equal(t, "ok", string(must(session.Do(t.Context(), Request{Method: "POST", URL: s.url()})).Body))
		<-left
		time.Sleep(20 * time.Millisecond) // the news is on its way
	}
}

// TestEarlyAnswer: an answer counts although the server takes no more of the request.
func TestEarlyAnswer(t *testing.T) {
	release := make(chan struct{})
	s := serveRaw(t, func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			io.WriteString(conn, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno")
			<-release
		}
	})
	session := s.open(t)
	answer, err := session.Do(t.Context(), Request{Method: "POST", URL: s.url(), Body: make([]byte, 64<<20), Timeout: 10 * time.Second})
	close(release)
	require.NoError(t, err)
	assert.Equal(t, http.StatusRequestEntityTooLarge, answer.Status)
	assert.Equal(t, "no", string(answer.Body))
	assert.Empty(t, session.idle)
}

// TestInformationalAnswers are skipped, as far as a header may go.
func TestInformationalAnswers(t *testing.T) {
	const hint = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"
	for name, test := range map[string]struct {
		hints int
		kind  error
	}{"some": {20, nil}, "a flood": {maxAnswerHeaderSize / len(hint), hostfuncs.ErrIO}} {
		t.Run(name, func(t *testing.T) {
			s := serveRaw(t, func(conn net.Conn) {
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
					return
				}
				for range test.hints {
					io.WriteString(conn, hint)
				}
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				io.Copy(io.Discard, conn)
			})
			answer, err := get(t, s.open(t), s.url())
			if test.kind != nil {
				require.ErrorIs(t, err, test.kind)
				require.ErrorIs(t, err, errHeaderSize)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, "ok", string(answer.Body))
		})
	}
}

// TestOnlyHTTP2: requests to a server that speaks only HTTP/2 fail.
func TestOnlyHTTP2(t *testing.T) {
	s := serveRaw(t, func(conn net.Conn) {
		conn.Write(frame(frameSettings, 0, 0, ""))
		io.ReadFull(conn, make([]byte, 24)) // the preface, which it is not
	}, "h2")
	require.ErrorIs(t, errOf(get(t, s.open(t), s.url())), hostfuncs.ErrIO)
}

// TestIdleConnectionsAreBounded: a session keeps few, the latest.
func TestIdleConnectionsAreBounded(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, plain, func(http.ResponseWriter, *http.Request) { <-release })
	session := granted(t, s, Limits{})
	ended := make(chan error)
	for range maxIdleConnections + 5 {
		go func() {
			_, err := session.Do(t.Context(), Request{URL: s.at("127.0.0.1", "/")})
			ended <- err
		}()
	}
	require.Eventually(t, func() bool { return s.requests.Load() == maxIdleConnections+5 }, 10*time.Second, time.Millisecond)
	close(release)
	for range maxIdleConnections + 5 {
		require.NoError(t, <-ended)
	}
	assert.Len(t, session.idle, maxIdleConnections)
}
