package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/internal/memory"
	"github.com/caisson-run/caisson/server/internal/standing"
)

// stateless is the first revision of the protocol without sessions.
const stateless = "2026-07-28"

const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
	// requestHeader is set here on each request, whatever the client sent: the SDK hands on headers, and
	// neither contexts nor callers of requests.
	requestHeader = "Caisson-Mcp-Request"
)

// web is the state of the server over HTTP.
type web struct {
	server    *Server
	stateless http.Handler
	sessions  http.Handler

	mu    sync.Mutex
	live  map[string]*request // that are being handled, by their number
	owner map[string]owned    // of sessions, by their id
}

func newWeb(s *Server, log *slog.Logger) *web {
	server := func(*http.Request) *sdk.Server { return s.sdk }
	options := sdk.StreamableHTTPOptions{
		Logger: log, SessionTimeout: s.options.Idle, PropagateRequestCancellation: true, MaxRequestBodyBytes: s.options.Body,
		DisableLocalhostProtection: true, // package server checks the name, and knows those that the operator allows
	}
	without := options
	without.Stateless = true
	return &web{
		server:    s,
		stateless: sdk.NewStreamableHTTPHandler(server, &without), sessions: sdk.NewStreamableHTTPHandler(server, &options),
		live: map[string]*request{}, owner: map[string]owned{},
	}
}

// owned is a session of a caller.
type owned struct {
	key    string // of the caller who began it
	ended  chan struct{}
	ending bool // its client has deleted it
}

// ServeHTTP serves the streamable HTTP transport on one path. Requests of the revision 2026-07-28 or later are
// stateless. Clients of earlier revisions begin a session with initialize. The context of a request must have an
// [auth.Caller].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	caller, ok := auth.From(r.Context())
	switch {
	case !ok || s.options.Sessions == nil:
		http.Error(w, "the request is not authenticated", http.StatusUnauthorized)
		return
	case s.isClosed():
		http.Error(w, "the server is being stopped", http.StatusServiceUnavailable)
		return
	}
	id := r.Header.Get(sessionHeader)
	isStateless := r.Header.Get(versionHeader) >= stateless && id == ""
	switch {
	case isStateless:
	case id != "" && !s.web.serves(r.Method, caller, id):
		http.Error(w, "there is no such session; begin one with initialize", http.StatusNotFound)
		return
	case id == "" && s.web.count(caller) >= s.options.Most:
		w.Header().Set("Retry-After", "5")
		http.Error(w, tooManySessions, http.StatusTooManyRequests)
		return
	}
	if id != "" && r.Method == http.MethodDelete {
		s.end(r.Context(), caller, id)
	}
	if !s.admit(w, r, isStateless) {
		return
	}
	if isStateless {
		s.web.pass(s.web.stateless, w, r)
		return
	}
	s.web.pass(s.web.sessions, w, r)
	if r.Method == http.MethodPost {
		s.web.settle(r, cmp.Or(id, w.Header().Get(sessionHeader)))
	}
}

// end ends what requests of a session have begun, and waits for their answers for a moment. The SDK, which ends the
// session then, waits for the calls, and drops their answers.
func (s *Server) end(ctx context.Context, caller auth.Caller, id string) {
	s.waiting.forget(keyOf(caller) + " " + id)
	ctx, cancel := context.WithTimeout(ctx, toTell)
	defer cancel()
	for _, answered := range s.web.leave(id) {
		select {
		case <-answered:
		case <-ctx.Done():
			return
		}
	}
}

// leave ends what requests of a session have begun, and returns what is closed when each has been answered. Further
// requests find no such session.
func (w *web) leave(id string) (answered []<-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	session, ok := w.owner[id]
	if !ok {
		return nil // it has just ended
	}
	session.ending = true
	w.owner[id] = session
	for _, r := range w.live {
		if r.session == id {
			r.leave()
			answered = append(answered, r.ended)
		}
	}
	return answered
}

// pass passes a request on to the SDK.
func (w *web) pass(to http.Handler, answer http.ResponseWriter, r *http.Request) {
	number, done := w.enter(r)
	defer done()
	present, leave := clientContext(r.Context())
	defer leave()
	r = r.Clone(present)
	r.Header.Set(requestHeader, number)
	to.ServeHTTP(answer, r)
}

