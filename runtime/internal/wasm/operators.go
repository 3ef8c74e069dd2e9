package wasm

import (
	"strconv"
	"strings"
)

// operatorGroup is instructions that differ only in their opcodes and names. Names are separated by white space. A name
// has the opcode after that of the name before it, unless its opcode precedes it.
type operatorGroup struct {
	operator
	names string
}

// typeLetters are the value types in signatures, such as "ii-l" for two parameters of type i32 and one result, an i64.
var typeLetters = map[rune]ValueType{'i': I32, 'l': I64, 'f': F32, 'd': F64, 'v': V128}

func plain(signature, names string) operatorGroup {
	params, results, _ := strings.Cut(signature, "-")
	types := func(letter rune) rune { return rune(typeLetters[letter]) }
	return operatorGroup{operator{params: strings.Map(types, params), results: strings.Map(types, results)}, names}
}

func immediate(kind immediates, signature, names string) operatorGroup {
	g := plain(signature, names)
	g.immediates = kind
	return g
}

func special(kind immediates, signature, names string) operatorGroup {
	g := immediate(kind, signature, names)
	g.special = true
	return g
}

func memory(signature string, align uint8, names string) operatorGroup {
	g := immediate(immediateMemory, signature, names)
	g.align = align
	return g
}

func lane(signature string, lanes uint8, names string) operatorGroup {
	g := immediate(immediateLane, signature, names)
	g.lanes = lanes
	return g
}

func memoryLane(signature string, align uint8, names string) operatorGroup {
	g := immediate(immediateMemoryLane, signature, names)
	g.align, g.lanes = align, 16>>align
	return g
}

func operatorTable(groups ...operatorGroup) *[256]operator {
	var table [256]operator
	for _, g := range groups {
		next := uint64(0)
		for word := range strings.FieldsSeq(g.names) {
			if number, err := strconv.ParseUint(word, 0, 8); err == nil {
				next = number
				continue
			}
			g.name, g.miscompiled = word, miscompiledKinds[word]
			table[next] = g.operator
			next++
		}
	}
	return &table
}

