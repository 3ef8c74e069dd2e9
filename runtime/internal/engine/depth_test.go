package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"reflect"
	goruntime "runtime"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// The maximum host stack that the calls of one run may take, in bytes: in any code, and in compilers' code.
const (
	promisedStack = 60 << 20
	usualStack    = 20 << 20
)

// descent is a module whose function "run" asks the host for a depth, by memory address 0, and descends to it: each
// function takes the remaining depth, and either tells the host if it is 0, or calls the next with one less.
//
// Function 0 is the host's, 1 is "run", and the functions from 2 on are those that recurse.
type descent struct {
	name   string
	locals int      // of type i32, of each function that recurses, all needed again after its call
	next   [][]byte // how each function calls the next, its argument on the stack; its length is the cycle's
	frame  int64    // the most that a call should be taken to need, in bytes
	joins  []byte   // code before the call, such as code in which paths join
	reads  int      // the number of globals that are read twice after the call
	large  bool     // it takes more than compilers' code, and is compiled once
}

func descents() []descent {
	call := func(function byte) []byte { return []byte{0x10, function} }
	indirectly := func(element byte) []byte { return []byte{0x41, element, 0x11, 1, 0} }
	all := []descent{
		{name: "a small function", next: [][]byte{call(2)}, frame: 128},
		{name: "a function with 1,000 locals", locals: 1000, next: [][]byte{call(2)}, frame: 17 << 10},
		{name: "two functions that call each other", next: [][]byte{call(3), call(2)}, frame: 128},
		{name: "two functions with 100 locals through a table", locals: 100, next: [][]byte{indirectly(1), indirectly(0)}, frame: 2 << 10},
		{name: "a function that calls itself through a table", next: [][]byte{indirectly(0)}, frame: 128},
		{name: "100 blocks whose paths join", locals: 200, next: [][]byte{call(2)}, frame: 170 << 10, joins: joinedBlocks(200, 100)},
		{name: "60 ifs that set 100 locals", locals: 100, next: [][]byte{call(2)}, frame: 94 << 10, joins: joinedIfs(100, 60)},
		{name: "50 loops that set 100 locals", locals: 100, next: [][]byte{call(2)}, frame: 78 << 10, joins: joinedLoops(100, 50)},
	}
	if goruntime.GOARCH != "amd64" {
		return all // the excess over the estimate is not known there
	}
	crowded := func(sums int) []byte { return crowdedRegisters(11, sums) }
	return append(all,
		descent{name: "200 globals that are read behind the call", reads: 200, next: [][]byte{call(2)}, frame: 4 << 10},
		descent{name: "more locals and operands than registers", locals: 11, next: [][]byte{call(2)}, frame: 4 << 10, joins: crowded(300)},
		descent{name: "nearly three times the estimate", locals: 11, next: [][]byte{call(2)}, frame: 1 << 10, joins: crowded(100), large: true},
	)
}

// setAll adds local 0 to each of the other locals.
func setAll(locals int) (code []byte) {
	for local := 1; local <= locals; local++ {
		code = join(code, []byte{0x20}, leb(local), []byte{0x20, 0, 0x6a, 0x21}, leb(local))
	}
	return code
}

// joinedBlocks are blocks around one place, each of which a branch leaves.
func joinedBlocks(locals, blocks int) (code []byte) {
	for n := range blocks {
		code = join(code, []byte{0x02, 0x40, 0x20, 0, 0x41}, signed(1_000_000+n), []byte{0x46, 0x0d, 0})
	}
	return join(code, setAll(locals), bytes.Repeat([]byte{0x0b}, blocks))
}

// joinedIfs are ifs one after the other.
func joinedIfs(locals, ifs int) (code []byte) {
	for n := range ifs {
		code = join(code, []byte{0x20, 0, 0x41}, signed(1_000_000+n), []byte{0x46, 0x04, 0x40}, setAll(locals), []byte{0x0b})
	}
	return code
}

// joinedLoops are loops one after the other that are not repeated.
func joinedLoops(locals, loops int) (code []byte) {
	for n := range loops {
		code = join(code, []byte{0x03, 0x40}, setAll(locals), []byte{0x20, 0, 0x41}, signed(1_000_000+n), []byte{0x46, 0x0d, 0, 0x0b})
	}
	return code
}

// crowdedRegisters sums up products of locals, one for each local, again and again.
func crowdedRegisters(locals, sums int) (code []byte) {
	for n := range sums {
		for local := range locals {
			code = join(code, []byte{0x20}, leb(1+(local+n)%locals), []byte{0x20}, leb(1+(local+n+1)%locals), []byte{0x6c})
		}
		code = join(code, bytes.Repeat([]byte{0x6a}, locals-1), []byte{0x21}, leb(1+n%locals))
	}
	return code
}

// readGlobals stores the sum of globals, each of which is read twice.
func readGlobals(globals int) (code []byte) {
	code = []byte{0x41, 0, 0x41, 0}
	for _, combine := range []byte{0x6a, 0x73} { // i32.add, i32.xor
		for global := range globals {
			code = join(code, []byte{0x23}, leb(global), []byte{combine})
		}
	}
	return append(code, 0x36, 2, 8)
}

