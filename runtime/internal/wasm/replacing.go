package wasm

import "encoding/binary"

// replacing replaces miscompiled instructions of a function by equivalent ones. Their code loads all operands before it
// changes a temporary value, so the register allocator loses no change.
type replacing struct {
	encoder // of one replacement
	decoder decoder
	edits   []edit
	added   uint32 // index of the first local that was added
}

// replacementWeights are the weights of the replacements, see weightOf. It is read-only.
var replacementWeights = func() (weights [1 << kindBits]int64) {
	for kind := range weights {
		var r replacing
		r.write(kind)
		for d := (decoder{reader: reader{source: r.bytes}}); d.left() > 0 && d.err == nil; {
			var in instruction
			d.next(&in)
			weights[kind] += weightOf(in.opcode)
		}
	}
	return weights
}()

// function records the replacements in a function.
func (r *replacing) function(source []byte, a *Analysis, f Function, all []miscompiled) {
	r.decoder = decoder{reader: reader{source: source[:f.Offset+f.Size], at: f.Offset}, features: a.features}
	r.edits = r.edits[:0]
	locals, vectors := false, false
	for _, m := range all {
		switch kind := m.kind(); kind {
		case selectI32, selectI64, orI32, orI64, replaceLane, convertLow:
		default:
			locals, vectors = true, vectors || kind >= convertF32x4
		}
	}
	if locals {
		r.addLocals(a.module, f, vectors)
	}
	for _, m := range all {
		r.decoder.at = m.at()
		var in instruction
		r.decoder.next(&in)
		r.bytes = nil
		r.write(m.kind())
		if m.kind() == orI32 || m.kind() == orI64 {
			in.end = in.at
		}
		r.edits = append(r.edits, edit{at: in.at, end: in.end, with: r.bytes})
	}
}

// The locals that are added after the function's own: two of each type.
const (
	firstI32 = iota
	secondI32
	firstI64
	secondI64
	firstV128 // this and the next only where they are used
	secondV128
)

func (r *replacing) addLocals(m *Module, f Function, vectors bool) {
	r.added = uint32(len(m.Types[f.Type].Params) + f.Locals)
	d := &r.decoder
	groups := d.u32("the number of groups of locals")
	countEnd := d.at
	d.at = f.Offset
	d.locals(f.Locals)
	types := []ValueType{I32, I64, V128}
	if !vectors {
		types = types[:2]
	}
	var count, added encoder
	count.u32(groups + uint32(len(types)))
	for _, t := range types {
		added.bytes = append(added.bytes, 2, byte(t))
	}
	r.edits = append(r.edits, edit{at: f.Offset, end: countEnd, with: count.bytes},
		edit{at: d.at, end: d.at, with: added.bytes})
}

// write writes the code for a kind.
func (r *replacing) write(kind int) {
	switch kind {
	case selectI32:
		r.selects(I32)
	case selectI64:
		r.selects(I64)
	case selectF32:
		r.set(firstI32).do(opI32ReinterpretF32)
		r.set(secondI32).do(opI32ReinterpretF32)
		r.get(secondI32, firstI32).selects(I32).do(opF32ReinterpretI32)
	case selectF64:
		r.set(firstI32).do(opI64ReinterpretF64)
		r.set(secondI64).do(opI64ReinterpretF64)
		r.get(secondI64, firstI32).selects(I64).do(opF64ReinterpretI64)
	case orI32:
		r.i32(0).do(opI32Or)
	case orI64:
		r.i64(0).do(opI64Or)
	case convertF32:
		r.convert(opF32ConvertI64S, opF32Mul)
	case convertF64:
		r.convert(opF64ConvertI64S, opF64Mul)
	case copysignF32:
		const sign = -1 << 31
		r.do(opI32ReinterpretF32).i32(sign).do(opI32And)
		r.set(firstI32).do(opI32ReinterpretF32).i32(^sign).do(opI32And)
		r.get(firstI32).do(opI32Or, opF32ReinterpretI32)
	case copysignF64:
		const sign = -1 << 63
		r.do(opI64ReinterpretF64).i64(sign).do(opI64And)
		r.set(firstI64).do(opI64ReinterpretF64).i64(^sign).do(opI64And)
		r.get(firstI64).do(opI64Or, opF64ReinterpretI64)
	default:
		r.writeVector(kind)
	}
}

func (r *replacing) set(local uint32) *replacing {
	r.at(opLocalSet, r.added+local)
	return r
}

func (r *replacing) tee(local uint32) *replacing {
	r.at(opLocalTee, r.added+local)
	return r
}

func (r *replacing) get(locals ...uint32) *replacing {
	for _, local := range locals {
		r.at(opLocalGet, r.added+local)
	}
	return r
}

// convert converts an unsigned number as a signed one. A number beyond those is halved, with a last bit that says
// whether the rest is 0, so that it is rounded alike. The result is doubled, which is exact.
func (r *replacing) convert(signed, multiply opcode) {
	r.tee(firstI64).i64(63).do(opI64ShrU)
	r.set(secondI64).get(firstI64, secondI64).do(opI64ShrU)
	r.get(firstI64, secondI64).do(opI64And, opI64Or, signed)
	r.get(secondI64).i64(1).do(opI64Add, signed, multiply)
}

// selects writes a select that names its type.
func (e *encoder) selects(t ValueType) *encoder {
	e.at(opSelectTyped, 1)
	e.bytes = append(e.bytes, byte(t))
	return e
}

