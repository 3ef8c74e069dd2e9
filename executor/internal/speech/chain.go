package speech

// chain is a list out of the middle of which values can be taken. The zero value is empty.
type chain[T any] struct{ first, last *link[T] }

type link[T any] struct {
	value         T
	before, after *link[T]
}

// push adds a value at the end.
func (c *chain[T]) push(value T) *link[T] {
	added := &link[T]{value: value, before: c.last}
	if c.last == nil {
		c.first = added
	} else {
		c.last.after = added
	}
	c.last = added
	return added
}

// pop removes the first value, of which there must be one.
func (c *chain[T]) pop() T {
	first := c.first
	c.remove(first)
	return first.value
}

// remove takes out a link that is in the chain.
func (c *chain[T]) remove(l *link[T]) {
	if l.before == nil {
		c.first = l.after
	} else {
		l.before.after = l.after
	}
	if l.after == nil {
		c.last = l.before
	} else {
		l.after.before = l.before
	}
	l.before, l.after = nil, nil
}
