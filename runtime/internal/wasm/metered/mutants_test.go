package metered

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
)

// This file draws modules of random code, and makes mutants of their metered forms.

// writer writes the code of one function. Function 0 of a module is imported; those from 1 on may be in
// the table, and the first of them is exported.
type writer struct {
	*rand.Rand
	code   []byte
	labels int
	left   int
	n      int // functions
	loops  bool
	calls  bool
}

func (b *writer) write(c ...byte) { b.code = append(b.code, c...) }

func (b *writer) statements() {
	for range 1 + b.IntN(4) {
		if b.left--; b.left < 0 {
			return
		}
		b.statement()
	}
}

func (b *writer) nested(op byte) {
	if op == opIf {
		b.write(0x20, 0)
	}
	b.write(op, 0x40)
	b.labels++
	b.statements()
	if op == opIf && b.IntN(2) == 0 {
		b.write(0x05)
		b.statements()
	}
	b.labels--
	b.write(0x0b)
}

func (b *writer) statement() {
	label := byte(b.IntN(b.labels + 1))
	switch b.IntN(14) {
	case 0:
		b.nested(opBlock)
	case 1, 2:
		if b.loops {
			b.nested(opLoop)
		}
	case 3, 4:
		b.nested(opIf)
	case 5:
		for range b.IntN([]int{8, 40, 400, 3000}[b.IntN(4)]) {
			b.write(0x20, 0, 0x21, 0)
		}
	case 6, 7:
		b.write(0x20, 0, 0x0d, label)
	case 8:
		b.write(0x20, 0, 0x0e, 1, label, byte(b.IntN(b.labels+1)))
	case 9:
		b.write(0x0c, label)
	case 10, 11:
		if b.calls {
			b.write(0x10, byte(b.IntN(b.n+1)))
		}
	case 12:
		switch {
		case !b.calls:
		case b.IntN(2) == 0:
			b.write(0x41, 0, 0x11, 0, 0)
		case b.IntN(2) == 0:
			b.write(0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 11, 0)
		default:
			b.write(0x41, 0, 0x40, 0, 0x1a)
		}
	default:
		b.write(0x20, 0, 0x1a)
	}
}

// drawn returns a module.
func drawn(r *rand.Rand) []byte {
	part := func(id byte, content ...[]byte) []byte {
		joined := slices.Concat(content...)
		return slices.Concat([]byte{id}, binary.AppendUvarint(nil, uint64(len(joined))), joined)
	}
	n := 1 + r.IntN(5)
	var bodies []byte
	for range n {
		b := &writer{Rand: r, left: 3 + r.IntN(30), n: n, loops: r.IntN(3) > 0, calls: r.IntN(3) > 0}
		b.statements()
		body := slices.Concat([]byte{1, 1, 0x7f}, b.code, []byte{0x0b})
		bodies = append(binary.AppendUvarint(bodies, uint64(len(body))), body...)
	}
	members := []byte{}
	for f := range n {
		if r.IntN(2) == 0 {
			members = append(members, byte(f+1))
		}
	}
	outside := []byte{1, 'r', 0, 1}
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"), part(1, []byte{1, 0x60, 0, 0}), part(2, []byte{1, 1, 'h', 1, 'h', 0, 0}),
		part(3, []byte{byte(n)}, make([]byte, n)), part(4, []byte{1, 0x70, 0, 8}), part(5, []byte{1, 0, 1}), part(7, []byte{1}, outside),
		part(9, []byte{1, 0, 0x41, 0, 0x0b, byte(len(members))}, members), part(10, []byte{byte(n)}, bodies))
}

// mutate changes the code of a module.
func mutate(r *rand.Rand, source []byte) []byte {
	m := readModule(source)
	if m == nil {
		return nil
	}
	var own []int
	for n := range m.functions {
		if m.added[m.functions[n].index] == "" {
			own = append(own, n)
		}
	}
	mutant := own[r.IntN(len(own))]
	var bodies []byte
	for n := range m.functions {
		f := &m.functions[n]
		body := source[f.start:f.end]
		if n == mutant {
			rd := reader{source: source[:f.end], at: f.start}
			for range rd.u32() {
				rd.u32()
				rd.byte()
			}
			begin := rd.at
			var at []int
			counter := int64(none)
			w := m.walkedOf(f)
			if w == nil {
				return nil
			}
			counter = w.counter
			for _, t := range w.tokens {
				at = append(at, int(t.at))
			}
			at = append(at, f.end)
			body = mutateBody(r, m, source, begin, f, w, at, counter)
		}
		bodies = append(binary.AppendUvarint(bodies, uint64(len(body))), body...)
	}
	// replace the code section; the sections after it, if any, are kept
	rd := reader{source: source, at: 8}
	var out []byte
	out = append(out, source[:8]...)
	for rd.at < len(source) {
		from := rd.at
		id := rd.byte()
		size := rd.u32()
		end := rd.at + size
		if id == 10 {
			content := append(binary.AppendUvarint(nil, uint64(len(m.functions))), bodies...)
			out = append(binary.AppendUvarint(append(out, 10), uint64(len(content))), content...)
		} else {
			out = append(out, source[from:end]...)
		}
		rd.at = end
	}
	return out
}

