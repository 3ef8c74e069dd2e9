//go:build !race

package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// candidate is a module to be compared.
type candidate struct {
	name     string // slash-separated
	source   []byte
	launches []launch
	refusal  string     // part of the reason why it is refused; empty for one that is not
	rows     [][]uint64 // what exported functions are called with
	fuel     int64      // bounds a call, so that one that never ends is found out
	script   []step     // calls of one instance, after those of instances of their own
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

// same does the same on all sides and compares what they show. Where it did not come to its end
// on all of them, for want of fuel or of stack, it returns false: then what they show differs.
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

// ended reports whether a call was ended for want of fuel, as those must be on all metered
// sides that are listed, and no others.
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
