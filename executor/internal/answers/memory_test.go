package answers

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newInts(t *testing.T) *Cache[string, int] {
	t.Helper()
	c, err := New[string](Options[int]{Bytes: 100, Size: func(int) int64 { return 1 }})
	require.NoError(t, err)
	return c
}

func (c *Cache[K, V]) domainCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.domains)
}

// eventually waits for the garbage collector.
func eventually(t *testing.T, what func() bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		runtime.GC()
		return what()
	}, 5*time.Minute, time.Millisecond)
}

func TestDomainsTakeNoMemoryForEver(t *testing.T) {
	c := newInts(t)
	generation := c.Began([]string{"generation"})
	end := c.Barrier("barrier")
	c.Barrier("never ended")
	for i := range 5000 {
		name := fmt.Sprint("tenant ", i)
		q := Question[string]{Key: name, Domains: []string{name, "all"}, TTL: time.Hour}
		c.Put(q, c.Began(q.Domains), i)
		q.Key += "?"
		_, _, err := c.Do(t.Context(), q, func(context.Context) (int, bool) { return i, i%2 == 0 })
		require.NoError(t, err)
		c.Barrier(name + "!")()
	}
	require.Equal(t, 100, c.Len())
	c.Barrier("all")()
	require.Zero(t, c.Len())
	eventually(t, func() bool { return c.domainCount() == 3 })

	// What is referred to is still the same domain.
	for _, name := range []string{"barrier", "never ended"} {
		q := Question[string]{Key: name, Domains: []string{name}, TTL: time.Hour}
		c.Put(q, c.Began(q.Domains), 1)
	}
	assert.Zero(t, c.Len(), "barriers are under way")
	end()
	c.Barrier("generation")()
	c.Put(Question[string]{Key: "g", Domains: []string{"generation"}, TTL: time.Hour}, generation, 1)
	assert.Zero(t, c.Len(), "a barrier came since")
	eventually(t, func() bool { return c.domainCount() == 1 })
}

// TestFlightsTakeNoMemoryForEver: nothing is left of them, however they end.
func TestFlightsTakeNoMemoryForEver(t *testing.T) {
	c := newInts(t)
	q := Question[string]{Key: "k", Domains: []string{"d"}}
	for _, ask := range []func(context.Context) (int, bool){
		func(context.Context) (int, bool) { return 1, true },
		func(context.Context) (int, bool) { return 1, false },
		func(context.Context) (int, bool) { c.Barrier("d")(); return 1, true },
		func(context.Context) (int, bool) { panic("ask") },
		func(context.Context) (int, bool) { runtime.Goexit(); return 1, true },
	} {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer func() { _ = recover() }()
			_, _, _ = c.Do(t.Context(), q, ask)
		}()
		<-ended
		c.mu.Lock()
		assert.Empty(t, c.flights)
		c.mu.Unlock()
	}
}

// TestCacheIsCollected: a domain that its entries keep alive must not keep the cache alive.
func TestCacheIsCollected(t *testing.T) {
	collected := make(chan struct{})
	func() {
		c := newInts(t)
		q := Question[string]{Key: "k", Domains: []string{"d"}, TTL: time.Hour}
		c.Put(q, c.Began(q.Domains), 1)
		c.Barrier("under way")
		require.Equal(t, 1, c.Len())
		runtime.AddCleanup(c, func(done chan struct{}) { close(done) }, collected)
	}()
	eventually(t, func() bool {
		select {
		case <-collected:
			return true
		default:
			return false
		}
	})
}

// TestNothingIsLeftOfEntries: the order of expiry and the domains forget what the map does.
func TestNothingIsLeftOfEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newInts(t)
		for i := range 1000 {
			q := Question[string]{Key: fmt.Sprint(i % 150), Domains: []string{"d", fmt.Sprint(i % 3)}, TTL: time.Duration(1 + i*7%50)}
			c.Put(q, c.Began(q.Domains), i)
			if i%10 == 0 {
				c.Barrier(fmt.Sprint(i / 10 % 3))()
			}
			time.Sleep(time.Nanosecond)
			require.Len(t, c.kept.expiries, len(c.kept.entries))
		}
		time.Sleep(50 * time.Nanosecond)
		require.Zero(t, c.Len())
		assert.Empty(t, c.kept.expiries)
		assert.True(t, c.kept.recent.empty())
		assert.True(t, c.domain("d").members.empty())
	})
}

// TestExpiredAnswersLeave: what comes takes more along than it adds, if there is room or not.
func TestExpiredAnswersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newInts(t)
		for i := range 30 {
			c.Put(Question[string]{Key: fmt.Sprint(i), TTL: time.Second}, Generation{}, i)
		}
		time.Sleep(time.Second)
		for i := range 10 {
			c.Put(Question[string]{Key: fmt.Sprint("new ", i), TTL: time.Second}, Generation{}, i)
		}
		assert.Len(t, c.kept.entries, 10)
	})
}
