package engine

import "slices"

// This file draws the code of functions, for libraries_draw_test.go.

// drawnWriter writes the code of one function.
type drawnWriter struct {
	*drawing
	of      drawnType
	code    []byte
	locals  []byte // beyond the parameters
	values  []int  // locals that any code may change
	scratch byte
	loops   int
	calls   int // the number of further calls that it may have
}

func (d *drawing) writer(of drawnType) *drawnWriter {
	w := &drawnWriter{drawing: d, of: of, calls: 4}
	w.scratch = w.local(typeI64)
	for n := range of.params {
		w.values = append(w.values, n)
	}
	w.values = append(w.values, int(w.local(typeI64)))
	return w
}

func (w *drawnWriter) put(code ...byte) { w.code = append(w.code, code...) }

func (w *drawnWriter) local(of byte) byte {
	w.locals = append(w.locals, of)
	return byte(len(w.of.params) + len(w.locals) - 1)
}

func (w *drawnWriter) typeOf(local int) byte {
	if local < len(w.of.params) {
		return w.of.params[local]
	}
	return w.locals[local-len(w.of.params)]
}

// function returns the function's body as the code section has it.
func (w *drawnWriter) function() []byte {
	locals := leb(len(w.locals))
	for _, of := range w.locals {
		locals = append(locals, 1, of)
	}
	return join(locals, w.code, []byte{0x0b})
}

func (w *drawnWriter) constant() {
	w.put(0x42)
	w.put(sleb(one(w.drawing, w.Int64(), w.Int64N(200)-100, 0, 1<<31, -1))...)
}

// address pushes an address, which is mostly within a page.
func (w *drawnWriter) address(depth int) {
	w.expression(depth)
	mask := int64(0x7fff)
	if w.chance(3) {
		mask = 0x1ffff
	}
	w.put(join([]byte{0xa7, 0x41}, sleb(mask), []byte{0x71})...)
}

// call calls a function and leaves one i64 for its results, or none.
func (w *drawnWriter) call(function int) {
	w.calling(w.functions[function], join([]byte{0x10}, leb(function)))
}

// calling pushes parameters, calls, and leaves one i64.
func (w *drawnWriter) calling(of drawnType, code []byte) {
	for _, param := range of.params {
		w.expression(0)
		w.put(fromI64[param]...)
	}
	w.put(code...)
	if len(of.results) == 0 {
		w.put(0x42, 3)
		return
	}
	for n, result := range slices.Backward(of.results) {
		w.put(toI64[result]...)
		if n < len(of.results)-1 {
			w.put(0x20, w.scratch, 0x85)
		}
		if n > 0 {
			w.put(0x21, w.scratch)
		}
	}
}

// expression pushes an i64.
func (w *drawnWriter) expression(depth int) {
	if depth == 0 {
		if w.chance(40) {
			w.constant()
			return
		}
		local := one(w.drawing, w.values...)
		w.put(join([]byte{0x20}, leb(local), toI64[w.typeOf(local)])...)
		return
	}
	switch w.IntN(8) {
	case 0, 1, 2:
		w.expression(depth - 1)
		w.expression(depth - 1)
		w.put(one[byte](w.drawing, 0x7c, 0x7d, 0x7e, 0x83, 0x85, 0x89))
	case 3:
		w.expression(depth - 1)
		w.expression(depth - 1)
		if !w.chance(3) {
			w.put(0x42, 1, 0x84) // not 0
		}
		w.put(0x80)
	case 4:
		if len(w.globals) > 0 {
			n := w.IntN(len(w.globals))
			w.put(join([]byte{0x23}, leb(n), toI64[w.globals[n]])...)
			return
		}
		w.expression(depth - 1)
	case 5:
		if w.hasMemory && w.minimum > 0 {
			w.address(depth - 1)
			w.put(0x29, 0, byte(w.IntN(64)))
			return
		}
		w.expression(depth - 1)
	default:
		w.anyCall(depth)
	}
}

