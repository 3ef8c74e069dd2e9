//go:build !race

package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero/api"

	"github.com/caisson-run/caisson/internal/testsize"
)

const isolationLimit = 8 * mebibyte // of the memory of a run

// subject is a way of running the scripted guest, in its own engine.
type subject struct {
	engine *Engine
	key    poolKey
	run    func(context.Context, int64) (Usage, error) // with so much fuel
	make   func(context.Context) (*instance, error)    // as run does where the pool is empty
	start  int64                                       // the fuel that a run pays for that
}

// variant is a kind of subject.
type variant struct {
	guest    scripted
	resumed  bool // each run resumes a program that was started once
	scanning bool // resets find out which pages were written
}

func (v variant) String() string {
	return fmt.Sprintf("maximum %d, reactor %t, resumed %t, scanning %t", v.guest.maximum, v.guest.reactor, v.resumed, v.scanning)
}

// subject returns one whose idle instances may take so many bytes; 0: any number.
func (v variant) subject(t *testing.T, idleBytes int64) *subject {
	t.Helper()
	e := newEngine(t, Options{Functions: scriptFunctions(), IdleBytes: idleBytes}, nil)
	if !v.scanning {
		require.NoError(t, e.pages.close())
		e.pages = nil
	}
	module, err := e.Compile(t.Context(), v.guest.bytes())
	require.NoError(t, err)
	require.Empty(t, module.rewritten.Unrestorable)
	e.occupyStarts()
	if v.resumed {
		return resumedSubject(t, module)
	}
	s := &subject{engine: e, key: poolKey{module, isolationLimit}}
	s.run = func(ctx context.Context, fuel int64) (Usage, error) {
		return module.Run(ctx, Run{Function: "_start", MemoryLimit: isolationLimit, Fuel: fuel})
	}
	s.make = func(ctx context.Context) (*instance, error) {
		i, err := module.instantiate(ctx, isolationLimit)
		return i, err
	}
	return s
}

func resumedSubject(t *testing.T, module *Module) *subject {
	t.Helper()
	p, err := module.Start(t.Context(), Start{MemoryLimit: isolationLimit, Timeout: time.Minute, Fuel: 1 << 40,
		Context: asItIs})
	require.NoError(t, err)
	start := p.Cost().Fuel
	if p.reactor { // it is copied
		start = 0
	}
	return &subject{engine: module.engine, key: p.key(), start: start,
		run: func(ctx context.Context, fuel int64) (Usage, error) {
			return p.Run(ctx, Run{Function: "run", Fuel: fuel})
		},
		make: func(ctx context.Context) (*instance, error) {
			i, _, err := p.another(ctx, 0, nil)
			return i, err
		}}
}

// pooled returns the idle instances.
func (s *subject) pooled() []*instance {
	s.engine.idle.mu.Lock()
	defer s.engine.idle.mu.Unlock()
	if shelf := s.engine.idle.shelves[s.key]; shelf != nil {
		return slices.Clone(shelf.waiting)
	}
	return nil
}

// watchedMeter calls ended when the engine reads the meter after a run, before it resets the instance.
type watchedMeter struct {
	api.MutableGlobal
	ended func()
}

func (w watchedMeter) Get() uint64 {
	w.ended()
	return w.MutableGlobal.Get()
}

// watch calls ended between the end of each run of the instance and the reset, until stop is called.
func (i *instance) watch(ended func()) (stop func()) {
	meter := i.meter
	i.meter = watchedMeter{meter, ended}
	return func() { i.meter = meter }
}

// outcome is the visible result of a run.
type outcome struct {
	reports []uint64
	ended   string
	usage   Usage
}

// perform runs a script.
func (s *subject) perform(ctx context.Context, what script, in *session) (outcome, error) {
	ctx, in.cancel = context.WithCancel(context.WithValue(ctx, sessionKey{}, in))
	defer in.cancel()
	if what.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, what.timeout)
		defer cancel()
	}
	in.script, in.memory = what.operations, firstPages<<16
	usage, err := s.run(ctx, what.fuel)
	return outcome{in.reports, fmt.Sprint(err), usage}, err
}

