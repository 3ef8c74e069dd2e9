package rates

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newLimiter(tb testing.TB, calls int, per time.Duration) *Limiter[string] {
	tb.Helper()
	l, err := New[string](Rate{calls, per})
	require.NoError(tb, err)
	return l
}

// exceeded asserts that an error says when the next call is.
func exceeded(t *testing.T, err error, after time.Duration) {
	t.Helper()
	var failure *Error
	require.ErrorAs(t, err, &failure)
	require.ErrorIs(t, err, ErrExceeded)
	assert.Equal(t, Error{Op: "take", Kind: ErrExceeded, After: after}, *failure)
	assert.EqualError(t, err, fmt.Sprintf("rates: take: rate exceeded: the next is in %v", after))
}

func TestInvalidRates(t *testing.T) {
	for _, rate := range []Rate{{}, {0, time.Second}, {1, 0}, {-1, time.Second}, {1, -time.Second}, {1, maxPer + 1}} {
		l, err := New[int](rate)
		require.Nil(t, l)
		require.ErrorIs(t, err, ErrInvalidRate)
		var failure *Error
		require.ErrorAs(t, err, &failure)
		assert.Equal(t, "new", failure.Op)
		assert.EqualError(t, err, fmt.Sprintf("rates: new: invalid rate: %d calls in %v", rate.Calls, rate.Per))
	}
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
				l := newLimiter(t, 10, time.Second)
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
			l := newLimiter(t, calls, time.Second)
			for range 3 {
				for range calls {
					require.NoError(t, l.Take(t.Context(), "a", 0))
				}
				require.ErrorIs(t, l.Take(t.Context(), "a", 0), ErrExceeded)
				time.Sleep(time.Second + time.Nanosecond)
			}
		})
	}
}

func TestVeryLongTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 1, maxPer)
		exceeded(t, q.limiter.Take(t.Context(), "a", time.Hour), maxPer)
		ctx, cancel := context.WithCancel(t.Context())
		for range 3 {
			go func() { assert.ErrorIs(t, q.limiter.Take(ctx, "a", math.MaxInt64), context.Canceled) }()
		}
		synctest.Wait()
		exceeded(t, q.limiter.Take(t.Context(), "a", time.Hour), math.MaxInt64)
		cancel()
	})
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
	q := &queue{t: t, limiter: newLimiter(t, calls, per), start: time.Now(), at: map[int]time.Duration{}, errs: map[int]error{}}
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

// TestGivingUp: whoever gives up, those behind come earlier, and nobody comes later.
func TestGivingUp(t *testing.T) {
	tests := []struct {
		name string
		who  int
		at   time.Duration
		want []time.Duration // of the calls 0 to 3; one who gives up ends when it does
	}{
		{"the first at once", 0, 0, []time.Duration{0, 1000, 2000, 3000}},
		{"the first later", 0, 500, []time.Duration{500, 1000, 2000, 3000}},
		{"the second", 1, 500, []time.Duration{1000, 500, 2000, 3000}},
		{"the second when it is the first", 1, 1500, []time.Duration{1000, 1500, 2000, 3000}},
		{"the third", 2, 1500, []time.Duration{1000, 2000, 1500, 3000}},
		{"the last", 3, 2500, []time.Duration{1000, 2000, 3000, 2500}},
		{"the last when it is the first", 3, 3500, []time.Duration{1000, 2000, 3000, 3500}},
	}
	reason := errors.New("the user left")
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, 1, time.Second)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				for id := range 4 {
					if id == test.who {
						q.wait(ctx, id)
					} else {
						q.wait(t.Context(), id)
					}
				}
				time.Sleep(test.at * time.Millisecond)
				cancel(reason)
				time.Sleep(4*time.Second - test.at*time.Millisecond - 1)
				synctest.Wait()
				for id, at := range test.want {
					assert.Equal(t, at*time.Millisecond, q.at[id], "call %d", id)
					if id == test.who {
						require.ErrorIs(t, q.errs[id], context.Canceled)
						require.ErrorIs(t, q.errs[id], reason)
					} else {
						require.NoError(t, q.errs[id])
					}
				}
				// A bucket of one is full now, whoever gave up.
				require.NoError(t, q.limiter.Take(t.Context(), "a", time.Nanosecond))
				time.Sleep(time.Second + 1)
				require.True(t, q.limiter.buckets["a"].full(time.Now()))
			})
		})
	}
}

// TestGivingUpWhenTheTimeHasCome: also a call whose time has come is given back, to the next
// who waits.
func TestGivingUpWhenTheTimeHasCome(t *testing.T) {
	l := newLimiter(t, 1, time.Second)
	now := time.Now()
	b := l.bucket("a", now)
	require.True(t, b.tokens.AllowN(now, 1))
	first, second := b.join(now), b.join(now)
	late := first.at.Add(time.Millisecond)
	first.giveBack(late)
	b.leave(first, late)
	require.NotNil(t, second.next)
	assert.Equal(t, late, second.at)
	b.leave(second, late)
	assert.False(t, b.full(first.at.Add(time.Second-10)))
	assert.True(t, b.full(late.Add(time.Second)))
}

func TestContextsThatHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, 1, time.Second)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("too slow"))
		defer cancel()
		time.Sleep(time.Second)
		synctest.Wait()
		err := l.Take(ctx, "a", time.Hour)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualError(t, err, "context deadline exceeded: too slow")
		ctx, cancel = context.WithCancel(t.Context())
		cancel()
		require.Equal(t, context.Canceled, l.Take(ctx, "a", time.Hour))
		require.NoError(t, l.Take(t.Context(), "a", 0), "nothing was taken")
	})
}

// TestOrderOfMany: as many wait as can, and some give up.
func TestOrderOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 1, time.Millisecond)
		var stay []int
		for id := range 500 {
			if id%3 > 0 {
				stay = append(stay, id)
				q.wait(t.Context(), id)
				continue
			}
			ctx, cancel := context.WithCancel(t.Context())
			q.wait(ctx, id)
			time.AfterFunc(time.Duration(id%7)*100*time.Microsecond, cancel)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		served := slices.DeleteFunc(q.order, func(id int) bool { return q.errs[id] != nil })
		require.True(t, slices.IsSorted(served))
		require.Subset(t, served, stay)
	})
}
