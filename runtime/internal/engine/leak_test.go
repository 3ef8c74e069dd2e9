package engine

import (
	"context"
	"os"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/testsize"
)

// TestKillsLeaveNothing: a thousand guests that had to be stopped and a thousand that trapped leak no goroutine,
// descriptor or mapping.
func TestKillsLeaveNothing(t *testing.T) {
	e := newEngine(t, Options{}, nil)
	spinning := compile(t, e, program{body: forever, memory: 16})
	trapping := compile(t, e, program{body: outOfBounds, memory: 16})
	kill := func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := spinning.Run(ctx, plain)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = trapping.Run(t.Context(), plain)
		require.ErrorIs(t, err, ErrTrap)
	}
	for range 20 {
		kill()
	}
	goruntime.GC()
	before := held(t)
	for range testsize.Of(300, 1000) {
		kill()
	}
	goruntime.GC()
	after := held(t)
	assert.LessOrEqual(t, after.goroutines, before.goroutines)
	assert.LessOrEqual(t, after.descriptors, before.descriptors)
	// The Go heap may take another arena; a leak would be hundreds.
	assert.LessOrEqual(t, after.mappings, before.mappings+50)
}

// holdings are the system resources of this process. Numbers that the system does not report are 0.
type holdings struct{ goroutines, descriptors, mappings int }

func held(t *testing.T) holdings {
	t.Helper()
	h := holdings{goroutines: goruntime.NumGoroutine()}
	if goruntime.GOOS == "linux" {
		descriptors, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		maps, err := os.ReadFile("/proc/self/maps")
		require.NoError(t, err)
		h.descriptors, h.mappings = len(descriptors), strings.Count(string(maps), "\n")
	}
	return h
}

// TestAbandonedRun: an abandoned guest that comes back reaches nothing of the host, and its instance is not reused.
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
