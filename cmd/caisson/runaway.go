package main

import (
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
	timer runtime.LastResort // nil: none

	mu    sync.Mutex
	found []runtime.Runaway
}

// newRunaways returns what the runtime reports runaways to. A command that is a process of its own
// has a timer that ends it, where the system has one.
func newRunaways(env environment, quiet bool) *runaways {
	r := &runaways{env: env, quiet: quiet}
	if env.exit == nil {
		return r
	}
	if timer, err := lastresort.New(); err == nil {
		r.timer = endsProcess{timer, quiet}
	}
	return r
}

// toEnd is how long a command has to end by itself where no timer ends it: the next garbage
// collection would keep it from that for ever.
const toEnd = 500 * time.Millisecond

// add notes a runaway.
func (r *runaways) add(found runtime.Runaway) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = append(r.found, found)
	if r.env.exit != nil && r.timer == nil && len(r.found) == 1 {
		time.AfterFunc(toEnd, func() {
			messageOf(found).print(r.env.stderr, r.quiet)
			r.env.exit(exitLimit)
		})
	}
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

// endsProcess is the timer that ends this process.
type endsProcess struct {
	*lastresort.Timer
	quiet bool
}

// Arm implements [runtime.LastResort].
func (e endsProcess) Arm(at time.Time, next runtime.Runaway) {
	var text strings.Builder
	last := message{next.Tool + ": the tool did not finish before its deadline, and nothing else runs in this process: this is a bug in Caisson",
		[]string{fmt.Sprintf("report it with the module, whose SHA-256 is %s; where several calls ran, another may be to blame", next.SHA256)}}
	last.print(&text, e.quiet)
	e.Timer.Arm(at, text.String())
}
