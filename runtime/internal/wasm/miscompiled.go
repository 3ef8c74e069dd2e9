package wasm

import "context"

// miscompiled is an instruction that wazero v1.12.0 compiles wrongly: its offset and its kind. Validate finds these
// instructions. Rewrite replaces them before any pass runs, so no pass knows of them.
//
//   - select of f32, f64 or v128 may return what a register happens to hold, such as text of another call that the host
//     copied: the register allocator does not know that the instruction reads its destination (amd64, xmmCMov). Numbers
//     become integers and back, and vectors are selected by a mask. What remains are selects that name an integer or a
//     reference as their type, which is what package metered requires.
//   - If a branch depends on a comparison by order of 0 with the result of an and instruction, in this order, the
//     compiler swaps the operands (amd64 and arm64, tryLowerBandToFlag). Go emits this for x&y > 0. On arm64, unsigned
//     comparisons of such a result with 0 are wrong in the other order, too. After an or with 0, the compiler does not
//     see the and.
type miscompiled uint32

// kinds of miscompiled instructions.
const (
	selectI32 = iota // not miscompiled, but does not name its type
	selectI64
	selectF32
	selectF64
	selectV128
	orI32 // an or with 0 is inserted before the instruction
	orI64
	kindBits = 3
)

func (m miscompiled) at() int   { return int(m >> kindBits) }
func (m miscompiled) kind() int { return int(m & (1<<kindBits - 1)) }

// miscompiles records what to write in place of an instruction, or before it. Offsets never decrease.
func (b *bodyValidation) miscompiles(at, kind int) {
	b.v.analysis.miscompiled = append(b.v.analysis.miscompiled, miscompiled(at<<kindBits|kind))
}

// selected records a select of a type.
func (b *bodyValidation) selected(in *instruction, t ValueType) {
	switch {
	case t == F32:
		b.miscompiles(in.at, selectF32)
	case t == F64:
		b.miscompiles(in.at, selectF64)
	case t == V128:
		b.miscompiles(in.at, selectV128)
	case t == I32 && in.opcode == opSelect:
		b.miscompiles(in.at, selectI32)
	case t == I64 && in.opcode == opSelect:
		b.miscompiles(in.at, selectI64)
	}
	if t == F32 || t == F64 || t == V128 {
		b.weight += 7 // up to eight instructions replace it
	}
}

// compared records a comparison by order of two operands that may be 0 and the result of an and instruction.
func (b *bodyValidation) compared(in *instruction, first, second origin) {
	kind, unsigned := orI32, in.opcode%2 == 1
	switch {
	case in.opcode >= opI32LtS && in.opcode <= opI32GeU:
	case in.opcode >= opI64LtS && in.opcode <= opI64GeU:
		kind, unsigned = orI64, in.opcode%2 == 0
	default:
		return
	}
	switch {
	case second.and && first.constant != otherConstant, first.constant == zeroConstant && second.local == anywhere:
		b.miscompiles(in.at, kind)
	case unsigned && first.and && second.constant != otherConstant,
		unsigned && first.local == anywhere && second.constant == zeroConstant:
		b.miscompiles(in.at, kind)
	}
}

// produced notes what comparisons need to know about the value that an instruction has pushed. For wazero, a shift by 0
// is another name of its first operand.
func (b *bodyValidation) produced(in *instruction, first origin) {
	switch in.opcode {
	case opI32Const, opI64Const:
		b.from(origin{constant: constantOf(b.source[in.at+1 : in.end])})
	case opI32And, opI64And:
		b.from(origin{and: true})
	case opI32Shl, opI32ShrS, opI32ShrU, opI64Shl, opI64ShrS, opI64ShrU:
		b.from(origin{and: first.and})
	}
}

// knownConstant says whether a value is a constant, and whether that is 0.
type knownConstant uint8

const (
	noConstant knownConstant = iota
	zeroConstant
	otherConstant
)

// constantOf looks at a number in LEB128, which may be longer than necessary.
func constantOf(number []byte) knownConstant {
	for _, b := range number {
		if b&0x7f != 0 {
			return otherConstant
		}
	}
	return zeroConstant
}