const (
	tooManySessions = "the caller has too many sessions; end some of them"
	tokenEnded      = "the token is unknown, has expired or was revoked"
)

// admit reads the messages of a request and leaves them for the SDK, or answers the request and returns false if they
// are not for it.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, isStateless bool) bool {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.Method != http.MethodPost || err != nil || media != "application/json" {
		return true // the SDK refuses the request, or reads no body
	}
	var body bytes.Buffer
	_, err = body.ReadFrom(http.MaxBytesReader(w, r.Body, s.options.Body))
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		http.Error(w, fmt.Sprintf("the body is longer than %d bytes", large.Limit), http.StatusRequestEntityTooLarge)
		return false
	}
	if errors.Is(err, memory.ErrFull) {
		tryLater(w)
		return false
	}
	if err != nil && standing.IsRefusal(standing.Check(r.Context())) { // which may have ended the body
		w.Header().Set("WWW-Authenticate", `Bearer realm="caisson", error="invalid_token"`)
		http.Error(w, tokenEnded, http.StatusUnauthorized)
		return false
	}
	if err != nil {
		http.Error(w, "the body did not arrive whole", http.StatusBadRequest)
		return false
	}
	hold := func(bytes int) error { return memory.Hold(r.Context(), bytes) }
	rejected := check(body.String(), isStateless || r.Header.Get(sessionHeader) != "", isStateless, hold)
	switch {
	case rejected == nil:
		r.Body = io.NopCloser(&body)
		return true
	case rejected.full:
		tryLater(w)
	default:
		rejected.write(w, isStateless)
	}
	return false
}

// tryLater refuses a request because there is no room for it now.
func tryLater(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "5")
	http.Error(w, noRoom().err.Message, http.StatusTooManyRequests)
}

// write answers a request over HTTP. Before the revision without sessions, an error in a request whose id is known is
// an answer like any other.
func (r *rejection) write(w http.ResponseWriter, isStateless bool) {
	status := http.StatusBadRequest
	switch {
	case isStateless && r.err.Code == jsonrpc.CodeMethodNotFound:
		status = http.StatusNotFound
	case !isStateless && r.id != "":
		status = http.StatusOK
	}
	text, err := r.message()
	if err != nil {
		http.Error(w, r.err.Message, status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // the client may have gone
}

// toTellRefused is how long a request whose token works no longer lasts, so that the client is told that its call was
// cancelled.
const toTellRefused = 100 * time.Millisecond

// clientContext returns a context that ends when the client goes away. If a request is cancelled for another reason,
// such as that the program stops, the context ends a little later: the request's calls are cancelled at once, and the
// SDK answers nobody whose request has ended. If its token works no longer, that time is short, because streams must
// not outlive tokens.
func clientContext(request context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(request))
	stop := context.AfterFunc(request, func() {
		defer cancel()
		if errors.Is(context.Cause(request), context.Canceled) {
			return
		}
		grace := toTell
		if standing.IsEnd(context.Cause(request)) {
			grace = toTellRefused
		}
		late := time.NewTimer(grace)
		defer late.Stop()
		select {
		case <-late.C:
		case <-ctx.Done():
		}
	})
	return ctx, func() { stop(); cancel() }
}

func (s *Server) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// request is a request over HTTP that is being handled.
type request struct {
	ctx      context.Context    // ends with the request or its session
	session  string             // empty for a stream that lasts as long as the session
	leave    context.CancelFunc // ends ctx
	ended    chan struct{}      // closed when it has been answered
	answered func()             // nil if nobody waits for that
}

// enter gives a request a number that no client knows.
func (w *web) enter(of *http.Request) (number string, done func()) {
	number = rand.Text()
	ctx, leave := context.WithCancel(of.Context())
	r := &request{ctx: ctx, leave: leave, ended: make(chan struct{})}
	if of.Method == http.MethodPost {
		r.session = of.Header.Get(sessionHeader)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live[number] = r
	if w.owner[r.session].ending {
		leave()
	}
	return number, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		leave()
		close(r.ended)
		delete(w.live, number)
		if r.answered != nil {
			r.answered()
		}
	}
}

// await has a wait group wait until a request has been answered, unless it has.
func (w *web) await(number string, group *sync.WaitGroup) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r, ok := w.live[number]; ok && r.answered == nil {
		group.Add(1)
		r.answered = group.Done
	}
}

