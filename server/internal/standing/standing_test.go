package standing

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/server/auth"
)

func TestCheckOfContexts(t *testing.T) {
	require.NoError(t, Check(t.Context()), "without a caller there is nothing to check")
	var ended error
	ctx := With(t.Context(), auth.Caller{ID: "a"}, func() error { return ended })
	require.NoError(t, Check(ctx))
	c, ok := auth.From(ctx)
	assert.True(t, ok)
	assert.Equal(t, "a", c.ID)
	for _, ended = range []error{auth.ErrUnknown, auth.ErrExpired, auth.ErrRevoked, ErrRequired} {
		assert.ErrorIs(t, Check(ctx), ended)
		assert.True(t, IsRefusal(fmt.Errorf("a request: %w", ended)))
		assert.True(t, IsEnd(ended))
	}
	for _, other := range []error{nil, auth.ErrDamaged, context.Canceled} {
		assert.False(t, IsRefusal(other))
		assert.Equal(t, other == auth.ErrDamaged, IsEnd(other))
	}
	require.NoError(t, Check(With(t.Context(), auth.Caller{}, nil)))
}
