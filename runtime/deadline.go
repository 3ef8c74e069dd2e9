package runtime

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-run/caisson/runtime/internal/engine"
)

// deadline is a context like those of [context.WithDeadline] that creates its timer, and
// registers with its parent, only when Done is first called. Most calls end long before their
// deadline, and only blocking host functions wait for it. It is safe for concurrent use. The
// caller must release it.
type deadline struct {
	parent context.Context
	at     time.Time

	mu      sync.Mutex
	ended   error           // the first error that Err returned
	waiting context.Context // nil until Done is called
	cancel  context.CancelFunc
}

func newDeadline(parent context.Context, at time.Time) *deadline {
	if sooner, ok := parent.Deadline(); ok && sooner.Before(at) {
		at = sooner
	}
	return &deadline{parent: parent, at: at}
}

// Deadline implements context.Context.
func (d *deadline) Deadline() (time.Time, bool) { return d.at, true }

// Done implements context.Context.
func (d *deadline) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting == nil {
		d.waiting, d.cancel = context.WithDeadline(d.parent, d.at)
	}
	return d.waiting.Done()
}

// Err implements context.Context.
func (d *deadline) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended == nil {
		d.ended = d.state()
	}
	return d.ended
}

func (d *deadline) state() error {
	if d.waiting != nil {
		if err := d.waiting.Err(); err != nil {
			return err
		}
	} else if err := d.parent.Err(); err != nil {
		return err
	}
	// The timer may not have fired yet, but code that ran for the guest has seen the time.
	if time.Until(d.at) <= 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// Value implements context.Context.
func (d *deadline) Value(key any) any { return d.parent.Value(key) }

// AfterFunc saves contexts derived from this one a goroutine; see [context.AfterFunc].
func (d *deadline) AfterFunc(f func()) (stop func() bool) {
	d.Done()
	return context.AfterFunc(d.waiting, f)
}

// release frees the timer.
func (d *deadline) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cancel != nil {
		d.cancel()
	}
}

// The watchdog looks at the running guests every lookEvery. An overdue guest is a runaway if its own
// code has used a processor for mostTime since, or if it is in a host function, or being started, at
// mostLooks looks in a row, of which the last is a second after the first. A machine that is busy with
// other work delays a guest, but the guest's thread uses no processor meanwhile. After mostWaits looks, ten
// seconds, it is a runaway in any case. Counting looks, not time, ensures that the process ran in the
// meantime and was not suspended.
const (
	lookEvery = 200 * time.Millisecond
	mostTime  = time.Second
	mostLooks = 6
	mostWaits = 50
	// overdue is how long after a guest's deadline, and after a look of the watchdog, the last resort
	// ends the process. If the watchdog runs, it looks much more often, even on a busy machine.
	overdue = 2 * time.Second
)

// watchdog tracks the running guests and abandons those that cannot be stopped. It costs each
// call an entry in a linked list. It is safe for concurrent use.
type watchdog struct {
	gate       *gate
	logger     *slog.Logger
	onRunaway  func(Runaway)
	lastResort LastResort // may be nil

	condemned atomic.Pointer[map[engine.Digest]bool] // modules that had a runaway; copied on write

	mu      sync.Mutex
	first   *guest // head of the list of all guests
	running int    // guests that are not abandoned
	stuck   int    // guests that are abandoned
	total   int64  // runaways so far
	looking bool   // the timer is set
	timer   *time.Timer
	armed   time.Time     // the last resort's time; zero while disarmed
	idle    chan struct{} // closed when only stuck guests run; nil while nobody waits for that
	none    *sync.Cond    // signalled when no guest runs
}

