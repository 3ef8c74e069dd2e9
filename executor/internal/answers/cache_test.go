package answers_test

import (
	"context"
	"math"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/caisson-run/caisson/executor/internal/answers"
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
	c, err := answers.New[string](answers.Options[sized]{Bytes: bytes, Size: sized.bytes})
	require.NoError(t, err)
	return c
}

func question(key string, domains ...string) answers.Question[string] {
	return answers.Question[string]{Key: key, Domains: domains, TTL: time.Minute}
}

// put keeps an answer that was found between barriers.
func put(c *cache, q answers.Question[string], answer sized) {
	c.Put(q, c.Began(q.Domains), answer)
}

func has(c *cache, key string) bool {
	_, ok := c.Get(key)
	return ok
}

func TestNewRefusesOptions(t *testing.T) {
	_, err := answers.New[string](answers.Options[sized]{})
	require.ErrorContains(t, err, "Size")
	_, err = answers.New[string](answers.Options[sized]{Size: sized.bytes, Bytes: -1})
	require.ErrorContains(t, err, "Bytes is -1")
}

func TestZeroBytesAreTheDefault(t *testing.T) {
	c := newCache(t, 0)
	put(c, question("all"), sized{size: answers.DefaultBytes})
	assert.True(t, has(c, "all"))
	put(c, question("more"), sized{size: answers.DefaultBytes + 1})
	assert.False(t, has(c, "more"))
	assert.True(t, has(c, "all"), "what is too large must not take others' place")
}

func TestLeastRecentlyUsedGoesFirst(t *testing.T) {
	c := newCache(t, 30)
	for _, key := range []string{"a", "b", "c"} {
		put(c, question(key), sized{size: 10})
	}
	require.True(t, has(c, "a"), "now b is the one not used for longest")
	put(c, question("d"), sized{size: 10})
	assert.False(t, has(c, "b"))
	assert.Equal(t, 3, c.Len())

	// Asking is a use as well.
	_, from, err := c.Do(t.Context(), question("c"), mustNotAsk(t))
	require.NoError(t, err)
	assert.Equal(t, answers.Kept, from)
	put(c, question("e"), sized{size: 20})
	assert.False(t, has(c, "a"))
	assert.False(t, has(c, "d"))
	assert.True(t, has(c, "c"))
	assert.True(t, has(c, "e"))
	assert.Equal(t, int64(30), c.Bytes())
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
			answer, from, err := c.Do(t.Context(), q, func(context.Context) (sized, bool) { return sized{7, test.size}, true })
			require.NoError(t, err)
			assert.Equal(t, answers.Asked, from)
			assert.Equal(t, 7, answer.id)
			assert.Zero(t, c.Len())
			assert.Zero(t, c.Bytes())
		})
	}
}

func TestPutReplaces(t *testing.T) {
	c := newCache(t, 10)
	put(c, question("k", "old"), sized{1, 10})
	put(c, question("k", "old"), sized{2, 4})
	answer, ok := c.Get("k")
	require.True(t, ok)
	assert.Equal(t, 2, answer.id)
	assert.Equal(t, int64(4), c.Bytes())
	assert.Equal(t, 1, c.Len())
}

func TestAnswersExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, 10)
		short, long := question("short", "d"), question("long", "d")
		short.TTL, long.TTL = time.Second, math.MaxInt64
		put(c, short, sized{1, 5})
		time.Sleep(time.Second - 1)
		assert.True(t, has(c, "short"))
		put(c, long, sized{2, 5})
		require.True(t, has(c, "short"), "long is the one not used for longest")

		time.Sleep(time.Nanosecond)
		put(c, question("new"), sized{3, 5})
		assert.True(t, has(c, "long"), "what has expired goes first")
		assert.False(t, has(c, "short"))

		time.Sleep(time.Minute)
		assert.Equal(t, 1, c.Len(), "only long is left")
		assert.Equal(t, int64(5), c.Bytes())
		_, from, err := c.Do(t.Context(), question("new"), func(context.Context) (sized, bool) { return sized{}, false })
		require.NoError(t, err)
		assert.Equal(t, answers.Asked, from)
		time.Sleep(100 * 365 * 24 * time.Hour)
		assert.True(t, has(c, "long"))
	})
}

// TestTimeCountsFromTheAnswer: an answer that takes longer to find than it lasts is kept all
// the same.
func TestTimeCountsFromTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, 10)
		_, _, err := c.Do(t.Context(), question("k"), func(context.Context) (sized, bool) {
			time.Sleep(time.Hour)
			return sized{1, 1}, true
		})
		require.NoError(t, err)
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

// TestExpiredAnswersKeepNoneOut: all that have expired go before one that has not, however
// recently they were used.
func TestExpiredAnswersKeepNoneOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, 1000)
		long := question("long")
		long.TTL = time.Hour
		put(c, long, sized{size: 1})
		for i := range 999 {
			put(c, question(strconv.Itoa(i)), sized{size: 1})
		}
		require.Equal(t, 1000, c.Len())
		time.Sleep(time.Minute)
		put(c, question("new"), sized{size: 999})
		assert.True(t, has(c, "long"))
		assert.True(t, has(c, "new"))
		assert.Equal(t, 2, c.Len())
	})
}

// TestManyGo: what removes answers in turns removes all of them.
func TestManyGo(t *testing.T) {
	for name, remove := range map[string]func(c *cache){
		"barrier": func(c *cache) { c.Barrier("A", "B")() },
		"expiry":  func(*cache) { time.Sleep(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCache(t, 1000)
				for i := range 1000 {
					put(c, question(strconv.Itoa(i), []string{"A", "B"}[i%2]), sized{size: 1})
				}
				require.Equal(t, 1000, c.Len())
				remove(c)
				assert.Zero(t, c.Bytes())
				assert.Zero(t, c.Len())
			})
		})
	}
}
