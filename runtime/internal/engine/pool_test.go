package engine

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
)

// state is what runs can see of an instance.
type state struct {
	memory  []byte
	globals []uint64
}

func (i *instance) state() state {
	return state{slices.Clone(i.memory.contents()), i.values()}
}

// TestPoolServesRunsAlone: many runs at once on few instances, each with a counter in memory
// that a new instance begins at zero.
func TestPoolServesRunsAlone(t *testing.T) {
	// local 0 = memory[0] + 1; memory[0] = local 0; if local 0 != 1 unreachable
	counter := []byte{0x41, 0, 0x28, 2, 0, 0x41, 1, 0x6a, 0x21, 0, 0x41, 0, 0x20, 0, 0x36, 2, 0, 0x20, 0, 0x41, 1, 0x47, 0x04, 0x40, 0x00, 0x0b}
	e := newEngine(t, Options{}, nil)
	module := compile(t, e, program{body: counter, memory: 1, locals: 1})
	var group sync.WaitGroup
	for range 64 {
		group.Go(func() {
			for range 50 {
				mustRun(t, module, plain)
			}
		})
	}
	group.Wait()

	i, _, err := module.instantiate(t.Context(), 16*mebibyte)
	require.NoError(t, err)
	defer i.close(t.Context())
	require.NoError(t, i.begin(new(meter).with(t.Context()), "run"))
	require.ErrorIs(t, i.begin(new(meter).with(t.Context()), "run"), ErrTrap, "control: without a reset the counter goes on")
}

// TestPoolIsBounded: what is too much goes, the longest idle first, and nothing stays when the
// engine closes.
func TestPoolIsBounded(t *testing.T) {
	e := newEngine(t, Options{IdleBytes: 3*(instanceBytes+4096+10<<10) + 20<<10}, nil)
	var modules []*Module
	for n := range 5 {
		// i32.const n; i32.const 1; i32.store: one page is written
		modules = append(modules, compile(t, e, program{body: []byte{0x41, byte(n), 0x41, 1, 0x36, 2, 0}, memory: 1}))
	}
	for _, module := range modules {
		mustRun(t, module, plain)
	}
	assert.Equal(t, 3, e.idle.count())
	for n, module := range modules {
		kept := e.idle.take(poolKey{module, uint64(plain.MemoryLimit)})
		assert.Equal(t, n >= 2, kept != nil, "module %d", n)
		if kept != nil {
			kept.close(t.Context())
		}
	}
	assert.Zero(t, e.idle.taken)
	_, err := modules[0].Run(t.Context(), plain)
	require.NoError(t, err)
	require.NoError(t, e.Close(t.Context()))
	assert.Zero(t, e.idle.count())
	assert.Empty(t, e.idle.shelves)
}

// TestPoolShrinksWhenIdle: instances that nobody uses go by themselves, and those in use stay.
func TestPoolShrinksWhenIdle(t *testing.T) {
	const age = 100 * time.Millisecond
	e := newEngine(t, Options{IdleTime: age}, nil)
	unused, used := compile(t, e, program{body: nothing, memory: 1}), compile(t, e, program{body: nothing, memory: 2})
	mustRun(t, unused, plain)
	assert.Equal(t, 1, e.idle.count())
	require.Eventually(t, func() bool {
		mustRun(t, used, plain)
		return e.idle.count() == 1
	}, time.Minute, age/10)
	assert.NotNil(t, e.idle.shelves[poolKey{used, uint64(plain.MemoryLimit)}].waiting)
	require.Eventually(t, func() bool { return e.idle.count() == 0 }, time.Minute, age/10)
	mustRun(t, unused, plain)
	require.Eventually(t, func() bool { return e.idle.count() == 0 }, time.Minute, age/10, "the sweeps begin anew")
}

// count is how many instances are idle.
func (p *pool) count() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := p.oldest; i != nil; i = i.place.newer {
		n++
	}
	return n
}

// TestDroppedProgramsKeepNoInstances: those of a program that is started and not run.
func TestDroppedProgramsKeepNoInstances(t *testing.T) {
	e := newEngine(t, Options{Functions: wasi.Functions()}, nil)
	source := command(t, guests.C)
	module := compileSource(t, e, source)
	program, err := module.Start(t.Context(), startOfTool())
	require.NoError(t, err)
	assert.Equal(t, 2, e.idle.count())
	require.NoError(t, program.Drop())
	assert.Zero(t, e.idle.count())
}

// loaded returns how many modules an engine holds.
func (e *Engine) loaded() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.residents.oldest.Len()
}

// TestModulesAreEvicted: the one that was used longest ago goes, with its instances, and comes
// back when it is compiled again.
func TestModulesAreEvicted(t *testing.T) {
	small := func(n int) []byte { return program{body: nothing, memory: n}.bytes() }
	e := newEngine(t, Options{ModuleBytes: 3 * codeGrowth * 200}, nil)
	var modules []*Module
	for n := range 4 {
		module, err := e.Compile(t.Context(), small(n))
		require.NoError(t, err)
		require.Greater(t, module.residence.bytes, int64(codeGrowth*150))
		require.Less(t, module.residence.bytes, int64(codeGrowth*200))
		modules = append(modules, module)
		mustRun(t, module, plain)
	}
	held := e.loaded()
	assert.Less(t, held, 4)
	assert.Equal(t, held, e.idle.count(), "their instances are gone too")
	_, err := modules[0].Run(t.Context(), plain)
	require.ErrorIs(t, err, ErrEvicted)
	_, err = modules[0].Start(t.Context(), Start{MemoryLimit: 1 << 16, Timeout: time.Minute, Fuel: 1})
	require.ErrorIs(t, err, ErrEvicted)
	_, err = modules[3].Run(t.Context(), plain)
	require.NoError(t, err, "the last one stays")
	again, err := e.Compile(t.Context(), small(0))
	require.NoError(t, err)
	mustRun(t, again, plain)
	_, err = New(t.Context(), Options{ModuleBytes: -1})
	assert.ErrorContains(t, err, "negative")
}

// TestModulesInUseAreNotEvicted: however little room there is.
func TestModulesInUseAreNotEvicted(t *testing.T) {
	e := newEngine(t, Options{ModuleBytes: 1}, nil)
	endless := compile(t, e, program{body: forever, memory: 1})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var group sync.WaitGroup
	group.Go(func() {
		_, err := endless.Run(ctx, plain)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	})
	require.Eventually(t, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return endless.residence.users == 1
	}, time.Minute, time.Millisecond)
	for n := range 5 {
		mustRun(t, compile(t, e, program{body: nothing, memory: n}), plain)
		assert.Equal(t, 2, e.loaded(), "the one that runs, and the last one")
	}
	group.Wait()
	assert.Equal(t, 1, e.loaded())
}
