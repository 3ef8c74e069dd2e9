package claims_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/caisson-run/caisson/executor/internal/claims"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTake: a key is taken once until it expires or is given back.
func TestTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c claims.Claims
		until := time.Now().Add(time.Hour)
		c.Release("a")
		assert.True(t, c.Take("a", until))
		assert.False(t, c.Take("a", until))
		assert.True(t, c.Take("b", until))
		c.Release("a")
		assert.True(t, c.Take("a", until))
		time.Sleep(time.Hour - time.Nanosecond)
		assert.False(t, c.Take("a", until))
		time.Sleep(time.Nanosecond)
		assert.True(t, c.Take("a", time.Now().Add(time.Hour)))
	})
}

// TestTakeAtOnce: of many that take a key at a time, one gets it.
func TestTakeAtOnce(t *testing.T) {
	var c claims.Claims
	var got atomic.Int64
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for i := range 100 {
				if c.Take(fmt.Sprint(i), time.Now().Add(time.Hour)) {
					got.Add(1)
				}
			}
		})
	}
	all.Wait()
	assert.EqualValues(t, 100, got.Load())
}

// TestExpiredGo: keys that have expired do not pile up. Control: those that have not stay.
func TestExpiredGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, lasts := range []time.Duration{time.Minute, 24 * time.Hour} {
			var c claims.Claims
			for i := range 20_000 {
				c.Take(fmt.Sprint(i), time.Now().Add(lasts))
				time.Sleep(100 * time.Millisecond) // 600 in a minute
			}
			if lasts == time.Minute {
				assert.LessOrEqual(t, c.Len(), 2048)
				continue
			}
			assert.Equal(t, 20_000, c.Len())
		}
	})
}
