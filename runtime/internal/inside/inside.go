// Package inside has contexts that hold the state of one call for the guest's host functions.
package inside

import "context"

// Context is a context that holds a value. It is meant to be a part of that value, which saves each call an allocation.
type Context[V any] struct {
	context.Context
	value *V
}

// key is the key under which a Context returns its value.
type key[V any] struct{}

// Hold returns a context like another one that also holds the value. It is c, which is used for one at a time.
func (c *Context[V]) Hold(like context.Context, value *V) context.Context {
	c.Context, c.value = like, value
	return c
}

// Value implements [context.Context].
func (c *Context[V]) Value(of any) any {
	if of == (key[V]{}) {
		return c.value
	}
	return c.Context.Value(of)
}

// Of returns the value of this type that a context holds, or false if it holds none.
func Of[V any](ctx context.Context) (*V, bool) {
	value, ok := ctx.Value(key[V]{}).(*V)
	return value, ok
}