// bytes assembles the module. The types are () -> () and (i32) -> ().
func (d descent) bytes() []byte {
	run := []byte{0x10, 0, 0x41, 0, 0x28, 2, 0, 0x10, 2} // ask, then the first with what memory says
	bodies := [][]byte{function(nil, run)}
	types, elements := []byte{0}, []byte{}
	before, after := d.kept()
	for i, next := range d.next {
		// if local 0 is 0, call the host, else the next with local 0 - 1
		step := join([]byte{0x20, 0, 0x45, 0x04, 0x40, 0x10, 0, 0x05, 0x20, 0, 0x41, 1, 0x6b}, next, []byte{0x0b})
		bodies = append(bodies, function(join([]byte{1}, leb(d.locals), []byte{0x7f}), before, step, after))
		types, elements = append(types, 1), append(elements, byte(i+2))
	}
	return join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0},
		section(1, 2, 0x60, 0, 0, 0x60, 1, 0x7f, 0),
		section(2, join([]byte{1}, name("test"), name("host"), []byte{0, 0})...),
		section(3, join(leb(len(types)), types)...),
		section(4, 1, 0x70, 0, byte(len(elements))),
		section(5, 1, 0, 1),
		section(6, join(leb(d.reads), bytes.Repeat([]byte{0x7f, 1, 0x41, 1, 0x0b}, d.reads))...),
		section(7, join([]byte{1}, name("run"), []byte{0, 1})...),
		section(9, join([]byte{1, 0, 0x41, 0, 0x0b}, leb(len(elements)), elements)...),
		section(10, join(leb(len(bodies)), join(bodies...))...))
}

// kept sets all locals before the call, and after it stores their sum.
func (d descent) kept() (before, after []byte) {
	if d.reads > 0 {
		return nil, readGlobals(d.reads)
	}
	if d.locals == 0 {
		return nil, nil
	}
	after = []byte{0x41, 0, 0x41, 0} // i32.const, twice
	for local := 1; local <= d.locals; local++ {
		before = join(before, []byte{0x20, 0, 0x41}, signed(local), []byte{0x6c, 0x21}, leb(local)) // local 0 * local
		after = join(after, []byte{0x20}, leb(local), []byte{0x6a})
	}
	return join(before, d.joins), append(after, 0x36, 2, 8)
}

// dive is one run of a descent.
type dive struct {
	depth   uint32
	asked   bool
	reached bool
	bottom  func() // called at the deepest place; nil for nothing
}

type diveKey struct{}

// guide is the host function of descents.
func guide(ctx context.Context, memory hostfuncs.Memory, _ []uint64) error {
	d := ctx.Value(diveKey{}).(*dive)
	if d.asked {
		d.reached = true
		if d.bottom != nil {
			d.bottom()
		}
		return nil
	}
	d.asked = true
	view, ok := memory.View(0, 4)
	if !ok {
		return errors.New("no memory")
	}
	binary.LittleEndian.PutUint32(view, d.depth)
	return nil
}

// goes reports whether a module gets as deep as that. Where it does not, it must be told so
// as it should.
func (d *dive) goes(t *testing.T, module *Module) bool {
	_, err := module.Run(context.WithValue(t.Context(), diveKey{}, d), plain)
	if err == nil {
		return assert.True(t, d.reached)
	}
	assert.False(t, d.reached)
	var failure *Error
	if assert.ErrorAs(t, err, &failure) {
		assert.Equal(t, ErrTrap, failure.Kind)
		assert.Equal(t, "stack overflow", failure.Reason)
	}
	return false
}

