package rates

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limiterOf returns a limiter of a number of calls in a time.
func limiterOf[K comparable](calls int, per time.Duration) *Limiter[K] {
	return New[K](Limit{Of: "calls", PerSecond: float64(calls) / per.Seconds(), Burst: calls})
}

// exceeded asserts that an error says when the next call is.
func exceeded(t *testing.T, err error, after time.Duration) {
	t.Helper()
	require.Equal(t, &Error{"calls", after}, err)
	assert.EqualError(t, err, fmt.Sprintf("rates: too many calls: the next is in %v", after))
}

func TestTake(t *testing.T) {
	const tenth = 100 * time.Millisecond // from one call to the next
	tests := []struct {
		name   string
		before int           // calls taken
		pause  time.Duration // after them
		most   time.Duration
		within time.Duration // of the context, if there is a bound
		waits  time.Duration
		after  time.Duration // of the error, if there is one
	}{
		{name: "a full bucket"},
		{name: "the last call", before: 9},
		{name: "an empty bucket", before: 10, after: tenth},
		{name: "a negative wait", before: 10, most: -1, after: tenth},
		{name: "a call has come back", before: 10, pause: tenth},
		{name: "a call is about to come back", before: 10, pause: tenth - 10, after: 10},
		{name: "half a call has come back", before: 10, pause: tenth / 2, after: tenth / 2},
		{name: "a bucket holds no more than it does", before: 10, pause: time.Hour},
		{name: "the next is soon enough", before: 10, most: tenth, waits: tenth},
		{name: "the next is too late", before: 10, most: tenth - 1, after: tenth},
		{name: "long waits are allowed", before: 10, most: math.MaxInt64, waits: tenth},
		{name: "before the deadline", before: 10, most: time.Hour, within: tenth + 1, waits: tenth},
		{name: "at the deadline", before: 10, most: time.Hour, within: tenth, after: tenth},
		{name: "behind the deadline", before: 10, most: time.Hour, within: tenth / 2, after: tenth},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := limiterOf[string](10, time.Second)
				for range test.before {
					require.NoError(t, l.Take(t.Context(), "a", 0))
				}
				time.Sleep(test.pause)
				ctx := t.Context()
				if test.within > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, test.within)
					defer cancel()
				}
				start := time.Now()
				for range 2 { // a call that is refused takes nothing
					err := l.Take(ctx, "a", test.most)
					assert.Equal(t, test.waits, time.Since(start))
					if test.after == 0 {
						require.NoError(t, err)
						break
					}
					exceeded(t, err, test.after)
				}
				require.NoError(t, l.Take(t.Context(), "b", 0), "another key has its own calls")
			})
		})
	}
}

// TestBurstsAreWhole: after a pause in which the bucket refills there are exactly its calls.
func TestBurstsAreWhole(t *testing.T) {
	for _, calls := range []int{1, 3, 7, 1000} {
		synctest.Test(t, func(t *testing.T) {
			l := limiterOf[string](calls, time.Second)
			for range 3 {
				for range calls {
					require.NoError(t, l.Take(t.Context(), "a", 0))
				}
				require.Error(t, l.Take(t.Context(), "a", 0))
				time.Sleep(time.Second + time.Nanosecond)
			}
		})
	}
}

// queue lets calls of one key wait, and notes when each is over.
type queue struct {
	t       *testing.T
	limiter *Limiter[string]
	start   time.Time
	mu      sync.Mutex
	order   []int
	at      map[int]time.Duration
	errs    map[int]error
}

func newQueue(t *testing.T, calls int, per time.Duration) *queue {
	q := &queue{t: t, limiter: limiterOf[string](calls, per), start: time.Now(), at: map[int]time.Duration{}, errs: map[int]error{}}
	for range calls {
		require.NoError(t, q.limiter.Take(t.Context(), "a", 0))
	}
	return q
}

func (q *queue) wait(ctx context.Context, id int) {
	go func() {
		err := q.limiter.Take(ctx, "a", time.Hour)
		q.mu.Lock()
		defer q.mu.Unlock()
		q.order = append(q.order, id)
		q.at[id], q.errs[id] = time.Since(q.start), err
	}()
	synctest.Wait()
}

func (q *queue) served(id int, at time.Duration) {
	q.t.Helper()
	require.NoError(q.t, q.errs[id])
	assert.Equal(q.t, at, q.at[id], "call %d", id)
}

func TestThoseWhoWaitAreServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 2, 2*time.Second)
		for id := range 5 {
			q.wait(t.Context(), id)
		}
		exceeded(t, q.limiter.Take(t.Context(), "a", 6*time.Second-1), 6*time.Second)
		time.Sleep(2500 * time.Millisecond)
		exceeded(t, q.limiter.Take(t.Context(), "a", 0), 3500*time.Millisecond)
		q.wait(t.Context(), 5)
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Equal(t, []int{0, 1, 2, 3, 4, 5}, q.order)
		for id := range 6 {
			q.served(id, time.Duration(id+1)*time.Second)
		}
	})
}

// TestGivingUp: a caller that gives up gets no call and delays no other caller, and the last one gives its call back.
func TestGivingUp(t *testing.T) {
	for who := range 4 {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, 1, time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // long after its turn
			for id := range 4 {
				if id == who {
					q.wait(ctx, id)
				} else {
					q.wait(t.Context(), id)
				}
			}
			time.Sleep(time.Second / 2)
			cancel()
			require.Equal(t, context.Canceled, q.limiter.Take(ctx, "a", time.Hour), "which had ended before")
			time.Sleep(3400 * time.Millisecond)
			synctest.Wait()
			for id := range 4 {
				if id == who {
					require.ErrorIs(t, q.errs[id], context.Canceled)
					continue
				}
				require.NoError(t, q.errs[id])
				assert.LessOrEqual(t, q.at[id], time.Duration(id+1)*time.Second)
			}
			if who == 3 {
				require.NoError(t, q.limiter.Take(t.Context(), "a", 100*time.Millisecond))
			}
		})
	}
}
