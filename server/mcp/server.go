// Package mcp offers the tools of a [caisson.Host] to clients of the Model Context Protocol, over
// standard input and output ([Server.ServeLines]) and over HTTP ([Server.ServeHTTP]).
//
// It is the only package that knows the official SDK. Definitions and results are those of package
// dialects/mcp, so that this server, the command line and a program with a server of its own
// write the same. The registry decides which tool has a name before the SDK sees any.
//
// # Who calls
//
// Over HTTP, each request has an [auth.Caller], who is put into its context by whatever authenticates it;
// requests without one are refused. A session belongs to the caller who began it: to others it does not
// exist. Over lines, there is one session, which the program passes.
//
// # Sessions
//
// Requests of the revision 2026-07-28 or later, which say so in the header MCP-Protocol-Version, need no
// handshake and have no session: all of a caller share one session of the executor. Clients of earlier
// revisions begin a session with initialize, on the same path.
//
// # Questions
//
// Calls that need an approval, and tools that the client runs, are put to the user of a client that offers
// elicitation. For other clients, such calls fail and say why. See docs/mcp.md.
package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/agents"
	"github.com/caisson-run/caisson/internal/sampling"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/internal/standing"
	"github.com/caisson-run/caisson/server/sessions"
)

// Options configures [New]. The zero value is usable for [Server.ServeLines]. Negative numbers are errors.
type Options struct {
	// Sessions keeps the sessions of callers over HTTP. If nil, requests over HTTP are refused.
	Sessions *sessions.Sessions
	// Version is the program's version, which clients are told.
	Version string
	// Page is the number of tools on one page of a list; 0 means 1,000.
	Page int
	// Most is the maximum number of sessions over HTTP of one caller at a time; 0 means 100.
	Most int
	// Body bounds a request's body over HTTP in bytes; 0 means 16 MiB, as that of package server.
	Body int64
	// Idle is the time for which a session over HTTP is kept after its last request; 0 means an hour.
	Idle time.Duration
	// Logger is told what goes wrong in the server. If nil, nothing is logged.
	Logger *slog.Logger
}

// Server serves a host's tools to clients. Get one from [New], and close it before the host. It is safe for
// concurrent use.
type Server struct {
	host    *caisson.Host
	options Options
	log     *slog.Logger
	// failures logs what clients can cause without end.
	failures *slog.Logger
	sdk      *sdk.Server
	tools    tools
	waiting  waiting
	web      *web
	calls    activeCalls
	fences   fences

	announcements announcements

	closed     chan struct{}  // closed when Close begins
	lines      sync.WaitGroup // of connections over lines
	background sync.WaitGroup
}

// New returns a server for the tools of a host, which follows the changes of their names.
func New(host *caisson.Host, options Options) (*Server, error) {
	if options.Page < 0 || options.Most < 0 || options.Body < 0 || options.Idle < 0 {
		return nil, fmt.Errorf("mcp: a negative limit: %d tools on a page, %d sessions, %d bytes, %s idle", options.Page,
			options.Most, options.Body, options.Idle)
	}
	options.Body = cmp.Or(options.Body, 16<<20)
	options.Page = cmp.Or(options.Page, 1000)
	options.Most = cmp.Or(options.Most, 100)
	options.Idle = cmp.Or(options.Idle, time.Hour)
	s := &Server{host: host, options: options, log: cmp.Or(options.Logger, slog.New(slog.DiscardHandler)),
		failures: sampling.Logger(options.Logger), closed: make(chan struct{})}
	warns := slog.New(warnings{s.failures.Handler()})
	s.sdk = sdk.NewServer(&sdk.Implementation{Name: "caisson", Title: "Caisson",
		Version: cmp.Or(options.Version, "(unknown)")}, &sdk.ServerOptions{
		Logger: warns,
		//lint:ignore SA1019 the latest revision keeps log messages for a year
		Capabilities: &sdk.ServerCapabilities{Logging: &sdk.LoggingCapabilities{},
			Tools: &sdk.ToolCapabilities{ListChanged: true}, Resources: &sdk.ResourceCapabilities{}},
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { *c = uncached },
	})
	s.sdk.AddReceivingMiddleware(s.receive)
	s.sdk.AddSendingMiddleware(s.announce)
	s.sdk.AddResourceTemplate(outputTemplate, s.readOutput)
	s.web = newWeb(s, warns)
	s.follow()
	return s, nil
}

// uncached is said of every answer: it is for its caller only, and may change at any time.
var uncached = sdk.Cacheable{CacheScope: "private"}

// warnings drops what the SDK logs of every request and session. The rest is under one message, of which a sample is
// logged: the SDK warns of each mistake of a client, of which one request can have a thousand.
type warnings struct{ slog.Handler }

func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

func (w warnings) Handle(ctx context.Context, record slog.Record) error {
	warning := slog.NewRecord(record.Time, record.Level, "the MCP library warns", record.PC)
	warning.AddAttrs(slog.String("warning", record.Message))
	record.Attrs(func(a slog.Attr) bool {
		warning.AddAttrs(a)
		return true
	})
	return w.Handler.Handle(ctx, warning)
}

func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}

func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }

// receive sees each request before the SDK handles it.
func (s *Server) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, request sdk.Request) (sdk.Result, error) {
		if s.fences.reach(request.GetExtra()) {
			return nil, nil
		}
		if err := s.web.check(request.GetExtra()); err != nil {
			if standing.IsRefusal(err) {
				return nil, refused(tokenEnded)
			}
			return nil, s.failed(ctx, method, err)
		}
		result, err := s.handle(ctx, method, request, next)
		if err == nil {
			return result, nil
		}
		shown, hides := inWords(err)
		// A notification comes too early or again.
		if hides && ctx.Err() == nil && !strings.HasPrefix(method, "notifications/") {
			return nil, s.failed(ctx, method, err)
		}
		return nil, shown
	}
}