// withoutMiscompiled replaces the miscompiled instructions of a module, and analyses the result.
func withoutMiscompiled(ctx context.Context, source []byte, a *Analysis) ([]byte, *Analysis, error) {
	if len(a.miscompiled) == 0 {
		return source, a, nil
	}
	code, _ := a.module.section(SectionCode)
	content := encoder{bytes: make([]byte, 0, len(source)+len(source)/4)}
	content.u32(uint32(len(a.module.Functions)))
	left := a.miscompiled
	var b replacing
	for _, f := range a.module.Functions {
		n := 0
		for n < len(left) && left[n].at() < f.Offset+f.Size {
			n++
		}
		b.function(source, a, f, left[:n])
		left = left[n:]
		length := edited(f.Offset, f.Offset+f.Size, b.edits)
		if err := a.within(f, 0, length, len(content.bytes)+length); err != nil {
			return nil, nil, err
		}
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		content.u32(uint32(length))
		content.apply(source, f.Offset, f.Offset+f.Size, b.edits)
	}
	out := encoder{bytes: make([]byte, 0, len(source)+len(content.bytes)-(code.End-code.Offset)+headerBytes)}
	out.bytes = append(out.bytes, source[:code.Offset]...)
	out.section(SectionCode, content.bytes)
	out.bytes = append(out.bytes, source[code.End:]...)
	const any = 1<<31 - 1 // the original was within the bounds
	module, err := InspectWithin(out.bytes, Bounds{Types: any, TypeValues: any, Imports: any, Functions: any, Globals: any,
		Exports: any, BodyBytes: any, Locals: any, LocalsPerFunction: any})
	if err != nil {
		return nil, nil, err
	}
	bounds := a.bounds
	bounds.BlockLocals, bounds.BlockValues, bounds.Weight, bounds.AllWeight = any, any, any, any
	again, err := ValidateWithin(ctx, out.bytes, module, bounds, a.features)
	return out.bytes, again, err
}

// replacing replaces instructions of a function.
type replacing struct {
	decoder
	edits []edit
	added uint32 // index of the first local that was added
}

// function records what to replace. Selects of numbers need three locals more.
func (r *replacing) function(source []byte, a *Analysis, f Function, all []miscompiled) {
	r.decoder = decoder{reader: reader{source: source[:f.Offset+f.Size], at: f.Offset}, features: a.features}
	r.edits = r.edits[:0]
	for _, m := range all {
		if m.kind() == selectF32 || m.kind() == selectF64 {
			r.addLocals(a.module, f)
			break
		}
	}
	for _, m := range all {
		r.at = m.at()
		var in instruction
		r.next(&in)
		with := r.with(m.kind())
		if m.kind() == orI32 || m.kind() == orI64 {
			in.end = in.at
		}
		r.edits = append(r.edits, edit{at: in.at, end: in.end, with: with})
	}
}

// The locals that are added, behind the function's own.
const (
	condition = iota
	second32
	second64
	addedLocals
)

func (r *replacing) addLocals(m *Module, f Function) {
	r.added = uint32(len(m.Types[f.Type].Params) + f.Locals)
	groups := r.u32("the number of groups of locals")
	behind := r.at
	r.at = f.Offset
	r.locals(f.Locals)
	var count encoder
	count.u32(groups + 2)
	r.edits = append(r.edits, edit{at: f.Offset, end: behind, with: count.bytes},
		edit{at: r.at, end: r.at, with: []byte{second32 + 1, byte(I32), addedLocals - second64, byte(I64)}})
}

// with returns the code to write.
func (r *replacing) with(kind int) []byte {
	e := &encoder{}
	switch kind {
	case selectI32:
		e.selects(I32)
	case selectI64:
		e.selects(I64)
	case selectF32:
		r.asIntegers(e, opI32ReinterpretF32, second32, I32, opF32ReinterpretI32)
	case selectF64:
		r.asIntegers(e, opI64ReinterpretF64, second64, I64, opF64ReinterpretI64)
	case selectV128:
		// All bits of the first unless the condition is 0.
		e.do(opI32Eqz, opI64ExtendU).i64(1).do(opI64Sub)
		e.bytes = append(e.bytes, opVector, opI64x2Splat, opVector, opV128Bitselect)
	case orI32:
		e.i32(0).do(opI32Or)
	case orI64:
		e.i64(0).do(opI64Or)
	}
	return e.bytes
}

// asIntegers selects between two numbers by their bits.
func (r *replacing) asIntegers(e *encoder, toBits opcode, second uint32, bits ValueType, fromBits opcode) {
	e.at(opLocalSet, r.added+condition).do(toBits).at(opLocalSet, r.added+second).do(toBits)
	e.at(opLocalGet, r.added+second).at(opLocalGet, r.added+condition).selects(bits).do(fromBits)
}

// selects writes a select that names its type.
func (e *encoder) selects(t ValueType) *encoder {
	e.at(opSelectTyped, 1)
	e.bytes = append(e.bytes, byte(t))
	return e
}
