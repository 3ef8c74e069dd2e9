package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/server/auth"
)

// scarce is a listener of a process that may have so many descriptors of connections.
type scarce struct {
	net.Listener
	most int

	mu   sync.Mutex
	open int
}

func (s *scarce) Accept() (net.Conn, error) {
	s.mu.Lock()
	if s.open >= s.most {
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: syscall.EMFILE}
	}
	s.open++
	s.mu.Unlock()
	c, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &scarceConn{Conn: c, of: s}, nil
}

type scarceConn struct {
	net.Conn
	of   *scarce
	once sync.Once
}

func (c *scarceConn) Close() error {
	c.once.Do(func() {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		c.of.open--
	})
	return c.Conn.Close()
}

// TestAttackDescriptors: where the system lets the process have fewer descriptors than Limits.Connections (ulimit -n,
// 1,024 in many places), clients without a token that hold connections block no other client, as they do not where it
// lets it have more.
func TestAttackDescriptors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	limits, err := Limits{}.withDefaults()
	require.NoError(t, err)
	held := newConnections(&scarce{Listener: l, most: 50}, nil, limits)
	h := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }),
		ReadHeaderTimeout: limits.Header, ConnState: held.follow, ConnContext: held.inContext,
	}
	served := make(chan error, 1)
	go func() { served <- h.Serve(held) }()
	defer func() {
		_ = h.Close()
		assert.ErrorIs(t, <-served, http.ErrServerClosed)
	}()
	for range 60 {
		c, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		defer c.Close()
	}
	honest := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for range 5 {
		began := time.Now()
		response, err := honest.Get("http://" + l.Addr().String())
		require.NoError(t, err)
		_ = response.Body.Close()
		assert.Less(t, time.Since(began), 3*time.Second)
	}
}

// failing is a listener whose connections fail where errs is not nil.
type failing struct {
	net.Listener
	errs chan error
}

func (f failing) Accept() (net.Conn, error) {
	if err := <-f.errs; err != nil {
		return nil, err
	}
	mine, others := net.Pipe()
	return &scarceConn{Conn: mine, of: &scarce{}}, others.Close()
}

// TestAttackDescriptorsOfTools: tools that have open as many files as the process may have descriptors do not make the
// server hold fewer connections for good, and never so few that the requests of one tenant are all. It held one, for
// hours after the calls had ended. The control is the server before.
func TestAttackDescriptorsOfTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits, err := Limits{Connections: 64}.withDefaults()
		require.NoError(t, err)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		errs := make(chan error, 64)
		c := newConnections(failing{l, errs}, nil, limits)
		defer func() {
			c.dropAll()
			require.NoError(t, c.Close())
		}()
		accepts := func(count int) (last *connection) {
			for range count {
				errs <- nil
				one, err := c.Accept()
				require.NoError(t, err)
				last = one.(*connection)
			}
			return last
		}
		held := func() int {
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.held)
		}
		accepts(64)
		assert.Equal(t, 64, held(), "the control")
		c.dropAll()
		accepts(2)
		errs <- &net.OpError{Op: "accept", Net: "tcp", Err: syscall.EMFILE}
		_, err = c.Accept()
		require.ErrorIs(t, err, syscall.EMFILE)
		assert.Equal(t, 1, held(), "one gives its descriptor back")
		accepts(64)
		assert.Equal(t, 32, held())
		assert.Less(t, limits.Requests, 32)

		c.dropAll()
		for range 32 {
			accepts(1).begin(nil, func() {})
		}
		began := time.Now()
		accepts(1)
		assert.Positive(t, time.Since(began), "it waits")
		assert.LessOrEqual(t, time.Since(began), scarceTime)
		accepts(40)
		assert.Equal(t, 64, held())

		c.dropAll()
		tries, reads := 0, context.WithValue(t.Context(), connectionKey{}, accepts(8))
		require.NoError(t, withDescriptors(reads, func() error { // such as from a database that has ended its connections
			if tries++; held() == 8 {
				return &net.OpError{Op: "dial", Net: "unix", Err: syscall.EMFILE}
			}
			return nil
		}))
		assert.Equal(t, 2, tries, "connections give their descriptors to what reads tokens")
	})
}

// TestAttackTwoTokens: a request is read as one thing only. One that shows two tokens is another caller's to a proxy
// that reads the other, such as to count or to log requests.
func TestAttackTwoTokens(t *testing.T) {
	of := tokens(t)
	one, _, err := of.Create(t.Context(), auth.Token{Tenant: "acme", Scopes: auth.Scopes()})
	require.NoError(t, err)
	other, _, err := of.Create(t.Context(), auth.Token{Tenant: "evil", Scopes: auth.Scopes()})
	require.NoError(t, err)
	s := start(t, Options{Tokens: of})
	for name, values := range map[string][]string{"two tokens": {"Bearer " + one, "Bearer " + other}, "a token and none": {"Bearer " + one, "Basic YTpi"}, "the same twice": {"Bearer " + one, "Bearer " + one}} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/echo", nil)
		require.NoError(t, err)
		request.Header["Authorization"] = values
		response, err := s.client.Do(request)
		require.NoError(t, err)
		_ = response.Body.Close()
		assert.Equal(t, http.StatusUnauthorized, response.StatusCode, name)
	}
	assert.Equal(t, http.StatusOK, s.do(t, "GET", "/echo", "", "Authorization", "Bearer "+one).status) // the control
}

// TestAttackAnswerAsProblem: what a handler answers reaches the client as it is, also if it reads like an answer of
// net/http.
func TestAttackAnswerAsProblem(t *testing.T) {
	body := "HTTP/1.1 400 Bad Request" + unparsedAnswer + strings.Repeat("what a tool wrote ", 1000)
	s := start(t, Options{}, Endpoint{Pattern: "/text", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, body)
	})})
	s.client.Timeout = 5 * time.Second
	response, err := s.client.Get(s.url + "/text")
	require.NoError(t, err)
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.True(t, body == string(got), "%.200q", got)

	c, err := net.Dial("tcp", s.address) // the control: what net/http answers itself is a problem, also after other answers
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nnonsense\r\n\r\n")
	require.NoError(t, err)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(5*time.Second)))
	text, err := io.ReadAll(c)
	require.True(t, err == nil || errors.Is(err, syscall.ECONNRESET), err)
	assert.Contains(t, string(text), "application/problem+json")
}