// deepest returns the depth that a module gets to and no further.
func deepest(t *testing.T, module *Module) uint32 {
	low, high := uint32(0), uint32(1<<20)
	require.True(t, (&dive{depth: low}).goes(t, module))
	require.False(t, (&dive{depth: high}).goes(t, module))
	for high-low > 1 {
		if middle := low + (high-low)/2; (&dive{depth: middle}).goes(t, module) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// TestDepthIsExact: a guest reaches exactly one maximum depth, whatever runs before and concurrently, and the host's
// stack is bounded there.
func TestDepthIsExact(t *testing.T) {
	for _, d := range testsize.Sample(descents(), 4) {
		t.Run(d.name, func(t *testing.T) {
			module := compileSource(t, newEngine(t, Options{}, guide), d.bytes())
			depth := deepest(t, module)
			var group sync.WaitGroup
			for range 4 {
				group.Go(func() {
					for range 3 {
						assert.False(t, (&dive{depth: depth + 1}).goes(t, module))
						assert.True(t, (&dive{depth: depth}).goes(t, module))
					}
				})
			}
			group.Wait()
			stack := stackAt(t, module, depth)
			t.Logf("%d calls, each taken for %d bytes; %d KiB of the host's stack", depth, wasm.DefaultStackBytes/int64(depth), stack>>10)
			if assert.Less(t, stack, int64(promisedStack)); !d.large {
				assert.Less(t, stack, int64(usualStack))
			}
			assert.GreaterOrEqual(t, int64(depth)*d.frame, int64(wasm.DefaultStackBytes), "the budget can be used")
		})
	}
}

// stackAt returns the size of the stack at the bottom of a run. It lies in the Go heap, which is collected there so
// that the smaller stacks before it don't count.
func stackAt(t *testing.T, module *Module, depth uint32) (taken int64) {
	t.Helper()
	before := heap()
	d := &dive{depth: depth, bottom: func() { taken = heap() - before }}
	require.True(t, d.goes(t, module))
	return taken
}

// TestTailCallsTakeNoDepth: engines do not support tail calls yet, but the depth pass already does. The control calls
// itself as often without them.
func TestTailCallsTakeNoDepth(t *testing.T) {
	const returnCall, returnCallIndirect = 0x12, 0x13
	for name, next := range map[string][][]byte{
		"one":             {{returnCall, 2}},
		"two":             {{returnCall, 3}, {returnCall, 2}},
		"through a table": {{0x41, 0, returnCallIndirect, 1, 0}},
		"control":         {{0x10, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			const often = 3_000_000
			instance := tailCalling(t, descent{next: next}.bytes())
			d := &dive{depth: often}
			_, err := instance.ExportedFunction("run").Call(new(meter).with(context.WithValue(t.Context(), diveKey{}, d)))
			depth := instance.ExportedGlobal("caisson:depth@1").Get()
			if name == "control" {
				assert.ErrorContains(t, err, "unreachable")
				assert.EqualValues(t, wasm.DepthExceeded, depth)
				return
			}
			require.NoError(t, err)
			assert.True(t, d.reached)
			assert.Zero(t, depth)
		})
	}
}

// tailCalling rewrites a module and instantiates it where there are tail calls.
func tailCalling(t *testing.T, source []byte) api.Module {
	t.Helper()
	description := inspect(t, source)
	analysis, err := wasm.ValidateWithin(t.Context(), source, description, wasm.Bounds{}, wasm.Features{TailCalls: true})
	require.NoError(t, err)
	rewritten, err := wasm.Rewrite(t.Context(), source, analysis, wasm.Passes{Meter: true, Depth: true})
	require.NoError(t, err)
	ctx := new(meter).with(t.Context())
	r := wazero.NewRuntimeWithConfig(ctx, runtimeConfig().WithCoreFeatures(api.CoreFeaturesV2|experimental.CoreFeaturesTailCall))
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	require.NoError(t, offerMeter(ctx, r))
	_, err = r.NewHostModuleBuilder("test").NewFunctionBuilder().
		WithFunc(func(ctx context.Context, module api.Module) {
			if err := guide(ctx, memoryView{module.Memory()}, nil); err != nil {
				panic(err)
			}
		}).Export("host").Instantiate(ctx)
	require.NoError(t, err)
	instance, err := r.Instantiate(ctx, rewritten.Source)
	require.NoError(t, err)
	return instance
}

// heap returns the bytes that live in the Go heap.
func heap() int64 {
	debug.FreeOSMemory() // collects, twice where finalizers are in the way
	var stats goruntime.MemStats
	goruntime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestFramesOfCode: the frame sizes in machine code are no less than the stack that calls take, and code that does not
// begin as expected has an unknown frame size.
func TestFramesOfCode(t *testing.T) {
	_, err := framesOf(nil, reflect.Value{})
	if goruntime.GOARCH != "amd64" {
		assert.NoError(t, err)
		return
	}
	require.ErrorIs(t, err, errNoFrames, "code that is not wazero's")
	for _, d := range testsize.Sample(descents(), 4) {
		module := compileSource(t, newEngine(t, Options{}, guide), d.bytes())
		frames, err := framesOf(machineCode(module.compiled))
		require.NoError(t, err)
		require.Greater(t, len(frames), len(d.next))
		depth := deepest(t, module)
		sum := int64(0)
		for _, frame := range frames[1 : 1+len(d.next)] {
			assert.Positive(t, frame)
			sum += frame
		}
		// The stack doubles as it grows, so that up to half of it is not used.
		assert.GreaterOrEqual(t, 2*sum*int64(depth)/int64(len(d.next))+1<<20, stackAt(t, module, depth), d.name)
		assert.LessOrEqual(t, sum*int64(depth)/int64(len(d.next)), int64(promisedStack/2), d.name)
	}
	for _, code := range []string{"", "\x55", "\x55\x48\x89\xe5\x48\x83\xec", "\x55\x48\x89\xe5\x90\x90\x90\x90\x90\x90\x90", "\x90\x48\x89\xe5\x48\x83\xec\x18\x00\x00\x00"} {
		assert.Zero(t, frameAt([]byte(code)), "% x", code)
	}
	assert.EqualValues(t, 0x18, frameAt([]byte("\x55\x48\x89\xe5\x48\x83\xec\x18\x48\x3b\x60")))
	assert.EqualValues(t, 0x1234, frameAt([]byte("\x55\x48\x89\xe5\x48\x81\xec\x34\x12\x00\x00")))
}
