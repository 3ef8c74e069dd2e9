package ledger

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestGroupsGather: a single caller is not delayed. After a group of several, the next waits for as many, for a short
// time. Entries whose callers do not wait gather for longer, unless the caller of another does.
func TestGroupsGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &turns{of: map[string][]*waiting{}}
		q.some.L = &q.mu
		add := func(entries int, alone bool) {
			for range entries {
				assert.True(t, q.add(&waiting{entry: &Entry{Tenant: "acme"}, alone: alone}))
			}
		}
		next := func(want int, after time.Duration) {
			t.Helper()
			began := time.Now()
			group, _ := q.next()
			assert.Len(t, group, want)
			assert.Equal(t, after, time.Since(began))
		}
		later := func(wait time.Duration, entries int, alone bool) {
			go func() {
				time.Sleep(wait)
				add(entries, alone)
			}()
		}
		for range 3 {
			add(1, false)
			next(1, 0)
		}
		add(3, false)
		next(3, 0)
		add(2, false)
		next(2, gatherTime)
		add(1, false)
		later(time.Millisecond, 1, false)
		next(2, time.Millisecond)
		later(time.Second, 1, false)
		next(1, time.Second+gatherTime)

		add(5, true)
		next(5, aloneTime)
		add(5, true)
		later(time.Millisecond, 1, false)
		next(6, time.Millisecond)
		add(maxGroup+1, true)
		next(maxGroup, 0)

		add(1, false) // beside the one that is left
		q.close()
		next(2, 0)
		next(0, 0)
		assert.False(t, q.add(&waiting{entry: &Entry{}}))
	})
}

// TestGroupsInADistantDatabase: groups whose commits take long are smaller, so that others do not wait for many entries
// of one tenant. Those that take little time grow again.
func TestGroupsInADistantDatabase(t *testing.T) {
	q := &turns{of: map[string][]*waiting{}}
	q.some.L = &q.mu
	for range 2000 {
		require.True(t, q.add(&waiting{entry: &Entry{Tenant: "evil"}}))
	}
	for _, test := range []struct {
		took time.Duration // of each entry in the group before
		want int
	}{{0, maxGroup}, {25 * time.Millisecond, 10}, {time.Second, minGroup}, {2 * time.Millisecond, 125}, {time.Microsecond, maxGroup}} {
		if test.took > 0 {
			q.took(10, 10*test.took)
		}
		group, _ := q.next()
		assert.Len(t, group, test.want)
	}
}

// TestAttackLongAnswersThatWait: long answers to keys cannot be written, such as on a full disk. Those beyond a bound
// are not kept in memory, but their keys are given up. The control is what fits.
func TestAttackLongAnswersThatWait(t *testing.T) {
	l := &Ledger{}
	h := &Holder{ledger: l, key: Key{Tenant: "evil"}}
	var lost late
	const size = maxLateBytes / 4
	for range 10 {
		lost.add(h.answering(make([]byte, size)), errors.New("full"))
	}
	all := lost.take()
	require.Len(t, all, 10)
	for i, w := range all {
		assert.Equal(t, i < 3, w.size() > size, "%d", i)
	}
}
