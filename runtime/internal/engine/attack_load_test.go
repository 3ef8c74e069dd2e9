//go:build !race

package engine_test

import (
	"bytes"
	"context"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"

	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/runtime"
)

// module is a module that is expensive to compile.
type module struct {
	name   string
	source []byte
	// says is part of the refusal; empty for a module that is compiled, in a child.
	says string
	// slow: in plain wazero, compiling it takes longer than the time limit of compilations.
	slow bool
	// late: in plain wazero, compiling it continues after the deadline of its context.
	late bool
	// costs is the minimum host memory that compiling it in plain wazero takes.
	costs int64
}

const (
	promisedRefusal = 2 * time.Second
	compiling       = time.Second // that a slow module takes at least
)

func modules() []module {
	one := func(code ...[]byte) []byte { return guest{body: slices.Concat(code...)}.bytes() }
	nested := func(n int) []byte {
		return one(bytes.Repeat([]byte{0x02, 0x40}, n), bytes.Repeat([]byte{0x0b}, n))
	}
	ifs := func(n int) []byte { return one(bytes.Repeat([]byte{0x41, 0, 0x04, 0x40, 0x0b}, n)) }
	labels := func(n int) []byte {
		return one([]byte{0x41, 0, 0x0e}, unsigned(uint64(n-1)), make([]byte, n))
	}
	locals := func(n uint64) []byte {
		return guest{locals: slices.Concat([]byte{1}, unsigned(n), []byte{0x7e})}.bytes()
	}
	return []module{
		{name: "nested blocks of 29 KB", source: nested(9_700), late: true},
		{name: "nested blocks of 58 KB", source: nested(19_400), says: "blocks inside one another", slow: true},
		{name: "nested blocks of 117 KB", source: nested(39_000), says: "blocks inside one another", slow: true},
		{name: "nested blocks of 292 KB", source: nested(97_400), says: "blocks inside one another", slow: true},
		{name: "100000 ifs in a row", source: ifs(100_000), says: "blocks", slow: true},
		{name: "br_table with a million labels", source: labels(1_000_000), says: "labels in br_table", slow: true},
		{name: "100 million locals in a few bytes", source: locals(100_000_000), says: "locals", costs: 1 << 30},
		{name: "one local too many", source: locals(50_001), says: "locals"},
		{name: "a body that is too large", source: one(bytes.Repeat([]byte{0x41, 0, 0x1a}, 1_700_000)), says: "bytes", costs: 100 * mebibyte},
		{name: "a million functions and one", source: many(1_000_001), says: "functions", costs: 100 * mebibyte},
		{name: "100000 functions", source: many(100_000)},
		{name: "a table with a minimum of 134 million elements", source: guest{table: []byte{0x70, 0, 0xff, 0xff, 0xff, 0x3f}}.bytes(), says: "elements"},
	}
}

// many is a module of so many empty functions.
func many(n int) []byte {
	start := slices.Concat([]byte{1}, text("_start"), []byte{0, 0})
	return slices.Concat(header, section(1, []byte{1, 0x60, 0, 0}), section(3, unsigned(uint64(n)), make([]byte, n)), section(7, start),
		section(10, unsigned(uint64(n)), bytes.Repeat([]byte{2, 0, 0x0b}, n)))
}

// lies is a module for each vector of the format that claims 4294967295 elements.
func lies() []module {
	claim := []byte{0xff, 0xff, 0xff, 0xff, 0x0f}
	open := func(id byte, content ...byte) []byte {
		return slices.Concat(header, section(id, content, claim))
	}
	body := slices.Concat(header, section(1, []byte{1, 0x60, 0, 0}), section(3, []byte{1, 0}), section(10, []byte{1, 5}, claim))
	named := func(subsection byte, content ...byte) []byte {
		subsections := slices.Concat([]byte{subsection}, unsigned(uint64(len(content)+len(claim))), content, claim)
		return append(exiting.bytes(), section(0, text("name"), subsections)...)
	}
	group := append([]byte{1}, claim...) // one group of locals
	all := []module{{name: "locals of a group", source: guest{locals: append(group, 0x7e)}.bytes(), says: "4294967295 locals"}}
	for name, source := range map[string][]byte{
		"types": open(1), "parameters": open(1, 1, 0x60), "results": open(1, 1, 0x60, 0), "imports": open(2), "functions": open(3),
		"tables": open(4), "memories": open(5), "globals": open(6), "exports": open(7), "element segments": open(9),
		"elements": open(9, 1, 1, 0), "bodies": open(10), "groups of locals": body, "data segments": open(11),
		"function names": named(1), "local names": named(2),
	} {
		all = append(all, module{name: name, source: source, says: "claims 4294967295 " + strings.ReplaceAll(name, "bodies", "functions")})
	}
	slices.SortFunc(all, func(a, b module) int { return strings.Compare(a.name, b.name) })
	return all
}

