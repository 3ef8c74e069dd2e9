package engine

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
)

// TestAbandonedRun: a guest that comes back although nobody waits for it reaches nothing of the
// host's any more, and nobody gets its instance.
func TestAbandonedRun(t *testing.T) {
	for _, abandoned := range []bool{true, false} {
		var w Watched
		calls := 0
		e := newEngine(t, Options{}, func(context.Context, hostfuncs.Memory, []uint64) error {
			calls++
			assert.Equal(t, "test.host", w.Function())
			if abandoned {
				w.Abandon()
			}
			return nil
		})
		module := compile(t, e, program{memory: 1, importing: true, body: []byte{0x10, 0, 0x10, 0}})
		run := plain
		run.Watched = &w
		_, err := module.Run(t.Context(), run)
		assert.Empty(t, w.Function())
		e.idle.mu.Lock()
		idle := len(e.idle.shelves)
		e.idle.mu.Unlock()
		if abandoned {
			require.ErrorIs(t, err, errAbandoned)
			assert.Equal(t, 1, calls)
			assert.Zero(t, idle)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, 2, calls)
		assert.Equal(t, 1, idle)
	}
}
