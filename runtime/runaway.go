package runtime

import (
	"errors"
	"fmt"
	"time"

	"github.com/caisson-run/caisson/tool"
)

// ErrRunaway means that a guest could not be stopped. That is a bug of this package's; see
// [Options.OnRunaway].
var ErrRunaway = errors.New("the guest could not be stopped: this is a bug in Caisson")

// Runaway is a guest that was not back a second after its deadline, or after its call was cancelled.
type Runaway struct {
	CallID string // empty for a program that was being started without a call
	Tool   string
	SHA256 string // of the module, in hex
	Began  time.Time
	// Deadline is when it should have been back at the latest.
	Deadline time.Time
	// HostFunction is the one that it was in, such as "wasi_snapshot_preview1.fd_read"; empty where
	// it ran code of its own, or was being started.
	HostFunction string
}

// Place says in words where the guest was.
func (r Runaway) Place() string {
	if r.HostFunction != "" {
		return "in the host function " + r.HostFunction
	}
	return "in code of its own"
}

// LastResort ends the process when nothing in it runs any more: Go's garbage collector waits for
// guests, so one that never comes back stops every goroutine as soon as a collection begins. An
// implementation therefore must not need Go's scheduler, as a kernel timer or another process does
// not. Its methods are called by one goroutine at a time, and must return at once.
type LastResort interface {
	// Arm sets the time at which to end the process, in the place of any other. It is called again,
	// with a later time, several times a second while guests run. Next is the guest whose deadline
	// is the first; it is not known whether that is the one to blame.
	Arm(at time.Time, next Runaway)
	// Disarm is called when no guest runs.
	Disarm()
}

// abandoner is a [tool.Host] that can give up a call whose guest cannot be stopped: the goroutine
// that it called Invoke on does not return, or too late. Nothing of the outcome is the guest's.
type abandoner interface {
	Abandon(outcome tool.Outcome, err error)
}

// verdict says how the call of a guest ended that cannot be stopped.
func (g *guest) verdict() (tool.Kind, string) {
	const bug = "could not be stopped: this is a bug in Caisson"
	timeout := g.tool.limits.Timeout
	switch {
	case time.Now().Before(g.deadline):
		return tool.Cancelled, "the call was cancelled, and the tool " + bug
	case g.deadline.Before(g.began.Add(timeout)):
		return tool.Deadline, "the tool did not finish before the caller's deadline and " + bug
	}
	return tool.Deadline, fmt.Sprintf("the tool did not finish before its deadline of %s and %s", timeout, bug)
}

// abandon ends the call for all who wait for it, though the guest goes on.
func (r *run) abandon() {
	if r.turn != nil {
		r.turn.lose()
	}
	host, ok := r.invocation.Host.(abandoner)
	if !ok {
		return
	}
	kind, message := r.guest.verdict()
	host.Abandon(
		tool.Outcome{Result: tool.Result{Error: message, Kind: kind}, Usage: tool.Usage{Wall: time.Since(r.guest.began)}},
		&tool.Error{Op: "invoke", Tool: r.invocation.Tool, Kind: kind, Message: message, Err: ErrRunaway})
}

// late ends a call that was abandoned, and whose guest came back all the same. Nobody waits for
// what it did, unless its host cannot abandon calls.
func (r *run) late() (tool.Outcome, error) {
	if r.seat.holds(r.tool.runtime) {
		r.tool.runtime.gate.leave() // its own place, see watchdog.condemn
	}
	kind, message := r.guest.verdict()
	return r.fail(kind, message, ErrRunaway)
}
