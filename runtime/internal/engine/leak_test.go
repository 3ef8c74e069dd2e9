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
)

// TestKillsLeaveNothing: a thousand guests that had to be stopped and a thousand that
// trapped leave no goroutine, descriptor or mapping behind.
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
	for range 1000 {
		kill()
	}
	goruntime.GC()
	after := held(t)
	assert.LessOrEqual(t, after.goroutines, before.goroutines)
	assert.LessOrEqual(t, after.descriptors, before.descriptors)
	// The Go heap may take another arena; a leak would be a thousand.
	assert.LessOrEqual(t, after.mappings, before.mappings+50)
}

// holdings are what this process holds of the system. What the system doesn't tell is 0.
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
