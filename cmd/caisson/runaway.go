package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/caisson-run/caisson/cmd/caisson/internal/lastresort"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// runaways are the guests of this command that could not be stopped. It is safe for concurrent use.
type runaways struct {
	env   environment
	quiet bool
	timer *endsProcess // nil: none

	mu      sync.Mutex
	found   []runtime.Runaway
	cancels []context.CancelFunc // of what runs beside them
}

// newRunaways returns what the runtime reports runaways to. A command that is a process of its own
// has a timer that ends it, where the system has one.
func newRunaways(env environment, quiet bool) *runaways {
	r := &runaways{env: env, quiet: quiet}
	if env.exit == nil {
		return r
	}
	if timer, err := lastresort.New(); err == nil {
		r.timer = &endsProcess{timer: timer, quiet: quiet}
	}
	return r
}

// lastResort returns the timer, or nil.
func (r *runaways) lastResort() runtime.LastResort {
	if r.timer == nil {
		return nil
	}
	return r.timer
}

// toEnd is how long a command has to end in good order that has a runaway: the next garbage
// collection will keep it from that forever.
const toEnd = 400 * time.Millisecond

// add notes a runaway, and ends the command.
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
		r.timer.end(messageOf(found))
	default: // it may work
		time.AfterFunc(toEnd, func() {
			messageOf(found).print(r.env.stderr, r.quiet)
			r.env.exit(exitLimit)
		})
	}
}

// within returns a context that also ends when there is a runaway.
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

// of returns the runaway of a call, if it is one.
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

// failure is how a command ends in which something could not be stopped; nil where nothing was.
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
	return message{found.Tool + ": the tool could not be stopped at its deadline: this is a bug in Caisson", []string{reportHint(found)}}
}

func reportHint(found runtime.Runaway) string {
	return fmt.Sprintf("report it with the module, whose SHA-256 is %s; the tool was %s", found.SHA256, found.Place())
}

// endsProcess is the timer that ends this process. It is safe for concurrent use.
type endsProcess struct {
	quiet bool

	mu     sync.Mutex
	timer  *lastresort.Timer
	ending bool // nothing puts the end off any more
}

// Arm implements [runtime.LastResort].
func (e *endsProcess) Arm(at time.Time, next runtime.Runaway) {
	e.set(at, message{next.Tool + ": the tool did not finish before its deadline, and nothing else runs in this process: this is a bug in Caisson",
		[]string{fmt.Sprintf("report it with the module, whose SHA-256 is %s; where several calls ran, another may be to blame", next.SHA256)}}, false)
}

// end has the process end soon.
func (e *endsProcess) end(m message) { e.set(time.Now().Add(toEnd), m, true) }

func (e *endsProcess) set(at time.Time, m message, ending bool) {
	var text strings.Builder
	m.print(&text, e.quiet)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ending {
		return
	}
	e.ending = ending
	e.timer.Arm(at, text.String())
}

// Disarm implements [runtime.LastResort].
func (e *endsProcess) Disarm() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ending {
		e.timer.Disarm()
	}
}

// witness is a registry that remembers why the host failed. A record says no more than
// "internal error" and an id, since it may go to a model; whoever runs the command is
// the operator and may know the cause.
type witness struct {
	*registry.Registry
	progress *progress // nil where nobody watches

	mu     sync.Mutex
	causes map[string]error // by call id; for reading once the batch has ended
}

// over has the witness see the calls of a registry's tools.
func (w *witness) over(tools *registry.Registry) executor.Resolver {
	w.Registry = tools
	return w
}

// Invoke runs one call.
func (w *witness) Invoke(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	if entry, ok := w.Get(invocation.Tool); ok {
		if t, ok := entry.Tool.(*runtime.Tool); ok && w.progress != nil {
			// An error comes back from the call itself.
			w.progress.during("compiling "+entry.Name, func() { _ = t.Prepare(ctx) })
		}
	}
	outcome, err := w.Registry.Invoke(ctx, invocation)
	var failure *tool.Error
	if errors.As(err, &failure) && failure.Kind == tool.Internal && failure.Err != nil {
		w.mu.Lock()
		w.causes[invocation.CallID] = failure.Err
		w.mu.Unlock()
	}
	return outcome, err
}
