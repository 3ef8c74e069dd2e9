package network

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// granted opens a session that may do everything with one server.
func granted(t testing.TB, s *server, limits Limits) *Session {
	t.Helper()
	host := "127.0.0.1"
	all := s.permission(host, "GET", "HEAD", "POST", "PUT")
	grant := grantOf(all)
	if s.TLS != nil {
		grant.Authorities = s.authorities(t)
	}
	return openWith(t, Options{Requests: []manifests.NetworkPermission{all}, Grants: []manifests.NetworkGrant{grant}}, limits)
}

// endless writes until the client has enough, or the bytes have been written.
func endless(w io.Writer, bytes int64) (written int64) {
	block := make([]byte, 64<<10)
	for written < bytes {
		n, err := w.Write(block)
		written += int64(n)
		if err != nil {
			break
		}
	}
	return written
}

func TestAttackLargeBody(t *testing.T) {
	for _, kind := range []protocol{plain, secure} {
		for _, encoding := range []string{"identity", "gzip"} {
			t.Run(string(kind)+" "+encoding, func(t *testing.T) {
				written := make(chan int64, 2)
				s := serve(t, kind, func(w http.ResponseWriter, r *http.Request) {
					if encoding == "identity" {
						w.Header().Set("Content-Length", "2147483648")
						written <- endless(w, 2<<30)
						return
					}
					w.Header().Set("Content-Encoding", "gzip")
					bomb, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
					written <- endless(bomb, 2<<30)
				})
				if kind == plain {
					control := newUnguarded(t, nil)
					answer := must(control.get(t, s.at("127.0.0.1", "/")))
					read, _ := io.CopyN(io.Discard, answer.Body, 32<<20)
					require.EqualValues(t, 32<<20, read, "a client without a limit reads on")
					answer.Body.Close()
					<-written
				}
				session := granted(t, s, Limits{Bytes: 1 << 20})
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				answer := must(get(t, session, s.at("127.0.0.1", "/")))
				runtime.ReadMemStats(&after)
				assert.Len(t, answer.Body, 1<<20)
				assert.True(t, answer.Truncated)
				assert.Less(t, <-written, int64(1<<30), "the server is not read to its end")
				assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
				assert.EqualValues(t, 1<<20, session.Journal.HostCalls()[0].Bytes)

				answer, err := get(t, session, s.at("127.0.0.1", "/"))
				require.NoError(t, err, "when all bytes are used up, an answer has no body")
				<-written
				assert.Empty(t, answer.Body)
				assert.True(t, answer.Truncated)
			})
		}
	}
}

// TestAttackHeldAnswers: the host holds unreceived answers up to the session's byte limit and no further, and copies
// each once. The controls are a session with a higher limit, and the allocations of append.
func TestAttackHeldAnswers(t *testing.T) {
	const answer = 4 << 20
	s := serve(t, plain, func(w http.ResponseWriter, _ *http.Request) { endless(w, answer) })
	var before, during runtime.MemStats
	held := func(limit manifests.Bytes) (live, allocated int64) {
		session := granted(t, s, Limits{Bytes: limit})
		must(get(t, session, s.at("127.0.0.1", "/nothing"))) // a connection and its buffers
		session.bytesLeft = int64(limit)
		runtime.GC()
		runtime.ReadMemStats(&before)
		for range maxInFlight {
			must(session.Send(t.Context(), Request{URL: s.at("127.0.0.1", "/")}))
		}
		require.Eventually(t, func() bool {
			return !slices.ContainsFunc(session.Journal.HostCalls(), func(call tool.HostCall) bool { return call.Status == "unfinished" })
		}, time.Minute, time.Millisecond)
		session.closeIdle()
		runtime.GC()
		runtime.ReadMemStats(&during)
		defer runtime.KeepAlive(session)
		return int64(during.HeapAlloc) - int64(before.HeapAlloc), int64(during.TotalAlloc) - int64(before.TotalAlloc)
	}
	const limit, slack = 3 * answer, 2 << 20
	live, _ := held(limit)
	assert.InDelta(t, limit, live, slack)
	live, allocated := held(64 << 20)
	assert.InDelta(t, maxInFlight*answer, live, slack, "control")
	assert.Less(t, allocated, int64(5*maxInFlight*answer/2))

	runtime.ReadMemStats(&before)
	var text []byte
	for piece := make([]byte, chunk); len(text) < answer; {
		text = append(text, piece...)
	}
	runtime.ReadMemStats(&during)
	assert.Greater(t, during.TotalAlloc-before.TotalAlloc, uint64(5*answer/2), "control")
}

// TestUnsetLimits: unset limits are the defaults, neither unlimited nor zero.
func TestUnsetLimits(t *testing.T) {
	s := serve(t, plain, func(w http.ResponseWriter, _ *http.Request) { endless(w, defaultBytes+1<<20) })
	session := granted(t, s, Limits{})
	answer, err := get(t, session, s.at("127.0.0.1", "/"))
	require.NoError(t, err)
	assert.Len(t, answer.Body, defaultBytes)
	assert.True(t, answer.Truncated)
	for range defaultCalls - 1 {
		require.NoError(t, errOf(get(t, session, s.at("127.0.0.1", "/"))))
	}
	_, err = get(t, session, s.at("127.0.0.1", "/"))
	var failed *hostfuncs.Error
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "http_calls", failed.Limit)
	assert.EqualValues(t, defaultCalls, failed.Value)
	assert.EqualValues(t, defaultCalls+1, session.Journal.Count())
	assert.Equal(t, "limit", session.Journal.HostCalls()[defaultCalls].Status)
}