// guest is a running guest.
type guest struct {
	engine.Watched
	tool     *Tool
	module   *engine.Module
	run      *run            // nil for a program that is started without a call
	lost     func()          // called when such a program is abandoned; nil if run is set
	ctx      context.Context // the caller's; nil for a start
	began    time.Time
	deadline time.Time
	calls    atomic.Int32 // calls of other tools that it waits for, except those still being planned

	previous, next *guest        // this and the fields below belong to the watchdog
	looks          int           // consecutive looks at which it was overdue
	thread         int32         // on which its own code ran at the last of them, or 0
	used           time.Duration // how long that had used a processor when it was first seen there
	abandoned      bool
	until          time.Time   // if abandoned: when everyone must have been notified
	told           atomic.Bool // the program was notified
}

func newWatchdog(g *gate, logger *slog.Logger, onRunaway func(Runaway), lastResort LastResort) *watchdog {
	w := &watchdog{gate: g, logger: logger, onRunaway: onRunaway, lastResort: lastResort}
	w.none = sync.NewCond(&w.mu)
	w.timer = time.AfterFunc(time.Hour, w.look)
	w.timer.Stop()
	return w
}

// enter adds a guest that is about to run. Each guest must leave.
func (w *watchdog) enter(g *guest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	g.looks = 0
	g.previous, g.next = nil, w.first
	if w.first != nil {
		w.first.previous = g
	}
	w.first = g
	w.running++
	if !w.looking {
		w.looking = true
		w.timer.Reset(lookEvery)
	}
	// Arm now: the guest may keep the watchdog from ever looking.
	if w.lastResort != nil && (w.armed.IsZero() || w.armed.After(g.deadline.Add(overdue))) {
		w.arm(g.lastTime(g.began), g)
	}
}

// leave removes a guest that has ended. It reports whether the guest had been abandoned.
func (w *watchdog) leave(g *guest) (abandoned bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g.previous != nil {
		g.previous.next = g.next
	} else {
		w.first = g.next
	}
	if g.next != nil {
		g.next.previous = g.previous
	}
	if g.abandoned {
		w.stuck--
	} else {
		w.running--
	}
	if w.first == nil {
		w.none.Broadcast()
	}
	return g.abandoned
}

// look finds the runaways among the guests and abandons them.
func (w *watchdog) look() {
	now := time.Now()
	var found []*guest
	w.mu.Lock()
	for g := w.first; g != nil; g = g.next {
		if w.check(g, now) {
			w.condemn(g, now)
			found = append(found, g)
		}
	}
	w.rearm(now)
	if w.looking = w.first != nil; w.looking {
		w.timer.Reset(lookEvery)
	}
	w.settle()
	w.mu.Unlock()
	for _, g := range found {
		w.tell(g)
	}
}

// check reports whether a guest is a runaway. The caller holds the lock.
func (w *watchdog) check(g *guest, now time.Time) bool {
	switch {
	case g.abandoned:
		return false
	case g.calls.Load() > 0: // the callee is watched too, or is not a guest
		g.looks = 0
		return false
	case now.Before(g.deadline) && (g.ctx == nil || g.ctx.Err() == nil):
		g.looks = 0
		return false
	}
	g.looks++
	switch {
	case g.looks >= mostWaits:
		return true
	case !engine.MeasuresThreads || g.run == nil || g.Function() != "":
		return g.looks >= mostLooks
	}
	return g.runs(g.Thread(), engine.ThreadTime) >= mostTime
}

// runs returns how long the guest's own code has used a processor since the first look at which it was
// overdue on this thread.
func (g *guest) runs(thread int32, timeOf func(thread int32) (time.Duration, bool)) time.Duration {
	if thread == 0 {
		g.thread = 0
		return 0
	}
	used, known := timeOf(thread)
	if !known || thread != g.thread || g.looks == 1 {
		g.thread, g.used = thread, used
	}
	return used - g.used
}