// errGone means that the request for which something is to be done has ended.
var errGone = errors.New("mcp: the request has ended")

// by returns who makes a request over HTTP.
func (w *web) by(session *sdk.ServerSession, extra *sdk.RequestExtra) (by, error) {
	number := ""
	if extra != nil {
		number = extra.Header.Get(requestHeader)
	}
	w.mu.Lock()
	r, ok := w.live[number]
	w.mu.Unlock()
	if !ok {
		return by{}, errGone
	}
	caller, _ := auth.From(r.ctx) // a zero caller may do nothing
	// Without a session, all of the caller's requests share one of the executor's: results that were cut have
	// to be readable by later requests.
	id := cmp.Or(session.ID(), "stateless")
	kept := w.server.options.Sessions
	return by{
		key:     keyOf(caller) + " " + id,
		tenant:  memory.Sharer(caller),
		may:     caller.May,
		allowed: func() ([]string, error) { return kept.Allowed(caller) },
		session: func(ctx context.Context) (*executor.Session, func(), error) { return kept.Get(ctx, caller, "mcp."+id) },
		found:   func(ctx context.Context) (*executor.Session, func(), error) { return kept.Find(ctx, caller, "mcp."+id) },
		gone:    r.ctx,
		answers: func(group *sync.WaitGroup) { w.await(number, group) },
	}, nil
}

// check returns why the caller of a request may no longer act, or nil. Over lines there is no such reason.
func (w *web) check(extra *sdk.RequestExtra) error {
	if extra == nil {
		return nil
	}
	w.mu.Lock()
	r, ok := w.live[extra.Header.Get(requestHeader)]
	w.mu.Unlock()
	if !ok {
		return nil // [web.by] finds no caller either
	}
	return standing.Check(r.ctx)
}

// keyOf identifies a caller.
func keyOf(c auth.Caller) string {
	return fmt.Sprintf("%q %q %q %q", c.Tenant, c.ID, c.User, c.Agent)
}

// begin notes whose session begins, and waits in the background until it has ended. It refuses one too many: when the
// request arrived, the sessions of requests that were still arriving did not count. The SDK ends a session whose
// initialize is refused.
func (w *web) begin(ctx context.Context, request *sdk.ServerRequest[*sdk.InitializeParams]) error {
	begun := request.Session // the request is not kept, whose header may be long
	id := begun.ID()
	if _, ok := ctx.Value(lineKey{}).(line); ok || id == "" {
		return nil
	}
	by, err := w.by(begun, request.Extra)
	if err != nil {
		return err
	}
	caller, _ := auth.From(by.gone)
	session, ok := w.reserve(caller, id)
	if !ok {
		return refused(tooManySessions)
	}
	w.server.background.Go(func() {
		_ = begun.Wait() // how it ended makes no difference
		w.mu.Lock()
		delete(w.owner, id)
		w.mu.Unlock()
		close(session.ended)
		w.server.waiting.forget(by.key)
		w.server.options.Sessions.End(context.WithoutCancel(ctx), caller, "mcp."+id)
	})
	return nil
}

// reserve counts a session of the caller, unless it has too many.
func (w *web) reserve(caller auth.Caller, id string) (session owned, ok bool) {
	session = owned{key: keyOf(caller), ended: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.countOf(session.key) >= w.server.options.Most {
		return owned{}, false
	}
	w.owner[id] = session
	return session, true
}

// serves reports whether a session is the caller's, and serves requests of a method.
func (w *web) serves(method string, caller auth.Caller, id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	session, ok := w.owner[id]
	return ok && session.key == keyOf(caller) && (!session.ending || method == http.MethodDelete)
}

// count returns how many sessions a caller has.
func (w *web) count(caller auth.Caller) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.countOf(keyOf(caller))
}

// countOf returns how many sessions the caller with a key has. The caller must hold mu.
func (w *web) countOf(key string) (count int) {
	for _, other := range w.owner {
		if other.key == key {
			count++
		}
	}
	return count
}