// plainOperators are the instructions of one byte (§5.4.1–5.4.7), including those of the tail call
// proposal. It is read-only.
var plainOperators = operatorTable(
	special(immediateNone, "-", "0x00 unreachable 0x05 else 0x0b end 0x0f return 0x1a drop select 0xd1 ref.is_null"),
	plain("-", "0x01 nop"),
	special(immediateBlock, "-", "0x02 block loop if"),
	special(immediateIndex, "-", `
		0x0c br br_if 0x10 call 0x12 return_call 0x20 local.get local.set local.tee global.get global.set 0x25 table.get
		table.set 0xd2 ref.func`),
	special(immediateLabels, "-", "0x0e br_table"),
	special(immediateTwoIndices, "-", "0x11 call_indirect 0x13 return_call_indirect"),
	special(immediateTypes, "-", "0x1c select"),
	memory("i-i", 2, "0x28 i32.load"),
	memory("i-l", 3, "0x29 i64.load"),
	memory("i-f", 2, "0x2a f32.load"),
	memory("i-d", 3, "0x2b f64.load"),
	memory("i-i", 0, "0x2c i32.load8_s i32.load8_u"),
	memory("i-i", 1, "0x2e i32.load16_s i32.load16_u"),
	memory("i-l", 0, "0x30 i64.load8_s i64.load8_u"),
	memory("i-l", 1, "0x32 i64.load16_s i64.load16_u"),
	memory("i-l", 2, "0x34 i64.load32_s i64.load32_u"),
	memory("ii-", 2, "0x36 i32.store"),
	memory("il-", 3, "0x37 i64.store"),
	memory("if-", 2, "0x38 f32.store"),
	memory("id-", 3, "0x39 f64.store"),
	memory("ii-", 0, "0x3a i32.store8"),
	memory("ii-", 1, "0x3b i32.store16"),
	memory("il-", 0, "0x3c i64.store8"),
	memory("il-", 1, "0x3d i64.store16"),
	memory("il-", 2, "0x3e i64.store32"),
	immediate(immediateZero, "-i", "0x3f memory.size"),
	immediate(immediateZero, "i-i", "0x40 memory.grow"),
	immediate(immediateI32, "-i", "0x41 i32.const"),
	immediate(immediateI64, "-l", "0x42 i64.const"),
	immediate(immediateF32, "-f", "0x43 f32.const"),
	immediate(immediateF64, "-d", "0x44 f64.const"),
	plain("i-i", "0x45 i32.eqz 0x67 i32.clz i32.ctz i32.popcnt 0xc0 i32.extend8_s i32.extend16_s"),
	plain("ii-i", `
		0x46 i32.eq i32.ne i32.lt_s i32.lt_u i32.gt_s i32.gt_u i32.le_s i32.le_u i32.ge_s i32.ge_u 0x6a i32.add i32.sub
		i32.mul i32.div_s i32.div_u i32.rem_s i32.rem_u i32.and i32.or i32.xor i32.shl i32.shr_s i32.shr_u i32.rotl
		i32.rotr`),
	plain("l-i", "0x50 i64.eqz 0xa7 i32.wrap_i64"),
	plain("ll-i", "0x51 i64.eq i64.ne i64.lt_s i64.lt_u i64.gt_s i64.gt_u i64.le_s i64.le_u i64.ge_s i64.ge_u"),
	plain("ff-i", "0x5b f32.eq f32.ne f32.lt f32.gt f32.le f32.ge"),
	plain("dd-i", "0x61 f64.eq f64.ne f64.lt f64.gt f64.le f64.ge"),
	plain("l-l", "0x79 i64.clz i64.ctz i64.popcnt 0xc2 i64.extend8_s i64.extend16_s i64.extend32_s"),
	plain("ll-l", `
		0x7c i64.add i64.sub i64.mul i64.div_s i64.div_u i64.rem_s i64.rem_u i64.and i64.or i64.xor i64.shl i64.shr_s
		i64.shr_u i64.rotl i64.rotr`),
	plain("f-f", "0x8b f32.abs f32.neg f32.ceil f32.floor f32.trunc f32.nearest f32.sqrt"),
	plain("ff-f", "0x92 f32.add f32.sub f32.mul f32.div f32.min f32.max f32.copysign"),
	plain("d-d", "0x99 f64.abs f64.neg f64.ceil f64.floor f64.trunc f64.nearest f64.sqrt"),
	plain("dd-d", "0xa0 f64.add f64.sub f64.mul f64.div f64.min f64.max f64.copysign"),
	plain("f-i", "0xa8 i32.trunc_f32_s i32.trunc_f32_u 0xbc i32.reinterpret_f32"),
	plain("d-i", "0xaa i32.trunc_f64_s i32.trunc_f64_u"),
	plain("i-l", "0xac i64.extend_i32_s i64.extend_i32_u"),
	plain("f-l", "0xae i64.trunc_f32_s i64.trunc_f32_u"),
	plain("d-l", "0xb0 i64.trunc_f64_s i64.trunc_f64_u 0xbd i64.reinterpret_f64"),
	plain("i-f", "0xb2 f32.convert_i32_s f32.convert_i32_u 0xbe f32.reinterpret_i32"),
	plain("l-f", "0xb4 f32.convert_i64_s f32.convert_i64_u"),
	plain("d-f", "0xb6 f32.demote_f64"),
	plain("i-d", "0xb7 f64.convert_i32_s f64.convert_i32_u"),
	plain("l-d", "0xb9 f64.convert_i64_s f64.convert_i64_u 0xbf f64.reinterpret_i64"),
	plain("f-d", "0xbb f64.promote_f32"),
	special(immediateReference, "-", "0xd0 ref.null"),
)

// numberedOperators are the instructions with the prefix 0xfc (§5.4.5–5.4.7). It is read-only.
var numberedOperators = operatorTable(
	plain("f-i", "0 i32.trunc_sat_f32_s i32.trunc_sat_f32_u"),
	plain("d-i", "2 i32.trunc_sat_f64_s i32.trunc_sat_f64_u"),
	plain("f-l", "4 i64.trunc_sat_f32_s i64.trunc_sat_f32_u"),
	plain("d-l", "6 i64.trunc_sat_f64_s i64.trunc_sat_f64_u"),
	special(immediateIndexZero, "iii-", "8 memory.init"),
	special(immediateIndex, "-", "9 data.drop 13 elem.drop 15 table.grow 17 table.fill"),
	immediate(immediateTwoZeros, "iii-", "10 memory.copy"),
	immediate(immediateZero, "iii-", "11 memory.fill"),
	special(immediateTwoIndices, "iii-", "12 table.init 14 table.copy"),
	special(immediateIndex, "-i", "16 table.size"),
)

