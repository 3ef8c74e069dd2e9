package metered

// header is what is known of the paths that return to a loop.
type header struct {
	again   int64 // the maximum of state.tested there
	balance int64 // what is charged ahead there
}

// verify verifies the metering of one function, and finds its bounds.
func (b *body) verify(m *module, f *function) {
	b.module, b.err = m, nil
	b.reader = reader{source: m.source[:f.end], at: f.start, labels: b.reader.labels[:0]}
	b.read(m, f)
	b.headers = b.headers[:0]
	for rounds := 1; b.err == nil; rounds++ {
		if b.walk(); b.err != nil || !b.grown {
			return
		}
		switch {
		case rounds == exactRounds:
			b.widen()
		case rounds > exactRounds:
			b.fail("a loop does work that it does not count")
		}
	}
}

// exactRounds is how often a body is walked to find what may have been executed at its headers. Each walk can
// find more at one more header only, so that many loops would take as many walks.
const exactRounds = 8

// widen assumes the worst header for all of them. A path from one to another executes what it counts, but for what
// is charged ahead at either. So the next walk finds no more at any, and confirms what was assumed, or
// there is a loop that does work without counting it.
func (b *body) widen() {
	worst := int64(never)
	for _, h := range b.headers {
		worst = max(worst, h.again+h.balance)
	}
	for n := range b.headers {
		b.headers[n].again = worst - b.headers[n].balance
	}
}