// TestAttackLoad: a module that is too costly to compile is refused before the compiler sees it, and the cost of
// compiling an accepted one falls on a child process.
func TestAttackLoad(t *testing.T) {
	all := testsize.Sample(append(modules(), lies()...), 6)
	eachTrial(t, all, func(m module) trial { return trial{name: m.name, patience: time.Minute} }, module.perform, func(m module, t *testing.T, e ending) {
		require.True(t, e.reported, "the host did not survive: %s", e.output)
		t.Logf("%d bytes took %s and %d MiB over a baseline of %d MiB; %s", len(m.source),
			slices.Min(e.Over).Round(time.Millisecond), e.grown()>>20, e.Baseline>>20, e.Problem)
		assert.LessOrEqual(t, e.grown(), int64(promisedMemory))
		assert.Empty(t, e.Survivor)
		if m.says == "" || strings.HasSuffix(m.name, "names") { // names do not matter, so they are left out
			assert.Empty(t, e.Problem)
			return
		}
		assert.Contains(t, e.Problem, m.says)
		assert.LessOrEqual(t, slices.Min(e.Over), promisedRefusal)
	})
}

func (m module) perform(t *testing.T) report {
	r := newRuntime(t, runtime.Options{Compiler: runtime.ChildCompiler(t.Context())})
	hostile, innocent := load(t, r, m.source, ""), load(t, r, guest{}.bytes(), "")
	goruntime.GC()
	resetPeak(t)
	result := report{Baseline: resident(t, "VmRSS")}
	begin()
	start := time.Now()
	if err := hostile.Prepare(t.Context()); err != nil {
		assert.ErrorIs(t, err, runtime.ErrModule)
		result.Problem = err.Error()
	}
	result.Over = []time.Duration{time.Since(start)}
	result.Peak = resident(t, "VmHWM")
	if err := innocently(t, innocent); err != nil {
		result.Survivor = err.Error()
	}
	return result
}

// TestAttackLoadControl: plain wazero compiles the same modules at great cost.
func TestAttackLoadControl(t *testing.T) {
	eachTrial(t, testsize.Sample(modules(), 1), func(m module) trial {
		if m.slow {
			return trial{m.name, compiling, m.costs > 0}
		}
		return trial{m.name, time.Minute, m.costs > 0}
	}, module.plainly, func(m module, t *testing.T, e ending) {
		t.Logf("%d MiB; killed: %v; %s", e.grown()>>20, e.killed, e.Problem)
		if m.slow {
			assert.True(t, e.killed && !e.reported, "it was compiled in time")
			return
		}
		require.True(t, e.reported, e.output)
		assert.Empty(t, e.Problem, "wazero takes it")
		if m.late {
			assert.Positive(t, slices.Min(e.Over))
		}
		if e.Baseline > 0 && m.costs > 0 {
			assert.GreaterOrEqual(t, e.grown(), m.costs)
		}
	})
}

func (m module) plainly(t *testing.T) report {
	r := wazero.NewRuntime(t.Context())
	resetPeak(t)
	result := report{Baseline: resident(t, "VmRSS")}
	ctx, cancel := context.WithTimeout(t.Context(), briefly) // which CompileModule does not look at
	defer cancel()
	begin()
	start := time.Now()
	if _, err := r.CompileModule(ctx, m.source); err != nil {
		result.Problem = err.Error()
	}
	result.Over = []time.Duration{time.Since(start) - briefly}
	result.Peak = resident(t, "VmHWM")
	return result
}
