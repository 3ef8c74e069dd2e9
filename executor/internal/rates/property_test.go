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
// and in all the time no more than the rate allows, and no fewer than that where there is demand, but
// for those that one in five gave up.
func TestWindows(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 3))
				calls, per := 1+random.IntN(20), time.Duration(1+random.IntN(1_000_000_000))
				began, span := takeAtRandom(t, calls, per, random)
				slices.Sort(began)
				for i := range began {
					if i >= 2*calls {
						// An instant that is a nanosecond away is the same to the arithmetic.
						require.Greater(t, began[i]-began[i-2*calls]+1, per, "call %d", i)
					}
				}
				allowed := float64(span)/float64(per)*float64(calls) + float64(calls)
				assert.LessOrEqual(t, float64(len(began)), allowed+1)
				assert.GreaterOrEqual(t, float64(len(began)), 0.8*(allowed-float64(calls))-1)
			})
		})
	}
}

// takeAtRandom lets more calls come than the rate allows, of which some give up, and returns
// when calls began, and in how long.
func takeAtRandom(t *testing.T, calls int, per time.Duration, random *rand.Rand) (began []time.Duration, span time.Duration) {
	l := New[int]("calls", calls, per)
	var mu sync.Mutex
	start := time.Now()
	every := per / time.Duration(calls)
	for range 3000 {
		most := time.Duration(random.Int64N(int64(per)*3 + 1))
		ctx, cancel := context.WithCancel(t.Context())
		if random.IntN(5) == 0 {
			time.AfterFunc(time.Duration(random.Int64N(int64(per)+1)), cancel)
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
	time.Sleep(10 * per)
	synctest.Wait()
	bucket, _ := l.buckets.Get(0)
	assert.GreaterOrEqual(t, bucket.Tokens(), float64(calls), "what was given back is there again")
	return slices.DeleteFunc(began, func(at time.Duration) bool { return at > span }), span
}

// TestKeysThatAreNotFullStay: looking for full buckets makes nobody's calls more.
func TestKeysThatAreNotFullStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New[int]("calls", 2, time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 2 {
			for key := range 5000 {
				require.NoError(t, l.Take(ctx, key, 0))
			}
		}
		go func() { _ = l.Take(ctx, 0, time.Hour) }()
		for key := range 5000 {
			require.Error(t, l.Take(ctx, key, 0))
		}
		time.Sleep(20 * time.Minute)
		for key := range 5000 {
			require.Error(t, l.Take(ctx, key, 0))
		}
		assert.Equal(t, 5000, l.buckets.Len())
		time.Sleep(2 * time.Hour)
		for key := range 10_000 {
			require.NoError(t, l.Take(ctx, -key, 0))
		}
		assert.LessOrEqual(t, l.buckets.Len(), 10_000, "the others have gone")
	})
}

// TestHammer takes calls from many goroutines, of which some give up.
func TestHammer(t *testing.T) {
	const calls, per = 50, 20 * time.Millisecond
	l := New[int]("calls", calls, per)
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
					assert.ErrorAs(t, err, new(*Error))
				}
				_ = l.Take(ctx, 1000+random.IntN(2000), 0) // others, which come and go
				cancel()
				runtime.Gosched()
			}
		})
	}
	group.Wait()
	allowed := float64(time.Since(start))/float64(per)*float64(calls) + float64(calls) + 1
	for key := range taken {
		assert.LessOrEqual(t, float64(taken[key].Load()), allowed)
		assert.NotZero(t, taken[key].Load())
	}
}
