// Package server is the HTTP server in front of a host: it authenticates callers, bounds their requests, and stops
// without losing a request that it has accepted. The endpoints serve requests, such as
// package rest and package mcp:
//
//	s, err := server.New(server.Options{Addr: "localhost:8711"}, server.Door{Pattern: "/v1/", Handler: api})
//	err = s.Serve(ctx)
//
// Every request of a door has an [auth.Caller] in its context.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-run/caisson/server/auth"
)

// The errors of this package, for errors.Is. Others are of the network.
var (
	ErrInvalidOptions = errors.New("invalid options")
	// ErrOpen means that the server would accept requests of every client that can reach it.
	ErrOpen = errors.New("anybody could call tools")
)

// errUnfinished means that some requests had not ended when the server stopped.
var errUnfinished = errors.New("requests were cut off")

// Error is a failure of a server. It wraps one of this package's errors or one of the network.
type Error struct{ Err error }

// Error returns the cause's text after the package's name.
func (e *Error) Error() string { return "server: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// DefaultAddr is the address of a server that names none.
const DefaultAddr = "localhost:8711"

// Options configures [New]. The zero value serves everybody on this machine.
type Options struct {
	// Addr is the address to listen on. Empty means [DefaultAddr]. A port of 0 takes any free port.
	Addr string
	// Tokens are the tokens that callers must show. If nil, all callers are Local, and Addr must be a
	// loopback address.
	Tokens *auth.Tokens
	// Open accepts callers without a token, as Local, while Tokens has none. Addr must be a loopback
	// address. Within a second after the first token is created, callers without a token are refused, their
	// requests end, and this does not change again, even if the token is revoked or removed.
	Open bool
	// Caller returns the caller that a token identifies; an error refuses the request, and its text is for the
	// operator. If nil, it is [auth.Token.Caller].
	Caller func(auth.Token) (auth.Caller, error)
	// Local is the caller of requests that need no token. If it has no scopes, it has all.
	Local auth.Caller
	// TLS encrypts connections. Nil serves plain HTTP.
	TLS *tls.Config
	// Hosts are the DNS names under which the server is reached, beside localhost. Requests for other
	// names are refused, because a page on the web could have its own name point here (DNS rebinding).
	// IP addresses need not be named.
	Hosts []string
	// Origins are the origins, such as https://app.example.com, whose pages may use the server from a
	// browser (CORS). None may otherwise, but pages of the server itself.
	Origins []string
	Limits  Limits
	// Ready returns why the server cannot do its work now, or nil. If Ready is nil, it always can.
	Ready func(ctx context.Context) error
	// Metrics answers GET /metrics for callers with the scope admin and no tenant. Nil serves none.
	Metrics http.Handler
	// Logger logs refused requests and failures. Nil disables logging.
	Logger *slog.Logger
}

// cancelTime is the time that cancelled requests get to answer their callers.
const cancelTime = 5 * time.Second

// Endpoint is one interface behind the server.
type Endpoint struct {
	// Pattern is what its requests match, as for [http.ServeMux], such as "/v1/".
	Pattern string
	// Handler answers requests. Each has an [auth.Caller] in its context. It must end soon after the
	// context has.
	Handler http.Handler
	// Drain, if not nil, is called once, when [Server.Serve] stops. It ends what only waits, such as streams of
	// events, lets requests in progress end, and cancels those that have not ended when ctx is done, after
	// [Limits.Drain]. Serve waits for it, and returns its error.
	Drain func(ctx context.Context) error
}

// Server serves doors over HTTP. Get one from [New].
type Server struct {
	options  Options
	log      *slog.Logger
	doors    []Endpoint
	handler  http.Handler
	refusals *refusals
	stopping atomic.Bool
	closing  sync.Once // of a server that was open
}

// New returns a server that does not listen yet. The error wraps [ErrInvalidOptions] or [ErrOpen].
func New(options Options, doors ...Endpoint) (*Server, error) {
	connections := cmp.Or(options.Limits.Connections, defaultConnections)
	var err error
	if options.Limits, err = options.Limits.withDefaults(); err != nil {
		return nil, &Error{err}
	}
	options.Addr = cmp.Or(options.Addr, DefaultAddr)
	if len(options.Local.Scopes) == 0 {
		options.Local.Scopes = auth.Scopes()
	}
	if err := options.check(); err != nil {
		return nil, &Error{err}
	}
	s := &Server{options: options, log: options.Logger, doors: doors}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if most := options.Limits.Connections; most < connections {
		s.log.Warn(
			"the process may have too few descriptors for all connections; raise its limit (ulimit -n), or allow fewer "+
				"connections",
			"connections", connections, "held at most", most, "descriptors", maxDescriptors())
	}
	s.refusals = newRefusals(s.log)
	s.handler, err = s.routes()
	return s, err
}

func (o Options) check() error {
	host, _, err := net.SplitHostPort(o.Addr)
	if err != nil {
		return fmt.Errorf("%w: the address %q is not HOST:PORT, such as %s or [::1]:8711", ErrInvalidOptions, o.Addr,
			DefaultAddr)
	}
	if o.Open && o.Tokens == nil {
		return fmt.Errorf("%w: Open needs Tokens, whose first closes the server", ErrInvalidOptions)
	}
	if o.isOpen() && !isLoopback(host) {
		return fmt.Errorf("%w: %s can be reached from other machines, and there are no tokens", ErrOpen, o.Addr)
	}
	for _, origin := range o.Origins {
		if !isOrigin(origin) {
			return fmt.Errorf(
				"%w: %q is not an origin, such as https://app.example.com, as browsers write it: in lower case, without a slash "+
					"at the end and the usual port", ErrInvalidOptions, origin)
		}
	}
	for _, name := range o.Hosts {
		if !isHostName(name) {
			return fmt.Errorf("%w: %q is not a DNS name, such as tools.example.com", ErrInvalidOptions, name)
		}
	}
	return nil
}

// isOpen reports whether callers need no token, at first.
func (o Options) isOpen() bool { return o.Tokens == nil || o.Open }

// isLoopback reports whether a host to listen on can be reached from this machine alone.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// Serve listens and serves until ctx is done, and then stops: it takes no more connections, lets requests
// end for [Limits.Drain], cancels the remaining ones, and returns when all callers have been answered and all endpoints
// are drained. Once it listens, it calls listening, if that is not nil, with the address. Serve may be called
// once.
//
// The error is nil if ctx ended and every request was answered. It says so if one was not.
func (s *Server) Serve(ctx context.Context, listening func(net.Addr)) error {
	l, err := s.listen(ctx)
	if err != nil {
		return errors.Join(err, <-s.drain(context.WithoutCancel(ctx))) // nothing is under way
	}
	if listening != nil {
		listening(l.Addr())
	}
	limits := s.options.Limits
	held := newConnections(l, s.options.TLS, limits)
	requests, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	h := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: limits.Header, MaxHeaderBytes: limits.HeaderBytes,
		IdleTimeout: limits.Idle, Protocols: &protocols,
		// It would answer "OPTIONS *" itself, without a token.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		BaseContext:                  func(net.Listener) context.Context { return requests },
		ConnState:                    held.follow, ConnContext: held.inContext,
	}
	served := make(chan error, 1)
	go func() { served <- h.Serve(held) }()
	select {
	case err = <-served: // the network failed
		return &Error{errors.Join(err, s.stop(context.WithoutCancel(ctx), h, held, cancel))}
	case <-ctx.Done():
	}
	err = s.stop(context.WithoutCancel(ctx), h, held, cancel)
	<-served
	return err
}

