package network

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// Bounds of connections. A request's own deadline is mostly earlier.
const (
	dialTimeout         = 10 * time.Second // of all addresses of a name together
	handshakeTimeout    = 10 * time.Second
	headerTimeout       = 60 * time.Second // from the request to the header of the answer
	idleTimeout         = 30 * time.Second
	maxHostConnections  = 32
	maxIdleConnections  = 16
	maxIdleOfHost       = 4
	maxAnswerHeaderSize = 64 << 10 // bytes
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

// route is the connections of requests with one reach. Requests with another one never
// use them: an idle connection goes where a grant for another request let it go.
type route struct {
	reach     *reach
	known     *ranges
	resolver  *net.Resolver
	transport *http.Transport
	closed    func() bool
}

func newRoute(c *Client, to *reach) (*route, error) {
	roots, err := to.roots()
	if err != nil {
		return nil, err
	}
	r := &route{reach: to, known: c.permission.known, resolver: c.resolver, closed: c.isClosed}
	r.transport = &http.Transport{
		Proxy:                  nil, // a proxy would connect where nobody checks
		DialContext:            r.dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    handshakeTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxConnsPerHost:        maxHostConnections,
		MaxIdleConns:           maxIdleConnections,
		MaxIdleConnsPerHost:    maxIdleOfHost,
		MaxResponseHeaderBytes: maxAnswerHeaderSize,
	}
	return r, nil
}

// dial connects to a host. Each address is checked when the connection to it is about to be
// made, whoever resolved it and when.
func (r *route) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if r.reach.connect.IsValid() {
		address = r.reach.connect.String()
	}
	tried := &attempts{}
	dialer := net.Dialer{
		Timeout:  dialTimeout,
		Resolver: r.resolver,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			return tried.check(r, address)
		},
	}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, tried.failure(err)
	}
	if r.closed() {
		return nil, errors.Join(errClosed, conn.Close())
	}
	return conn, nil
}

// attempts are the addresses that one dial tried, some of them at the same time.
type attempts struct {
	mu      sync.Mutex
	allowed int
	refused *refusal // the first
}

func (a *attempts) check(r *route, address string) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	why := r.reach.check(r.known, target.Addr())
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
