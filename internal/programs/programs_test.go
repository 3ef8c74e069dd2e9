package programs

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// seeds is the number of programs of each kind that the tests generate.
const seeds = 200

// TestEndlessProgramsGoOn checks that endless programs enter an endless loop and stay in it for much
// longer than the generator has run them.
func TestEndlessProgramsGoOn(t *testing.T) {
	for _, generate := range []func(uint64) *Program{Endless, EndlessCommand} {
		for seed := range uint64(seeds / 8) {
			p := generate(seed)
			outcome, err := p.Run(4 * maxFuel)
			require.ErrorIs(t, err, errLong, "program %d\n%s", seed, p)
			require.True(t, outcome.Endless)
		}
	}
}

func TestBoundedProgramsEnd(t *testing.T) {
	var fuel, long, observed int
	for seed := range uint64(seeds) {
		p, want := Bounded(seed)
		again, err := p.Run(maxFuel)
		require.NoError(t, err)
		require.Equal(t, want, again)
		fuel += int(want.Fuel)
		observed += want.Observed.Seen
		if want.Fuel > 1<<15 {
			long++
		}
	}
	assert.Greater(t, fuel/seeds, 500, "mean fuel")
	assert.Greater(t, observed/seeds, 4, "mean number of observed values")
	assert.Positive(t, long, "programs that use much fuel")
}

// TestEqualSeedsMakeEqualPrograms: a seed must identify the program that failed.
func TestEqualSeedsMakeEqualPrograms(t *testing.T) {
	different := map[string]bool{}
	for seed := range uint64(seeds / 4) {
		var modules [][]byte
		for range 2 {
			module, err := Endless(seed).Module()
			require.NoError(t, err)
			modules = append(modules, module)
		}
		require.True(t, bytes.Equal(modules[0], modules[1]), seed)
		different[string(modules[0])] = true
	}
	assert.Len(t, different, seeds/4)
}

// TestProgramsAreOfAllKinds checks that some program has each construct that metering might get
// wrong, and that endless commands import only WASI.
func TestProgramsAreOfAllKinds(t *testing.T) {
	var bounded, endless strings.Builder
	for seed := range uint64(seeds) {
		p, _ := Bounded(seed)
		bounded.WriteString(p.String())
		endless.WriteString(Endless(seed).String())
		if seed%4 > 0 {
			continue
		}
		for _, i := range EndlessCommand(seed).Imports {
			assert.Equal(t, WASIModule, i.Module)
		}
	}
	for name, text := range map[string]string{"bounded": bounded.String(), "endless": endless.String()} {
		for _, construct := range []string{
			"br ", "br_if ", "br_table ", "return\n", "call ", "call_indirect", "unreachable\n", "nop\n", "select\n", "drop\n",
			"block ", "loop ", "if ", "else\n", "memory.fill", "memory.copy", "memory.init", "memory.grow",
			"table.get", "table.set", "table.grow", "table.fill", "table.copy", "table.init", "(start ",
			`"_initialize"`, `"plugin"`, `"_start"`, "(param i32 i64)", "(result i64 i32)", "$function",
			`;; library "a"`, `;; library "c"`, `(import "a" "f0"`, `(import "b" "descend"`, `(import "a" "tell"`, `(export "progress"`,
		} {
			assert.Contains(t, text, construct, name)
		}
	}
}

// TestInterpreterCounts pins the cost model.
func TestInterpreterCounts(t *testing.T) {
	back := &Node{Op: loopOp}
	back.Body = code{jumpTo(brIfOp, back, node(i32GtS, with(localTee, 0, node(i32Sub, with(localGet, 0), number(1))), number(0)))}
	for _, c := range []struct {
		name string
		body code
		want int64
	}{
		{"nothing", nil, 0},
		{"an instruction", code{node(dropOp, number(1))}, 2},
		{"what is free", code{node(nopOp), {Op: blockOp, Body: code{{Op: loopOp}}}}, 0},
		{"an if counts, and its else does not", code{{Op: ifOp, Args: code{number(0)}, Body: code{node(unreachableOp)}, Else: code{node(nopOp)}, HasElse: true}}, 2},
		{"rounds", code{with(localSet, 0, number(3)), back}, 2 + 3*7},
		{"code that is not reached", code{node(returnOp), node(unreachableOp)}, 1},
		{"growth", code{node(dropOp, node(memoryGrow, number(1)))}, 2 + 4096},
		{"growth of a table", code{node(dropOp, with(tableGrow, 1, with(refNull, int(funcref)), number(1)))}, 3 + 4096},
		{"bytes", code{node(memoryFill, number(0), number(1), number(33))}, 4 + 2},
		{"elements", code{with(tableFill, 1, number(0), with(refNull, int(funcref)), number(3))}, 4 + 3},
		{"a call", code{call(0)}, 1},
	} {
		p := &Program{Start: -1, Entry: "run", Pages: 1, Exports: []Export{{"run", 0}}}
		body := c.body
		if c.name == "a call" {
			p.Functions = append(p.Functions, &Function{Body: code{call(1)}})
			body = nil
		}
		p.Functions = append(p.Functions, &Function{Locals: []Type{I32}, Body: body})
		outcome, err := p.Run(maxFuel)
		require.NoError(t, err, c.name)
		assert.Equal(t, c.want, outcome.Fuel, c.name)
	}
}

