package wasm

import "context"

// miscompiled is an instruction that wazero v1.12.0 compiles wrongly: its offset and its kind. Validate finds these
// instructions. Rewrite replaces them before any pass runs, so no pass knows of them, and package metered refuses any
// that remain.
//
//   - select of f32, f64 or v128, and f64x2.replace_lane 0, may return what a register happens to hold, such as text of
//     another call that the host copied: the register allocator does not know that the instruction reads its
//     destination (amd64, xmmCMov and lowerInsertLane).
//   - The code of some instructions changes a temporary value and then loads an operand from the stack again. The
//     register allocator may take the temporary's register for that. Later it restores the value from before the
//     change, or from a slot of the stack that was not written yet (amd64, findOrSpillAllocatable). This
//     concerns conversions of unsigned numbers, copysign, and some instructions on vectors.
//   - If a branch depends on a comparison by order of 0 with the result of an and instruction, in this order, the
//     compiler swaps the operands (amd64 and arm64, tryLowerBandToFlag). Go emits this for x&y > 0. On arm64, unsigned
//     comparisons of such a result with 0 are wrong in the other order, too. After an or with 0, the compiler does not
//     see the and.
type miscompiled uint64

// kinds of miscompiled instructions.
const (
	sound     = iota // none
	selectI32        // not miscompiled, but does not name its type
	selectI64
	selectF32
	selectF64
	orI32 // an or with 0 is inserted before the instruction
	orI64
	convertF32
	convertF64
	copysignF32
	copysignF64
	replaceLane
	convertLow
	convertF32x4 // this and the following need vectors in locals
	selectV128
	bitselect
	multiply
	population
	minF32x4
	maxF32x4
	minF64x2
	maxF64x2
	kindBits = 5
)

// miscompiledKinds are the kinds of instructions whose operands do not matter.
var miscompiledKinds = map[string]int{
	"f32.copysign": copysignF32, "f64.copysign": copysignF64, "f32.convert_i64_u": convertF32,
	"f64.convert_i64_u": convertF64, "f64x2.replace_lane": replaceLane, "v128.bitselect": bitselect,
	"i8x16.popcnt": population, "i64x2.mul": multiply, "f32x4.min": minF32x4, "f32x4.max": maxF32x4,
	"f64x2.min": minF64x2, "f64x2.max": maxF64x2, "f32x4.convert_i32x4_u": convertF32x4,
	"f64x2.convert_low_i32x4_u": convertLow,
}

// miscompiledKind returns the kind of an instruction whose operands do not matter, or 0.
func (in *instruction) miscompiledKind() int {
	if in.opcode == opF64x2ReplaceLane && in.lane != 0 {
		return sound
	}
	return in.operator.miscompiled
}

func (m miscompiled) at() int   { return int(m >> kindBits) }
func (m miscompiled) kind() int { return int(m & (1<<kindBits - 1)) }

// miscompiles records the code to write in place of an instruction, or before it, and its weight. Offsets never
// decrease.
func (b *bodyValidation) miscompiles(at, kind int) {
	b.v.analysis.miscompiled = append(b.v.analysis.miscompiled, miscompiled(at<<kindBits|kind))
	b.weight += replacementWeights[kind]
}

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

// produced records the properties of a pushed value that matter to comparisons. For wazero, a shift by 0 is another
// name of its first operand.
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
	out := withSection(source, code, content)
	const any = 1<<31 - 1 // the original was within the bounds
	module, err := InspectWithin(out, Bounds{Types: any, TypeValues: any, Imports: any, Functions: any, Globals: any,
		Exports: any, BodyBytes: any, Locals: any, LocalsPerFunction: any})
	if err != nil {
		return nil, nil, err
	}
	bounds := a.bounds
	bounds.BlockLocals, bounds.BlockValues, bounds.Weight, bounds.AllWeight = any, any, any, any
	again, err := ValidateWithin(ctx, out, module, bounds, a.features)
	return out, again, err
}
