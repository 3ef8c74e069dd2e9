package native

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// maxOverdue is the maximum number of functions of one tool that may run on after their calls have ended. Each keeps a
// goroutine and its memory.
const maxOverdue = 16

// overdueCalls counts calls that have ended and whose function has not returned. The zero value counts none. It is
// safe for concurrent use.
type overdueCalls struct {
	mu    sync.Mutex
	count int
	since time.Time     // when the first of them ended
	none  chan struct{} // closed when there are none; nil before the first
}

func (l *overdueCalls) add() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count == 0 {
		l.since, l.none = time.Now(), make(chan struct{})
	}
	l.count++
}

func (l *overdueCalls) remove() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count--; l.count == 0 {
		close(l.none)
	}
}

// Unavailable returns why the tool cannot be used now: too many of its calls have not returned.
func (t *function) Unavailable() string {
	l := &t.overdue
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count < maxOverdue {
		return ""
	}
	return fmt.Sprintf("%d of its calls have not returned, the first since %s", l.count,
		l.since.UTC().Format(time.RFC3339))
}

// Close waits until the functions of all calls have returned. If ctx ends first, the error says how many have not:
// nothing can stop them.
func (t *function) Close(ctx context.Context) error {
	l := &t.overdue
	l.mu.Lock()
	count, none := l.count, l.none
	l.mu.Unlock()
	if count == 0 {
		return nil
	}
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d calls have not returned: %w", count, ctx.Err())
	}
}