const opF64x2ReplaceLane opcode = opVector<<8 | 34

// vectorNumbers are the numbers of the instructions on vectors, by their names.
var vectorNumbers = func() map[string]uint32 {
	numbers := map[string]uint32{}
	for number, row := range vectorOperators {
		numbers[row.name] = uint32(number)
	}
	return numbers
}()

// writeVector writes the code for a kind that works on vectors.
func (r *replacing) writeVector(kind int) {
	switch kind {
	case replaceLane:
		r.do(opI64ReinterpretF64).vector("i64x2.replace_lane", 0)
	case convertLow: // the exponent of 2^52 before the number, and minus 2^52
		r.vector("i64x2.extend_low_i32x4_u").lanes(0x4330_0000_0000_0000).vector("v128.or")
		r.lanes(0x4330_0000_0000_0000).vector("f64x2.sub")
	case convertF32x4: // the upper and the lower half of each number, which is rounded when they are added
		r.tee(firstV128).i32(16).vector("i32x4.shr_u").vector("f32x4.convert_i32x4_s")
		r.lanes(0x4780_0000_4780_0000).vector("f32x4.mul")
		r.get(firstV128).lanes(0x0000_ffff_0000_ffff).vector("v128.and").vector("f32x4.convert_i32x4_s").vector("f32x4.add")
	case selectV128: // all bits of the first unless the condition is 0
		r.do(opI32Eqz, opI64ExtendU).i64(1).do(opI64Sub).vector("i64x2.splat")
		r.writeVector(bitselect)
	case bitselect: // ((a ^ b) & mask) ^ b
		r.set(firstV128).tee(secondV128).vector("v128.xor")
		r.get(firstV128).vector("v128.and")
		r.get(secondV128).vector("v128.xor")
	case multiply:
		r.set(secondV128).tee(firstV128).vector("i64x2.extract_lane", 0)
		r.get(secondV128).vector("i64x2.extract_lane", 0).do(opI64Mul).vector("i64x2.splat")
		r.get(firstV128).vector("i64x2.extract_lane", 1)
		r.get(secondV128).vector("i64x2.extract_lane", 1).do(opI64Mul).vector("i64x2.replace_lane", 1)
	case population: // of pairs of bits, then of four, then of eight
		const one, two, four = 0x5555_5555_5555_5555, 0x3333_3333_3333_3333, 0x0f0f_0f0f_0f0f_0f0f
		r.tee(firstV128).get(firstV128).i32(1).vector("i64x2.shr_u").lanes(one).vector("v128.and").vector("i8x16.sub")
		r.tee(firstV128).lanes(two).vector("v128.and")
		r.get(firstV128).i32(2).vector("i64x2.shr_u").lanes(two).vector("v128.and").vector("i8x16.add")
		r.tee(firstV128).get(firstV128).i32(4).vector("i64x2.shr_u").vector("i8x16.add").lanes(four).vector("v128.and")
	case minF32x4:
		r.extreme("f32x4.pmin", "", "f32x4.ne", 0x7fc0_0000_7fc0_0000)
	case maxF32x4:
		r.extreme("f32x4.pmax", "f32x4.sub", "f32x4.ne", 0x7fc0_0000_7fc0_0000)
	case minF64x2:
		r.extreme("f64x2.pmin", "", "f64x2.ne", 0x7ff8_0000_0000_0000)
	case maxF64x2:
		r.extreme("f64x2.pmax", "f64x2.sub", "f64x2.ne", 0x7ff8_0000_0000_0000)
	}
}

// extreme takes the smaller or larger of two numbers in both orders, which differ only for two zeros and if one is a
// NaN. All their bits together are the smaller zero. To get the larger, minus, which is not 0, deducts the bits in
// which they differ. If one is a NaN, the result is the canonical NaN with the sign that wazero gives it, which is
// minus for the smaller.
func (r *replacing) extreme(of, minus, unequal string, canonical uint64) {
	sign := canonical << 1 &^ canonical // above the exponent
	payload := ^(canonical | sign)
	both := func() {
		r.get(firstV128, secondV128).vector(of)
		r.get(secondV128, firstV128).vector(of)
	}
	r.set(secondV128).set(firstV128)
	both()
	r.vector("v128.or")
	bits := ^uint64(0)
	if minus != "" {
		both()
		r.vector("v128.xor").vector(minus)
		bits = canonical
	}
	r.get(firstV128, firstV128).vector(unequal)
	r.get(secondV128, secondV128).vector(unequal).vector("v128.or")
	r.tee(firstV128).lanes(bits).vector("v128.and").vector("v128.or")
	r.get(firstV128).lanes(payload).vector("v128.and").vector("v128.andnot")
}

// vector writes an instruction on vectors.
func (e *encoder) vector(name string, lanes ...byte) *encoder {
	e.bytes = append(e.bytes, opVector)
	e.u32(vectorNumbers[name])
	e.bytes = append(e.bytes, lanes...)
	return e
}

// lanes writes a constant of two equal lanes.
func (e *encoder) lanes(lane uint64) *encoder {
	e.vector("v128.const")
	e.bytes = binary.LittleEndian.AppendUint64(e.bytes, lane)
	e.bytes = binary.LittleEndian.AppendUint64(e.bytes, lane)
	return e
}
