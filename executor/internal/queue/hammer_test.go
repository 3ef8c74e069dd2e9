package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/caisson-run/caisson/internal/noerr"
)

// TestHammer lets many goroutines come, leave and give up at once.
func TestHammer(t *testing.T) {
	limits := Limits{Running: 7, PerTenant: 4, PerTool: 2, Waiting: 12, Wait: 20 * time.Millisecond}
	q := New(limits)
	var all atomic.Int64
	var tenants, tools [6]atomic.Int64 // of three tenants, and two tools in each
	var ran, full, waited, ended atomic.Int64
	hold := func(most int, count *atomic.Int64) func() {
		assert.LessOrEqual(t, count.Add(1), int64(most))
		return func() { count.Add(-1) }
	}
	one := func(random *rand.Rand) {
		tenant, tool := random.IntN(3), random.IntN(2)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if random.IntN(4) == 0 {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(random.IntN(500))*time.Microsecond)
			defer cancel()
		}
		turn, err := q.Enter(ctx, Call{fmt.Sprint(tenant), fmt.Sprint(random.IntN(3)), fmt.Sprint(tool)})
		switch {
		case errors.Is(err, ErrFull):
			full.Add(1)
		case errors.Is(err, ErrWaited):
			waited.Add(1)
		case err != nil:
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			ended.Add(1)
		default:
			ran.Add(1)
			releases := []func(){hold(limits.Running, &all), hold(limits.PerTenant, &tenants[tenant]), hold(limits.PerTool, &tools[2*tenant+tool])}
			for range random.IntN(20) {
				runtime.Gosched()
			}
			for _, release := range releases {
				release()
			}
			turn.Leave()
			if random.IntN(8) == 0 {
				turn.Leave()
			}
		}
	}
	var group sync.WaitGroup
	for seed := range uint64(64) {
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, 2))
			for range 400 {
				one(random)
			}
		})
	}
	group.Wait()
	empty(t, q)
	assert.NotZero(t, ran.Load())
	assert.NotZero(t, full.Load())
	assert.Equal(t, int64(64*400), ran.Load()+full.Load()+waited.Load()+ended.Load())
}

// TestNothingIsKept: the names of a hundred thousand callers are removed with them.
func TestNothingIsKept(t *testing.T) {
	q := New(Limits{Running: 1 << 20, PerTenant: 1 << 20, PerTool: 1 << 20})
	fill := func() {
		var turns []*Place
		for i := range 100_000 {
			turn := noerr.Get(q.Enter(t.Context(), Call{fmt.Sprint("tenant", i/10), fmt.Sprint("session", i), fmt.Sprint("tool", i/5)}))(t)
			turns = append(turns, turn)
		}
		for i := range 1000 { // and a tenant with many sessions
			turn := noerr.Get(q.Enter(t.Context(), Call{"tenant", fmt.Sprint(i), fmt.Sprint(i)}))(t)
			turns = append(turns, turn)
		}
		for _, turn := range turns {
			turn.Leave()
		}
	}
	before := heapBytes()
	fill()
	empty(t, q)
	assert.Less(t, heapBytes(), before+256<<10)
	runtime.KeepAlive(q)
}

func heapBytes() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestNoWaitAllocatesLittle: a call that needs not wait costs its place and little more.
func TestNoWaitAllocatesLittle(t *testing.T) {
	q := New(Limits{Running: 4, PerTenant: 4, PerTool: 4})
	allocated := testing.AllocsPerRun(1000, func() {
		place, err := q.Enter(t.Context(), Call{"tenant", "session", "tool"})
		if err != nil {
			t.Fatal(err)
		}
		place.Leave()
	})
	assert.LessOrEqual(t, allocated, 2.0, "or some more under the race detector, where pools forget")
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
