package answers_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/caisson-run/caisson/executor/internal/answers"
	"github.com/caisson-run/caisson/internal/noerr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sized is an answer that says how large it is.
type sized struct {
	id   int
	size int64
}

func (s sized) bytes() int64 { return s.size }

type cache = answers.Cache[string, sized]

func newCache(t *testing.T, bytes int64) *cache {
	t.Helper()
	c := noerr.Get(answers.New[string](bytes, sized.bytes))(t)
	return c
}

func question(key string, domains ...string) answers.Question[string] {
	return answers.Question[string]{Key: key, Domains: domains, TTL: time.Minute}
}

// put keeps an answer that was found between barriers.
func put(c *cache, q answers.Question[string], answer sized) { c.Put(q, c.Now(), answer) }

func has(c *cache, key string) bool {
	_, ok := c.Get(key)
	return ok
}

func TestLeastRecentlyUsedGoesFirst(t *testing.T) {
	c := newCache(t, 30)
	for _, key := range []string{"a", "b", "c"} {
		put(c, question(key), sized{size: 10})
	}
	require.True(t, has(c, "a"), "now b is the one not used for longest")
	put(c, question("d"), sized{size: 10})
	assert.False(t, has(c, "b"))

	// Asking is a use as well.
	_, from := noerr.Get2(c.Do(t.Context(), question("c"), answers.Ready{}, mustNotAsk(t)))(t)
	assert.Equal(t, answers.Kept, from)
	put(c, question("e"), sized{size: 20})
	assert.False(t, has(c, "a"))
	assert.False(t, has(c, "d"))
	assert.True(t, has(c, "c"))
	assert.True(t, has(c, "e"))
}

func TestWhatIsNotKept(t *testing.T) {
	for name, test := range map[string]struct {
		size int64
		ttl  time.Duration
	}{
		"larger than the bound": {11, time.Minute},
		"largest":               {math.MaxInt64, time.Minute},
		"no size":               {0, time.Minute},
		"negative size":         {-1, time.Minute},
		"no time":               {1, 0},
		"negative time":         {1, -1},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCache(t, 10)
			q := answers.Question[string]{Key: "k", TTL: test.ttl}
			put(c, q, sized{size: test.size})
			answer, from := noerr.Get2(c.Do(t.Context(), q, answers.Ready{}, func(context.Context) (sized, bool) { return sized{7, test.size}, true }))(t)
			assert.Equal(t, answers.Asked, from)
			assert.Equal(t, 7, answer.id)
			assert.False(t, has(c, "k"))
			put(c, question("all"), sized{size: 10})
			assert.True(t, has(c, "all"), "nothing takes its place")
		})
	}
}

func TestAnswersExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, 10)
		short, long := question("short", "d"), question("long", "d")
		short.TTL, long.TTL = time.Second, math.MaxInt64
		put(c, short, sized{1, 5})
		put(c, long, sized{2, 5})
		time.Sleep(time.Second - 1)
		assert.True(t, has(c, "short"))
		time.Sleep(time.Nanosecond)
		assert.False(t, has(c, "short"))
		put(c, question("new"), sized{3, 5})
		assert.True(t, has(c, "long"), "an expired answer takes no room once it was asked for")
		time.Sleep(100 * 365 * 24 * time.Hour)
		assert.True(t, has(c, "long"))
	})
}

// TestTimeCountsFromTheAnswer: an answer that takes longer to find than it lasts is kept all
// the same.
func TestTimeCountsFromTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, 10)
		noerr.Get2(c.Do(t.Context(), question("k"), answers.Ready{}, func(context.Context) (sized, bool) {
			time.Sleep(time.Hour)
			return sized{1, 1}, true
		}))(t)
		time.Sleep(time.Minute - 1)
		assert.True(t, has(c, "k"))
		time.Sleep(time.Nanosecond)
		assert.False(t, has(c, "k"))
	})
}

func mustNotAsk(t *testing.T) func(context.Context) (sized, bool) {
	return func(context.Context) (sized, bool) {
		assert.Fail(t, "asked")
		return sized{}, false
	}
}

func TestPutAcrossBarriers(t *testing.T) {
	q := question("k", "A", "B")
	for name, test := range map[string]struct {
		before func(c *cache) // the question is asked
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
			asked := c.Now()
			if test.after != nil {
				test.after(c)
			}
			c.Put(q, asked, sized{1, 1})
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
	during := c.Now()
	endOther()
	c.Put(q, during, sized{1, 1})
	assert.False(t, has(c, "k"), "the other was under way")
	after := c.Now()
	end()
	c.Put(q, after, sized{1, 1})
	assert.True(t, has(c, "k"), "an end that was called before is none")
}
