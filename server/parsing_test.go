package server

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
)

// TestAttackManyAtATime: many connections without an authenticated request send requests at the same time. Few are
// looked at at a time, and a connection leaves its place before it may wait for anything. The control is a connection
// that has had an authenticated request, which needs no place.
func TestAttackManyAtATime(t *testing.T) {
	l := noerr.Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	held := newConnections(l, nil, Limits{Connections: 1000, Refusal: time.Hour, Stall: time.Hour, HeaderBytes: 1 << 10})
	defer func() { require.NoError(t, held.Close()) }()
	accepted := func() *connection {
		c := dial(t, &running{address: l.Addr().String()})
		send(t, c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		one := noerr.Get(held.Accept())(t).(*connection)
		t.Cleanup(func() { _ = one.Close() })
		return one
	}
	places := cap(held.places)
	var read atomic.Int64
	parsed := make(chan *connection, 3*places)
	for range cap(parsed) {
		one := accepted()
		go func() {
			_, err := one.Read(make([]byte, 1<<10))
			assert.NoError(t, err)
			read.Add(1)
			parsed <- one
		}()
	}
	require.Eventually(t, func() bool { return read.Load() == int64(places) }, time.Second, time.Millisecond)
	known := accepted()
	known.isKnown.Store(true)
	noerr.Get(known.Read(make([]byte, 1<<10)))(t)
	assert.Never(t, func() bool { return read.Load() > int64(places) }, 30*time.Millisecond, time.Millisecond)
	leaves := []func(one *connection){
		func(one *connection) { one.leavePlace() },
		func(one *connection) { _, _ = one.Write([]byte("HTTP/1.1 200 OK\r\n\r\n")) },
		func(one *connection) { go func() { _, _ = one.Read(make([]byte, 1)) }() },
		func(one *connection) { _ = one.Close() },
	}
	for i := range cap(parsed) {
		leaves[i%len(leaves)](<-parsed)
	}
	assert.Eventually(t, func() bool { return len(held.places) == 0 }, time.Second, time.Millisecond)

	// net/http looks beside a handler, which may wait, whether the client sends more.
	beside := accepted()
	noerr.Get(beside.Read(make([]byte, 1)))(t)
	require.Empty(t, held.places)

	// The rest of a refused body is read in places, too.
	refused := accepted()
	require.True(t, refused.handles())
	end := refused.discard()
	noerr.Get(refused.Read(make([]byte, 1<<10)))(t)
	assert.Len(t, held.places, 1)
	end()
	assert.Empty(t, held.places)

	// Each request must be authenticated, so that one with a token does not make room for many without.
	known.isKnown.Store(true)
	held.follow(known, http.StateIdle)
	assert.False(t, known.isKnown.Load())
	assert.Len(t, held.places, 1, "the next request may have been read with this one")
	assert.True(t, known.handles())
	assert.Empty(t, held.places)
	done := known.begin(nil, func() {})
	held.follow(known, http.StateIdle)
	assert.True(t, known.isKnown.Load())
	done()
}

// TestClientsThatSendNoMore: a client closes its side of the connection after its request. It counts as gone a
// little later, and its request ends. The control is a client that does not.
func TestClientsThatSendNoMore(t *testing.T) {
	t.Parallel() // it waits for most of its time
	ended := make(chan time.Duration, 1)
	wait := Endpoint{Pattern: "/wait", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		began := time.Now()
		select {
		case <-r.Context().Done():
		case <-time.After(8 * sendsNoMore):
		}
		ended <- time.Since(began)
	})}
	r := start(t, Options{}, wait)
	for _, closes := range []bool{true, false} {
		c := dial(t, r)
		send(t, c, "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if closes {
			require.NoError(t, c.(*net.TCPConn).CloseWrite())
		}
		took := <-ended
		assert.GreaterOrEqual(t, took, sendsNoMore)
		assert.Equal(t, closes, took < 8*sendsNoMore, "%v", took)
	}
	if runtime.GOOS != "linux" {
		return // the rest would take as long
	}
	c := dial(t, r)
	send(t, c, "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n")
	time.Sleep(50 * time.Millisecond)
	require.NoError(t, c.(*net.TCPConn).SetLinger(0))
	require.NoError(t, c.Close())
	assert.Less(t, <-ended, sendsNoMore, "it is reset")
}

// TestChecksOfHealth: what checks a server's health may send a request of HTTP/1.0 without the name of the server, as
// haproxy does by default.
func TestChecksOfHealth(t *testing.T) {
	r := start(t, Options{Tokens: tokens(t)})
	for line, status := range map[string]int{
		"GET /healthz HTTP/1.0\r\n\r\n": http.StatusOK, "GET /readyz HTTP/1.0\r\n\r\n": http.StatusOK,
		"GET /echo HTTP/1.0\r\n\r\n":                        http.StatusUnauthorized,
		"GET /healthz HTTP/1.0\r\nHost: other.test\r\n\r\n": http.StatusForbidden,
		"GET /healthz HTTP/1.1\r\n\r\n":                     http.StatusBadRequest,
	} {
		c := dial(t, r)
		send(t, c, line)
		response := noerr.Get(http.ReadResponse(bufio.NewReader(c), nil))(t)
		noerr.Get(io.Copy(io.Discard, response.Body))(t)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, status, response.StatusCode, line)
	}
}
