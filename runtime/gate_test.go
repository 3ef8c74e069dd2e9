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

	"github.com/caisson-run/caisson/tool"
)

func TestBusy(t *testing.T) {
	r := newRuntime(t, Options{Concurrency: Concurrency{Running: 1, Waiting: 1, Wait: 300 * time.Millisecond}})
	guest := load(t, r, manifest(t, probe, "limits: {timeout: 1500ms}"), Grants{})
	require.NoError(t, guest.Prepare(t.Context()))
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		_, err := invoke(t, guest, `{"do":"spin"}`)
		assert.ErrorIs(t, err, tool.Deadline)
	})
	require.Eventually(t, func() bool { return len(r.gate.running) == 1 }, 5*time.Second, time.Millisecond)
	group.Go(func() {
		outcome, err := invoke(t, guest, `{"do":"echo"}`)
		assert.ErrorIs(t, err, tool.Busy, "it has waited long enough")
		assert.Contains(t, outcome.Result.Error, "busy")
	})
	require.Eventually(t, func() bool { return r.gate.waiting.Load() == 1 }, 5*time.Second, time.Millisecond)
	start := time.Now()
	_, err := invoke(t, guest, `{"do":"echo"}`)
	assert.ErrorIs(t, err, tool.Busy, "nobody more may wait")
	assert.Less(t, time.Since(start), 200*time.Millisecond, "it is told at once")
	group.Wait()
	_, err = invoke(t, guest, `{"do":"echo"}`)
	assert.NoError(t, err, "there is room again")
}

// TestGateHammer: never more than the limit inside, and all who wait get in.
func TestGateHammer(t *testing.T) {
	g := newGate(Concurrency{Running: 3, Waiting: 1000, Wait: time.Minute})
	var inside, most, entered atomic.Int64
	var group sync.WaitGroup
	for range 64 {
		group.Go(func() {
			for range 50 {
				if !assert.NoError(t, g.enter(t.Context())) {
					return
				}
				now := inside.Add(1)
				for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
				}
				entered.Add(1)
				inside.Add(-1)
				g.leave()
			}
		})
	}
	group.Wait()
	assert.EqualValues(t, 64*50, entered.Load())
	assert.LessOrEqual(t, most.Load(), int64(3))
	assert.Zero(t, g.waiting.Load())
	assert.Empty(t, g.running)
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