// TestEndlessProgramsRecurse: many endless programs call so deep that the work on the way back by itself is more than
// may be untested, and have libraries that do so.
func TestEndlessProgramsRecurse(t *testing.T) {
	var deep, deepLibraries, linked int
	for seed := range uint64(seeds / 2) {
		p := Endless(seed)
		all, err := p.execute(2*maxFuel, func(*run) {})
		require.ErrorIs(t, err, errLong)
		linked += len(p.Libraries)
		for _, m := range all {
			switch {
			case m.deepest < 1<<20:
			case m.name == "":
				deep++
			default:
				deepLibraries++
			}
		}
	}
	t.Logf("%d of %d call deep; %d libraries, of which %d do", deep, seeds/2, linked, deepLibraries)
	assert.Greater(t, deep, seeds/20)
	assert.Greater(t, linked, seeds/10)
	assert.Positive(t, deepLibraries)
}

// TestTraceCountsExecuted pins what a trace says of a program and its library.
func TestTraceCountsExecuted(t *testing.T) {
	library := attackOf()
	library.Functions[0] = &Function{Body: code{increment(attackProgress), node(dropOp, number(0)), increment(attackProgress)}}
	p := attackOf().with("a", library)
	p.Functions[0].Body = code{increment(attackProgress), call(attackImport), {Op: blockOp, Body: code{increment(attackProgress)}}}
	trace, err := p.Trace(100)
	require.NoError(t, err)
	assert.Equal(t, Trace{Steps: map[string][]int64{"": {4, 19}, "a": {9, 15}}, Executed: 19}, trace)
	short, err := p.Trace(12)
	require.NoError(t, err)
	assert.Equal(t, Trace{Steps: map[string][]int64{"": {4}, "a": {9}}, Executed: 13}, short)
	p.Functions[0].Body = code{node(unreachableOp)}
	_, err = p.Trace(100)
	assert.Error(t, err)
}

// TestAttacksWorkOnTheWayBack: nearly all that attacks execute follows their deepest call, or is in a
// library.
func TestAttacksWorkOnTheWayBack(t *testing.T) {
	const down = 2_000_000
	for _, a := range WayBackAttacks() {
		all, err := a.execute(down, func(*run) {})
		require.ErrorIs(t, err, errLong, a.Name)
		deepest := 0
		for _, m := range all {
			deepest = max(deepest, m.deepest)
		}
		assert.Greater(t, deepest, 4<<20, a.Name)
	}
	for _, a := range LibraryAttacks() {
		trace, err := a.Trace(down)
		require.NoError(t, err)
		assert.Greater(t, int64(len(trace.Steps["a"])), int64(down/70), a.Name)
	}
}

// TestInterpreterStops at traps, and at its limits.
func TestInterpreterStops(t *testing.T) {
	forever := &Node{Op: loopOp}
	forever.Body = code{jumpTo(brOp, forever)}
	for _, c := range []struct {
		name string
		node *Node
		want error
	}{
		{"endless loop", forever, errLong},
		{"endless recursion", call(0), errDeep},
		{"unreachable", node(unreachableOp), nil},
		{"out of bounds", node(memoryFill, number(-1), number(0), number(9)), nil},
	} {
		p := &Program{Start: -1, Entry: "run", Pages: 1, Exports: []Export{{"run", 0}}, Functions: []*Function{{Body: code{c.node}}}}
		_, err := p.Run(1_000_000)
		require.Error(t, err, c.name)
		assert.True(t, c.want == nil || errors.Is(err, c.want), "%s: %v", c.name, err)
	}
}

// TestShrink shrinks a program that fails because it grows its memory to little more than that.
func TestShrink(t *testing.T) {
	for seed := range uint64(100) {
		p, _ := Bounded(seed)
		grows := func() bool {
			_, err := p.Run(maxFuel)
			return err == nil && strings.Contains(p.String(), "memory.grow")
		}
		if !grows() {
			continue
		}
		Shrink(p, grows, time.Now().Add(10*time.Second))
		require.True(t, grows())
		nodes := 0
		for _, f := range p.Functions {
			nodes += count(f.Body)
		}
		assert.LessOrEqual(t, nodes, 2*len(p.Functions)+4, "%s", p)
		return
	}
	t.Fatal("no program grows the memory")
}

func count(nodes code) int {
	n := len(nodes)
	for _, inner := range nodes {
		n += count(inner.Args) + count(inner.Body) + count(inner.Else)
	}
	return n
}
