//go:build !race

package engine

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// candidate is a module to be compared.
type candidate struct {
	name     string // slash-separated
	source   []byte
	launches []launch
	refusal  string     // part of the reason why it is refused; empty for one that is not
	rows     [][]uint64 // arguments of exported functions
	fuel     int64      // bounds a call, so that one that never ends is found out
	script   []step     // calls of one instance, after the calls in separate instances
	endless  []string   // calls that do not end within their fuel
}

// step is a call of an exported function.
type step struct {
	function string
	numbers  []uint64
}

// compare runs a module in all forms.
func (m candidate) compare(t *testing.T) tally {
	description, err := wasm.Inspect(m.source)
	if m.refusal != "" && err != nil {
		require.ErrorContains(t, err, m.refusal)
		return tally{refused: 1}
	}
	require.NoError(t, err)
	c := comparison{t: t, candidate: m, description: description, tally: tally{modules: 1}}
	for _, f := range forms() {
		s, err := load(t, f, m.source, description)
		defer s.close()
		if m.refusal != "" {
			require.ErrorContains(t, err, m.refusal)
			return tally{refused: 1}
		}
		require.NoError(t, err, f.name)
		c.sides = append(c.sides, s)
	}
	c.run()
	require.Empty(t, c.candidate.endless, "these calls end")
	return c.tally
}

// compareAll compares each of the modules in a subtest.
func compareAll(t *testing.T, all []candidate) (total tally) {
	t.Helper()
	for _, m := range all {
		t.Run(m.name, func(t *testing.T) { total.add(m.compare(t)) })
	}
	t.Log(total)
	return total
}

// comparison is one module on all sides, the original last.
type comparison struct {
	t           *testing.T
	candidate   candidate
	description *wasm.Module
	sides       []*side
	tally       tally
}

// run calls all that the module exports.
func (c *comparison) run() {
	for _, export := range c.description.Exports {
		switch {
		case export.Kind == wasm.ExternGlobal:
			c.tally.globals++
		case export.Kind == wasm.ExternFunction && export.Name == "_start":
			for _, l := range c.candidate.launches {
				c.function(l, export.Name, [][]uint64{nil})
			}
		case export.Kind == wasm.ExternFunction && export.Name != "_initialize":
			c.function(launch{}, export.Name, c.candidate.rows)
		}
	}
	if c.tally.calls == 0 || len(c.candidate.script) > 0 {
		c.start(launch{})
	}
	for _, s := range c.candidate.script {
		c.step(s)
	}
}

// step makes one call on all sides, and reports whether the instances are still alike.
func (c *comparison) step(made step) bool {
	c.tally.calls++
	key := fmt.Sprintf("%s %v", made.function, made.numbers)
	return c.same(key, func(ctx context.Context, s *side) string { return s.call(ctx, made.function, made.numbers) })
}

// start makes fresh instances and reports whether there are any.
func (c *comparison) start(l launch) bool {
	c.tally.instances++
	c.same("start", func(ctx context.Context, s *side) string { return s.start(ctx, l) })
	started := c.sides[0].instance != nil
	if _, found := c.description.ExportedFunction("_initialize"); found && started {
		c.same("_initialize", func(ctx context.Context, s *side) string { return s.call(ctx, "_initialize", nil) })
	}
	return started
}

// function calls a function of fresh instances, once for each row of numbers.
func (c *comparison) function(l launch, name string, rows [][]uint64) {
	if !c.start(l) {
		return
	}
	for _, row := range rows {
		if c.sides[0].instance.IsClosed() {
			return // the program exited
		}
		if !c.step(step{name, row}) {
			c.start(l)
		}
	}
}

// same does the same on all sides and compares their outputs. It returns false if it did not complete on all of them,
// for want of fuel or stack: then the outputs differ.
func (c *comparison) same(key string, do func(context.Context, *side) string) bool {
	c.t.Helper()
	texts := make([]string, len(c.sides))
	last := len(c.sides) - 1
	for i, s := range c.sides {
		if i == last && c.ended(key, texts[:last]) {
			c.tally.endless++
			return false
		}
		texts[i] = do((&meter{limit: c.candidate.fuel}).with(c.t.Context()), s)
	}
	original := c.sides[last]
	for i, s := range c.sides[:last] {
		if exhausted(texts[last], texts[i]) {
			c.tally.overflows++
			return false
		}
		require.Equal(c.t, texts[last], texts[i], "%s as %s", key, s.form.name)
		require.Empty(c.t, original.memories.unlike(s.memories), "%s as %s", key, s.form.name)
		require.Equal(c.t, original.globals(c.description), s.globals(c.description), "%s as %s", key, s.form.name)
	}
	return true
}

