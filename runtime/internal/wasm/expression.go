package wasm

// constantExpression moves over a constant expression (§5.4.9, §3.3.10) and its end.
// It holds the instructions to those that are constant, so that it knows the length of
// all of them; it does not check their types.
func (r *reader) constantExpression() {
	const what = "a constant expression"
	for r.err == nil {
		at := r.at
		switch opcode := r.byte(what); opcode {
		case opEnd:
			return
		case opGlobalGet, opRefFunc:
			r.u32("an index in " + what)
		case opI32Const:
			r.leb(32, true, what)
		case opI64Const:
			r.leb(64, true, what)
		case opF32Const:
			r.skip(4, what)
		case opF64Const:
			r.skip(8, what)
		case opRefNull:
			r.referenceType("the type of ref.null")
		case opVector:
			if vector := r.u32(what); r.err == nil && vector != opV128Const {
				r.fail(ErrMalformed, at, "%s cannot have the vector instruction %d", what, vector)
			}
			r.skip(16, what)
		case 0x6a, 0x6b, 0x6c, 0x7c, 0x7d, 0x7e: // add, sub and mul of i32 and i64
			r.unsupported(at, extendedConstants, what+" with arithmetic")
		default:
			r.fail(ErrMalformed, at, "%s cannot have the instruction %#02x", what, opcode)
		}
	}
}
