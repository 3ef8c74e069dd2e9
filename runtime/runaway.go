package runtime

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/caisson-run/caisson/runtime/internal/watchdog"
	"github.com/caisson-run/caisson/tool"
)

// Runaway describes a guest whose own code used a processor for a second after its deadline or the
// cancellation of its call, or that was in a host function a second after it, or did not return within ten.
type Runaway struct {
	CallID string // empty for a program that was being started without a call
	Tool   string
	SHA256 string // of the module, with its libraries if it has any, in hex
	Began  time.Time
	// Deadline is when the guest should have returned at the latest.
	Deadline time.Time
	// HostFunction is the host function that the guest was in, such as
	// "wasi_snapshot_preview1.fd_read". It is empty if the guest was running its own code.
	HostFunction string
}

// Place describes where the guest was, for people.
func (r Runaway) Place() string {
	if r.HostFunction != "" {
		return "in the host function " + r.HostFunction
	}
	return "in code of its own"
}

// LastResort ends the process when no goroutine can run. Go's garbage collector waits for guests,
// so a guest that never returns stops every goroutine as soon as a collection begins. An
// implementation therefore must not depend on Go's scheduler; a kernel timer or another process
// does not. Its methods are called by one goroutine at a time and must return at once.
type LastResort interface {
	// Arm sets the time at which to end the process, replacing any earlier time. While guests run,
	// it is called several times a second with a later time. Next is the guest with the earliest
	// deadline, but it need not be the guest to blame.
	Arm(at time.Time, next Runaway)
	// Disarm is called when no guest runs.
	Disarm()
}

// abandoner is a [tool.Host] that can abandon a call whose guest cannot be stopped. The goroutine
// in which the host called Invoke returns too late or never. No part of the outcome is from the
// guest.
type abandoner interface {
	Abandon(outcome tool.Outcome, err error)
}

// newWatchdog returns a watchdog that logs runaways and calls report with each, and that arms last. Both may be nil.
func newWatchdog(report func(Runaway), last LastResort, logger *slog.Logger) *watchdog.Watchdog {
	watch := watchdog.Options{Report: func(g *watchdog.Guest) {
		r := runawayOf(g)
		logger.Error("a guest could not be stopped; this is a bug in Caisson, please report it", "call_id", r.CallID, "tool",
			r.Tool,
			"sha256", r.SHA256, "place", r.Place(), "began", r.Began, "deadline", r.Deadline)
		if report != nil {
			report(r)
		}
	}}
	if last != nil {
		watch.Arm, watch.Disarm = func(at time.Time, next *watchdog.Guest) { last.Arm(at, runawayOf(next)) }, last.Disarm
	}
	return watchdog.New(watch)
}

func runawayOf(g *watchdog.Guest) Runaway {
	return Runaway{CallID: g.CallID, Tool: g.Tool, SHA256: g.Module.String(), Began: g.Began, Deadline: g.Deadline,
		HostFunction: g.Function()}
}

// KeepSlot implements [watchdog.Owner]. A guest in its caller's slot, which another call is about to get, takes one
// more.
func (r *run) KeepSlot() {
	if r.slot.holds(r.tool.runtime) {
		r.tool.runtime.gate.enterNow()
	}
}

// verdict returns how a call ends whose guest cannot be stopped.
func (r *run) verdict() (tool.Kind, string) {
	const bug = "could not be stopped: this is a bug in Caisson"
	g, timeout := &r.guest, r.tool.limits.Timeout
	switch {
	case time.Now().Before(g.Deadline):
		return tool.Cancelled, "the call was cancelled, and the tool " + bug
	case g.Deadline.Before(g.Began.Add(timeout)):
		return tool.Deadline, "the tool did not finish before the caller's deadline and " + bug
	}
	return tool.Deadline, fmt.Sprintf("the tool did not finish before its deadline of %s and %s", timeout, bug)
}

// Abandon implements [watchdog.Owner]: it ends the call for everyone waiting for it, although the guest still runs.
func (r *run) Abandon() {
	if r.lease != nil {
		r.lease.lose()
	}
	host, ok := r.invocation.Host.(abandoner)
	if !ok {
		return
	}
	kind, message := r.verdict()
	host.Abandon(
		tool.Outcome{Result: tool.Result{Error: message, Kind: kind},
			Usage: tool.Usage{Wall: time.Since(r.guest.Began), Compile: r.answer.Usage.Compile}},
		&tool.Error{Op: "invoke", Tool: r.invocation.Tool, Kind: kind, Message: message, Err: ErrRunaway})
}

// late ends an abandoned call whose guest returned after all. No caller waits for the outcome, unless the host cannot
// abandon calls.
func (r *run) late() (tool.Outcome, error) {
	if r.slot.holds(r.tool.runtime) {
		r.tool.runtime.gate.leave() // that of KeepSlot
	}
	kind, message := r.verdict()
	return r.answer.Fail(kind, message, ErrRunaway)
}
