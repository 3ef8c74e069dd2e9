package speech

import "container/heap"

// largest holds the calls that have outputs waiting, the one with most of them first; of several
// with as many the one that came to be known last. The zero value holds none.
type largest struct{ heap callerHeap }

// nowhere is the place of a call that is not held.
const nowhere = -1

func (l *largest) len() int { return len(l.heap) }

// first returns the call with most waiting, of which there must be one.
func (l *largest) first() *caller { return l.heap[0] }

// moved puts a call where it belongs, after its bytes have changed.
func (l *largest) moved(c *caller) {
	switch held := c.place != nowhere; {
	case !held && c.bytes > 0:
		heap.Push(&l.heap, c)
	case held && c.bytes == 0:
		heap.Remove(&l.heap, c.place)
	case held:
		heap.Fix(&l.heap, c.place)
	}
}

// callerHeap implements [heap.Interface].
type callerHeap []*caller

func (h callerHeap) Len() int { return len(h) }

func (h callerHeap) Less(i, j int) bool {
	if h[i].bytes != h[j].bytes {
		return h[i].bytes > h[j].bytes
	}
	return h[i].index > h[j].index
}

func (h callerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *callerHeap) Push(c any) {
	added, _ := c.(*caller)
	added.place = len(*h)
	*h = append(*h, added)
}

func (h *callerHeap) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	c.place = nowhere
	return c
}