// unlike reports how an instance differs from the state of one that nothing has run in. Bytes beyond its memory, up to
// the peak of the runs before, must be as the system provides them.
func (i *instance) unlike(want state, peak int64) string {
	switch got := i.memory.contents(); {
	case len(got) != len(want.memory) || int(i.wasm.Memory().Size()) != len(want.memory):
		return fmt.Sprintf("the memory has %d bytes, for the guest %d, not %d", len(got), i.wasm.Memory().Size(), len(want.memory))
	case !bytes.Equal(got, want.memory):
		return fmt.Sprintf("the memory differs from byte %d on", difference(got, want.memory))
	case !slices.Equal(i.values(), want.globals):
		return fmt.Sprintf("the globals are %x, not %x", i.values(), want.globals)
	}
	if beyond := i.memory.reserved[len(want.memory):max(int(peak), len(want.memory))]; !zero(beyond) {
		return "something is left beyond the memory"
	}
	return ""
}

// zero reports whether there is nothing in a whole number of system pages.
func zero(memory []byte) bool {
	var empty [systemPageSize]byte
	for page := range slices.Chunk(memory, systemPageSize) {
		if !bytes.Equal(page, empty[:]) {
			return false
		}
	}
	return true
}

func difference(a, b []byte) int {
	for n := range a {
		if a[n] != b[n] {
			return n
		}
	}
	return -1
}

// isolation is the property: whatever ran before, an instance from the pool is as one that
// nothing has run in.
type isolation struct {
	maker
	variant
	pooled *subject
	fresh  *subject // its pool keeps nothing
	want   state    // of an instance that nothing has run in

	reused, discarded map[string]int // by how the run before ended
	changed           int            // runs that were seen to leave traces, before the reset
	flooded           int            // runs that wrote to more pages than are kept
}

func (v variant) isolation(t *testing.T, seed, stream uint64) *isolation {
	t.Helper()
	p := &isolation{variant: v, pooled: v.subject(t, 0), fresh: v.subject(t, 1), reused: map[string]int{}, discarded: map[string]int{},
		maker: maker{rand.New(rand.NewPCG(seed, stream)), v.guest.maximum == 0}}
	i, err := p.fresh.make(t.Context())
	require.NoError(t, err)
	defer i.close(t.Context())
	p.want = i.state()
	p.refill(t)
	return p
}

// refill makes sure that the pool holds one instance.
func (p *isolation) refill(t *testing.T) {
	t.Helper()
	for len(p.pooled.pooled()) > 1 { // a start makes two
		p.pooled.engine.idle.take(p.pooled.key).close(t.Context())
	}
	if len(p.pooled.pooled()) == 0 {
		_, err := p.pooled.perform(t.Context(), script{}, &session{})
		require.NoError(t, err)
	}
	require.Len(t, p.pooled.pooled(), 1)
}

// sequence runs a script in the pooled instance, and reports how the instance then differs from a new one.
func (p *isolation) sequence(t *testing.T, what script) (peak int64, wrong string) {
	i := p.pooled.pooled()[0]
	if p.IntN(3) == 0 {
		pressMemory(p.Rand, i)
	}
	// Looking at an instance makes pages present, so not each time.
	ended, looking, pressing := 0, p.IntN(4) == 0, p.IntN(2) == 0
	defer i.watch(func() {
		ended++
		if looking && i.unlike(p.want, 0) != "" {
			p.changed++
		}
		if pressing {
			pressMemory(p.Rand, i)
		}
	})()
	in := &session{press: func() { pressMemory(p.Rand, i) }}
	got, err := p.pooled.perform(t.Context(), what, in)
	if what.floods >= 0 && in.read > what.floods {
		p.flooded++
	}
	if ended != 1 {
		return 0, fmt.Sprintf("%d runs were in the instance of the pool", ended)
	}
	return got.usage.MemoryBytes, p.judge(i, got.usage.MemoryBytes, err)
}

