package turns

// item is what a heap holds. Its slot is where it stands, from 1; zero if it is in none.
type item[T any] interface {
	before(other T) bool
	slot() *int
}

// heap is a binary heap that knows where each of its items stands, so that one whose
// order has changed can be moved, and any can be taken out.
type heap[T item[T]] []T

// put adds an item, or moves it to where it now belongs.
func (h *heap[T]) put(x T) {
	if *x.slot() == 0 {
		*h = append(*h, x)
		*x.slot() = len(*h)
	}
	h.settle(*x.slot() - 1)
}

// remove takes an item out, if it is in.
func (h *heap[T]) remove(x T) {
	i := *x.slot() - 1
	if i < 0 {
		return
	}
	last := len(*h) - 1
	h.swap(i, last)
	clear((*h)[last:])
	*h = (*h)[:last]
	*x.slot() = 0
	if i < last {
		h.settle(i)
	}
}

// settle moves the item at i up or down to where it belongs.
func (h *heap[T]) settle(i int) {
	s := *h
	for i > 0 && s[i].before(s[(i-1)/2]) {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	for {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(s); child++ {
			if s[child].before(s[first]) {
				first = child
			}
		}
		if first == i {
			return
		}
		h.swap(i, first)
		i = first
	}
}

func (h *heap[T]) swap(i, j int) {
	s := *h
	s[i], s[j] = s[j], s[i]
	*s[i].slot(), *s[j].slot() = i+1, j+1
}