// vectorOperators are the instructions with the prefix 0xfd (§5.4.8). Missing numbers are
// undefined. It is read-only.
var vectorOperators = operatorTable(
	memory("i-v", 4, "0 v128.load"),
	memory("i-v", 3, `
		1 v128.load8x8_s v128.load8x8_u v128.load16x4_s v128.load16x4_u v128.load32x2_s v128.load32x2_u
		10 v128.load64_splat 93 v128.load64_zero`),
	memory("i-v", 0, "7 v128.load8_splat"),
	memory("i-v", 1, "8 v128.load16_splat"),
	memory("i-v", 2, "9 v128.load32_splat 92 v128.load32_zero"),
	memory("iv-", 4, "11 v128.store"),
	immediate(immediateV128, "-v", "12 v128.const"),
	immediate(immediateShuffle, "vv-v", "13 i8x16.shuffle"),
	plain("vv-v", `
		14 i8x16.swizzle 35 i8x16.eq i8x16.ne i8x16.lt_s i8x16.lt_u i8x16.gt_s i8x16.gt_u i8x16.le_s i8x16.le_u
		i8x16.ge_s i8x16.ge_u i16x8.eq i16x8.ne i16x8.lt_s i16x8.lt_u i16x8.gt_s i16x8.gt_u i16x8.le_s i16x8.le_u
		i16x8.ge_s i16x8.ge_u i32x4.eq i32x4.ne i32x4.lt_s i32x4.lt_u i32x4.gt_s i32x4.gt_u i32x4.le_s i32x4.le_u
		i32x4.ge_s i32x4.ge_u f32x4.eq f32x4.ne f32x4.lt f32x4.gt f32x4.le f32x4.ge f64x2.eq f64x2.ne f64x2.lt f64x2.gt
		f64x2.le f64x2.ge 78 v128.and v128.andnot v128.or v128.xor 101 i8x16.narrow_i16x8_s i8x16.narrow_i16x8_u
		110 i8x16.add i8x16.add_sat_s i8x16.add_sat_u i8x16.sub i8x16.sub_sat_s i8x16.sub_sat_u 118 i8x16.min_s
		i8x16.min_u i8x16.max_s i8x16.max_u 123 i8x16.avgr_u 130 i16x8.q15mulr_sat_s 133 i16x8.narrow_i32x4_s
		i16x8.narrow_i32x4_u 142 i16x8.add i16x8.add_sat_s i16x8.add_sat_u i16x8.sub i16x8.sub_sat_s i16x8.sub_sat_u
		149 i16x8.mul i16x8.min_s i16x8.min_u i16x8.max_s i16x8.max_u 155 i16x8.avgr_u i16x8.extmul_low_i8x16_s
		i16x8.extmul_high_i8x16_s i16x8.extmul_low_i8x16_u i16x8.extmul_high_i8x16_u 174 i32x4.add 177 i32x4.sub
		181 i32x4.mul i32x4.min_s i32x4.min_u i32x4.max_s i32x4.max_u i32x4.dot_i16x8_s 188 i32x4.extmul_low_i16x8_s
		i32x4.extmul_high_i16x8_s i32x4.extmul_low_i16x8_u i32x4.extmul_high_i16x8_u 206 i64x2.add 209 i64x2.sub
		213 i64x2.mul i64x2.eq i64x2.ne i64x2.lt_s i64x2.gt_s i64x2.le_s i64x2.ge_s i64x2.extmul_low_i32x4_s
		i64x2.extmul_high_i32x4_s i64x2.extmul_low_i32x4_u i64x2.extmul_high_i32x4_u 228 f32x4.add f32x4.sub f32x4.mul
		f32x4.div f32x4.min f32x4.max f32x4.pmin f32x4.pmax 240 f64x2.add f64x2.sub f64x2.mul f64x2.div f64x2.min
		f64x2.max f64x2.pmin f64x2.pmax`),
	plain("i-v", "15 i8x16.splat i16x8.splat i32x4.splat"),
	plain("l-v", "18 i64x2.splat"),
	plain("f-v", "19 f32x4.splat"),
	plain("d-v", "20 f64x2.splat"),
	lane("v-i", 16, "21 i8x16.extract_lane_s i8x16.extract_lane_u"),
	lane("vi-v", 16, "23 i8x16.replace_lane"),
	lane("v-i", 8, "24 i16x8.extract_lane_s i16x8.extract_lane_u"),
	lane("vi-v", 8, "26 i16x8.replace_lane"),
	lane("v-i", 4, "27 i32x4.extract_lane"),
	lane("vi-v", 4, "28 i32x4.replace_lane"),
	lane("v-l", 2, "29 i64x2.extract_lane"),
	lane("vl-v", 2, "30 i64x2.replace_lane"),
	lane("v-f", 4, "31 f32x4.extract_lane"),
	lane("vf-v", 4, "32 f32x4.replace_lane"),
	lane("v-d", 2, "33 f64x2.extract_lane"),
	lane("vd-v", 2, "34 f64x2.replace_lane"),
	plain("v-v", `
		77 v128.not 94 f32x4.demote_f64x2_zero f64x2.promote_low_f32x4 i8x16.abs i8x16.neg i8x16.popcnt 103 f32x4.ceil
		f32x4.floor f32x4.trunc f32x4.nearest 116 f64x2.ceil f64x2.floor 122 f64x2.trunc
		124 i16x8.extadd_pairwise_i8x16_s i16x8.extadd_pairwise_i8x16_u i32x4.extadd_pairwise_i16x8_s
		i32x4.extadd_pairwise_i16x8_u i16x8.abs i16x8.neg 135 i16x8.extend_low_i8x16_s i16x8.extend_high_i8x16_s
		i16x8.extend_low_i8x16_u i16x8.extend_high_i8x16_u 148 f64x2.nearest 160 i32x4.abs i32x4.neg
		167 i32x4.extend_low_i16x8_s i32x4.extend_high_i16x8_s i32x4.extend_low_i16x8_u i32x4.extend_high_i16x8_u
		192 i64x2.abs i64x2.neg 199 i64x2.extend_low_i32x4_s i64x2.extend_high_i32x4_s i64x2.extend_low_i32x4_u
		i64x2.extend_high_i32x4_u 224 f32x4.abs f32x4.neg 227 f32x4.sqrt 236 f64x2.abs f64x2.neg 239 f64x2.sqrt
		248 i32x4.trunc_sat_f32x4_s i32x4.trunc_sat_f32x4_u f32x4.convert_i32x4_s f32x4.convert_i32x4_u
		i32x4.trunc_sat_f64x2_s_zero i32x4.trunc_sat_f64x2_u_zero f64x2.convert_low_i32x4_s f64x2.convert_low_i32x4_u`),
	plain("vvv-v", "82 v128.bitselect"),
	plain("v-i", `
		83 v128.any_true 99 i8x16.all_true i8x16.bitmask 131 i16x8.all_true i16x8.bitmask 163 i32x4.all_true
		i32x4.bitmask 195 i64x2.all_true i64x2.bitmask`),
	memoryLane("iv-v", 0, "84 v128.load8_lane"),
	memoryLane("iv-v", 1, "85 v128.load16_lane"),
	memoryLane("iv-v", 2, "86 v128.load32_lane"),
	memoryLane("iv-v", 3, "87 v128.load64_lane"),
	memoryLane("iv-", 0, "88 v128.store8_lane"),
	memoryLane("iv-", 1, "89 v128.store16_lane"),
	memoryLane("iv-", 2, "90 v128.store32_lane"),
	memoryLane("iv-", 3, "91 v128.store64_lane"),
	plain("vi-v", `
		107 i8x16.shl i8x16.shr_s i8x16.shr_u 139 i16x8.shl i16x8.shr_s i16x8.shr_u 171 i32x4.shl i32x4.shr_s
		i32x4.shr_u 203 i64x2.shl i64x2.shr_s i64x2.shr_u`),
)
