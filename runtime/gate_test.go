package runtime

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

func TestBusy(t *testing.T) {
	r := newRuntime(t, Options{Concurrency: Concurrency{Running: 1, Waiting: 1, Wait: 300 * time.Millisecond}})
	guest := load(t, r, manifest(t, probe, "limits: {timeout: 1500ms}"), manifests.Grants{})
	require.NoError(t, guest.Prepare(t.Context()))
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		_, err := invoke(t, guest, `{"do":"spin"}`)
		assert.ErrorIs(t, err, tool.Deadline)
	})
	require.Eventually(t, func() bool { return inside(r.gate) == 1 }, 5*time.Second, time.Millisecond)
	group.Go(func() {
		outcome, err := invoke(t, guest, `{"do":"echo"}`)
		assert.ErrorIs(t, err, tool.Busy, "it has waited long enough")
		assert.Contains(t, outcome.Result.Error, "busy")
	})
	require.Eventually(t, func() bool { return outside(r.gate) == 1 }, 5*time.Second, time.Millisecond)
	start := time.Now()
	_, err := invoke(t, guest, `{"do":"echo"}`)
	assert.ErrorIs(t, err, tool.Busy, "nobody more may wait")
	assert.Less(t, time.Since(start), 200*time.Millisecond, "it is told at once")
	group.Wait()
	_, err = invoke(t, guest, `{"do":"echo"}`)
	assert.NoError(t, err, "there is room again")
}

// inside is how many calls run, and outside how many wait.
func inside(g *gate) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running
}

func outside(g *gate) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting.Len()
}

// TestGateLetsNobodyStarve: callers that come again at once do not keep one that waits out.
func TestGateLetsNobodyStarve(t *testing.T) {
	g := newGate(Concurrency{Running: 2, Waiting: 1000, Wait: time.Minute})
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for ctx.Err() == nil {
				if g.enter(ctx) == nil {
					g.leave()
				}
			}
		})
	}
	for range 50 {
		require.NoError(t, g.enter(t.Context()))
		g.leave()
	}
	cancel()
	group.Wait()
	assert.Zero(t, inside(g))
	assert.Zero(t, outside(g))
}

// TestGateHammer: never more than the limit inside, and all who wait get in.
func TestGateHammer(t *testing.T) {
	g := newGate(Concurrency{Running: 3, Waiting: 1000, Wait: time.Minute})
	var within, most, entered atomic.Int64
	var group sync.WaitGroup
	for range 64 {
		group.Go(func() {
			for n := range 50 {
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if n%5 == 0 { // some give up
					ctx, cancel = context.WithTimeout(ctx, time.Duration(n)*time.Microsecond)
				}
				err := g.enter(ctx)
				cancel()
				if n%5 == 0 && err != nil {
					entered.Add(1)
					continue
				}
				if !assert.NoError(t, err) {
					return
				}
				now := within.Add(1)
				for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
				}
				entered.Add(1)
				within.Add(-1)
				g.leave()
			}
		})
	}
	group.Wait()
	assert.EqualValues(t, 64*50, entered.Load())
	assert.LessOrEqual(t, most.Load(), int64(3))
	assert.Zero(t, outside(g))
	assert.Zero(t, inside(g))
}

func TestGateFollowsTheContext(t *testing.T) {
	g := newGate(Concurrency{Running: 1, Waiting: 1, Wait: time.Minute})
	require.NoError(t, g.enter(t.Context()))
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("nobody wants it any more")
	time.AfterFunc(20*time.Millisecond, func() { cancel(why) })
	err := g.enter(ctx)
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, err, why)
	g.leave()
	assert.NoError(t, g.enter(t.Context()))
	_, err = Concurrency{Running: -1}.complete()
	assert.ErrorIs(t, err, errNegativeLimit)
}
