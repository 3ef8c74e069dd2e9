package rates

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWindows: whatever callers do, in no window of Per begin more than twice as many calls,
// and in all the time no more than the rate allows, and no fewer where there is demand.
func TestWindows(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 3))
				rate := Rate{1 + random.IntN(20), time.Duration(1 + random.IntN(1_000_000_000))}
				began, span := takeAtRandom(t, rate, random)
				slices.Sort(began)
				for i := range began {
					if i >= 2*rate.Calls {
						// An instant that is a nanosecond away is the same to the arithmetic.
						require.Greater(t, began[i]-began[i-2*rate.Calls]+1, rate.Per, "call %d", i)
					}
				}
				allowed := float64(span)/float64(rate.Per)*float64(rate.Calls) + float64(rate.Calls)
				assert.LessOrEqual(t, float64(len(began)), allowed+1)
				assert.GreaterOrEqual(t, float64(len(began)), 0.95*(allowed-float64(rate.Calls))-1)
			})
		})
	}
}

// takeAtRandom lets more calls come than the rate allows, of which some give up, and returns
// when calls began, and in how long.
func takeAtRandom(t *testing.T, rate Rate, random *rand.Rand) (began []time.Duration, span time.Duration) {
	l, err := New[int](rate)
	require.NoError(t, err)
	var mu sync.Mutex
	start := time.Now()
	every := rate.Per / time.Duration(rate.Calls)
	for range 3000 {
		most := time.Duration(random.Int64N(int64(rate.Per)*3 + 1))
		ctx, cancel := context.WithCancel(t.Context())
		if random.IntN(5) == 0 {
			time.AfterFunc(time.Duration(random.Int64N(int64(rate.Per)+1)), cancel)
		}
		go func() {
			defer cancel()
			if l.Take(ctx, 0, most) == nil {
				mu.Lock()
				defer mu.Unlock()
				began = append(began, time.Since(start))
			}
		}()
		if random.IntN(3) == 0 {
			time.Sleep(time.Duration(random.Int64N(int64(every) + 1)))
		}
	}
	synctest.Wait()
	span = time.Since(start)
	time.Sleep(10 * rate.Per)
	synctest.Wait()
	assert.Zero(t, l.buckets[0].waiting.Len())
	assert.True(t, l.buckets[0].full(time.Now()), "what was given back is there again")
	return slices.DeleteFunc(began, func(at time.Duration) bool { return at > span }), span
}

// TestManyKeys: a million keys over time need no more memory than those who come in the time
// in which a call comes back, twice.
func TestManyKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New[int](Rate{10, time.Second})
		require.NoError(t, err)
		const together, back = 100, 10_000 // keys in a millisecond, and in a tenth of a second
		most := 0
		for key := range 1_000_000 {
			if err := l.Take(t.Context(), key, 0); err != nil {
				t.Fatal(err)
			}
			if key%together == 0 {
				time.Sleep(time.Millisecond)
			}
			most = max(most, len(l.buckets))
		}
		assert.Greater(t, most, back-together)
		assert.Less(t, most, 2*back+few)
		assertRing(t, l)
		time.Sleep(time.Second)
		for range rarely * len(l.buckets) {
			_ = l.Take(t.Context(), 0, 0)
		}
		assert.LessOrEqual(t, len(l.buckets), few, "one key alone makes all others go")
		assert.Less(t, cap(l.ring), 4*few)
		assertRing(t, l)
	})
}

// TestKeysThatAreNotFullStay: looking for full buckets makes nobody's calls more.
func TestKeysThatAreNotFullStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New[int](Rate{2, time.Hour})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 2 {
			for key := range 5000 {
				require.NoError(t, l.Take(ctx, key, 0))
			}
		}
		go func() { _ = l.Take(ctx, 0, time.Hour) }()
		for key := range 5000 {
			require.ErrorIs(t, l.Take(ctx, key, 0), ErrExceeded)
		}
		time.Sleep(20 * time.Minute)
		for key := range 5000 {
			require.ErrorIs(t, l.Take(ctx, key, 0), ErrExceeded)
		}
		assert.Len(t, l.buckets, 5000)
		assertRing(t, l)
	})
}

func assertRing[K comparable](t *testing.T, l *Limiter[K]) {
	t.Helper()
	require.Len(t, l.ring, len(l.buckets))
	for _, b := range l.ring {
		if l.buckets[b.key] != b {
			t.Fatalf("the bucket of %v is not that of the map", b.key)
		}
	}
}

// TestHammer takes calls from many goroutines, of which some give up.
func TestHammer(t *testing.T) {
	rate := Rate{50, 20 * time.Millisecond}
	l, err := New[int](rate)
	require.NoError(t, err)
	var taken [4]atomic.Int64
	var group sync.WaitGroup
	start := time.Now()
	for seed := range uint64(32) {
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, 4))
			for range 200 {
				key := random.IntN(len(taken))
				ctx, cancel := context.WithCancel(t.Context())
				if random.IntN(4) == 0 {
					time.AfterFunc(time.Duration(random.IntN(1000))*time.Microsecond, cancel)
				}
				err := l.Take(ctx, key, time.Duration(random.IntN(5000))*time.Microsecond)
				switch {
				case err == nil:
					taken[key].Add(1)
				case ctx.Err() == nil:
					assert.ErrorIs(t, err, ErrExceeded)
				}
				_ = l.Take(ctx, 1000+random.IntN(2000), 0) // others, which come and go
				cancel()
				runtime.Gosched()
			}
		})
	}
	group.Wait()
	allowed := float64(time.Since(start))/float64(rate.Per)*float64(rate.Calls) + float64(rate.Calls) + 1
	for key := range taken {
		assert.LessOrEqual(t, float64(taken[key].Load()), allowed)
		assert.NotZero(t, taken[key].Load())
	}
	assertRing(t, l)
}
