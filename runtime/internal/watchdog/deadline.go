package watchdog

import (
	"context"
	"sync"
	"time"
)

// Deadline is a context like those of [context.WithDeadline] that creates its timer, and
// registers with its parent, only when Done is first called. Most calls end long before their
// deadline, and only blocking host functions wait for it. It is safe for concurrent use. The
// caller must release it.
type Deadline struct {
	parent context.Context
	at     time.Time

	mu      sync.Mutex
	ended   error           // the first error that Err returned
	waiting context.Context // nil until Done is called
	cancel  context.CancelFunc
}

// NewDeadline returns a context that ends at a time, or with its parent.
func NewDeadline(parent context.Context, at time.Time) *Deadline {
	if sooner, ok := parent.Deadline(); ok && sooner.Before(at) {
		at = sooner
	}
	return &Deadline{parent: parent, at: at}
}

// Deadline implements context.Context.
func (d *Deadline) Deadline() (time.Time, bool) { return d.at, true }

// Done implements context.Context.
func (d *Deadline) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting == nil {
		d.waiting, d.cancel = context.WithDeadline(d.parent, d.at)
	}
	return d.waiting.Done()
}

// Err implements context.Context.
func (d *Deadline) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended == nil {
		d.ended = d.state()
	}
	return d.ended
}

func (d *Deadline) state() error {
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
func (d *Deadline) Value(key any) any { return d.parent.Value(key) }

// AfterFunc saves contexts derived from this one a goroutine; see [context.AfterFunc].
func (d *Deadline) AfterFunc(f func()) (stop func() bool) {
	d.Done()
	return context.AfterFunc(d.waiting, f)
}

// Release frees the timer.
func (d *Deadline) Release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cancel != nil {
		d.cancel()
	}
}
