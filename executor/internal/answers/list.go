package answers

// list is a doubly linked list whose elements lie in what they are of, so that a list of
// them costs no allocation, which one of container/list does. The zero list is empty. It
// must not be copied once it was used.
type list struct {
	root element // root.next is the first, root.previous the last; nil before the first use
}

// element is a place in a list.
type element struct {
	next, previous *element
	value          any // what it is of
}

func (l *list) empty() bool { return l.root.next == nil || l.root.next == &l.root }

// front returns the value of the first element of a list that is not empty.
func (l *list) front() any { return l.root.next.value }

// back returns the value of the last element of a list that is not empty.
func (l *list) back() any { return l.root.previous.value }

// pushFront adds an element that is in no list.
func (l *list) pushFront(e *element) {
	if l.root.next == nil {
		l.root.next, l.root.previous = &l.root, &l.root
	}
	e.previous, e.next = &l.root, l.root.next
	e.previous.next, e.next.previous = e, e
}

func (l *list) moveToFront(e *element) {
	e.unlink()
	l.pushFront(e)
}

// unlink takes an element out of its list.
func (e *element) unlink() {
	e.previous.next, e.next.previous = e.next, e.previous
	e.next, e.previous = nil, nil
}
