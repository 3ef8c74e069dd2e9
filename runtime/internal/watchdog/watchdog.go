// Package watchdog bounds how long guests run. A guest ends itself at its deadline; the watchdog finds those that do
// not, and gives them up: guests whose own code uses the processor after its deadline, and those that stay in a host
// function.
package watchdog

import (
	"context"
	"maps"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-run/caisson/runtime/internal/engine"
)

// The watchdog looks at the running guests every lookEvery. An overdue guest is a runaway if its own
// code has used a processor for mostTime since, or if it is in a host function at
// mostLooks looks in a row, of which the last is a second after the first. A machine that is busy with
// other work delays a guest, but the guest's thread uses no processor meanwhile; and looks at which goroutines
// wait for processors do not count, since the host function may be one of those. After mostWaits looks, ten
// seconds, it is always a runaway. Counting looks, not time, ensures that the process ran in the
// meantime and was not suspended.
const (
	lookEvery = 200 * time.Millisecond
	mostTime  = time.Second
	mostLooks = 6
	mostWaits = 50
	// overdue is the time after a guest's deadline, and after a look of the watchdog, at which the last resort ends the
	// process. If the watchdog runs, it looks much more often, even on a busy machine.
	overdue = 2 * time.Second
)

// Watchdog tracks the running guests and abandons those that cannot be stopped. It costs each
// call an entry in a map. It is safe for concurrent use.
type Watchdog struct {
	options   Options
	condemned atomic.Pointer[map[engine.Digest]bool] // modules that had a runaway; copied on write

	mu      sync.Mutex
	guests  map[*Guest]struct{} // all of them
	stuck   int                 // how many of them are abandoned
	looking bool                // the timer is set
	timer   *time.Timer
	armed   time.Time     // the last resort's time; zero while disarmed
	idle    chan struct{} // closed when only stuck guests run; nil while no caller waits for that
	none    *sync.Cond    // signalled when no guest runs

	waits atomic.Bool // a goroutine that was started at a look has not ended
}

// Options are the callbacks of a watchdog.
type Options struct {
	// Report is called once for each such guest. The guest's owner waits for it.
	Report func(*Guest)
	// Arm sets the time at which the process ends unless it is set anew, and Disarm unsets it. They are called by one
	// goroutine at a time. Next is the guest with the earliest deadline. Both may be nil.
	Arm    func(at time.Time, next *Guest)
	Disarm func()
}

// Guest is a running guest. Its owner sets the exported fields before [Watchdog.Enter].
type Guest struct {
	engine.Watched
	Tool     string
	CallID   string          // empty for a program that is started without a call
	Ctx      context.Context // the caller's; nil for such a program
	Module   engine.Digest
	Began    time.Time
	Deadline time.Time
	Owner    Owner

	calls atomic.Int32 // calls of other tools that it waits for, except those still being planned
	// The fields below belong to the watchdog.
	looks     int           // consecutive looks at which it was overdue
	inHost    int           // consecutive ones of these at which it was in a host function, and goroutines ran
	thread    int32         // on which its own code ran at the last of them, or 0
	used      time.Duration // how long that had used a processor when it was first seen there
	abandoned bool
	until     time.Time   // if abandoned: when everyone must have been notified
	told      atomic.Bool // the program was notified
}

// Owner is the call or the start that a guest runs for.
type Owner interface {
	// KeepSlot makes sure that the guest, which is abandoned, keeps its concurrency slot. It must return at once.
	KeepSlot()
	// Abandon releases the callers that wait for the guest. It is called after KeepSlot and [Options.Report].
	Abandon()
}

// New returns a watchdog. The caller must stop it.
func New(options Options) *Watchdog {
	w := &Watchdog{options: options, guests: map[*Guest]struct{}{}}
	w.none = sync.NewCond(&w.mu)
	w.timer = time.AfterFunc(time.Hour, w.look)
	w.timer.Stop()
	return w
}

// Enter adds a guest that is about to run. The caller must call Leave when it has ended.
func (w *Watchdog) Enter(g *Guest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	g.looks, g.inHost = 0, 0
	w.guests[g] = struct{}{}
	if !w.looking {
		w.looking = true
		w.timer.Reset(lookEvery)
	}
	// Arm now: the guest may keep the watchdog from ever looking.
	if w.options.Arm != nil && (w.armed.IsZero() || w.armed.After(g.Deadline.Add(overdue))) {
		w.arm(g.lastTime(g.Began), g)
	}
}

// Leave removes a guest that has ended. It reports whether the guest had been abandoned.
func (w *Watchdog) Leave(g *Guest) (abandoned bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.guests, g)
	if g.abandoned {
		w.stuck--
	}
	if len(w.guests) == 0 {
		w.none.Broadcast()
	}
	return g.abandoned
}

// look finds the runaways among the guests and abandons them.
func (w *Watchdog) look() {
	now := time.Now()
	var found []*Guest
	goroutinesRun := w.goroutinesRun()
	w.mu.Lock()
	for g := range w.guests {
		if w.check(g, now, goroutinesRun) {
			w.abandon(g, now)
			found = append(found, g)
		}
	}
	w.rearm(now)
	if w.looking = len(w.guests) > 0; w.looking {
		w.timer.Reset(lookEvery)
	}
	w.settle()
	w.mu.Unlock()
	for _, g := range found {
		w.report(g)
	}
}

