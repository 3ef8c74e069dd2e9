package network

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
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
