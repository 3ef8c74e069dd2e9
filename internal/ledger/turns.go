package ledger

import (
	"cmp"
	"sync"
	"time"
)

// Bounds of a group of entries that are committed together. A group whose commit is likely to take longer than
// groupTime, such as in a distant database, is smaller: entries of other tenants wait for it.
const (
	minGroup      = 8
	maxGroup      = 256
	maxGroupBytes = 1 << 20
	groupTime     = time.Second / 4
)

// turns are the entries that wait to be committed. Tenants take turns, so that one with many or long entries delays
// those of others by a group at most.
type turns struct {
	mu     sync.Mutex
	some   sync.Cond // signaled when next need not wait any longer
	of     map[string][]*waiting
	order  []string // the tenants in of, in the order of their turns
	count  int
	alone  int // how many of them are for callers who do not wait
	wanted int // how many next waits for
	most   int // how many next returns; 0 for maxGroup
	last   int // the size of the last group
	closed bool
}

// add adds an entry, and returns false once the turns are closed.
func (q *turns) add(w *waiting) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.count++
	if w.alone {
		q.alone++
	}
	tenant := w.entry.Tenant
	if len(q.of[tenant]) == 0 {
		q.order = append(q.order, tenant)
	}
	q.of[tenant] = append(q.of[tenant], w)
	if isFirst := !w.alone && q.count-1 == q.alone; isFirst || q.count == 1 || q.count >= q.wanted {
		q.some.Signal()
	}
	return true
}

// maxAlone bounds the entries whose callers do not wait.
const maxAlone = 4096

// hasRoom reports whether one more caller need not wait.
func (q *turns) hasRoom() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.alone < maxAlone
}

// A commit of many entries costs little more than one of a single entry, so waiting for a larger group saves processor
// time. Callers whose entries were committed together tend to add their next ones together.
const (
	gatherTime = 5 * time.Millisecond  // the longest wait for as many entries as the group before had
	aloneTime  = 20 * time.Millisecond // the longest wait for more entries whose callers do not wait
)

// gather waits until there are entries, and for more if they are likely to come. The caller must hold q.mu.
func (q *turns) gather() {
	var began time.Time
	for !q.closed {
		most := gatherTime
		if q.wanted = max(q.last, 1); q.count == q.alone {
			q.wanted, most = maxGroup, aloneTime
		}
		if q.count >= q.wanted {
			return
		}
		if q.count == 0 {
			q.some.Wait()
			continue
		}
		if began.IsZero() {
			began = time.Now()
		}
		left := most - time.Since(began)
		if left <= 0 {
			return
		}
		over := time.AfterFunc(left, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.some.Signal()
		})
		q.some.Wait()
		over.Stop()
	}
}

// next waits for entries, and returns a group of them: nil once the turns are closed and there are none.
func (q *turns) next() (group []*waiting, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.gather()
	for len(q.order) > 0 && len(group) < cmp.Or(q.most, maxGroup) && bytes < maxGroupBytes {
		tenant := q.order[0]
		first, rest := q.of[tenant][0], q.of[tenant][1:]
		if q.order = q.order[1:]; len(rest) > 0 {
			q.of[tenant] = rest
			q.order = append(q.order, tenant)
		} else {
			delete(q.of, tenant)
		}
		q.count--
		if first.alone {
			q.alone--
		}
		group, bytes = append(group, first), bytes+first.size()
	}
	q.last = len(group)
	return group, bytes
}

// took notes how long it took to commit a group.
func (q *turns) took(entries int, took time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.most = min(max(int(groupTime*time.Duration(entries)/max(took, 1)), minGroup), maxGroup)
}

// close has next return what is left, and then nothing.
func (q *turns) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.some.Broadcast()
}
