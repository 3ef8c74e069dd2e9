package runtime

import (
	"context"
	goruntime "runtime"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// mark is in the context of a call, which is kept if anything of the call is that can reach its context.
type mark [64]byte

type markKey struct{}

// marks are weak pointers to the marks of calls.
type marks []weak.Pointer[mark]

// add returns a context with another mark.
func (m *marks) add(ctx context.Context) context.Context {
	made := new(mark)
	*m = append(*m, weak.Make(made))
	return context.WithValue(ctx, markKey{}, made)
}

// requireFreed requires that nothing of the calls is kept.
func (m *marks) requireFreed(t *testing.T, when string) {
	t.Helper()
	require.Eventually(t, func() bool {
		goruntime.GC()
		return m.kept() == 0
	}, 20*time.Second, 10*time.Millisecond, when)
}

func (m *marks) kept() (kept int) {
	for _, pointer := range *m {
		if pointer.Value() != nil {
			kept++
		}
	}
	return kept
}

// TestAttackKeptCalls: a call that has ended leaves nothing in memory, while its tool's program is started in the
// background and later. The control is a call that runs.
func TestAttackKeptCalls(t *testing.T) {
	starting, started := make(chan struct{}, 1), make(chan struct{})
	functions := offeredFunctions()
	for i, f := range functions {
		if f.Name == "sched_yield" {
			functions[i].Call = func(ctx context.Context, _ hostfuncs.Memory, stack []uint64) error {
				if ctx.Value(markKey{}) == nil { // a start in the background
					select {
					case starting <- struct{}{}:
					default:
					}
					select {
					case <-started:
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				}
				stack[0] = 0
				return nil
			}
		}
	}
	r, err := newWith(t.Context(), Options{CacheDir: cacheDir}, functions)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	guest := load(t, r, named(t, "guest", yieldingFirst, "limits: {timeout: 60s}\n"), manifests.Grants{})
	var calls marks
	for range 2 { // the second makes the host start the program for later calls
		_, err := guest.Invoke(calls.add(t.Context()), invocation(t, `{}`, nil))
		require.NoError(t, err)
	}
	<-starting
	calls.requireFreed(t, "while the program starts")
	isStarted, reason := guest.state()
	assert.False(t, isStarted || reason != "", "control: it does")
	close(started)
	_, reason = guest.program.settled(t)
	require.Empty(t, reason)
	for range 2 {
		_, err := guest.Invoke(calls.add(t.Context()), invocation(t, `{}`, nil))
		require.NoError(t, err)
	}
	calls.requireFreed(t, "when the program was resumed")
}

// TestAttackKeptCallsOfEachKind: nor is a call kept that ends in another way, or whose guest calls other tools.
func TestAttackKeptCallsOfEachKind(t *testing.T) {
	h := newHousehold(t, Options{})
	h.add(t, "outer", "", "inner", "crashing")
	h.add(t, "inner", "")
	h.load(t, named(t, "crashing", crashing, ""), manifests.Grants{})
	h.load(t, named(t, "endless", magic+section(1, "\x01\x60\x00\x00")+section(3, "\x01\x00")+section(5, "\x01\x00\x01")+
		section(7, "\x02"+vector("memory")+"\x02\x00"+vector("_start")+"\x00\x00")+section(10, "\x01"+vector("\x00\x03\x40\x0c\x00\x0b\x0b")), "limits: {timeout: 20ms}\n"), manifests.Grants{})
	h.tools["plugin"] = plugin(t, h.runtime, "var.wasm", "entry: run_test, stdout: text")
	for name, c := range map[string]struct {
		arguments string
		kind      tool.Kind
	}{
		"outer":    {steps(asks("inner", echoes("found")), asks("crashing")), ""},
		"inner":    {steps(echoes("found")), ""},
		"crashing": {`{}`, tool.Trap},
		"endless":  {`{}`, tool.Deadline},
		"plugin":   {`{"input":"a"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var calls marks
			for range 4 {
				outcome, _ := h.callIn(t, calls.add(t.Context()), name, c.arguments)
				require.Equal(t, c.kind, outcome.Result.Kind, outcome.Result.Error)
			}
			calls.requireFreed(t, "after the calls")
		})
	}
}

// TestAttackKeptInstances: a started program does not keep the instances in which it was started, of which idle ones
// are closed.
func TestAttackKeptInstances(t *testing.T) {
	var made, freed atomic.Int32
	functions := offeredFunctions()
	for i, f := range functions {
		if f.Name == "sched_yield" {
			functions[i].Call = func(ctx context.Context, memory hostfuncs.Memory, stack []uint64) error {
				if ctx.Value(markKey{}) == nil { // a start, in the background or for a call
					goruntime.SetFinalizer(memory, func(hostfuncs.Memory) { freed.Add(1) })
					made.Add(1)
				}
				return f.Call(ctx, memory, stack)
			}
		}
	}
	r, err := newWith(t.Context(), Options{CacheDir: cacheDir, Memory: Memory{IdleTime: time.Millisecond}}, functions)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	guest := load(t, r, named(t, "guest", yieldingFirst, "limits: {timeout: 60s}\n"), manifests.Grants{})
	var calls marks
	for range 2 { // the second makes the host start the program for later calls
		_, err := guest.Invoke(calls.add(t.Context()), invocation(t, `{}`, nil))
		require.NoError(t, err)
	}
	started, reason := guest.program.settled(t)
	require.NotNil(t, started, reason)
	for _, want := range []int32{2, 3} {
		require.Eventually(t, func() bool {
			goruntime.GC()
			return freed.Load() == made.Load()
		}, 20*time.Second, 10*time.Millisecond)
		assert.Equal(t, want, made.Load())
		isStarted, _ := guest.state()
		assert.True(t, isStarted, "control: the program is kept")
		_, err := guest.Invoke(calls.add(t.Context()), invocation(t, `{}`, nil)) // finds no idle instance
		require.NoError(t, err)
	}
}

// TestAttackKeptReaders: those that wait for a module to be read keep nothing of the call that began to read it, and
// that has ended since.
func TestAttackKeptReaders(t *testing.T) {
	r := newRuntime(t, Options{Running: 16})
	guest := load(t, r, named(t, "guest", yieldingFirst, ""), manifests.Grants{})
	for range cap(r.modules) { // so that reading it waits
		r.modules <- struct{}{}
	}
	identity := func(ctx context.Context) error {
		_, err := guest.Identity(ctx)
		return err
	}
	var calls marks
	hashed := waitingAfter(t, &calls, &guest.hashing, identity)
	prepared := waitingAfter(t, &calls, &guest.compiling, guest.Prepare)
	calls.requireFreed(t, "while another call waits")
	for range cap(r.modules) {
		<-r.modules
	}
	require.NoError(t, <-hashed, "control: it waits")
	require.NoError(t, <-prepared, "control: it waits")
}

// waitingAfter begins work that is done once for all callers, has a second caller wait for it, and ends the first one's
// context. It returns the second one's error.
func waitingAfter[T any](t *testing.T, calls *marks, of *flights[T], do func(context.Context) error) <-chan error {
	t.Helper()
	begin := func(ctx context.Context, callers int) <-chan error {
		ended := make(chan error, 1)
		go func() { ended <- do(ctx) }()
		require.Eventually(t, func() bool {
			of.mu.Lock()
			defer of.mu.Unlock()
			return of.now != nil && of.now.callers == callers
		}, time.Minute, time.Millisecond)
		return ended
	}
	ctx, end := context.WithCancel(calls.add(t.Context()))
	defer end()
	first, second := begin(ctx, 1), begin(t.Context(), 2)
	end()
	require.ErrorIs(t, <-first, context.Canceled)
	return second
}