// judge checks the instance after a run.
func (p *isolation) judge(before *instance, peak int64, err error) string {
	end, after := kindOf(err), p.pooled.pooled()
	overflowed := end == stackOverflow && before.stack == nil // a resumed program gets its short stack back
	if errors.Is(err, ErrHost) || overflowed {
		p.discarded[end]++
		if len(after) != 0 {
			return "the instance is used again after " + end
		}
		return ""
	}
	p.reused[end]++
	if len(after) != 1 || after[0] != before {
		return "the instance is not used again after " + end
	}
	return before.unlike(p.want, peak)
}

// probe compares a run in the instance of the pool with one in a new instance.
func (p *isolation) probe(t *testing.T, peak int64) string {
	what := p.maker.probe(int(peak >> 16))
	if i := p.pooled.pooled()[0]; p.IntN(3) == 0 {
		pressMemory(p.Rand, i)
	}
	got, err := p.pooled.perform(t.Context(), what, &session{})
	if what.fuel > 0 {
		what.fuel += p.fresh.start
	}
	want, _ := p.fresh.perform(t.Context(), what, &session{})
	want.usage.Fuel, want.usage.Started = want.usage.Fuel-p.fresh.start, 0
	if !assert.ObjectsAreEqual(want, got) {
		return fmt.Sprintf("%s came to\n%+v, in a new instance to\n%+v", what, got, want)
	}
	p.reused["probe: "+kindOf(err)]++
	return ""
}

// TestRunsAreIsolated: thousands of random scripts in instances of the pool, which trap, grow, exit, are stopped, run
// out of fuel, make the host panic and write everywhere, with the memory under pressure in between. After each, the
// instance is byte for byte like a new one, or gone, and the next run in it has the same outcome as in a new one.
func TestRunsAreIsolated(t *testing.T) {
	each := testsize.Of(50, 400)
	seed := rand.Uint64()
	ends, flooded := map[string]int{}, 0
	for stream, v := range variants() {
		t.Run(v.String(), func(t *testing.T) {
			p := v.isolation(t, seed, uint64(stream))
			// A small sample may leave few traces by chance, and is made larger then.
			for n := 0; n < each || p.changed <= each/8 && n < 4*each; n++ {
				what := p.any()
				peak, wrong := p.sequence(t, what)
				require.Empty(t, wrong, "seed %#x, sequence %d: %s", seed, n, what)
				p.refill(t)
				require.Empty(t, p.probe(t, peak), "seed %#x, sequence %d, after %s", seed, n, what)
				p.refill(t)
			}
			t.Logf("reused after %v\ndiscarded after %v\n%d floods, %d of about %d that were looked at left traces", p.reused, p.discarded, p.flooded, p.changed, each/4)
			assert.Greater(t, p.changed, each/8, "runs leave traces that a reset is to remove")
			for end, count := range p.reused {
				ends[end] += count
			}
			ends[stackOverflow] += p.discarded[stackOverflow] // which leaves a long stack
			flooded += p.flooded
		})
	}
	for _, end := range []string{"returned", "unreachable", "out of bounds memory access", "integer divide by zero", "integer overflow",
		"invalid table access", "indirect call type mismatch", stackOverflow, "fuel", "deadline", "cancelled", "host error", "exit"} {
		assert.Greater(t, ends[end], testsize.Of(0, 10), "%s among %v", end, slices.Sorted(maps.Keys(ends)))
	}
	assert.Greater(t, flooded, testsize.Of(0, 10))
	assert.Greater(t, floodPages<<16, mostKeptBytes)
}

// variants are all kinds of subjects.
func variants() (all []variant) {
	for _, maximum := range []int{0, 24} {
		for _, scanning := range []bool{true, false} {
			for _, resumed := range []bool{false, true} {
				all = append(all, variant{scripted{maximum: maximum}, resumed, scanning})
			}
			all = append(all, variant{scripted{maximum, true}, true, scanning})
		}
	}
	return all
}

