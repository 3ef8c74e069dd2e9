package engine

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// state is the state of an instance that runs can see.
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

	i, err := module.instantiate(t.Context(), 16*mebibyte)
	require.NoError(t, err)
	defer i.close(t.Context())
	require.NoError(t, i.begin(new(meter).with(t.Context()), Run{Function: "run"}))
	require.ErrorIs(t, i.begin(new(meter).with(t.Context()), Run{Function: "run"}), ErrTrap, "control: without a reset the counter continues")
}

// TestPoolIsBounded: the pool evicts instances beyond its limit, the longest idle first, and is empty when the engine
// has closed.
func TestPoolIsBounded(t *testing.T) {
	one := newEngine(t, Options{}, nil)
	mustRun(t, compile(t, one, program{body: []byte{0x41, 0, 0x41, 1, 0x36, 2, 0}, memory: 1}), plain)
	e := newEngine(t, Options{IdleBytes: 3*one.idle.taken + 1<<10}, nil)
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

// TestPoolShrinksWhenIdle: unused instances are closed after IdleTime, and those in use stay.
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

// count returns the number of idle instances.
func (p *pool) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
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

// loaded returns the number of modules that an engine holds.
func (e *Engine) loaded() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.residents.oldest.Len()
}

// TestModulesAreEvicted: the one that was used longest ago goes, with its instances, and comes
// back when it is compiled again.
func TestModulesAreEvicted(t *testing.T) {
	small := func(n int) []byte { return program{body: nothing, memory: n}.bytes() }
	size := compileSource(t, newEngine(t, Options{}, nil), small(0)).residence.held.bytes
	e := newEngine(t, Options{ModuleBytes: 3*size + size/2}, nil)
	var modules []*Module
	for n := range 4 {
		module, err := e.Compile(t.Context(), small(n))
		require.NoError(t, err)
		require.InDelta(t, size, module.residence.held.bytes, float64(size)/10)
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

// TestResetInstancesAreAsNew: after a reset the memory, its size and the globals are byte for
// byte those of a new instance, whatever ran before: kernels of all sizes, also some that trap
// or are stopped in the middle. The control is that they are not without a reset.
func TestResetInstancesAreAsNew(t *testing.T) {
	for _, scanning := range []bool{true, false} {
		for _, language := range []guests.Language{guests.C, guests.Rust} {
			e := newEngine(t, Options{}, nil)
			if !scanning {
				require.NoError(t, e.pages.close())
				e.pages = nil
			}
			testResets(t, kernelModule(t, e, language))
		}
	}
}

func testResets(t *testing.T, module *Module) {
	fresh, err := module.instantiate(t.Context(), 64*mebibyte)
	require.NoError(t, err)
	defer fresh.close(t.Context())
	want := fresh.state()
	used, err := module.instantiate(t.Context(), 64*mebibyte)
	require.NoError(t, err)
	defer used.close(t.Context())

	random := rand.New(rand.NewPCG(1, 2))
	kernels := guests.AllKernels()
	changed := 0
	for range testsize.Of(100, 400) {
		kernel := kernels[random.IntN(len(kernels))]
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(3))*time.Millisecond)
		size := uint64(random.IntN(200))
		switch random.IntN(10) {
		case 0:
			size = uint64(uint32(random.Int32())) // too much for the time, or for the memory
		case 1:
			size = uint64(kernel.Size)
		}
		_ = used.compute(ctx, kernel.Name, size)
		cancel()
		if random.IntN(4) == 0 {
			_, _ = used.wasm.Memory().Grow(uint32(random.IntN(20)))
		}
		if random.IntN(4) == 0 {
			scribble(random, used.memory.contents())
		}
		discard(used.memory.contents())
		if !assert.ObjectsAreEqual(want, used.state()) {
			changed++
		}
		used.survey()
		require.NoError(t, used.reset())
		require.True(t, assert.ObjectsAreEqual(want, used.state()), "after %s(%d)", kernel.Name, size)
	}
	assert.Greater(t, changed, testsize.Of(25, 100), "control: runs leave traces")
	got, err := used.wasm.ExportedFunction(kernels[0].Name).Call(new(meter).with(t.Context()), uint64(kernels[0].Size))
	require.NoError(t, err)
	assert.Equal(t, kernels[0].Checksum, got[0])
}

