package registry_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// TestHammer uses one registry from many goroutines. Whatever the order, each name has
// one holder, who never changes, and every tool that got in is closed once.
func TestHammer(t *testing.T) {
	const workers, rounds = 8, 60
	r := registry.New()
	kept := newFake(t, "kept", aliases("old_kept"))
	require.NoError(t, r.Register("first", kept))
	tools := make([][]*closable, workers)
	for w := range tools {
		for i := range rounds {
			tools[w] = append(tools[w], newClosable(t, fmt.Sprintf("tool_%da", i), nil))
		}
	}
	var won atomic.Int64
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i, c := range tools[w] {
				switch err := r.Register(fmt.Sprint(w), c); {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, registry.ErrDuplicate):
					assert.NoError(t, err)
				}
				assert.Error(t, r.Register(fmt.Sprint(w), kept))
				outcome, err := r.Invoke(t.Context(), tool.Invocation{Tool: "old_kept"})
				assert.NoError(t, err)
				assert.Equal(t, "kept", outcome.Result.Output)
				_, ok := r.Get(c.manifest.Name)
				assert.True(t, ok)
				if i%10 == 0 {
					r.List()
					r.Definitions()
					r.Duplicates()
					r.Nearest("tool_xa", 3)
					clone := r.Without().Without(c.manifest.Name)
					_, ok := clone.Get(c.manifest.Name)
					assert.False(t, ok)
					assert.NoError(t, clone.Close(t.Context()))
				}
			}
		})
	}
	all.Wait()
	assert.EqualValues(t, rounds, won.Load())

	for range workers {
		all.Go(func() { assert.NoError(t, r.Close(t.Context())) })
		all.Go(func() {
			for i := range rounds {
				_, err := r.Invoke(t.Context(), tool.Invocation{Tool: fmt.Sprintf("tool_%da", i)})
				if err != nil {
					assert.ErrorIs(t, err, registry.ErrClosed)
				}
			}
		})
	}
	all.Wait()
	var closed int64
	for _, list := range tools {
		for _, c := range list {
			closed += c.closed.Load()
		}
	}
	assert.EqualValues(t, rounds, closed)
}