// sleb appends a number as LEB128 does for signed ones.
func sleb(e []byte, n int64) []byte {
	for {
		b := byte(n & 0x7f)
		if n >>= 7; n == 0 && b&0x40 == 0 || n == -1 && b&0x40 != 0 {
			return append(e, b)
		}
		e = append(e, b|0x80)
	}
}

// encode writes an added sequence with drawn operands.
func encode(r *rand.Rand, m *module, p pattern, counter int64) (e []byte) {
	number := func() int64 {
		switch r.IntN(5) {
		case 0:
			return int64(r.IntN(8)) - 4
		case 1:
			return int64(r.IntN(100)) - 20
		case 2:
			return int64(1) << r.IntN(31)
		case 3:
			return -int64(r.IntN(9000))
		default:
			return int64(r.IntN(20000))
		}
	}
	label := int64(r.IntN(5))
	for _, t := range p {
		a := t.a
		switch a {
		case isNumber:
			a = number()
		case isLabel:
			a = label
		case isMeter:
			a = int64(m.meter)
		case isDepth:
			a = int64(max(m.depth, 0))
		case isCounter:
			a = counter
		case isMore, isTake:
			for i, name := range m.added {
				if name == map[int64]string{isMore: "more", isTake: "take"}[a] {
					a = int64(i)
				}
			}
		}
		e = append(e, byte(t.op))
		switch t.op {
		case opBlock, opLoop, opIf:
			e = append(e, 0x40)
		case opI32Const, opI64Const:
			e = sleb(e, a)
		case opLocalGet, opLocalSet, opGlobalGet, opGlobalSet, opCall, opBr, opBrIf:
			e = binary.AppendUvarint(e, uint64(max(a, 0)))
		}
	}
	return e
}

// mutateBody returns the body of a function with one change, mostly where a sequence was added.
func mutateBody(r *rand.Rand, m *module, source []byte, begin int, f *function, w *walked, at []int, counter int64) []byte {
	code := slices.Clone(source[begin:f.end])
	head, offset := source[f.start:begin], func(n int) int { return at[n] - begin }
	all := []pattern{charge, tested, handOver, settle, count, back, backTaken}
	// Where added sequences are.
	type place struct{ from, to int }
	var places []place
	for n := 0; n < len(w.tokens); n++ {
		for _, p := range all {
			if _, ok := m.match(w.tokens[n:], p, counter); ok {
				places = append(places, place{n, n + len(p)})
				break
			}
		}
	}
	for range 1 + r.IntN(3) {
		n := r.IntN(len(w.tokens))
		switch r.IntN(7) {
		case 0: // a sequence goes
			if len(places) > 0 {
				p := places[r.IntN(len(places))]
				return slices.Concat(head, code[:offset(p.from)], code[offset(p.to):])
			}
		case 1: // moves
			if len(places) > 0 {
				p := places[r.IntN(len(places))]
				if n < p.from {
					return slices.Concat(head, code[:offset(n)], code[offset(p.from):offset(p.to)], code[offset(n):offset(p.from)], code[offset(p.to):])
				} else if n >= p.to {
					return slices.Concat(head, code[:offset(p.from)], code[offset(p.to):offset(n)], code[offset(p.from):offset(p.to)], code[offset(n):])
				}
			}
		case 2: // is doubled
			if len(places) > 0 {
				p := places[r.IntN(len(places))]
				return slices.Concat(head, code[:offset(n)], code[offset(p.from):offset(p.to)], code[offset(n):])
			}
		case 3: // is replaced
			if len(places) > 0 {
				p := places[r.IntN(len(places))]
				return slices.Concat(head, code[:offset(p.from)], encode(r, m, all[r.IntN(len(all))], max(counter, 0)), code[offset(p.to):])
			}
		case 4: // a new one
			return slices.Concat(head, code[:offset(n)], encode(r, m, all[r.IntN(len(all))], max(counter, 0)), code[offset(n):])
		case 5: // an instruction of the guest's
			more := [][]byte{{0x20, 0, 0x21, 0}, {0x20, 0, 0x1a}, {0x01}, {0x0c, byte(r.IntN(4))}, {0x20, 0, 0x0d, byte(r.IntN(4))}, {0x0f}, {0x20, 0, 0x04, 0x40, 0x0b}}[r.IntN(7)]
			return slices.Concat(head, code[:offset(n)], more, code[offset(n):])
		default: // a label or a number
			if t := w.tokens[n]; t.op == opBr || t.op == opBrIf {
				c := slices.Clone(code)
				c[offset(n)+1] = byte(r.IntN(6))
				return slices.Concat(head, c)
			} else if t.op == opI32Const || t.op == opI64Const {
				c := slices.Concat(code[:offset(n)+1], sleb(nil, t.a+int64(r.IntN(9))-4), code[offset(n+1):])
				return slices.Concat(head, c)
			}
		}
	}
	return slices.Concat(head, code)
}
