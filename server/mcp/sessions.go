package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/internal/memory"
	"github.com/caisson-run/caisson/server/internal/standing"
)

const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
)

const (
	tooManySessions = "the caller has too many sessions; end some of them"
	tokenEnded      = "the token is unknown, has expired or was revoked"
)

// web is the state of the server over HTTP.
type web struct {
	server    *Server
	stateless http.Handler
	sessions  http.Handler

	mu    sync.Mutex
	live  map[string]*httpRequest // that are being handled, by their number
	owner map[string]owned        // of sessions, by their id
	begun int                     // how many sessions there have been
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
		live: map[string]*httpRequest{}, owner: map[string]owned{},
	}
}

// httpRequest is a request over HTTP that is being handled.
type httpRequest struct {
	ctx      context.Context    // ends with the request or its session
	session  string             // empty for a stream that lasts as long as the session
	leave    context.CancelFunc // ends ctx
	ended    chan struct{}      // closed when it has been answered
	answered func()             // nil if no goroutine waits for that
}

// enter gives a request a number that no client knows.
func (w *web) enter(of *http.Request) (number string, done func()) {
	number = rand.Text()
	ctx, leave := context.WithCancel(of.Context())
	r := &httpRequest{ctx: ctx, leave: leave, ended: make(chan struct{})}
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
		allowed: func(ctx context.Context) ([]string, error) { return kept.Allowed(ctx, caller) },
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

// owned is a session of a caller.
type owned struct {
	key    string // of the caller who began it
	begun  *sdk.ServerSession
	number int  // in the order in which sessions began
	known  bool // its client has used its id, and so can end it
	ended  chan struct{}
	ending bool // its client has deleted it
}

// begin notes whose session begins, and waits in the background until it has ended. It refuses one too many: when the
// httpRequest arrived, the sessions of requests that were still arriving did not count. The SDK ends a session whose
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
	session, ok := w.reserve(caller, begun)
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

// reserve counts a session of the caller, unless it has too many. It ends the oldest of those whose client has not used
// them, if it has to: the client may have disconnected before it was told the session's id.
func (w *web) reserve(caller auth.Caller, begun *sdk.ServerSession) (session owned, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun++
	session = owned{key: keyOf(caller), begun: begun, number: w.begun, ended: make(chan struct{})}
	if count, unknown := w.countOf(session.key); count >= w.server.options.Most {
		if unknown == nil {
			return owned{}, false
		}
		delete(w.owner, unknown.ID())
		w.server.background.Go(func() { _ = unknown.Close() }) // it makes no difference how it ends
	}
	w.owner[begun.ID()] = session
	return session, true
}

// leave ends the work of a session's requests, and returns a channel for each that is closed when it has been answered.
// Further requests find no such session.
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

// serves reports whether a session is the caller's, and serves requests of a method.
func (w *web) serves(method string, caller auth.Caller, id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	session, ok := w.owner[id]
	if !ok || session.key != keyOf(caller) || session.ending && method != http.MethodDelete {
		return false
	}
	session.known = true
	w.owner[id] = session
	return true
}

// hasRoom reports whether a caller may begin another session.
func (w *web) hasRoom(caller auth.Caller) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	count, unknown := w.countOf(keyOf(caller))
	return count < w.server.options.Most || unknown != nil
}

// countOf returns how many sessions the caller with a key has, and the oldest that its client has not used, or nil. The
// caller must hold mu.
func (w *web) countOf(key string) (count int, unknown *sdk.ServerSession) {
	oldest := 0
	for _, other := range w.owner {
		if other.key != key {
			continue
		}
		count++
		if !other.known && (unknown == nil || other.number < oldest) {
			unknown, oldest = other.begun, other.number
		}
	}
	return count, unknown
}
