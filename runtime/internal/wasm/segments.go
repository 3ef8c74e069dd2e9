package wasm

// Bits of the first number of an element segment (§5.5.12).
const (
	elementNotActive   = 1 << iota // passive or declarative
	elementIndex                   // active: has a table index; else: declarative
	elementExpressions             // expressions in place of function indices
)

// elements reads the element section (§5.5.12).
func (i *inspection) elements(r *reader) {
	n := r.count("element segments", 3, i.bounds.ElementSegments)
	for range n {
		r.elementSegment()
		if r.err != nil {
			return
		}
	}
	i.module.ElementSegments = n
}

func (r *reader) elementSegment() {
	at := r.at
	flags := r.u32("the flags of an element segment")
	if flags > elementNotActive|elementIndex|elementExpressions {
		r.fail(ErrMalformed, at, "an element segment cannot have the flags %d", flags)
		return
	}
	active, expressions := flags&elementNotActive == 0, flags&elementExpressions != 0
	if active {
		if flags&elementIndex != 0 {
			r.u32("the table of an element segment")
		}
		r.constantExpression()
	}
	if flags&(elementNotActive|elementIndex) != 0 {
		r.elementKind(expressions)
	}
	for range r.count("elements", 1, r.left()) {
		if r.err != nil {
			return
		}
		if expressions {
			r.constantExpression()
		} else {
			r.u32("the index of a function")
		}
	}
}

// elementKind reads what the elements are: a type for expressions, else a kind, of which
// there is one.
func (r *reader) elementKind(expressions bool) {
	if expressions {
		r.referenceType("the type of an element segment")
		return
	}
	at := r.at
	if kind := r.byte("the kind of an element segment"); r.err == nil && kind != 0 {
		r.fail(ErrMalformed, at, "the kind of an element segment cannot be %#02x", kind)
	}
}

// dataCount reads the data count section (§5.5.15). The number is compared with the
// data section, never allocated by.
func (i *inspection) dataCount(r *reader) {
	i.dataSegments, i.hasDataCount = int(r.u32("the number of data segments")), true
}

// data reads the data section (§5.5.14).
func (i *inspection) data(r *reader) {
	n := r.count("data segments", 2, i.bounds.DataSegments)
	for range n {
		r.dataSegment()
		if r.err != nil {
			return
		}
	}
	i.module.DataSegments = n
}

func (r *reader) dataSegment() {
	at := r.at
	switch mode := r.u32("the mode of a data segment"); mode {
	case 0: // active, in memory 0
		r.constantExpression()
	case 1: // passive
	case 2: // active, in the memory with this index
		r.u32("the memory of a data segment")
		r.constantExpression()
	default:
		r.fail(ErrMalformed, at, "a data segment cannot have the mode %d", mode)
	}
	r.skip(r.size("a data segment"), "a data segment")
}
