package rates

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestKeysThatAreNotFullStay: looking for full buckets gives no key more calls.
func TestKeysThatAreNotFullStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiterOf[int](2, time.Hour)
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
	l := limiterOf[int](calls, per)
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
