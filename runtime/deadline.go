package runtime

import (
	"context"
	"sync"
	"time"
)

// deadline is a context that ends at a time, as one of [context.WithDeadline] does. Most calls
// end long before, and nobody waits for it but a host function that blocks: the timer, and
// what the parent must know of, are made when somebody asks for Done. It is safe for
// concurrent use. Release it.
type deadline struct {
	parent context.Context
	at     time.Time

	mu      sync.Mutex
	ended   error           // once somebody has seen it
	waiting context.Context // nil until somebody waits
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
	// Also where the timer is about to say so: what ran on behalf of the guest has seen the time.
	if !time.Now().Before(d.at) {
		return context.DeadlineExceeded
	}
	return nil
}

// Value implements context.Context.
func (d *deadline) Value(key any) any { return d.parent.Value(key) }

// AfterFunc spares those who derive a context of this one a goroutine; see [context.AfterFunc].
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
