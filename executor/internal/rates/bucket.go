package rates

import (
	"container/list"
	"time"

	"golang.org/x/time/rate"
)

// bucket is the calls that a key has left, and those who wait for more. Only the first who
// waits has reserved a call. A reservation that others have been made behind cannot be given
// back: see [rate.Reservation.CancelAt].
type bucket[K comparable] struct {
	key     K
	tokens  *rate.Limiter
	waiting list.List // of *waiter, the first first
}

// waiter is one who waits for a call.
type waiter struct {
	place   *list.Element
	isFirst chan struct{} // is closed when the waiter is the first; what follows is then set
	next    *rate.Reservation
	at      time.Time // when there is a call
}

// first returns who waits for the next call, or nil.
func (b *bucket[K]) first() *waiter {
	if front := b.waiting.Front(); front != nil {
		return front.Value.(*waiter)
	}
	return nil
}

// join lets one more wait.
func (b *bucket[K]) join(now time.Time) *waiter {
	w := &waiter{isFirst: make(chan struct{})}
	w.place = b.waiting.PushBack(w)
	b.serve(now)
	return w
}

// leave takes one out who waits no longer.
func (b *bucket[K]) leave(w *waiter, now time.Time) {
	b.waiting.Remove(w.place)
	b.serve(now)
}

// serve reserves a call for the first who waits, if that is not done.
func (b *bucket[K]) serve(now time.Time) {
	w := b.first()
	if w == nil || w.next != nil {
		return
	}
	w.next = b.tokens.ReserveN(now, 1)
	w.at = now.Add(w.next.DelayFrom(now))
	close(w.isFirst)
}

// giveBack gives the reserved call back, if there is one, also when its time has come.
func (w *waiter) giveBack(now time.Time) {
	if w.next == nil {
		return
	}
	if w.at.Before(now) {
		now = w.at
	}
	w.next.CancelAt(now)
}

// full reports whether the bucket is no different from that of a key that never came.
func (b *bucket[K]) full(now time.Time) bool {
	return b.waiting.Len() == 0 && b.tokens.TokensAt(now) >= float64(b.tokens.Burst())
}
