package server

import (
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"github.com/caisson-run/caisson/server/auth"
)

// TestAttackStallsOutliveTokens: a client does not take what it is sent, or takes it byte by byte, and its token is
// revoked. Its answers end soon, whether they have begun or not, and the tenant has their places again. The control is
// a token that works.
func TestAttackStallsOutliveTokens(t *testing.T) {
	t.Parallel() // it waits for most of its time
	endless := func(w http.ResponseWriter, _ *http.Request) error {
		for {
			if _, err := w.Write(make([]byte, 8<<10)); err != nil {
				return err
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				return err
			}
		}
	}
	small := func(w http.ResponseWriter, _ *http.Request) error {
		for {
			if _, err := io.WriteString(w, "data: x\n\n"); err != nil {
				return err
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				return err
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	last := func(w http.ResponseWriter, r *http.Request) error {
		<-r.Context().Done()
		_, err := w.Write(make([]byte, 8<<10))
		return err
	}
	over1 := func(t *testing.T, r *running, token string) (again func() error) {
		send(t, dialTLS(t, r.address), "GET /stall HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+token+"\r\n\r\n")
		return func() error { return nil }
	}
	over2 := func(window uint32, again func(*client2) error) func(t *testing.T, r *running, token string) func() error {
		return func(t *testing.T, r *running, token string) func() error {
			c := dial2(t, r.address, window)
			require.NoError(t, c.framer.WriteWindowUpdate(0, 1<<30)) // of the connection
			require.NoError(t, c.ask("/stall", true, "authorization", "Bearer "+token))
			return func() error { return again(c) }
		}
	}
	nothing := func(*client2) error { return nil }
	for _, test := range []struct {
		name    string
		answer  func(http.ResponseWriter, *http.Request) error
		client  func(t *testing.T, r *running, token string) (again func() error)
		revoked bool
	}{
		{"a connection that is not read", endless, over1, true},
		{"small events without end", small, over1, true},
		{"no window", endless, over2(0, nothing), true},
		{"a window of a byte at a time", endless, over2(0, func(c *client2) error { return c.framer.WriteWindowUpdate(1, 1) }), true},
		{"a connection of HTTP 2 that is not read", endless, over2(1<<30, nothing), true},
		{"no window for an answer that begins late", last, over2(0, nothing), true},
		{"control", endless, over2(0, nothing), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			of := tokens(t)
			token, id := issued(t, of, auth.Token{Tenant: "acme", Scopes: []auth.Scope{auth.Read}})
			other, _ := issued(t, of, auth.Token{Tenant: "acme", Scopes: []auth.Scope{auth.Read}})
			began, ended := make(chan struct{}), make(chan error, 1)
			stall := Endpoint{Pattern: "/stall", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				close(began)
				ended <- test.answer(w, r)
			})}
			options := Options{TLS: certificate(t), Tokens: of, Limits: Limits{Requests: 1, Stall: time.Hour, Drain: time.Millisecond}}
			r := start(t, options, stall, Endpoint{Pattern: "/echo", Handler: http.HandlerFunc(echo)})
			again := test.client(t, r, token)
			<-began
			wait := 2 * time.Second
			if test.revoked {
				_, err := auth.In(of.Dir()).Revoke(id) // by another process
				require.NoError(t, err)
				wait = 8 * time.Second // a second, and what a busy machine takes
			}
			var err error
			for until := time.Now().Add(wait); err == nil && time.Now().Before(until); {
				_ = again()
				select {
				case err = <-ended:
				case <-time.After(20 * time.Millisecond):
				}
			}
			isFree := func() bool {
				return r.do(t, "GET", "/echo", "", "Authorization", "Bearer "+other).status == http.StatusOK
			}
			if !test.revoked {
				assert.NoError(t, err)
				assert.False(t, isFree())
				return
			}
			require.Error(t, err, "the handler still writes")
			assert.Eventually(t, isFree, 5*time.Second, 50*time.Millisecond, "the tenant has its place again")
		})
	}
}

// TestAttackOtherStreamsOfRevokedTokens: a proxy's connection of HTTP/2 is not read for a while, or slowly, and the
// token of one request is revoked. The tenant has its place again, and the requests of other tokens are answered. That
// the connection ends without these is in TestAttackStallsOutliveTokens.
func TestAttackOtherStreamsOfRevokedTokens(t *testing.T) {
	t.Parallel() // it waits for most of its time
	of := tokens(t)
	token, id := issued(t, of, auth.Token{Tenant: "acme", Scopes: []auth.Scope{auth.Read}})
	same, _ := issued(t, of, auth.Token{Tenant: "acme", Scopes: []auth.Scope{auth.Read}})
	other, _ := issued(t, of, auth.Token{Tenant: "other", Scopes: []auth.Scope{auth.Read}})
	var written atomic.Int32
	unread := Endpoint{Pattern: "/unread", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 8<<10)); err != nil {
				return
			}
			written.Add(1)
		}
	})}
	began, end := make(chan struct{}), make(chan struct{})
	long := Endpoint{Pattern: "/long", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(began)
		select {
		case <-end:
			_, _ = io.WriteString(w, "ended")
		case <-r.Context().Done():
		}
	})}
	r := start(t, Options{TLS: certificate(t), Tokens: of, Limits: Limits{Requests: 1, Drain: time.Millisecond}},
		unread, long, Endpoint{Pattern: "/echo", Handler: http.HandlerFunc(echo)})
	c := dial2(t, r.address, 1<<30)
	require.NoError(t, c.framer.WriteWindowUpdate(0, 1<<30)) // of the connection
	require.NoError(t, c.ask("/long", true, "authorization", "Bearer "+other))
	<-began
	require.NoError(t, c.ask("/unread", true, "authorization", "Bearer "+token))
	for before := int32(0); before == 0 || before != written.Load(); time.Sleep(300 * time.Millisecond) {
		before = written.Load()
	}
	isFree := func() bool {
		return r.do(t, "GET", "/echo", "", "Authorization", "Bearer "+same).status == http.StatusOK
	}
	require.False(t, isFree())
	_, err := auth.In(of.Dir()).Revoke(id) // by another process
	require.NoError(t, err)
	require.Eventually(t, isFree, 8*time.Second, 50*time.Millisecond, "the tenant has its place again")
	time.Sleep(2 * unreadTime)
	close(end)
	require.NoError(t, c.conn.SetReadDeadline(time.Now().Add(20*time.Second)))
	answer, reset := "", false
	for answer != "ended" || !reset {
		frame, err := c.framer.ReadFrame()
		require.NoError(t, err, "the connection has ended")
		switch frame := frame.(type) {
		case *http2.DataFrame:
			if frame.StreamID == 1 {
				answer += string(frame.Data())
			}
		case *http2.RSTStreamFrame:
			require.EqualValues(t, 3, frame.StreamID)
			reset = true
		}
	}
}

// TestUnreadConnections: a connection without authenticated requests ends only if its client has read nothing of it for
// a while.
func TestUnreadConnections(t *testing.T) {
	for name, test := range map[string]struct {
		taken   time.Duration // before now
		running int
		ends    bool
	}{
		"read just now":                 {time.Millisecond, 0, false},
		"read long ago":                 {2 * unreadTime, 0, true},
		"read long ago, with a request": {2 * unreadTime, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			server, client := net.Pipe()
			t.Cleanup(func() { _ = client.Close() })
			c := &connection{Conn: server, of: newConnections(nil, Limits{}), running: test.running}
			c.of.held[c] = struct{}{}
			c.taken.Store(time.Now().Add(-test.taken).UnixNano())
			assert.Equal(t, test.ends, c.endUnread())
			assert.Equal(t, test.ends, c.closed)
			_ = server.Close()
		})
	}
}
