package runtime

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// inside is how many calls run.
func inside(g *gate) int { return int(g.running.Load()) }

// TestBusy: one call more than may run is told so at once, and there is room again later.
func TestBusy(t *testing.T) {
	r := newRuntime(t, Options{Running: 1})
	guest := load(t, r, manifest(t, probe, "limits: {timeout: 1500ms}"), manifests.Grants{})
	require.NoError(t, guest.Prepare(t.Context()))
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		_, err := invoke(t, guest, `{"do":"spin"}`)
		assert.ErrorIs(t, err, tool.Deadline)
	})
	require.Eventually(t, func() bool { return inside(r.gate) == 1 }, 5*time.Second, time.Millisecond)
	start := time.Now()
	outcome, err := invoke(t, guest, `{"do":"echo"}`)
	assert.ErrorIs(t, err, tool.Busy)
	assert.Equal(t, "busy: 1 calls are running", outcome.Result.Error)
	assert.Less(t, time.Since(start), 200*time.Millisecond)
	group.Wait()
	_, err = invoke(t, guest, `{"do":"echo"}`)
	assert.NoError(t, err)
	_, err = New(t.Context(), Options{Running: -1})
	assert.ErrorIs(t, err, errNegativeLimit)
}

// TestGateHammer: never more than the limit inside.
func TestGateHammer(t *testing.T) {
	g := &gate{most: 3}
	var within, entered atomic.Int64
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for range 500 {
				if g.enter() != nil {
					continue
				}
				assert.LessOrEqual(t, within.Add(1), int64(3))
				entered.Add(1)
				within.Add(-1)
				g.leave()
			}
		})
	}
	group.Wait()
	assert.Positive(t, entered.Load())
	assert.Zero(t, inside(g))
}
