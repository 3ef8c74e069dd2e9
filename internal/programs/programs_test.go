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

// seeds is how many programs of each kind the tests generate.
const seeds = 300

// TestEndlessProgramsGoOn checks that endless programs enter an endless loop and stay in it for much
// longer than the generator has run them.
func TestEndlessProgramsGoOn(t *testing.T) {
	for _, generate := range []func(uint64) *Program{Endless, EndlessCommand} {
		for seed := range uint64(seeds / 5) {
			p := generate(seed)
			outcome, err := p.Run(4 * mostFuel)
			require.ErrorIs(t, err, errLong, "program %d\n%s", seed, p)
			require.True(t, outcome.Endless)
		}
	}
}

func TestBoundedProgramsEnd(t *testing.T) {
	var fuel, long, observed int
	for seed := range uint64(seeds) {
		p, want := Bounded(seed)
		again, err := p.Run(mostFuel)
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
	for seed := range uint64(seeds) {
		var modules [][]byte
		for range 2 {
			module, err := Endless(seed).Module()
			require.NoError(t, err)
			modules = append(modules, module)
		}
		require.True(t, bytes.Equal(modules[0], modules[1]), seed)
		different[string(modules[0])] = true
	}
	assert.Len(t, different, seeds)
}

// TestProgramsAreOfAllKinds checks that some program has each construct that metering might get
// wrong, and that endless commands import only WASI.
func TestProgramsAreOfAllKinds(t *testing.T) {
	var bounded, endless strings.Builder
	for seed := range uint64(seeds) {
		p, _ := Bounded(seed)
		bounded.WriteString(p.String())
		endless.WriteString(Endless(seed).String())
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
		outcome, err := p.Run(mostFuel)
		require.NoError(t, err, c.name)
		assert.Equal(t, c.want, outcome.Fuel, c.name)
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
		_, err := p.Run(1000)
		require.Error(t, err, c.name)
		assert.True(t, c.want == nil || errors.Is(err, c.want), "%s: %v", c.name, err)
	}
}

// TestShrink shrinks a program that fails because it grows its memory to little more than that.
func TestShrink(t *testing.T) {
	for seed := range uint64(100) {
		p, _ := Bounded(seed)
		grows := func() bool {
			_, err := p.Run(mostFuel)
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