// scribble writes to places all over the memory.
func scribble(random *rand.Rand, memory []byte) {
	for range random.IntN(2000) {
		memory[random.IntN(len(memory))] = byte(random.Uint32())
	}
}

// TestEvictionHammer: concurrent callers of more programs than there is room for compile evicted modules and start
// evicted programs again.
func TestEvictionHammer(t *testing.T) {
	e := newEngine(t, Options{ModuleBytes: 1 << 20, Functions: wasi.Functions()}, nil)
	tool, err := guests.Command(t.Context(), guests.C, t.TempDir())
	require.NoError(t, err)
	var sources [][]byte
	for n := range byte(8) { // a custom section makes another module of it
		sources = append(sources, append(append([]byte(nil), tool...), 0, 2, 1, 'a'+n))
	}
	start := Start{MemoryLimit: 4 * mebibyte, Timeout: time.Minute, Fuel: 1 << 40, Context: func(ctx context.Context) context.Context {
		return wasi.With(ctx, &wasi.System{Args: []string{"tool"}, Starting: true})
	}}
	call := guests.NewCall(100)
	answer := func(source []byte) error {
		module, err := e.Compile(t.Context(), source)
		if err != nil {
			return err
		}
		p, err := module.Start(t.Context(), start)
		if err != nil {
			return err
		}
		for range 3 {
			out := &wasi.Output{Limit: 1 << 20}
			ctx := wasi.With(t.Context(), &wasi.System{Args: []string{"tool"}, Stdin: call.Input, Stdout: out})
			if _, err := p.Run(ctx, Run{}); err != nil {
				return err
			}
			if err := call.Check(out.Bytes); err != nil {
				return err
			}
		}
		return p.Drop()
	}
	evicted := 0
	var mu sync.Mutex
	var group sync.WaitGroup
	for caller := range 8 {
		group.Go(func() {
			for n := range 30 {
				err := answer(sources[(caller*7+n*3)%len(sources)])
				mu.Lock()
				if err != nil && assert.ErrorIs(t, err, ErrEvicted) {
					evicted++
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	assert.LessOrEqual(t, e.loaded(), 8)
	t.Logf("%d of 240 found their module evicted", evicted)
}

// kernelModule compiles the kernels of a language: they write to memory, grow it, and have
// globals.
func kernelModule(t *testing.T, e *Engine, language guests.Language) *Module {
	t.Helper()
	source, err := guests.Kernels(t.Context(), language, t.TempDir())
	require.NoError(t, err)
	module, err := e.Compile(t.Context(), source)
	require.NoError(t, err)
	require.Empty(t, module.rewritten.Unrestorable)
	return module
}

// compute calls a computing function, in place of a run.
func (i *instance) compute(ctx context.Context, name string, size uint64) error {
	fuel := &meter{}
	_, err := i.wasm.ExportedFunction(name).Call(fuel.with(ctx), size)
	return classify(ctx, "run", err)
}

// TestImagesCountWithTheirModules: the image of a module counts with the module's code, and is evicted with it. The
// image of a program counts separately.
func TestImagesCountWithTheirModules(t *testing.T) {
	large := make([]byte, mebibyte)
	for i := range large {
		large[i] = byte(i)
	}
	e := newEngine(t, Options{Functions: wasi.Functions()}, nil)
	module := compileSource(t, e, command(t, guests.C))
	assert.Equal(t, e.residents.taken, module.residence.held)
	started, err := module.Start(t.Context(), startOfTool())
	require.NoError(t, err)
	assert.Positive(t, started.image.holding().bytes)
	assert.Equal(t, e.residents.taken, module.residence.held.plus(1, started.image.holding()))
	require.NoError(t, started.Drop())
	assert.Equal(t, e.residents.taken, module.residence.held)

	limited := newEngine(t, Options{ModuleBytes: 5 * mebibyte, IdleTime: time.Hour}, nil)
	for n := range 10 {
		data := []wasm.Segment{{Offset: uint32(n), Bytes: large}}
		mustRun(t, compile(t, limited, program{body: nothing, memory: 17, data: data}), Run{Function: "run", MemoryLimit: 2 * mebibyte})
	}
	limited.mu.Lock()
	defer limited.mu.Unlock()
	images := int64(0)
	for at := limited.residents.oldest.Front(); at != nil; at = at.Next() {
		images += at.Value.(*residence).module.image.holding().bytes
	}
	assert.Positive(t, images)
	assert.LessOrEqual(t, images, limited.residents.taken.bytes)
	assert.LessOrEqual(t, images, int64(5*mebibyte))
}

// TestProgramsAreEvicted: programs that many tools start from one module are evicted without it, the least recently
// used first, and their idle instances with them. The control is the last one.
func TestProgramsAreEvicted(t *testing.T) {
	e := newEngine(t, Options{Functions: []hostfuncs.Function{readNothing()}}, nil)
	module := compileSource(t, e, readAtDepth(1))
	start := func() *Program {
		p, err := module.Start(t.Context(), Start{Context: asItIs, MemoryLimit: mebibyte, Timeout: time.Minute, Fuel: 1 << 40})
		require.NoError(t, err)
		return p
	}
	run := func(p *Program) error {
		_, err := p.Run(t.Context(), Run{Function: "_start"})
		return err
	}
	first, second := start(), start()
	require.NoError(t, run(first))
	require.NoError(t, run(second))
	require.Equal(t, 4, e.idle.count())
	require.Equal(t, int64(1), first.residence.held.mappings)
	e.residents.limits.mappings = e.residents.taken.mappings
	require.NoError(t, run(first))
	third := start()
	assert.True(t, second.Evicted())
	assert.Equal(t, 4, e.idle.count())
	require.ErrorIs(t, run(second), ErrEvicted)
	require.NoError(t, run(first))
	require.NoError(t, run(third), "control")
	assert.False(t, module.Evicted())
	assert.Len(t, module.programs, 2)
	require.NoError(t, first.Drop())
	assert.Equal(t, e.residents.taken, module.residence.held.plus(1, third.residence.held))
}

// TestDropWhileRunning: a program that is dropped while it runs, or while a run starts an instance, is freed when the
// last run ends, and not before.
func TestDropWhileRunning(t *testing.T) {
	for name, from := range map[string]struct {
		source []byte
		start  Start
		run    Run
	}{
		"a command": {readAtDepth(1), Start{Context: asItIs, MemoryLimit: mebibyte, Timeout: time.Minute, Fuel: 1 << 40}, Run{Function: "_start"}},
		"a reactor": {reactor{export: "_initialize", run: growAndGoOn}.bytes(), startOf(asItIs), Run{Function: "run"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, Options{Functions: []hostfuncs.Function{readNothing()}}, noHost)
			module := compileSource(t, e, from.source)
			for range 20 {
				p, err := module.Start(t.Context(), from.start)
				require.NoError(t, err)
				var group sync.WaitGroup
				running := make(chan struct{}, 4)
				for range cap(running) {
					group.Go(func() {
						var err error
						for n := 0; err == nil; n++ {
							if _, err = p.Run(t.Context(), from.run); n == 0 {
								running <- struct{}{}
							}
						}
						assert.ErrorIs(t, err, ErrEvicted)
					})
				}
				<-running
				require.NoError(t, p.Drop())
				group.Wait()
				assert.Nil(t, p.image, "it is freed")
				assert.Zero(t, e.idle.count(), "with its idle instances")
				assert.Equal(t, module.residence.held, e.residents.taken)
			}
			assert.Zero(t, module.residence.users)
		})
	}
}

// TestDropWhileClosing: programs may be dropped while their engine closes, and afterwards.
func TestDropWhileClosing(t *testing.T) {
	for range 20 {
		e, err := New(t.Context(), Options{Functions: []hostfuncs.Function{readNothing()}})
		require.NoError(t, err)
		module := compileSource(t, e, readAtDepth(1))
		var programs []*Program
		for range 5 {
			p, err := module.Start(t.Context(), Start{Context: asItIs, MemoryLimit: mebibyte, Timeout: time.Minute, Fuel: 1 << 40})
			require.NoError(t, err)
			programs = append(programs, p)
		}
		var group sync.WaitGroup
		for _, p := range programs {
			group.Go(func() { assert.NoError(t, p.Drop()) })
		}
		group.Go(func() { assert.NoError(t, e.Close(t.Context())) })
		group.Wait()
		for _, p := range programs {
			require.NoError(t, p.Drop(), "again")
			assert.Nil(t, p.image)
		}
	}
}

// TestAttackImageFiles: images have no more descriptors of the process than a part, and none where there is nothing in
// the image.
func TestAttackImageFiles(t *testing.T) {
	e := newEngine(t, Options{}, nil)
	const files = 5
	e.residents.limits.files = files
	for n := range 3 * files {
		empty := program{memory: 1, body: nothing, filler: []byte{byte(n)}}
		mustRun(t, compile(t, e, empty), plain)
	}
	assert.Zero(t, e.residents.taken.files, "nothing is in their images")
	assert.Equal(t, 3*files, e.residents.oldest.Len())
	for n := range 3 * files {
		some := program{memory: 1, body: nothing, data: []wasm.Segment{{Offset: uint32(n), Bytes: []byte{1}}}}
		mustRun(t, compile(t, e, some), plain)
	}
	if mostImageFiles() == math.MaxInt64 { // images have no files on this system
		return
	}
	assert.Equal(t, int64(files), e.residents.taken.files)
	assert.Equal(t, files, e.residents.oldest.Len(), "control: they are evicted")
}

// named are names of 200 bytes for so many functions.
func named(functions int) (entries []byte) {
	for i := range functions {
		entries = append(entries, join(leb(i), name(fmt.Sprintf("%0200d", i)))...)
	}
	return entries
}

// TestModulesCountWhatIsDecoded: a module counts at least as many bytes as it adds to the Go heap, even if it is small
// for the number of its parts.
func TestModulesCountWhatIsDecoded(t *testing.T) {
	const functions = 20_000
	for what, source := range map[string][]byte{
		"functions": join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0}, section(1, 1, 0x60, 0, 0), section(3, join(leb(functions), make([]byte, functions))...),
			section(10, join(leb(functions), bytes.Repeat(function(nil), functions))...)),
		"wide types": join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0}, section(1, join(leb(40), bytes.Repeat(join([]byte{0x60}, leb(1000), bytes.Repeat([]byte{0x6f}, 1000), leb(1000), bytes.Repeat([]byte{0x6f}, 1000)), 40))...)),
		"names": join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0}, section(1, 1, 0x60, 0, 0), section(3, join(leb(functions), make([]byte, functions))...),
			section(10, join(leb(functions), bytes.Repeat(function(nil), functions))...), section(0, join(name("name"), section(1, join(leb(functions), named(functions))...))...)),
		"globals": join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0}, section(6, join(leb(10_000), bytes.Repeat([]byte{0x7e, 0, 0x42, 0, 0x0b}, 10_000))...)),
		"elements": join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0}, section(1, 1, 0x60, 0, 0), section(3, 1, 0), section(4, join([]byte{1, 0x70, 0}, leb(100_000))...),
			section(9, join([]byte{1, 0, 0x41, 0, 0x0b}, leb(100_000), make([]byte, 100_000))...), section(10, join([]byte{1}, function(nil))...)),
	} {
		e := newEngine(t, Options{}, nil)
		before := heap()
		module := compileSource(t, e, source)
		held := heap() - before
		assert.LessOrEqual(t, held, module.residence.held.bytes+mebibyte, what)
		t.Logf("%s: %d KiB in the heap, %d KiB counted", what, held>>10, module.residence.held.bytes>>10)
	}
}
