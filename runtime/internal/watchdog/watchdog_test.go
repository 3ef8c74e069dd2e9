package watchdog

import (
	"context"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/runtime/internal/engine"
)

// TestBusyMachineMakesNoRunaway: a guest whose thread gets no processor is not to blame, and neither is one that waits
// for the scheduler, nor a program that is started without a call. None may wait forever. The clock by itself proves
// nothing: a guest that is hours late since the process was suspended may be as healthy as any.
func TestBusyMachineMakesNoRunaway(t *testing.T) {
	w := New(Options{})
	now := time.Now()
	looks := mostWaits
	if !engine.MeasuresThreads {
		looks = mostLooks
	}
	for _, ctx := range []context.Context{t.Context(), nil} {
		g := &Guest{Ctx: ctx, Began: now.Add(-2 * time.Hour), Deadline: now.Add(-time.Hour)}
		for range looks - 1 {
			require.False(t, w.check(g, now, true))
		}
		assert.True(t, w.check(g, now, true))
	}
	require.Greater(t, mostWaits, mostLooks, "the control: by looks alone, it would have been one")
}

// TestAttackStarvedHostFunctions: clients keep so many goroutines busy that a host function waits for a processor, for
// longer than it may take. Its guest is not to blame. The control is a machine that is not busy.
func TestAttackStarvedHostFunctions(t *testing.T) {
	w := New(Options{})
	looks := func() (stuck bool) {
		g := &Guest{Ctx: t.Context()}
		require.Eventually(t, func() bool { return !w.waits.Load() }, 10*time.Second, time.Millisecond)
		for range 2 * mostLooks {
			stuck = g.staysInHost(w.goroutinesRun())
			time.Sleep(20 * time.Millisecond)
		}
		return stuck
	}
	assert.True(t, looks(), "the control")
	var busy sync.WaitGroup
	var ended atomic.Bool
	for range 100 * goruntime.GOMAXPROCS(0) {
		busy.Go(func() {
			for n := 0; !ended.Load(); n++ { // it uses a processor
				_ = n
			}
		})
	}
	assert.False(t, looks())
	ended.Store(true)
	busy.Wait()
}

// TestThreadTimeOfGuests: only the processor time counts that the thread used while the guest's own code ran on it
// without leaving it.
func TestThreadTimeOfGuests(t *testing.T) {
	g := &Guest{}
	used := map[int32]time.Duration{7: 3 * time.Second, 8: time.Minute}
	timeOf := func(thread int32) (time.Duration, bool) { used, known := used[thread]; return used, known }
	look := func(thread int32) time.Duration { g.looks++; return g.ownTime(thread, timeOf) }
	assert.Zero(t, look(7))
	used[7] += 100 * time.Millisecond
	assert.Equal(t, 100*time.Millisecond, look(7))
	used[7] += time.Second
	assert.Equal(t, 1100*time.Millisecond, look(7))
	assert.Zero(t, look(8), "another thread")
	used[7] += time.Second
	assert.Zero(t, look(7))
	assert.Zero(t, look(9), "one that is gone")
	assert.Zero(t, look(0), "not in its own code")
	assert.Zero(t, look(7), "in it again")
	g.looks = 0
	used[7] += time.Second
	assert.Zero(t, look(7), "it was in time since")
}

// TestWatchdogStopsAfterTheLastGuest: a guest that is about to leave is waited for.
func TestWatchdogStopsAfterTheLastGuest(t *testing.T) {
	w := New(Options{})
	g := &Guest{Ctx: t.Context(), Began: time.Now(), Deadline: time.Now().Add(time.Hour)}
	w.Enter(g)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		w.Stop()
	}()
	select {
	case <-stopped:
		t.Error("a guest runs")
	case <-time.After(50 * time.Millisecond):
	}
	w.Leave(g)
	<-stopped
}