// condemn abandons a guest: nobody waits for it any longer, its slot stays occupied, and its module
// is not run again. The caller holds the lock.
func (w *watchdog) condemn(g *guest, now time.Time) {
	g.abandoned, g.until = true, now.Add(2*lookEvery)
	g.Abandon()
	w.running--
	w.stuck++
	w.total++
	all := map[engine.Digest]bool{g.module.Digest(): true}
	if before := w.condemned.Load(); before != nil {
		maps.Copy(all, *before)
	}
	w.condemned.Store(&all)
	if g.run != nil && g.run.seat.holds(g.tool.runtime) {
		w.gate.enterNow() // the guest runs in its caller's slot, which another call is about to get
	}
}

// tell logs a runaway, notifies the program, and releases the callers that wait for the guest.
func (w *watchdog) tell(g *guest) {
	r := g.runaway()
	w.logger.Error("a guest could not be stopped; this is a bug in Caisson, please report it", "call_id", r.CallID, "tool", r.Tool,
		"sha256", r.SHA256, "place", r.Place(), "began", r.Began, "deadline", r.Deadline)
	if w.onRunaway != nil {
		w.onRunaway(r)
	}
	g.told.Store(true)
	if g.run != nil {
		g.run.abandon()
	} else {
		g.lost()
	}
}

// planned tells the watchdog that the host is planning a call for the guest, until end is called.
// During that time the guest waits for the host, not for another tool.
func (g *guest) planned() (end func()) {
	g.calls.Add(-1)
	return func() { g.calls.Add(1) }
}

func (g *guest) runaway() Runaway {
	r := Runaway{Tool: g.tool.manifest.Name, SHA256: g.module.Digest().String(), Began: g.began, Deadline: g.deadline, HostFunction: g.Function()}
	if g.run != nil {
		r.CallID = g.run.invocation.CallID
	}
	return r
}

// hasCondemned reports whether a module had a runaway.
func (w *watchdog) hasCondemned(digest engine.Digest) bool {
	all := w.condemned.Load()
	return all != nil && (*all)[digest]
}

// rearm postpones the last resort as long as the running guests allow, or disarms it if none runs.
// The caller holds the lock.
func (w *watchdog) rearm(now time.Time) {
	if w.lastResort == nil {
		return
	}
	var next *guest
	var at time.Time
	for g := w.first; g != nil; g = g.next {
		if last := g.lastTime(now); next == nil || last.Before(at) {
			next, at = g, last
		}
	}
	switch {
	case next != nil:
		w.arm(at, next)
	case !w.armed.IsZero():
		w.armed = time.Time{}
		w.lastResort.Disarm()
	}
}

func (w *watchdog) arm(at time.Time, next *guest) {
	if at.Equal(w.armed) {
		return
	}
	w.armed = at
	w.lastResort.Arm(at, next.runaway())
}

// lastTime returns when the last resort may end the process unless the watchdog looks again. A
// runaway can keep all other guests from returning, so the earliest deadline of any guest counts.
func (g *guest) lastTime(now time.Time) time.Time {
	at, soonest := g.deadline.Add(overdue), now.Add(overdue)
	switch {
	case g.abandoned && !g.told.Load(): // the collector may wait for the guest, and OnRunaway for the collector
		return g.until
	case g.abandoned:
		return now.Add(overdue)
	case at.Before(soonest):
		return soonest
	}
	return at
}

// settle closes idle if only stuck guests run. The caller holds the lock.
func (w *watchdog) settle() {
	if w.idle != nil && w.running == 0 && w.stuck > 0 {
		close(w.idle)
		w.idle = nil
	}
}

// onlyStuck returns a channel that is closed once guests that cannot be stopped are the only ones
// running.
func (w *watchdog) onlyStuck() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.idle == nil {
		w.idle = make(chan struct{})
	}
	idle := w.idle
	w.settle()
	return idle
}

// stop waits until no guest runs and stops the watchdog.
func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.first != nil {
		w.none.Wait()
	}
	w.timer.Stop()
	w.looking = false
	w.rearm(time.Now())
}

func (w *watchdog) runaways() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.total
}