func TestBodyOfExactlyTheLimit(t *testing.T) {
	s := serve(t, plain, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Write(body)
	})
	session := granted(t, s, Limits{Bytes: 2000})
	answer := must(session.Do(t.Context(), Request{Method: "POST", URL: s.at("127.0.0.1", "/"), Body: make([]byte, 1000)}))
	assert.Len(t, answer.Body, 1000)
	assert.False(t, answer.Truncated)
	assert.EqualValues(t, 2000, session.Journal.HostCalls()[0].Bytes)
	_, err := session.Do(t.Context(), Request{Method: "POST", URL: s.at("127.0.0.1", "/"), Body: []byte("x")})
	var failed *hostfuncs.Error
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "http_bytes", failed.Limit)
	assert.EqualValues(t, 1, s.requests.Load())
}

func TestAttackLargeHeader(t *testing.T) {
	for _, kind := range []protocol{plain, secure} {
		t.Run(string(kind), func(t *testing.T) {
			s := serve(t, kind, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Large", strings.Repeat("x", 5<<20))
			})
			if kind == plain {
				require.NoError(t, errOf(newUnguarded(t, nil).get(t, s.at("127.0.0.1", "/"))), "a client without a limit takes it")
			}
			require.ErrorIs(t, errOf(get(t, granted(t, s, Limits{}), s.at("127.0.0.1", "/"))), hostfuncs.ErrIO)
		})
	}
}

// TestAttackSlowServer: whatever a server does, a request ends with its deadline.
func TestAttackSlowServer(t *testing.T) {
	drip := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			w.Write([]byte("."))
			w.(http.Flusher).Flush()
			time.Sleep(10 * time.Millisecond)
		}
	}
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	hints := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			w.WriteHeader(http.StatusEarlyHints)
			time.Sleep(10 * time.Millisecond)
		}
	}
	for _, kind := range []protocol{plain, secure} {
		for name, handler := range map[string]http.HandlerFunc{"drip": drip, "silent": silent, "hints": hints} {
			t.Run(string(kind)+" "+name, func(t *testing.T) {
				s := serve(t, kind, handler)
				session := granted(t, s, Limits{})
				for bound, do := range map[string]func() error{
					"context": func() error {
						ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
						defer cancel()
						_, err := session.Do(ctx, Request{URL: s.at("127.0.0.1", "/"), Timeout: time.Hour})
						return err
					},
					"request": func() error {
						_, err := session.Do(t.Context(), Request{URL: s.at("127.0.0.1", "/"), Timeout: 200 * time.Millisecond})
						return err
					},
				} {
					started := time.Now()
					err := do()
					assert.Less(t, time.Since(started), 2*time.Second, bound)
					if name == "hints" && isKind(err, hostfuncs.ErrIO) {
						continue // so many of them are no answer
					}
					require.ErrorIs(t, err, hostfuncs.ErrDeadline, bound)
					require.ErrorIs(t, err, context.DeadlineExceeded, bound)
				}
			})
		}
	}
}

// TestAttackSlowServerControl: a client that sets no timeout is still waiting long after the timeout of the attack
// test.
func TestAttackSlowServerControl(t *testing.T) {
	s := serve(t, plain, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			io.WriteString(w, ".")
			w.(http.Flusher).Flush()
			time.Sleep(10 * time.Millisecond)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.at("127.0.0.1", "/"), nil)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		answer, err := s.Client().Do(request)
		if err == nil {
			_, err = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		require.Fail(t, "it ended by itself", "%v", err)
	case <-time.After(time.Second):
	}
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

func isKind(err, kind error) bool {
	failed, ok := err.(*hostfuncs.Error)
	return ok && failed.Kind == kind
}

// TestAttackSwitchingProtocols: an answer that turns the connection into something else is none.
func TestAttackSwitchingProtocols(t *testing.T) {
	s := serve(t, plain, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			t.Cleanup(func() { conn.Close() })
		}
	})
	require.ErrorIs(t, errOf(get(t, granted(t, s, Limits{}), s.at("127.0.0.1", "/"))), hostfuncs.ErrIO)
}

// TestAnswerHeaders: what a guest reads is text, in a fixed order, and about the answer.
// TestAttackNamedHeaders: an answer that names tens of thousands of headers which it could do without
// costs little more than the same answer with one long value.
func TestAttackNamedHeaders(t *testing.T) {
	client := &Client{}
	cost := func(connection string) time.Duration {
		header := http.Header{"Connection": {connection}}
		for i := range 5_500 {
			header[fmt.Sprintf("X%d", i)] = []string{""}
		}
		least := time.Hour
		for range 5 {
			began := time.Now()
			require.Len(t, client.answered(header), 5_500)
			least = min(least, time.Since(began))
		}
		return least
	}
	assert.Less(t, cost(strings.Repeat(",", 32_000)), 5*cost(strings.Repeat(".", 32_000)))
}

func TestAnswerHeaders(t *testing.T) {
	s := serve(t, plain, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nset-cookie: a=1\r\nSet-Cookie: b=2\r\nX-Bad: \xff\u0085 \u202e\r\n"+
				"Connection: Keep-Alive, x-hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nProxy-Authenticate: x\r\nContent-Length: 2\r\n\r\nok")
			conn.Close()
		}
	})
	answer := must(get(t, granted(t, s, Limits{}), s.at("127.0.0.1", "/")))
	assert.Equal(t, [][2]string{
		{"Content-Length", "2"}, {"Set-Cookie", "a=1"}, {"Set-Cookie", "b=2"}, {"X-Bad", "\uFFFD\uFFFD \uFFFD"},
	}, answer.Headers)
}
