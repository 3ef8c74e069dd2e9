package feed

// queue is a ring of values with a bound.
type queue[T any] struct {
	most   int
	ring   []T
	first  int
	length int
}

const leastRing = 16

// push adds a value, and reports whether the oldest gave way to it.
func (q *queue[T]) push(value T) (full bool) {
	if q.length == q.most {
		q.ring[q.first] = value
		q.first = q.at(1)
		return true
	}
	if q.length == len(q.ring) {
		q.grow()
	}
	q.ring[q.at(q.length)] = value
	q.length++
	return false
}

// pop removes the oldest value, of which there must be one.
func (q *queue[T]) pop() T {
	var none T
	value := q.ring[q.first]
	q.ring[q.first] = none // so that it can be collected
	q.first = q.at(1)
	q.length--
	return value
}

// at is the place of the value that so many others are before.
func (q *queue[T]) at(i int) int {
	if i += q.first; i >= len(q.ring) {
		i -= len(q.ring)
	}
	return i
}

func (q *queue[T]) grow() {
	size := q.most
	if double := max(2*len(q.ring), leastRing); double < q.most {
		size = double
	}
	ring := make([]T, size)
	n := copy(ring, q.ring[q.first:])
	copy(ring[n:], q.ring[:q.first])
	q.ring, q.first = ring, 0
}

func (q *queue[T]) free() { q.ring, q.first = nil, 0 }
