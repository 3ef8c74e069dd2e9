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

// Limits on making a connection. The request's own deadline is usually earlier.
const (
	dialTimeout      = 10 * time.Second // for all addresses of a name together
	handshakeTimeout = 10 * time.Second
)

// dial connects to the host of a location, with TLS if the scheme is https.
func (c *Client) dial(ctx context.Context, l *location, to *reach) (*connection, error) {
	raw, err := c.dialTCP(ctx, l, to)
	if err != nil {
		return nil, err
	}
	if l.Scheme == "http" {
		return newConnection(raw, raw), nil
	}
	secure, err := handshake(ctx, raw, l.Host.String(), to)
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return newConnection(raw, secure), nil
}

// dialTCP connects to one of the host's addresses. It checks each address immediately before
// connecting to it, no matter how and when the address was resolved.
func (c *Client) dialTCP(ctx context.Context, l *location, to *reach) (net.Conn, error) {
	address := net.JoinHostPort(l.Host.String(), strconv.Itoa(l.Port))
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
	tried.mu.Lock()
	defer tried.mu.Unlock()
	if err != nil && tried.allowed == 0 && tried.refused != nil {
		return nil, tried.refused
	}
	return raw, err
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

// attempts records the addresses that one dial tries, some of them concurrently.
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

// maxIdleConnections is the number of idle connections that a session keeps for later requests.
const maxIdleConnections = maxInFlight

// roundTrip sends a request on an idle or a new connection. The body of the response must be
// closed. Requests with different reaches do not share connections, since an idle connection may go
// to an address that only another request's grant allows.
func (s *Session) roundTrip(ctx context.Context, l *location, request *http.Request) (*http.Response, error) {
	to, reached := s.client.permission.reach(l, request.Method)
	key := fmt.Sprintf("%s %s %d %s", l.Scheme, l.Host, l.Port, reached)
	for {
		c := s.takeIdle(key)
		isNew := c == nil
		if isNew {
			var err error
			if c, err = s.client.dial(ctx, l, to); err != nil {
				return nil, err
			}
			c.key = key
		}
		answer, err := c.roundTrip(request, s.keepIdle)
		// A server may close an idle connection just as a request is sent on it. Retry only if the
		// request may safely arrive twice.
		isSafe := slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, request.Method)
		if err == nil || isNew || c.received > 0 || ctx.Err() != nil || !isSafe { // (RFC 9110, section 9.2.1)
			return answer, err
		}
		if request.GetBody != nil {
			if request.Body, err = request.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// takeIdle returns an idle connection that is still usable, or nil.
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

// keepIdle keeps a connection for later requests. It is called during an exchange, which Close
// waits for, so Close will close the connection.
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

func (s *Session) closeIdle() {
	s.mu.Lock()
	idle := s.idle
	s.idle = nil
	s.mu.Unlock()
	for _, c := range idle {
		c.close()
	}
}
