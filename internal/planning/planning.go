// Package planning lets whoever makes calls for a guest tell its runtime for how long the host works
// at one, before a tool runs. A runtime does not watch a guest that waits for another tool, since that
// is watched itself, or is no guest; but it does while nothing runs that is.
package planning

import "context"

type key struct{}

// With returns a context that has begin called when the planning of a call begins, and what that
// returns when it ends.
func With(ctx context.Context, begin func() (end func())) context.Context {
	return context.WithValue(ctx, key{}, begin)
}

// Begin says that the host begins to plan a call, and end that it is done. Of a context that is of no
// guest's call they do nothing.
func Begin(ctx context.Context) (end func()) {
	if begin, ok := ctx.Value(key{}).(func() func()); ok {
		return begin()
	}
	return func() {}
}