func (s *Server) listen(ctx context.Context) (net.Listener, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", s.options.Addr)
	if err != nil {
		return nil, &Error{err}
	}
	// The address may have been a name, and the address that it resolves to decides.
	if host, _, err := net.SplitHostPort(l.Addr().String()); s.options.isOpen() && (err != nil || !isLoopback(host)) {
		_ = l.Close()
		return nil, &Error{fmt.Errorf("%w: %s is %s, which is no loopback address", ErrOpen, s.options.Addr, l.Addr())}
	}
	return l, nil
}

// errStopping is the reason why calls are cancelled whose requests did not end in time.
var errStopping = errors.New("the server is stopping")

// stop ends all requests, and drains the doors.
func (s *Server) stop(ctx context.Context, h *http.Server, held *connections, cancel context.CancelCauseFunc) error {
	s.stopping.Store(true)
	defer s.refusals.flush(ctx)
	drained := s.drain(ctx)
	refused := time.NewTicker(restTime / 4)
	defer refused.Stop()
	stopped, began := make(chan error, 1), time.Now()
	go func() { stopped <- s.shutDown(ctx, h, held, cancel) }()
	for {
		select {
		case err := <-stopped:
			return errors.Join(err, <-drained)
		case now := <-refused.C: // requests without a token have a moment to be answered, and do not delay the stop
			if now.Sub(began) >= restTime {
				held.dropRefused(now.Add(-restTime))
			}
		}
	}
}

// drain drains all doors at once, and returns what gets their errors.
func (s *Server) drain(ctx context.Context) <-chan error {
	ctx, cancel := context.WithTimeout(ctx, s.options.Limits.Drain)
	errs := make([]error, len(s.doors))
	var draining sync.WaitGroup
	for i, d := range s.doors {
		if d.Drain != nil {
			draining.Go(func() { errs[i] = d.Drain(ctx) })
		}
	}
	all := make(chan error, 1)
	go func() {
		defer cancel()
		draining.Wait()
		all <- errors.Join(errs...)
	}()
	return all
}

// shutDown waits for all requests to end, and cancels and then cuts off those that take too long.
func (s *Server) shutDown(
	ctx context.Context, h *http.Server, held *connections, cancel context.CancelCauseFunc,
) error {
	stopped := make(chan error, 1)
	go func() { stopped <- h.Shutdown(ctx) }() // ends when the last request has, or Close is called
	for _, step := range []struct {
		wait time.Duration
		then func()
	}{
		{s.options.Limits.Drain, func() { cancel(errStopping) }},
		{cancelTime, func() {
			held.dropAll() // net/http closes one after another, and those over TLS wait for their clients first
			_ = h.Close()
		}},
	} {
		timer := time.NewTimer(step.wait)
		select {
		case err := <-stopped:
			timer.Stop()
			return err
		case <-timer.C:
			step.then()
		}
	}
	<-stopped
	return &Error{fmt.Errorf("%w: %s after their calls were cancelled", errUnfinished, cancelTime)}
}