func (s *Server) handle(
	ctx context.Context, method string, request sdk.Request, next sdk.MethodHandler,
) (sdk.Result, error) {
	switch r := request.(type) {
	case *sdk.ListToolsRequest:
		return s.list(ctx, r)
	case *sdk.CallToolRequest:
		ctx, end := s.whileAwaited(ctx, r)
		defer end()
		return s.named(ctx, method, r, next)
	case *sdk.ServerRequest[*sdk.InitializeParams]:
		if r.Session.InitializeParams() != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the session has already begun"}
		}
		if err := s.web.begin(ctx, r); err != nil {
			return nil, err
		}
		return next(ctx, method, request)
	}
	return next(ctx, method, request)
}

// whileAwaited returns a context for a call that also ends when no client waits for its answer: for clients of
// earlier revisions, the SDK asks the user while the call lasts, and would wait for the user of a client that has gone.
func (s *Server) whileAwaited(ctx context.Context, request *sdk.CallToolRequest) (present context.Context, end func()) {
	by, err := s.by(ctx, request.Session, request.Extra)
	if err != nil {
		return ctx, func() {} // the call is refused for the same reason
	}
	present, cancel := context.WithCancel(ctx)
	forget := context.AfterFunc(by.gone, cancel)
	return present, func() { forget(); cancel() }
}

// by returns who makes a request.
func (s *Server) by(ctx context.Context, session *sdk.ServerSession, extra *sdk.RequestExtra) (by, error) {
	if l, ok := ctx.Value(lineKey{}).(line); ok {
		return by{
			key:     l.session.ID(),
			may:     func(auth.Scope) bool { return true },
			allowed: func(context.Context) ([]string, error) { return l.session.Allowed() },
			session: l.found,
			found:   l.found,
			gone:    l.gone,
			answers: func(*sync.WaitGroup) {}, // who serves the lines waits
		}, nil
	}
	return s.web.by(session, extra)
}

// failed returns the answer to a request that the server could not handle. The client sees an id, under
// which the operator finds the reason in the log. That a token's agent was removed is no failure of the server.
func (s *Server) failed(ctx context.Context, method string, err error) error {
	if errors.Is(err, agents.ErrNotFound) {
		return refused("the token's agent does not exist, so it may call no tools")
	}
	if errors.Is(err, errGone) {
		return refused("the request has ended") // its client has disconnected, and nothing has failed
	}
	id := rand.Text()
	s.failures.ErrorContext(ctx, "a request failed", "id", id, "method", method, "err", err)
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error " + id}
}

// toTell is the longest time for which a client that has stopped reading delays the end of its connection.
const toTell = 2 * time.Second

// Drain refuses new calls, waits until those that run have ended or ctx is done, and closes the server. The
// clients of calls that are cancelled then have a little time to be told.
func (s *Server) Drain(ctx context.Context) error {
	drained := s.calls.drain()
	s.waiting.forgetAll()
	select {
	case <-drained:
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), toTell)
	defer cancel()
	return s.Close(ctx)
}

// Close cancels the calls that run, waits until their clients have been told, and closes all connections.
// It waits no longer than until ctx is done; the error says so. Later requests are refused. The executor's
// sessions and the host stay open. Close may be called again.
func (s *Server) Close(ctx context.Context) error {
	if s.calls.close() {
		close(s.closed)
	}
	s.waiting.forgetAll()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.calls.answers.Wait()
		s.lines.Wait()
		for session := range s.sdk.Sessions() {
			_ = session.Close() // nothing can be done if the client has gone
		}
		s.background.Wait()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("mcp: clients have not been told yet: %w", ctx.Err())
	}
}

func (s *Server) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// activeCalls are the calls that run. The zero value is usable.
type activeCalls struct {
	mu     sync.Mutex
	closed bool
	idle   chan struct{} // closed when no call runs any more; nil unless the server is drained
	next   int
	cancel map[int]context.CancelFunc
	// answers counts the HTTP requests with calls that have not been answered.
	answers sync.WaitGroup
}

// begin returns a context for a call, and a function that ends it. It is also done when no client waits for the answer
// any more, and when the server is closed.
func (c *activeCalls) begin(ctx context.Context, by by) (context.Context, func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.idle != nil {
		return nil, nil, errClosed
	}
	by.answers(&c.answers)
	ctx, cancel := context.WithCancel(ctx)
	forget := context.AfterFunc(by.gone, cancel)
	if c.cancel == nil {
		c.cancel = map[int]context.CancelFunc{}
	}
	c.next++
	id := c.next
	c.cancel[id] = cancel
	return ctx, func() {
		forget()
		cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.cancel, id)
		if c.idle != nil && len(c.cancel) == 0 {
			close(c.idle)
		}
	}, nil
}

// drain has further calls refused, and returns a channel that is closed when no call is running.
func (c *activeCalls) drain() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle == nil {
		c.idle = make(chan struct{})
		if len(c.cancel) == 0 {
			close(c.idle)
		}
	}
	return c.idle
}

// close cancels all calls, has further ones refused, and reports whether it is the first to do so.
func (c *activeCalls) close() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := !c.closed
	c.closed = true
	for _, cancel := range c.cancel {
		cancel()
	}
	return first
}
