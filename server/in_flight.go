package server

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/internal/memory"
	"github.com/caisson-run/caisson/server/internal/standing"
)

// inFlight counts the requests that have not been answered, so that no tenant takes all connections with streams that
// only wait. It is safe for concurrent use.
type inFlight struct {
	most int

	mu sync.Mutex
	of map[string]*requestsOf // by memory.Sharer

	uncounted delays // of callers without a token
}

// requestsOf are the requests of one tenant, of which there is at least one.
type requestsOf struct {
	count  int
	delays delays
}

func newInFlight(most int) *inFlight { return &inFlight{most: most, of: map[string]*requestsOf{}} }

// A request over the limit waits up to enterTries times for another to end: a client can have its whole answer, and
// send its next request, a little before its last request stops counting.
const (
	enterTries = 10
	enterWait  = 10 * time.Millisecond
)

// enter counts a request, unless there are too many. left must be called when it has been answered.
func (u *inFlight) enter(ctx context.Context, c auth.Caller) (left func(), ok bool) {
	sharer := memory.Sharer(c)
	for tries := 1; ; tries++ {
		if left, ok = u.tryEnter(sharer); ok || tries == enterTries {
			return left, ok
		}
		select {
		case <-time.After(enterWait):
		case <-ctx.Done():
			return nil, false
		}
	}
}

// delaysOf returns what delays the short records of a caller, whose request is counted if it has a token.
func (u *inFlight) delaysOf(c auth.Caller) *delays {
	u.mu.Lock()
	defer u.mu.Unlock()
	if requests := u.of[memory.Sharer(c)]; requests != nil {
		return &requests.delays
	}
	return &u.uncounted
}

func (u *inFlight) tryEnter(sharer string) (left func(), ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	requests := u.of[sharer]
	if requests == nil {
		requests = &requestsOf{}
		u.of[sharer] = requests
	}
	if requests.count >= u.most {
		return nil, false
	}
	requests.count++
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if requests.count--; requests.count == 0 {
			delete(u.of, sharer)
		}
	}, true
}

// recheck is the time between two checks of the token of a long request. A revocation must have an effect
// within a second: [auth.Tokens] trusts a token that it has read for half a second, and recheck and lastWords take the
// rest.
const recheck = 200 * time.Millisecond

// maxUnchecked is for how long checks may fail because the token cannot be read. It may have been revoked.
const maxUnchecked = time.Second

// whileAllowed returns the request with a context that ends with it, or soon after its client has disconnected or check
// reports that the caller may no longer act: a stream of events must not outlive the right to see it. The rest of the
// body is not waited for then, and the answer ends soon. stop must be called when the handler has ended, and
// stopChecking when the request has been answered whole.
func (s *Server) whileAllowed(
	w http.ResponseWriter, r *http.Request, check func() error,
) (allowed *http.Request, stop, stopChecking func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	answering, answered := context.WithCancel(context.WithoutCancel(ctx))
	body, stopReading := r.Body, func() {}
	if timed, ok := body.(*timedBody); ok {
		timed.check = check
		stopReading = s.readUntil(ctx, w)
	}
	began := time.Now()
	first := time.AfterFunc(recheck, func() {
		look := time.NewTicker(recheck)
		defer look.Stop()
		checked := began
		for answering.Err() == nil {
			// net/http does not notice if the client has sent something else before.
			if time.Since(began) >= 2*sendsNoMore && connectionFor(r).isGone() {
				cancel(nil)
			}
			now := time.Now()
			err := check()
			if err == nil {
				checked = now
			} else if time.Since(checked) >= maxUnchecked {
				err = fmt.Errorf("%w: %w", standing.ErrUnchecked, err)
			}
			if standing.IsEnd(err) {
				s.log.WarnContext(ctx, "request ended", append([]any{"why", err}, described(r, 0)...)...)
				if answer, ok := w.(*answerWriter); ok {
					answer.end(answering, err)
				}
				cancel(err)
				return
			}
			select {
			case <-answering.Done():
			case <-look.C:
			}
		}
	})
	stop = func() {
		stopReading()
		cancel(nil)
	}
	return r.WithContext(ctx), stop, func() {
		first.Stop()
		answered()
	}
}

// readUntil ends the reading of a request's body when ctx ends, and with it the connection. stop must be called when
// the handler has ended, since the connection is for other requests then.
func (s *Server) readUntil(ctx context.Context, w http.ResponseWriter) (stop func()) {
	var mu sync.Mutex
	handled := false
	forget := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		if !handled {
			_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
		}
	})
	return func() {
		forget()
		mu.Lock()
		defer mu.Unlock()
		handled = true
	}
}
