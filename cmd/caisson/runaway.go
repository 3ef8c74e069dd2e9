package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/caisson-run/caisson/cmd/caisson/internal/lastresort"
	"github.com/caisson-run/caisson/runtime"
)

// runaways are the guests of this command that could not be stopped. It is safe for concurrent use.
type runaways struct {
	env   environment
	quiet bool

	mu      sync.Mutex
	timer   *lastresort.Timer // ends the process; nil if there is none
	ending  bool              // the end can no longer be postponed
	found   []runtime.Runaway
	cancels []context.CancelFunc // cancels the command's other work
}

// newRunaways returns the collector of runaways. If the command owns its process, a timer ends that, where supported.
func newRunaways(env environment, quiet bool) *runaways {
	r := &runaways{env: env, quiet: quiet}
	if env.exit == nil {
		return r
	}
	if timer, err := lastresort.New(); err == nil {
		r.timer = timer
	}
	return r
}

// lastResort returns the timer that ends the process even if no Go code can run, or nil if there is none.
func (r *runaways) lastResort() runtime.LastResort {
	if r.timer == nil {
		return nil
	}
	return r
}

// toEnd is the time for an orderly end after a runaway. The next garbage collection would block it forever.
const toEnd = 400 * time.Millisecond

func (r *runaways) add(found runtime.Runaway) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = append(r.found, found)
	for _, cancel := range r.cancels {
		cancel()
	}
	switch {
	case r.env.exit == nil || len(r.found) > 1:
	case r.timer != nil:
		r.ending = true
		r.arm(time.Now().Add(toEnd), messageOf(found))
	default: // may not fire if the process is blocked
		time.AfterFunc(toEnd, func() {
			messageOf(found).print(r.env.stderr, r.quiet)
			r.env.exit(exitLimit)
		})
	}
}

// within returns a context that is also cancelled when there is a runaway.
func (r *runaways) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancels = append(r.cancels, cancel)
	if len(r.found) > 0 {
		cancel()
	}
	return ctx, cancel
}

func (r *runaways) any() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.found) > 0
}

func (r *runaways) of(callID string) (runtime.Runaway, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, found := range r.found {
		if found.CallID == callID {
			return found, true
		}
	}
	return runtime.Runaway{}, false
}

// failure returns the failure for guests that could not be stopped, or nil if there are none.
func (r *runaways) failure() *failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.found) == 0 {
		return nil
	}
	all := &failure{code: exitLimit}
	for _, found := range r.found {
		all.messages = append(all.messages, messageOf(found))
	}
	return all
}

func messageOf(found runtime.Runaway) message {
	return message{found.Tool + ": the tool could not be stopped at its deadline: this is a bug in Caisson",
		[]string{reportHint(found)}}
}

func reportHint(found runtime.Runaway) string {
	return fmt.Sprintf("report it with the module, whose SHA-256 is %s; the tool was %s", found.SHA256, found.Place())
}

// Arm implements [runtime.LastResort].
func (r *runaways) Arm(at time.Time, next runtime.Runaway) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ending {
		r.arm(at,
			message{next.Tool +
				": the tool did not finish before its deadline, and nothing else runs in this process: this is a bug in Caisson",
				[]string{fmt.Sprintf(
					"report it with the module, whose SHA-256 is %s; if several calls ran, another may be the cause", next.SHA256)}})
	}
}

func (r *runaways) arm(at time.Time, m message) {
	var text strings.Builder
	m.print(&text, r.quiet)
	r.timer.Arm(at, text.String())
}

// Disarm implements [runtime.LastResort].
func (r *runaways) Disarm() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ending {
		r.timer.Disarm()
	}
}
