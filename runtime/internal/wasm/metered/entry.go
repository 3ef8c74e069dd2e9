package metered

// entry skips the code at the start of a function.
func (b *body) entry() {
	b.take(descend)
	if b.wrapped() {
		b.next++
		b.frames = append(b.frames, frame{op: opBlock, wraps: true})
	}
	if found, ok := b.take(charge); ok {
		b.charge(found[0])
		if b.counter != none { // this charge does not go to the local counter
			b.own = 0
		}
	}
	b.test()
}

// wrapped reports whether a block begins here that holds the whole body: only code that ends the function follows it.
// No local of the guest is read there, so that nothing is moved to its end.
func (b *body) wrapped() bool {
	if b.next >= len(b.tokens) || b.tokens[b.next].op != opBlock {
		return false
	}
	after := b.next
	for depth := 0; after < len(b.tokens); after++ {
		switch b.tokens[after].op {
		case opBlock, opLoop, opIf:
			depth++
		case opEnd:
			depth--
		}
		if depth == 0 {
			break
		}
	}
	for n := after + 1; n < len(b.tokens); {
		from := n
		for _, p := range []pattern{ascend, settle, tested} {
			if _, ok := b.module.match(b.tokens[n:], p, b.counter); ok {
				n += len(p)
			}
		}
		if n == from {
			return n == len(b.tokens)-1
		}
	}
	return false
}

// test skips a test if it is next.
func (b *body) test() {
	if _, ok := b.take(tested); ok {
		b.work.test()
		b.recordTest()
		b.keep()
	}
}

// recordTest records that the function tests, or calls one that may, also if it never returns.
func (b *body) recordTest() { b.found.last = max(b.found.last, 0) }

// keep forbids refunding earlier charges to the meter: it was tested, or other code reads it.
func (b *body) keep() {
	if b.counter == none {
		b.own = 0
	}
}
