package network

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Bounds of making a connection. A request's own deadline is mostly earlier.
const (
	dialTimeout      = 10 * time.Second // of all addresses of a name together
	handshakeTimeout = 10 * time.Second
)

var (
	errClosed  = errors.New("the client is closed")
	errRefused = errors.New("no address of the host may be connected to")
)

// refusedError says that a name leads only to addresses that may not be connected to.
type refusedError struct{ first *refusal }

func (e *refusedError) Error() string { return errRefused.Error() + ": " + e.first.address.String() }

// refusedBy returns the refusal behind an error, or nil.
func refusedBy(err error) *refusal {
	var refused *refusedError
	if !errors.As(err, &refused) {
		return nil
	}
	return refused.first
}

// dial connects to the host of a location, whose scheme decides about TLS.
func (c *Client) dial(ctx context.Context, l *location, to *reach) (*connection, error) {
	raw, err := c.connect(ctx, l, to)
	if err != nil {
		return nil, err
	}
	if l.scheme == "http" {
		return newConnection(raw, raw), nil
	}
	secure, err := handshake(ctx, raw, l.host.String(), to)
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return newConnection(raw, secure), nil
}

// connect checks each address when the connection to it is about to be made, whoever resolved
// it and when.
func (c *Client) connect(ctx context.Context, l *location, to *reach) (net.Conn, error) {
	address := net.JoinHostPort(l.host.String(), strconv.Itoa(l.port))
	if to.connect.IsValid() {
		address = to.connect.String()
	}
	tried := &attempts{}
	dialer := net.Dialer{
		Timeout:  dialTimeout,
		Resolver: c.resolver,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			return tried.check(c.permission.known, to, address)
		},
	}
	raw, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, tried.failure(err)
	}
	return raw, nil
}

func handshake(ctx context.Context, raw net.Conn, host string, to *reach) (*tls.Conn, error) {
	roots, err := to.roots()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	secure := tls.Client(raw, &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: host, NextProtos: []string{"http/1.1"},
	})
	return secure, secure.HandshakeContext(ctx)
}

// attempts are the addresses that one dial tried, some of them at the same time.
type attempts struct {
	mu      sync.Mutex
	allowed int
	refused *refusal // the first
}

func (a *attempts) check(known *ranges, to *reach, address string) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	why := to.check(known, target.Addr())
	a.mu.Lock()
	defer a.mu.Unlock()
	if why == nil {
		a.allowed++
		return nil
	}
	if a.refused == nil {
		a.refused = why
	}
	return errRefused
}

// failure returns why there is no connection: the policy, if it let none be tried.
func (a *attempts) failure(err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.allowed == 0 && a.refused != nil {
		return &refusedError{a.refused}
	}
	return err
}

// maxIdleConnections is how many connections a session keeps for its later requests.
const maxIdleConnections = MaxInFlight

// roundTrip sends a request on a connection that is idle or new. The body of the answer must
// be closed. Requests with another reach share no connections: an idle one goes where a grant
// for another request let it go.
func (s *Session) roundTrip(ctx context.Context, l *location, request *http.Request) (*http.Response, error) {
	to, reached := s.client.permission.reach(l, request.Method)
	key := fmt.Sprintf("%s %s %d %s", l.scheme, l.host, l.port, reached)
	for {
		c := s.takeIdle(key)
		if c == nil {
			return s.roundTripNew(ctx, l, to, key, request)
		}
		answer, err := c.roundTrip(request, s.keepIdle)
		// A server may close a connection while a request is on its way. It is sent again only
		// where it may arrive twice.
		if err == nil || c.received > 0 || ctx.Err() != nil || !isSafe(request.Method) {
			return answer, err
		}
		if err := rewind(request); err != nil {
			return nil, err
		}
	}
}

func (s *Session) roundTripNew(ctx context.Context, l *location, to *reach, key string, request *http.Request) (*http.Response, error) {
	c, err := s.client.dial(ctx, l, to)
	if err != nil {
		return nil, err
	}
	c.key = key
	return c.roundTrip(request, s.keepIdle)
}

// isSafe reports whether a method asks for nothing to be changed (RFC 9110, section 9.2.1).
func isSafe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// takeIdle returns a connection on which the server has been silent, or nil.
func (s *Session) takeIdle(key string) *connection {
	for {
		c := s.removeIdle(key)
		if c == nil || c.wake() {
			return c
		}
	}
}

func (s *Session) removeIdle(key string) *connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range slices.Backward(s.idle) {
		if c.key == key {
			s.idle = slices.Delete(s.idle, i, i+1)
			return c
		}
	}
	return nil
}

// keepIdle is called during an exchange, so that Close has yet to close what it keeps.
func (s *Session) keepIdle(c *connection) {
	c.rest()
	s.mu.Lock()
	s.idle = append(s.idle, c)
	var oldest *connection
	if len(s.idle) > maxIdleConnections {
		oldest = s.idle[0]
		s.idle = slices.Delete(s.idle, 0, 1)
	}
	s.mu.Unlock()
	if oldest != nil {
		oldest.close()
	}
}

// closeIdle closes the connections that are kept.
func (s *Session) closeIdle() {
	s.mu.Lock()
	idle := s.idle
	s.idle = nil
	s.mu.Unlock()
	for _, c := range idle {
		c.close()
	}
}
