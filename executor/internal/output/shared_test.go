package output_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor/internal/output"
	"github.com/caisson-run/caisson/internal/noerr"
)

// TestAttackManyStores: the texts that many sessions keep are bounded together. Without that, each of 40 sessions could
// keep 16 MiB. The control is a large bound.
func TestAttackManyStores(t *testing.T) {
	heap := func() int64 {
		for range 3 { // what earlier tests left is freed after their stores are noticed
			runtime.GC()
			time.Sleep(10 * time.Millisecond)
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for name, most := range map[string]int64{"guarded": 8 << 20, "control": 1 << 40} {
		t.Run(name, func(t *testing.T) {
			shared, before := output.NewShared(most), heap()
			var stores []*output.Store
			for range 40 {
				store := noerr.Get(shared.NewStore(1 << 20))(t)
				for i := range 4 {
					require.True(t, store.Keep(fmt.Sprint(i), strings.Repeat("a", 200<<10)))
				}
				stores = append(stores, store)
			}
			held := heap() - before
			if name == "control" {
				assert.Greater(t, held, int64(24<<20))
			} else {
				assert.Less(t, held, int64(12<<20))
			}
			assert.NoError(t, noerr.Error(stores[39].Page("3", 0, 10)), "the newest")
			runtime.KeepAlive(stores)
		})
	}
}

// TestSharedBound: a store that keeps little loses nothing to one that keeps much, and evicted results do not count.
func TestSharedBound(t *testing.T) {
	shared := output.NewShared(1 << 20)
	small := noerr.Get(shared.NewStore(1 << 20))(t)
	require.True(t, small.Keep("a", "text"))
	large := noerr.Get(shared.NewStore(2 << 20))(t)
	assert.False(t, large.Keep("a", strings.Repeat("a", 3<<19)), "more than the bound of all")
	for i := range 20 {
		require.True(t, large.Keep(fmt.Sprint(i), strings.Repeat("a", 200<<10)))
	}
	_, err := large.Page("0", 0, 0)
	require.ErrorIs(t, err, output.ErrUnknown)
	assert.ErrorContains(t, err, "evicted")
	noerr.Get(small.Page("a", 0, 0))(t)
	large = nil
	require.Eventually(t, func() bool { // until the collector has noticed
		runtime.GC()
		fits := small.Keep("b", strings.Repeat("a", 1<<20-1000))
		_, err := small.Page("a", 0, 0)
		return fits && err == nil
	}, 30*time.Second, 10*time.Millisecond)
}