// ended reports whether a call was ended for want of fuel, as exactly the listed calls must be, on all metered sides.
func (c *comparison) ended(key string, metered []string) bool {
	listed := slices.Index(c.candidate.endless, key)
	for _, text := range metered {
		require.Equal(c.t, listed >= 0, strings.Contains(text, ErrFuel.Error()), "%s uses up its fuel: %s", key, text)
	}
	if listed < 0 {
		return false
	}
	c.candidate.endless = slices.Delete(c.candidate.endless, listed, listed+1)
	return true
}

// numbers returns the arguments of calls of exported functions, one row for each call.
func numbers() [][]uint64 {
	return [][]uint64{{0}, {3, 4, 5, 6}, {20, 8, 12, 2}, {16, 7, 1 << 20, 3}, {math.MaxUint32, 1, 1 << 31}}
}

// commands are the ways in which the programs among wazero's modules are started; each
// is started in all of them, most of which it calls wrong.
func commands() []launch {
	lines := []string{"", "tool", "tool /test.txt", "tool ls", "tool ls .", "tool ls . repeat", "tool stat", "tool poll", "tool poll 0 1000",
		"tool sleepmillis 5", "tool open-rdonly", "tool open-wronly", "tool -nums 3,4", "tool 3 4"}
	var launches []launch
	for _, line := range lines {
		launches = append(launches, launch{strings.Fields(line), "standard input\nsecond line\n"})
	}
	return launches
}

// refusals are the features that modules of wazero's need and this engine refuses, by a part
// of the modules' names.
func refusals() map[string]string {
	const exceptions, threads = "needs exception handling, which is not supported", "needs threads, which is not supported"
	return map[string]string{
		"cpp_exceptions.wasm":               exceptions,
		"testdata/eh_":                      exceptions,
		"pthread.wasm":                      threads,
		"testdata/threads/":                 threads,
		"experimental/testdata/memory.wasm": threads,
		"fuzzcases/testdata/2131.wasm":      threads,
		"fuzzcases/testdata/873.wasm":       "so instantiating the module traps",
		"fuzzcases/testdata/874.wasm":       "so instantiating the module traps",
		"experimental/testdata/fac.wasm":    "return_call needs tail calls, which is not supported",
	}
}

// endless are calls of wazero's modules that do not end, or count down from 1<<32.
func endless() map[string][]string {
	return map[string][]string{
		"cmd/wazero/testdata/infinite_loop.wasm":             {"_start []"},
		"internal/integration_test/bench/testdata/case.wasm": {"base64 [4294967295 1 2147483648]"},
		"internal/integration_test/engine/testdata/infinite_loop.wasm": {
			"infinite_loop [0]", "infinite_loop [3 4 5 6]", "infinite_loop [20 8 12 2]", "infinite_loop [16 7 1048576 3]", "infinite_loop [4294967295 1 2147483648]"},
		"testdata/fac.wasm": {"fac-ssa [0]", "fac-ssa [4294967295 1 2147483648]"},
	}
}

func TestModulesOfWazeroBehaveTheSame(t *testing.T) {
	t.Parallel()
	var all []candidate
	sources := modulesBelow(t, moduleFolder(t, "github.com/tetratelabs/wazero"), "spectest")
	for _, name := range testsize.Sample(slices.Sorted(maps.Keys(sources)), 20) {
		source := sources[name]
		m := candidate{name: name, source: source, launches: commands(), rows: numbers(), fuel: 30_000_000, endless: endless()[name]}
		if len(m.endless) == 1 && m.endless[0] == "_start []" {
			m.launches = m.launches[:1]
		}
		if strings.HasSuffix(name, "engine/testdata/recursive.wasm") {
			m.rows = m.rows[:3] // it calls its host as many times as it is told to
		}
		for part, reason := range refusals() {
			if strings.Contains(name, part) {
				m.refusal = reason
			}
		}
		all = append(all, m)
	}
	total := compareAll(t, all)
	assert.Equal(t, testsize.Of(20, 123+16), total.modules+total.refused)
	assert.LessOrEqual(t, total.refused, 16)
}

// modulesBelow reads the modules of a folder, but not those in subfolders of the name that is left out.
func modulesBelow(t *testing.T, root, without string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == without:
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".wasm":
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		found[filepath.ToSlash(name)], err = os.ReadFile(path)
		return err
	})
	require.NoError(t, err)
	return found
}
