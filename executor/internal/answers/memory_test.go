package answers

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
)

func newInts(t *testing.T) *Cache[string, int] {
	t.Helper()
	c := noerr.Get(New[string](100, func(int) int64 { return 1 }))(t)
	return c
}

func TestAnswersAndDomainsAreBounded(t *testing.T) {
	c := newInts(t)
	early := c.Now()
	end := c.Barrier("under way")
	for i := range maxDomains + 1000 {
		name := fmt.Sprint("tenant ", i)
		c.Put(Question[string]{Key: name, Domains: []string{name, "all"}, TTL: time.Hour}, c.Now(), i)
		c.Barrier(name)()
		require.LessOrEqual(t, len(c.domains), maxDomains)
		require.LessOrEqual(t, c.kept.Len(), 100)
		require.EqualValues(t, c.kept.Len(), c.bytes)
	}
	assert.Less(t, len(c.domains), 2000)
	_, ok := c.Get("tenant 0")
	assert.False(t, ok)

	q := Question[string]{Key: "k", Domains: []string{"under way"}, TTL: time.Hour}
	c.Put(q, c.Now(), 1)
	_, ok = c.Get("k")
	assert.False(t, ok, "a barrier in progress is not forgotten")
	end()
	c.Put(q, early, 1)
	_, ok = c.Get("k")
	assert.False(t, ok, "nor that there was something")
	c.Put(Question[string]{Key: "k", Domains: []string{"tenant 0"}, TTL: time.Hour}, early, 1)
	_, ok = c.Get("k")
	assert.False(t, ok, "also if its domains were forgotten")
	c.Put(q, c.Now(), 1)
	_, ok = c.Get("k")
	assert.True(t, ok)
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
			_, _, _ = c.Do(t.Context(), q, Ready{}, ask)
		}()
		<-ended
		c.mu.Lock()
		assert.Empty(t, c.flights)
		c.mu.Unlock()
	}
}
