package wasm

import "fmt"

// bytesPerUnit is the base-2 logarithm of the number of bytes of memory that cost one unit, in
// operations whose time depends on a length. Each element of a table costs one.
const bytesPerUnit = 4

// maxBulkUses limits the functions that the bulk pass adds. Compilers use a few.
const maxBulkUses = 1000

// bulkUse is an instruction whose time depends on a length, with its immediates.
type bulkUse struct {
	opcode        opcode
	index, second uint32
}

// bulkUse returns the use that an instruction is. Those of memory refer to the only one.
func (in *instruction) bulkUse() bulkUse {
	switch in.opcode {
	case opMemoryInit, opTableFill:
		return bulkUse{in.opcode, in.index, 0}
	case opTableInit, opTableCopy:
		return bulkUse{in.opcode, in.index, in.second}
	default:
		return bulkUse{opcode: in.opcode}
	}
}

// takesLength reports whether an instruction's time depends on a length.
func takesLength(code opcode) bool {
	switch code {
	case opMemoryInit, opMemoryCopy, opMemoryFill, opTableInit, opTableCopy, opTableFill:
		return true
	default:
		return false
	}
}

// bulkPass handles operations whose time and fuel depend on their length. Each becomes a call of a
// function that does the same in chunks, with a charge and a test before each. memory.grow and
// table.grow leave the guest's code and cost as much as a few thousand other instructions.
type bulkPass struct {
	calls map[bulkUse][]byte
	grow  []byte // the call before memory.grow and table.grow
}

// addBulk adds the bulk pass and the functions that the module needs for it.
func (r *rewriting) addBulk() error {
	if n := len(r.analysis.bulkUses); n > maxBulkUses {
		code, _ := r.module.section(SectionCode)
		return &Error{Kind: ErrLimit, Section: SectionCode.String(), Offset: code.Offset,
			Message: fmt.Sprintf("copies and fills memory and tables with %d different instructions, the limit is %d", n,
				maxBulkUses)}
	}
	p := &bulkPass{calls: map[bulkUse][]byte{}}
	charge, call := &encoder{}, &encoder{}
	r.meter.charge(charge, growUnits)
	r.meter.test(charge)
	p.grow = call.at(opCall, r.addFunction(FuncType{}, charge.do(opEnd).bytes)).bytes
	for _, use := range r.analysis.bulkUses {
		second := I32
		if use.opcode == opTableFill {
			second = r.tables()[use.index].Element
		}
		var call encoder
		p.calls[use] = call.at(opCall,
			r.addFunction(FuncType{Params: []ValueType{I32, second, I32}}, r.bulkFunction(use))).bytes
	}
	r.pipeline = append(r.pipeline, p)
	return nil
}

func (p *bulkPass) enter(*bodyRewriting) {}

func (p *bulkPass) visit(b *bodyRewriting, in *instruction) {
	switch {
	case in.opcode == opMemoryGrow || in.opcode == opTableGrow:
		b.insert(in.at, p.grow)
	case takesLength(in.opcode):
		b.replace(in, p.calls[in.bulkUse()])
	}
}

// tables returns the table index space.
func (r *rewriting) tables() (tables []Table) {
	for _, imported := range r.module.Imports {
		if imported.Kind == ExternTable {
			tables = append(tables, imported.Table)
		}
	}
	return append(tables, r.module.Tables...)
}

// The parameters of the functions: where to write; what, or from where; and the length.
const (
	bulkTo = iota
	bulkFrom
	bulkLength
)

// bulkFunction is an operation in chunks of maxWork units.
func (r *rewriting) bulkFunction(use bulkUse) []byte {
	w := &bulkWriter{use: use, meter: r.meter, chunk: maxWork}
	switch use.opcode {
	case opMemoryInit, opMemoryCopy, opMemoryFill:
		w.perUnit, w.chunk = bytesPerUnit, maxWork<<bytesPerUnit
	}
	w.at(opLocalGet, bulkLength).i32(w.chunk).do(opI32LeU).block(opIf)
	w.rest()
	w.do(opReturn, opEnd)
	w.check()
	if use.opcode == opMemoryCopy || use.opcode == opTableCopy {
		// From the front if the destination is before the source, else from the back, so that no chunk overwrites a part that
		// is still to be copied.
		w.at(opLocalGet, bulkTo).at(opLocalGet, bulkFrom).do(opI32LeU).block(opIf)
		w.forwards()
		w.do(opElse)
		w.backwards()
		w.do(opEnd)
	} else {
		w.forwards()
	}
	w.rest()
	return w.do(opEnd).bytes
}

