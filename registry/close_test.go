package registry_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

func TestCloseGoesOn(t *testing.T) {
	r := registry.New()
	boom, bang := errors.New("boom"), errors.New("bang")
	tools := []*closable{newClosable(t, "a", boom), newClosable(t, "b", nil), newClosable(t, "c", bang)}
	for _, c := range tools {
		require.NoError(t, r.Register("", c))
	}
	require.NoError(t, r.Register("", newFake(t, "d", nil)))
	for range 2 {
		err := r.Close(t.Context())
		require.ErrorIs(t, err, boom)
		require.ErrorIs(t, err, bang)
	}
	for _, c := range tools {
		assert.EqualValues(t, 1, c.closed.Load())
	}
	require.ErrorIs(t, r.Register("", newFake(t, "e", nil)), registry.ErrClosed)
}

func TestCloseDoesNotTouchWhatWasKeptOut(t *testing.T) {
	kept, dropped := newClosable(t, "a", nil), newClosable(t, "a", nil)
	r := holding(t, kept)
	require.Error(t, r.Register("", dropped))
	require.NoError(t, r.Close(t.Context()))
	assert.EqualValues(t, 1, kept.closed.Load())
	assert.Zero(t, dropped.closed.Load())
}

// blocking registers a tool whose calls last until release is closed.
func blocking(t *testing.T, r *registry.Registry) (c *closable, started, release chan struct{}) {
	c = newClosable(t, "slow", nil)
	started, release = make(chan struct{}), make(chan struct{})
	c.run = func(context.Context, tool.Invocation) (tool.Outcome, error) {
		close(started)
		<-release
		return tool.Outcome{Result: tool.Result{Success: true}}, nil
	}
	require.NoError(t, r.Register("", c))
	return c, started, release
}

func TestCloseWaitsForCalls(t *testing.T) {
	for _, through := range []string{"the registry", "a clone"} {
		t.Run("through "+through, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := registry.New()
				c, started, release := blocking(t, r)
				caller := r
				if through == "a clone" {
					caller = r.Without()
				}
				var all sync.WaitGroup
				all.Go(func() {
					_, err := caller.Invoke(t.Context(), tool.Invocation{Tool: "slow"})
					assert.NoError(t, err)
				})
				<-started
				all.Go(func() { assert.NoError(t, r.Close(t.Context())) })
				all.Go(func() { assert.NoError(t, r.Close(t.Context())) })
				synctest.Wait()
				assert.Zero(t, c.closed.Load())
				_, err := caller.Invoke(t.Context(), tool.Invocation{Tool: "slow"})
				require.ErrorIs(t, err, registry.ErrClosed)
				assert.Zero(t, c.closed.Load(), "not closed during a call")
				close(release)
				all.Wait()
				assert.EqualValues(t, 1, c.closed.Load())
			})
		})
	}
}

func TestCloseGivesUpWaiting(t *testing.T) {
	r := registry.New()
	c, started, release := blocking(t, r)
	var running sync.WaitGroup
	running.Go(func() {
		_, err := r.Invoke(t.Context(), tool.Invocation{Tool: "slow"})
		assert.NoError(t, err)
	})
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := r.Close(ctx)
	require.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, "slow: calls are still running")
	assert.EqualValues(t, 1, c.closed.Load(), "closed all the same")
	close(release)
	running.Wait()
}

func TestDerive(t *testing.T) {
	original := registry.New()
	require.NoError(t, original.Register("src", newFake(t, "a", aliases("old_a"))))
	require.NoError(t, original.Register("src", newFake(t, "b", nil)))
	require.Error(t, original.Register("late", newFake(t, "a", nil)))

	t.Run("a test swaps a tool", func(t *testing.T) {
		double := newFake(t, "a", nil)
		double.answer = "double"
		_, err := original.With(double)
		require.ErrorIs(t, err, registry.ErrDuplicate, "first wins here too")
		swapped, err := original.Without("a").With(double)
		require.NoError(t, err)
		assert.Equal(t, "double", call(t, swapped, "a"))
		assert.Equal(t, "b", call(t, swapped, "b"))
		assert.Equal(t, "a", call(t, original, "a"))
		assert.Equal(t, "a", call(t, original, "old_a"))
		_, ok := swapped.Get("old_a")
		assert.False(t, ok, "the aliases left with the tool")
	})
	t.Run("what was kept out is not promoted", func(t *testing.T) {
		without := original.Without("a", "missing")
		_, ok := without.Get("a")
		assert.False(t, ok)
		assert.Empty(t, without.Duplicates())
		assert.Len(t, original.Duplicates(), 1)
	})
	t.Run("an alias leaves alone", func(t *testing.T) {
		without := original.Without("old_a")
		assert.Equal(t, "a", call(t, without, "a"))
		_, ok := without.Get("old_a")
		assert.False(t, ok)
	})
	t.Run("a clone is independent", func(t *testing.T) {
		clone := original.Without()
		require.NoError(t, clone.Register("", newFake(t, "c", nil)))
		require.Error(t, clone.Register("", newFake(t, "B", nil)))
		assert.Len(t, original.List(), 2)
		assert.Len(t, original.Duplicates(), 1)
		assert.Len(t, clone.Duplicates(), 2)
	})
	t.Run("With reports all problems", func(t *testing.T) {
		_, err := original.With(newFake(t, "a", nil), newFake(t, "c", nil), nil)
		require.ErrorIs(t, err, registry.ErrDuplicate)
		require.ErrorIs(t, err, registry.ErrInvalidTool)
	})
}

func TestOwnership(t *testing.T) {
	shared, own := newClosable(t, "shared", nil), newClosable(t, "own", nil)
	original := holding(t, shared)
	derived, err := original.With(own)
	require.NoError(t, err)
	clone := derived.Without()

	require.NoError(t, clone.Close(t.Context()))
	require.NoError(t, original.Without("shared").Close(t.Context()))
	assert.Zero(t, shared.closed.Load()+own.closed.Load(), "a clone owns nothing")

	require.NoError(t, derived.Close(t.Context()))
	assert.EqualValues(t, 1, own.closed.Load(), "With owns the added tools")
	assert.Zero(t, shared.closed.Load())
	assert.Equal(t, "shared", call(t, original, "shared"), "the original still works")

	survivor := original.Without()
	require.NoError(t, original.Close(t.Context()))
	assert.EqualValues(t, 1, shared.closed.Load())
	for _, r := range []*registry.Registry{survivor, original.Without()} {
		_, err = r.Invoke(t.Context(), tool.Invocation{Tool: "shared"})
		require.ErrorIs(t, err, registry.ErrClosed, "a clone never calls a closed tool")
	}
}