// goroutinesRun reports whether goroutines that can run have run since the last look. The watchdog itself always does,
// since timers come before goroutines.
func (w *Watchdog) goroutinesRun() bool {
	if w.waits.Swap(true) {
		return false
	}
	go func() {
		for range queued {
			goruntime.Gosched() // behind all that wait, where a new goroutine would come before them
		}
		w.waits.Store(false)
	}()
	return true
}

// queued is how often the goroutine of goroutinesRun waits for its turn, about as often as a host function does.
const queued = 3

// check reports whether a guest is a runaway. The caller must hold mu.
func (w *Watchdog) check(g *Guest, now time.Time, goroutinesRun bool) bool {
	switch {
	case g.abandoned:
		return false
	case g.calls.Load() > 0: // the callee is watched too, or is not a guest
		g.looks, g.inHost = 0, 0
		return false
	case now.Before(g.Deadline) && (g.Ctx == nil || g.Ctx.Err() == nil):
		g.looks, g.inHost = 0, 0
		return false
	}
	g.looks++
	switch {
	case g.looks >= mostWaits:
		return true
	case !engine.MeasuresThreads || g.Function() != "":
		return g.staysInHost(goroutinesRun)
	}
	g.inHost = 0
	return g.ownTime(g.Thread(), engine.ThreadTime) >= mostTime
}

// staysInHost reports whether the guest is stuck in host functions, in which it is at this look.
func (g *Guest) staysInHost(goroutinesRun bool) bool {
	if goroutinesRun {
		g.inHost++
	}
	return g.inHost >= mostLooks
}

// ownTime returns how long the guest's own code has used a processor since the first look at which it was
// overdue on this thread.
func (g *Guest) ownTime(thread int32, timeOf func(thread int32) (time.Duration, bool)) time.Duration {
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

// abandon gives up a guest: the engine ends its run at the next call of the host, its slot stays occupied, and its
// module is not run again. The caller must hold mu, and then call report without it.
func (w *Watchdog) abandon(g *Guest, now time.Time) {
	g.abandoned, g.until = true, now.Add(2*lookEvery)
	g.Abandon()
	w.stuck++
	all := map[engine.Digest]bool{g.Module: true}
	if before := w.condemned.Load(); before != nil {
		maps.Copy(all, *before)
	}
	w.condemned.Store(&all)
	g.Owner.KeepSlot()
}

// report reports a runaway, and releases those that wait for the guest.
func (w *Watchdog) report(g *Guest) {
	w.options.Report(g)
	g.told.Store(true)
	g.Owner.Abandon()
}

// Calling tells the watchdog that the guest waits for a call of another tool, until end is called.
func (g *Guest) Calling() (end func()) {
	g.calls.Add(1)
	return func() { g.calls.Add(-1) }
}

// Planned tells the watchdog that the host is planning a call for the guest, until end is called.
// During that time the guest waits for the host, not for another tool.
func (g *Guest) Planned() (end func()) {
	g.calls.Add(-1)
	return func() { g.calls.Add(1) }
}

// Condemned returns the modules that had a runaway, or nil if none had one. The caller must not change the map.
func (w *Watchdog) Condemned() map[engine.Digest]bool {
	if all := w.condemned.Load(); all != nil {
		return *all
	}
	return nil
}

// rearm postpones the last resort as long as the running guests allow, or disarms it if none runs. The caller must hold
// mu.
func (w *Watchdog) rearm(now time.Time) {
	if w.options.Arm == nil {
		return
	}
	var next *Guest
	var at time.Time
	for g := range w.guests {
		if last := g.lastTime(now); next == nil || last.Before(at) {
			next, at = g, last
		}
	}
	switch {
	case next != nil:
		w.arm(at, next)
	case !w.armed.IsZero():
		w.armed = time.Time{}
		w.options.Disarm()
	}
}

func (w *Watchdog) arm(at time.Time, next *Guest) {
	if at.Equal(w.armed) {
		return
	}
	w.armed = at
	w.options.Arm(at, next)
}

// lastTime returns when the last resort may end the process unless the watchdog looks again. A
// runaway can keep all other guests from returning, so the earliest deadline of any guest counts.
func (g *Guest) lastTime(now time.Time) time.Time {
	at, soonest := g.Deadline.Add(overdue), now.Add(overdue)
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

// settle closes idle if only stuck guests run. The caller must hold mu.
func (w *Watchdog) settle() {
	if w.idle != nil && w.stuck > 0 && w.stuck == len(w.guests) {
		close(w.idle)
		w.idle = nil
	}
}

// OnlyStuck returns a channel that is closed once guests that cannot be stopped are the only ones
// running.
func (w *Watchdog) OnlyStuck() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.idle == nil {
		w.idle = make(chan struct{})
	}
	idle := w.idle
	w.settle()
	return idle
}

// Stop waits until no guest runs and stops the watchdog.
func (w *Watchdog) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.guests) > 0 {
		w.none.Wait()
	}
	w.timer.Stop()
	w.looking = false
	w.rearm(time.Now())
}