// flaw is a reset that forgets something: after a complete one, it restores a part of the state that a run had left,
// and reports whether that differs from a new instance.
type flaw struct {
	name  string
	leave func(i *instance, left state) bool
}

// flaws are all of them, first the reset that does nothing.
func flaws() []flaw {
	return []flaw{
		{"everything", func(i *instance, left state) bool {
			size, memory, globals := leaveSize(i, left), leaveMemory(i, left, 0), leaveGlobals(i, left)
			return size || memory || globals
		}},
		{"the globals", leaveGlobals},
		{"the pages that the image does not have", func(i *instance, left state) bool {
			return leaveMemory(i, left, len(i.memory.image.memory))
		}},
		{"the size of the memory", leaveSize},
	}
}

func leaveGlobals(i *instance, left state) bool {
	for n, global := range i.globals {
		global.Set(left.globals[n])
	}
	return !slices.Equal(left.globals, i.memory.image.globals)
}

// leaveMemory leaves the contents of the memory from a byte on.
func leaveMemory(i *instance, left state, from int) bool {
	i.wroteUnseen()
	image := make([]byte, len(left.memory))
	copy(image, i.memory.image.memory)
	copy(i.memory.reserved[from:], left.memory[from:])
	return !bytes.Equal(image[from:], left.memory[from:])
}

func leaveSize(i *instance, left state) bool {
	more := len(left.memory) - len(i.memory.image.memory)
	_, grown := i.wasm.Memory().Grow(uint32(more >> 16))
	return grown && more > 0
}

// TestIsolationNoticesMissingResets is the control of TestRunsAreIsolated: with a reset that forgets one thing, the
// instance differs from a new one wherever a run left that, and so does the next run in it.
func TestIsolationNoticesMissingResets(t *testing.T) {
	each := testsize.Of(30, 60)
	seed := rand.Uint64()
	for _, f := range flaws() {
		for _, resumed := range []bool{false, true} {
			t.Run(f.name, func(t *testing.T) {
				p := variant{scripted{}, resumed, true}.isolation(t, seed, 0)
				leaving, noticed := 0, 0
				for n := range each {
					what := p.any()
					left, byBytes, byProbe := p.flawed(t, what, f)
					require.Equal(t, left, byBytes, "seed %#x, sequence %d: %s", seed, n, what)
					switch {
					case left && byProbe:
						noticed++
						fallthrough
					case left:
						leaving++
					default:
						require.False(t, byProbe, "seed %#x, sequence %d: %s", seed, n, what)
					}
					p.refill(t)
					require.Empty(t, p.pooled.pooled()[0].unlike(p.want, 0), "the run after the flaw is reset as a whole")
				}
				t.Logf("%d of %d runs leave something, a run after that notices %d", leaving, each, noticed)
				assert.Greater(t, leaving, each/10)
				// A run does not notice bytes that it overwrites before it reads them, as its start does.
				assert.Greater(t, noticed, leaving/4)
			})
		}
	}
}

// flawed runs a script and resets the instance with a flaw. It says whether that left
// anything, and whether the instance, and a run in it, are seen to be unlike a new one.
func (p *isolation) flawed(t *testing.T, what script, f flaw) (left, byBytes, byProbe bool) {
	t.Helper()
	i := p.pooled.pooled()[0]
	var remains state
	stop := i.watch(func() { remains = i.state() })
	got, _ := p.pooled.perform(t.Context(), what, &session{press: func() {}})
	stop()
	if len(p.pooled.pooled()) == 0 {
		return false, false, false // it is not used again
	}
	left = f.leave(i, remains)
	byBytes = i.unlike(p.want, got.usage.MemoryBytes) != ""
	return left, byBytes, p.probe(t, got.usage.MemoryBytes) != ""
}
