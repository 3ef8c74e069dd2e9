package runtime

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// yieldingFirst is a program that stores the result of sched_yield in its memory, and then reads its input.
var yieldingFirst = magic + section(1, "\x03\x60\x04\x7f\x7f\x7f\x7f\x01\x7f\x60\x00\x00\x60\x00\x01\x7f") +
	section(2, "\x02"+vector("wasi_snapshot_preview1")+vector("fd_read")+"\x00\x00"+vector("wasi_snapshot_preview1")+vector("sched_yield")+"\x00\x02") +
	section(3, "\x01\x01") + section(5, "\x01\x00\x01") + section(7, "\x02"+vector("memory")+"\x02\x00"+vector("_start")+"\x00\x02") +
	section(10, "\x01"+vector("\x00\x41\x00\x10\x01\x36\x02\x00\x41\x00\x41\x10\x41\x01\x41\x0c\x10\x00\x1a\x0b"))

// slowStarts is a runtime whose sched_yield lasts until the guest's deadline while the machine is busy.
type slowStarts struct {
	*Runtime
	busy  atomic.Bool
	began atomic.Int32 // how often a program was started, by calls too
	odd   atomic.Bool  // sched_yield returns another number
}

func newSlowStarts(t *testing.T, options Options) *slowStarts {
	t.Helper()
	s := &slowStarts{}
	functions := offeredFunctions()
	for i, f := range functions {
		if f.Name == "sched_yield" {
			functions[i].Call = func(ctx context.Context, _ hostfuncs.Memory, stack []uint64) error {
				if s.began.Add(1); s.busy.Load() {
					<-ctx.Done()
					return context.Cause(ctx)
				}
				if stack[0] = 0; s.odd.Load() {
					stack[0] = 1
				}
				return nil
			}
		}
	}
	options.CacheDir = cacheDir
	var err error
	s.Runtime, err = newWith(t.Context(), options, functions)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	return s
}

// state returns whether the tool's program is started, and why not if that is known.
func (t *Tool) state() (started bool, reason string) {
	t.program.mu.Lock()
	defer t.program.mu.Unlock()
	return t.program.started != nil, t.program.reason
}

// TestStartsOnABusyMachine: a program whose start took too long while the machine was busy is started again after a
// while, and then resumed. Until then each call starts it.
func TestStartsOnABusyMachine(t *testing.T) {
	s := newSlowStarts(t, Options{OnRunaway: func(r Runaway) { t.Error("counts as a runaway:", r.Place()) }})
	guest := load(t, s.Runtime, named(t, "guest", yieldingFirst, "limits: {timeout: 2s}\n"), manifests.Grants{})
	mustInvoke(t, guest, `{}`)
	s.busy.Store(true)
	outcome, err := invoke(t, guest, `{}`)
	require.ErrorIs(t, err, tool.Deadline, outcome.Result.Error)
	require.Eventually(t, func() bool { _, reason := guest.state(); return reason != "" }, 20*time.Second, time.Millisecond)
	s.busy.Store(false)

	starts := func(call func()) int32 { before := s.began.Load(); call(); return s.began.Load() - before }
	for range 3 {
		assert.EqualValues(t, 1, starts(func() { mustInvoke(t, guest, `{}`) }), "each call starts it")
	}
	guest.program.mu.Lock()
	assert.Equal(t, leastWait, guest.program.wait)
	assert.Greater(t, time.Until(guest.program.again), leastWait/2)
	guest.program.again = time.Now().Add(-time.Second)
	guest.program.mu.Unlock()
	mustInvoke(t, guest, `{}`)
	require.Eventually(t, func() bool { started, _ := guest.state(); return started }, 20*time.Second, time.Millisecond)
	assert.Zero(t, starts(func() { mustInvoke(t, guest, `{}`) }), "calls resume it")
}

// TestProgramsThatDifferAreFreed: a started program that calls cannot resume, since it arrives at another state now, is
// freed.
func TestProgramsThatDifferAreFreed(t *testing.T) {
	s := newSlowStarts(t, Options{Memory: Memory{IdleTime: 1}}) // calls find no idle instance
	guest := load(t, s.Runtime, named(t, "guest", yieldingFirst, "limits: {timeout: 20s}\n"), manifests.Grants{})
	for range 2 {
		mustInvoke(t, guest, `{}`)
	}
	require.Eventually(t, func() bool { started, _ := guest.state(); return started }, 20*time.Second, time.Millisecond)
	mustInvoke(t, guest, `{}`)
	guest.program.mu.Lock()
	started := guest.program.started
	guest.program.mu.Unlock()
	require.NotNil(t, started, "control")
	require.False(t, started.Evicted())
	s.odd.Store(true)
	require.Eventually(t, func() bool { mustInvoke(t, guest, `{}`); return started.Evicted() }, 20*time.Second, time.Millisecond)
	resumed, reason := guest.state()
	assert.False(t, resumed)
	assert.Contains(t, reason, "its memory differs")
	assert.True(t, guest.program.again.IsZero(), "for good")
	assert.False(t, guest.program.discard(started, context.Canceled), "once")
}

// TestWaitsBetweenStarts: a reason in the program itself is permanent. A program for which the start has too little
// time is started less and less often.
func TestWaitsBetweenStarts(t *testing.T) {
	p := &program{}
	p.setReason("it ended", nil)
	assert.Zero(t, p.again)
	for _, wait := range []time.Duration{leastWait, 2 * leastWait, 4 * leastWait} {
		p.setReason("its time was over", context.DeadlineExceeded)
		assert.Equal(t, wait, p.wait)
		assert.NotZero(t, p.again)
	}
}