// anyCall pushes what a call returns, if another call is allowed here.
func (w *drawnWriter) anyCall(depth int) {
	if w.calls == 0 || w.loops > 1 {
		w.expression(depth - 1)
		return
	}
	w.calls--
	if slot := w.IntN(len(w.slots) + 1); w.chance(25) && slot < len(w.slots) && (w.slots[slot] >= 0 || w.chance(10)) {
		of := drawnType{results: []byte{typeI64}}
		if function := w.slots[slot]; function >= 0 && !w.chance(3) {
			of = w.functions[function]
		}
		w.calling(of, join([]byte{0x41, byte(slot), 0x11}, w.typeIndex(of), []byte{0}))
		return
	}
	w.call(w.IntN(len(w.functions)))
}

// statement changes something.
func (w *drawnWriter) statement(depth int) {
	switch w.IntN(14) {
	case 0, 1, 2:
		if w.hasMemory && w.minimum > 0 {
			w.address(1)
			w.expression(depth)
			w.put(0x37, 0, byte(w.IntN(64)))
		}
	case 3, 4:
		if len(w.globals) > 0 {
			n := w.IntN(len(w.globals))
			w.expression(depth)
			w.put(join(fromI64[w.globals[n]], []byte{0x24}, leb(n))...)
		}
	case 5:
		local := one(w.drawing, w.values...)
		w.expression(depth)
		w.put(join(fromI64[w.typeOf(local)], []byte{0x21}, leb(local))...)
	case 6:
		w.expression(1)
		w.put(0xa7, 0x04, 0x40)
		w.statement(depth)
		if w.chance(50) {
			w.put(0x05)
			w.statement(depth)
		}
		w.put(0x0b)
	case 7:
		w.loop(depth)
	case 8:
		w.anyCall(depth + 1)
		w.put(0x1a)
	case 9:
		w.expression(depth)
		w.put(0x10, 0) // note
	case 10:
		if w.hasMemory && w.chance(30) {
			w.put(0x41, byte(w.IntN(2)), 0x40, 0, 0x10+0x9c, 0x10, 0) // note what growing returns
		}
	case 11:
		if w.hasMemory && w.minimum > 0 {
			w.address(0)
			w.put(join([]byte{0x41, byte(w.IntN(64)), 0x41}, sleb(int64(w.IntN(5000))), []byte{0xfc, 11, 0})...) // memory.fill
		}
	case 12:
		if w.unusual {
			w.rare()
		}
	case 13:
		if w.chance(4) {
			w.expression(0)
			w.put(0x50, 0x04, 0x40, 0x00, 0x0b) // a trap
		}
	}
}

// loop runs statements several times.
func (w *drawnWriter) loop(depth int) {
	if w.loops == 2 {
		return
	}
	counter := w.local(typeI32)
	w.loops++
	w.put(0x41, byte(1+w.IntN(8)), 0x21, counter, 0x03, 0x40)
	for range 1 + w.IntN(3) {
		w.statement(depth - 1 + w.IntN(2))
	}
	w.put(0x20, counter, 0x41, 1, 0x6b, 0x22, counter, 0x0d, 0, 0x0b)
	w.loops--
}

// rare uses what an instance cannot be reset from.
func (w *drawnWriter) rare() {
	switch segment := byte(w.IntN(2)); {
	case int(segment) < w.passive && w.minimum > 0 && w.chance(60):
		w.address(0)
		w.put(0x41, 0, 0x41, byte(w.IntN(8)), 0xfc, 8, segment, 0) // memory.init
	case int(segment) < w.passive:
		w.put(0xfc, 9, segment) // data.drop
	default:
		w.put(0xd0, 0x70, 0x41, byte(w.IntN(3)), 0xfc, 15, 0, 0xac, 0x10, 0) // note what table.grow returns
	}
}