type bulkWriter struct {
	encoder
	use     bulkUse
	meter   *meter
	chunk   int32 // a length
	perUnit int64 // the base-2 logarithm of the length that costs a unit
}

// operation writes the operation itself. Its parameters are on the stack.
func (w *bulkWriter) operation() {
	w.bytes = append(w.bytes, opNumbered, w.use.opcode.number())
	w.u32(w.use.index)
	switch w.use.opcode {
	case opMemoryInit, opMemoryCopy, opTableInit, opTableCopy:
		w.u32(w.use.second)
	}
}

// moves reports whether the second parameter is where to read from.
func (w *bulkWriter) moves() bool { return w.use.opcode != opMemoryFill && w.use.opcode != opTableFill }

// rest does the rest of the operation, which is at most a chunk.
func (w *bulkWriter) rest() {
	w.meter.chargeLength(&w.encoder, bulkLength, w.perUnit)
	w.at(opLocalGet, bulkTo).at(opLocalGet, bulkFrom).at(opLocalGet, bulkLength)
	w.operation()
}

// check traps if the operation is out of bounds, since nothing must be written then (§4.4.6, §4.4.7).
// An operation of length 0 traps just where its range would end, unless that is beyond 32 bits.
func (w *bulkWriter) check() {
	w.overflow(bulkTo)
	if w.moves() {
		w.overflow(bulkFrom)
	}
	w.end(bulkTo)
	if w.moves() {
		w.end(bulkFrom)
	} else {
		w.at(opLocalGet, bulkFrom)
	}
	w.i32(0)
	w.operation()
}

// overflow traps as the operation does if a range ends beyond 32 bits.
func (w *bulkWriter) overflow(start uint32) {
	w.end(start).at(opLocalGet, bulkLength).do(opI32LtU).block(opIf)
	w.i32(-1).at(opLocalGet, bulkFrom).i32(-1)
	w.operation()
	w.do(opUnreachable, opEnd)
}

// end pushes the end of the range that begins at a parameter.
func (w *bulkWriter) end(start uint32) *encoder {
	return w.at(opLocalGet, start).at(opLocalGet, bulkLength).do(opI32Add)
}

// forwards does all but the last chunk.
func (w *bulkWriter) forwards() {
	w.block(opLoop)
	w.charge()
	w.at(opLocalGet, bulkTo).at(opLocalGet, bulkFrom).i32(w.chunk)
	w.operation()
	w.advance(bulkTo)
	if w.moves() {
		w.advance(bulkFrom)
	}
	w.again()
}

// backwards does all but the first chunk.
func (w *bulkWriter) backwards() {
	w.block(opLoop)
	w.charge()
	for _, start := range [...]uint32{bulkTo, bulkFrom} {
		w.end(start).i32(w.chunk).do(opI32Sub)
	}
	w.i32(w.chunk)
	w.operation()
	w.again()
}

// charge charges for a chunk and tests.
func (w *bulkWriter) charge() {
	w.meter.charge(&w.encoder, maxWork)
	w.meter.test(&w.encoder)
}

// advance moves the start of a range past the chunk.
func (w *bulkWriter) advance(start uint32) {
	w.at(opLocalGet, start).i32(w.chunk).do(opI32Add).at(opLocalSet, start)
}

// again subtracts the chunk from the length and repeats the loop while more than a chunk is left.
func (w *bulkWriter) again() {
	w.at(opLocalGet, bulkLength).i32(w.chunk).do(opI32Sub).at(opLocalTee, bulkLength)
	w.i32(w.chunk).do(opI32GtU).at(opBrIf, 0).do(opEnd)
}
