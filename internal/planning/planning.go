// Package planning lets the maker of a guest's calls tell the guest's runtime while the host plans
// a call, before a tool runs. The runtime does not watch a guest that waits for another tool, since
// that tool is watched itself or is not a guest. While the host plans, no such tool runs, so the
// runtime watches the guest.
package planning

import "context"

type key struct{}

// With returns a context with a function that is called when the planning of a call begins. The
// returned function end is called when planning ends.
func With(ctx context.Context, begin func() (end func())) context.Context {
	return context.WithValue(ctx, key{}, begin)
}

// Begin reports that the host begins to plan a call. The caller calls end when planning is done.
// Both do nothing if the context is not from [With].
func Begin(ctx context.Context) (end func()) {
	if begin, ok := ctx.Value(key{}).(func() func()); ok {
		return begin()
	}
	return func() {}
}
