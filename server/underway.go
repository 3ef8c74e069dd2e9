package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/caisson-run/caisson/server/auth"
)

// underway counts the requests that have not been answered, so that nobody takes all connections with streams that only wait.
// It is safe for concurrent use.
type underway struct {
	most int

	mu    sync.Mutex
	count map[string]int // by sharer; never 0
}

func newUnderway(most int) *underway { return &underway{most: most, count: map[string]int{}} }

// sharer returns who shares a bound with the caller: its tenant or, without one, nobody.
func sharer(c auth.Caller) string {
	if c.Tenant != "" {
		return "tenant " + c.Tenant
	}
	return "token " + c.ID
}

// enter counts a request, unless there are too many. left must be called when it has been answered.
func (u *underway) enter(c auth.Caller) (left func(), ok bool) {
	of := sharer(c)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.count[of] >= u.most {
		return nil, false
	}
	u.count[of]++
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.count[of]--; u.count[of] == 0 {
			delete(u.count, of)
		}
	}, true
}

// recheck is how often the token of a request that takes long is looked at again. Together with the time for which
// [auth.Tokens] trusts what it has read, it makes the second within which a revocation has an effect.
const recheck = time.Second / 2

// whileTokenWorks returns a context that ends with the request, or soon after its token has stopped working: a stream of events
// must not outlive the right to see it. stop must be called when the request has been answered.
func (s *Server) whileTokenWorks(r *http.Request, text string) (works context.Context, stop func()) {
	works, cancel := context.WithCancel(r.Context())
	first := time.AfterFunc(recheck, func() {
		look := time.NewTicker(recheck)
		defer look.Stop()
		for works.Err() == nil {
			// A file that cannot be read now, such as for lack of descriptors, says nothing of the token.
			if _, err := s.options.Tokens.Check(text); isRefusal(err) || errors.Is(err, auth.ErrDamaged) {
				c, _ := auth.From(r.Context())
				s.log.WarnContext(works, "request ended", "why", err, "method", r.Method, "path", r.URL.Path, "remote", r.RemoteAddr, "token", c.ID, "tenant", c.Tenant)
				cancel()
				return
			}
			select {
			case <-works.Done():
			case <-look.C:
			}
		}
	})
	return works, func() {
		first.Stop()
		cancel()
	}
}

// isRefusal reports whether an error says that a token does not work.
func isRefusal(err error) bool {
	return errors.Is(err, auth.ErrUnknown) || errors.Is(err, auth.ErrExpired) || errors.Is(err, auth.ErrRevoked)
}
