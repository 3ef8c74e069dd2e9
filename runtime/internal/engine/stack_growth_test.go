//go:build !race

// Nothing here runs at the same time as anything else, and the race detector would take
// minutes.

package engine

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero/api"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
)

// stackOf is how many bytes the stack of a function has that wazero runs.
func stackOf(t *testing.T, function api.Function) int {
	t.Helper()
	size, seen := nativeStack(function)
	require.True(t, seen)
	return size
}

// stackSizes are those of an instance of a program.
type stackSizes struct{ native, inUse, saved int }

func (i *instance) stackSizes(t *testing.T) stackSizes {
	t.Helper()
	return stackSizes{stackOf(t, i.function), cap(i.stack.inUse), cap(i.stack.before)}
}

// residentNow is this process's memory in bytes where the system tells, else 0, once what is
// not used has gone back to the system.
func residentNow(t *testing.T) int64 {
	t.Helper()
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(status), "VmRSS:")
	var kilobytes int64
	_, err = fmt.Sscan(after, &kilobytes)
	require.NoError(t, err)
	return kilobytes << 10
}

// TestResumedCallsKeepTheirStack: after 100,000 calls of one program its instance has the stack
// that it had after one, and one whose stack has become long is not kept.
func TestResumedCallsKeepTheirStack(t *testing.T) {
	const calls = 100_000
	s := variant{scripted{}, true, true}.subject(t, 0)
	for len(s.pooled()) > 1 { // a start makes more
		s.engine.idle.take(s.key).close(t.Context())
	}
	i := s.pooled()[0]
	in := &session{}
	ctx := context.WithValue(t.Context(), sessionKey{}, in)
	resume := func(operations ...operation) error {
		*in = session{script: operations, reports: in.reports[:0]}
		_, err := s.run(ctx, 0)
		return err
	}
	require.NoError(t, resume())
	sizes, resident := i.stackSizes(t), residentNow(t)
	for range calls {
		require.NoError(t, resume())
	}
	require.Equal(t, 1, len(s.pooled()))
	require.Same(t, i, s.pooled()[0], "all calls were in one instance")
	assert.Equal(t, sizes, i.stackSizes(t))
	grown := residentNow(t) - resident
	t.Logf("%+v; resident: %d bytes, and %d more after %d calls", sizes, resident, grown, calls)
	assert.Less(t, grown, int64(4*mebibyte))

	require.ErrorIs(t, resume(operation{code: opDescend, a: math.MaxUint32}), ErrTrap)
	assert.Empty(t, s.pooled())
	assert.Greater(t, i.native, mostNativeStack, "a stack that grew is seen")
}

// TestNewSnapshotsGrowTheStack is the control: with a new snapshot of wazero's for each call
// the stack becomes 16 bytes longer each time.
func TestNewSnapshotsGrowTheStack(t *testing.T) {
	const calls = 2_000
	source, err := guests.Command(t.Context(), guests.C, t.TempDir())
	require.NoError(t, err)
	h := newForkHost(t, source)
	_, err = h.call(t.Context(), nil)
	require.ErrorIs(t, err, errSaved)
	call := guests.NewCall(30)
	resume := func() {
		output, err := h.call(t.Context(), call.Input)
		require.NoError(t, err)
		require.NoError(t, call.Check(bytes.Clone(output)))
	}
	resume()
	before := stackOf(t, h.enter)
	for range calls {
		resume()
	}
	grown := stackOf(t, h.enter) - before
	t.Logf("%d bytes, and %d more after %d calls", before, grown, calls)
	assert.GreaterOrEqual(t, grown, 16*calls)
}
