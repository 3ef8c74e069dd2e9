package answers_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor/internal/answers"
)

func TestBarrierForgetsItsDomains(t *testing.T) {
	for name, test := range map[string]struct {
		barrier []string
		left    []string
	}{
		"none":    {nil, []string{"a", "both", "b", "none"}},
		"one":     {[]string{"A"}, []string{"b", "none"}},
		"other":   {[]string{"B"}, []string{"a", "none"}},
		"both":    {[]string{"A", "B"}, []string{"none"}},
		"twice":   {[]string{"A", "A"}, []string{"b", "none"}},
		"unknown": {[]string{"C"}, []string{"a", "both", "b", "none"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCache(t, 100)
			put(c, question("a", "A"), sized{1, 10})
			put(c, question("both", "A", "B", "A"), sized{2, 10})
			put(c, question("b", "B"), sized{3, 10})
			put(c, question("none"), sized{4, 10})
			end := c.Barrier(test.barrier...)
			assert.Equal(t, len(test.left), c.Len())
			assert.Equal(t, int64(10*len(test.left)), c.Bytes())
			end()
			for _, key := range test.left {
				assert.True(t, has(c, key), key)
			}
		})
	}
}

func TestPutAcrossBarriers(t *testing.T) {
	q := question("k", "A", "B")
	for name, test := range map[string]struct {
		before func(c *cache) // the generation
		after  func(c *cache)
		kept   bool
	}{
		"none":             {nil, nil, true},
		"over before":      {func(c *cache) { c.Barrier("A")() }, nil, true},
		"of another":       {nil, func(c *cache) { c.Barrier("C") }, true},
		"began":            {nil, func(c *cache) { c.Barrier("B") }, false},
		"began and ended":  {nil, func(c *cache) { c.Barrier("A")() }, false},
		"under way":        {func(c *cache) { c.Barrier("A") }, nil, false},
		"under way, named": {func(c *cache) { c.Barrier("C", "B") }, nil, false},
		"one of two ended": {func(c *cache) { c.Barrier("A"); c.Barrier("A")() }, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCache(t, 100)
			if test.before != nil {
				test.before(c)
			}
			generation := c.Began(q.Domains)
			if test.after != nil {
				test.after(c)
			}
			c.Put(q, generation, sized{1, 1})
			assert.Equal(t, test.kept, has(c, "k"))
		})
	}
}

// TestBarrierEndsOnce: a second call of end must not end another barrier.
func TestBarrierEndsOnce(t *testing.T) {
	c := newCache(t, 100)
	q := question("k", "A")
	end, endOther := c.Barrier("A"), c.Barrier("A")
	end()
	end()
	put(c, q, sized{1, 1})
	assert.False(t, has(c, "k"), "the other is under way")
	during := c.Began(q.Domains)
	endOther()
	c.Put(q, during, sized{1, 1})
	assert.False(t, has(c, "k"), "the other was under way")
	after := c.Began(q.Domains)
	end()
	c.Put(q, after, sized{1, 1})
	assert.True(t, has(c, "k"), "an end that was called before is none")
}

// TestGenerationIsOfItsDomains: a barrier in a domain that the generation does not know of
// would go unnoticed.
func TestGenerationIsOfItsDomains(t *testing.T) {
	c := newCache(t, 100)
	for _, generation := range []answers.Generation{{}, c.Began([]string{"A"}), c.Began([]string{"B", "A"}), c.Began([]string{"A", "B", "C"})} {
		c.Put(question("k", "A", "B"), generation, sized{1, 1})
		assert.Zero(t, c.Len())
	}
	c.Put(question("k", "A", "B"), c.Began([]string{"A", "B"}), sized{1, 1})
	assert.Equal(t, 1, c.Len())
}

func TestAnswerThatIsFoundAcrossBarriers(t *testing.T) {
	q := question("k", "A")
	for name, test := range map[string]struct {
		during func(c *cache)
		kept   bool
	}{
		"none":            {func(*cache) {}, true},
		"of another":      {func(c *cache) { c.Barrier("B")() }, true},
		"began":           {func(c *cache) { c.Barrier("A") }, false},
		"began and ended": {func(c *cache) { c.Barrier("A")() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCache(t, 100)
			answer, from, err := c.Do(t.Context(), q, func(context.Context) (sized, bool) {
				test.during(c)
				return sized{1, 1}, true
			})
			require.NoError(t, err)
			assert.Equal(t, sized{1, 1}, answer, "its own caller gets it")
			assert.Equal(t, answers.Asked, from)
			assert.Equal(t, test.kept, has(c, "k"))
		})
	}
}
