package mcp

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

// waiting are the calls that wait for answers. The zero value is usable. It is safe for concurrent use.
type waiting struct {
	mu    sync.Mutex
	calls map[string]paused // by state
}

// paused is a call that waits.
type paused struct {
	by        string // the key of who made it
	tenant    string
	until     time.Time
	name      string
	arguments []byte
	state     executor.State
	pending   []tool.Action
	// end ends the call, which lasts while it waits if the client is of an earlier revision. It may be nil.
	end context.CancelCauseFunc
}

// forgotten ends the call, if it lasts, for a reason.
func (p paused) forgotten(why error) {
	if p.end != nil {
		p.end(why)
	}
}

// Why a call does not wait any longer.
var (
	errForgotten = errors.New("too many calls wait for their users, or this one for too long; make the call again")
	errNoSession = errors.New("the session has ended")
	errClosed    = errors.New("mcp: the server is closed")
)

// Bounds on the calls that wait: in all, and of one caller in one session. Whoever has more waiting most likely has
// forgotten the oldest.
const (
	maxWaiting    = 1024
	maxWaitingOwn = 16
	// maxWaitingBytes bounds the arguments of a tenant's calls, of which each call holds about five copies.
	maxWaitingBytes = 16 << 20
	waitFor         = time.Hour
)

// put stores a call, and returns its state, which cannot be guessed. If there is no room, the oldest call of the
// session is forgotten, or that of the tenant that has the most, so that no tenant keeps others' users from being
// asked. Those of a tenant whose calls have too long arguments are forgotten as well.
func (w *waiting) put(p paused) (state string) {
	state, p.until = rand.Text(), time.Now().Add(waitFor)
	w.add(p, state)
	return state
}

// add stores a call under a state.
func (w *waiting) add(p paused, state string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, own, of, bytes := time.Now(), 0, map[string]int{}, len(p.arguments)
	for at, other := range w.calls {
		if !now.Before(other.until) {
			delete(w.calls, at)
			other.forgotten(errForgotten)
			continue
		}
		of[other.tenant]++
		if other.by == p.by {
			own++
		}
		if other.tenant == p.tenant {
			bytes += len(other.arguments)
		}
	}
	for ; bytes > maxWaitingBytes && of[p.tenant] > 0; of[p.tenant]-- {
		forgotten := w.forgetOldest(func(other paused) bool { return other.tenant == p.tenant })
		bytes -= len(forgotten.arguments)
		if forgotten.by == p.by {
			own--
		}
	}
	switch {
	case own >= maxWaitingOwn:
		w.forgetOldest(func(other paused) bool { return other.by == p.by })
	case len(w.calls) >= maxWaiting:
		most := slices.Max(slices.Collect(maps.Values(of)))
		w.forgetOldest(func(other paused) bool { return of[other.tenant] == most })
	}
	if w.calls == nil {
		w.calls = map[string]paused{}
	}
	w.calls[state] = p
}

// forgetOldest forgets the call that has waited longest of some, and returns it. The lock is held.
func (w *waiting) forgetOldest(among func(paused) bool) (forgotten paused) {
	oldest := ""
	for at, one := range w.calls {
		if among(one) && (oldest == "" || one.until.Before(w.calls[oldest].until)) {
			oldest = at
		}
	}
	forgotten = w.calls[oldest]
	delete(w.calls, oldest)
	forgotten.forgotten(errForgotten)
	return forgotten
}

// take returns the call that waits under a state, and forgets it.
func (w *waiting) take(key, state string) (paused, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.calls[state]
	if !ok || p.by != key || !time.Now().Before(p.until) {
		return paused{}, false
	}
	delete(w.calls, state)
	return p, true
}

// forget forgets the calls of a session that has ended.
func (w *waiting) forget(key string) {
	w.forgetThose(errNoSession, func(p paused) bool { return p.by == key })
}

// forgetAll forgets all calls, since the server stops.
func (w *waiting) forgetAll() { w.forgetThose(errClosed, func(paused) bool { return true }) }

func (w *waiting) forgetThose(why error, which func(paused) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for state, p := range w.calls {
		if which(p) {
			delete(w.calls, state)
			p.forgotten(why)
		}
	}
}
