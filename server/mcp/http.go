package mcp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/internal/memory"
	"github.com/caisson-run/caisson/server/internal/standing"
)

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
	case id == "" && !s.web.hasRoom(caller):
		w.Header().Set("Retry-After", "5")
		http.Error(w, tooManySessions, http.StatusTooManyRequests)
		return
	}
	if id != "" && r.Method == http.MethodDelete {
		s.endSession(r.Context(), caller, id)
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

// endSession ends what requests of a session have begun, and waits for their answers for a moment. The SDK, which ends
// the session then, waits for the calls, and drops their answers.
func (s *Server) endSession(ctx context.Context, caller auth.Caller, id string) {
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

// settle waits until no message that was sent to a session before is in its queue, so that the bytes of a request count
// for as long as the server holds them, also if its client has gone.
func (w *web) settle(of *http.Request, id string) {
	w.mu.Lock()
	session, ok := w.owner[id]
	w.mu.Unlock()
	if !ok {
		return
	}
	fence := w.server.fences.put()
	defer fence.remove()
	body := `{"jsonrpc":"2.0","method":"` + fenceMethod + `","params":` + fenceParams + `}`
	r, err := http.NewRequestWithContext(of.Context(), http.MethodPost, "/", strings.NewReader(body))
	if err != nil {
		return // the method and the path are valid
	}
	r.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		sessionHeader: {id}, requestHeader: {fence.number},
	}
	w.sessions.ServeHTTP(nowhere{http.Header{}}, r)
	select {
	case <-fence.reached:
	case <-session.ended: // it takes no more messages
	case <-w.server.closed:
	}
}

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
	if errors.Is(err, standing.ErrUnreadable) {
		http.Error(w, "the server cannot check tokens now; try again later", http.StatusServiceUnavailable)
		return false
	}
	if err != nil && standing.IsRefusal(standing.Check(r.Context())) { // which may have ended the body
		w.Header().Set("WWW-Authenticate", `Bearer realm="caisson", error="invalid_token"`)
		http.Error(w, tokenEnded, http.StatusUnauthorized)
		return false
	}
	if err != nil {
		http.Error(w, "the body did not arrive whole, or not in time", http.StatusBadRequest)
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

// toTellRefused is the time for which a request lasts after its token has stopped working, so that the client is told
// that its call was cancelled.
const toTellRefused = 100 * time.Millisecond

// clientContext returns a context that ends when the client goes away. If a request is cancelled for another reason,
// such as that the program stops, the context ends a little later: the request's calls are cancelled at once, and the
// SDK does not answer a request that has ended. If its token works no longer, that time is short, because streams must
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
