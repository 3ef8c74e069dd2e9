package wasm

import "strings"

// operatorRun is a sequence of instructions with consecutive opcodes that differ only in their
// names.
type operatorRun struct {
	first uint8
	operator
	names string // separated by spaces
}

func operatorTable(runs ...operatorRun) *[256]operator {
	var table [256]operator
	for _, run := range runs {
		for i, name := range strings.Fields(run.names) {
			run.name = name
			table[int(run.first)+i] = run.operator
		}
	}
	return &table
}

// plainOperators are the instructions of one byte (§5.4.1–5.4.7), including those of the tail call
// proposal. It is read-only.
var plainOperators = operatorTable(
	// Control instructions (§5.4.1).
	operatorRun{0x00, operator{special: true}, "unreachable"},
	operatorRun{0x01, operator{}, "nop"},
	operatorRun{0x02, operator{special: true, immediates: immediateBlock}, "block loop if"},
	operatorRun{0x05, operator{special: true}, "else"},
	operatorRun{0x0b, operator{special: true}, "end"},
	operatorRun{0x0c, operator{special: true, immediates: immediateIndex}, "br br_if"},
	operatorRun{0x0e, operator{special: true, immediates: immediateLabels}, "br_table"},
	operatorRun{0x0f, operator{special: true}, "return"},
	operatorRun{0x10, operator{special: true, immediates: immediateIndex}, "call"},
	operatorRun{0x11, operator{special: true, immediates: immediateTwoIndices}, "call_indirect"},
	// Tail calls (tail call proposal, binary format).
	operatorRun{0x12, operator{special: true, immediates: immediateIndex}, "return_call"},
	operatorRun{0x13, operator{special: true, immediates: immediateTwoIndices}, "return_call_indirect"},
	// Parametric instructions (§5.4.3).
	operatorRun{0x1a, operator{special: true}, "drop select"},
	operatorRun{0x1c, operator{special: true, immediates: immediateTypes}, "select"},
	// Variable instructions (§5.4.4).
	operatorRun{0x20, operator{special: true, immediates: immediateIndex},
		"local.get local.set local.tee global.get global.set"},
	// Table instructions (§5.4.5).
	operatorRun{0x25, operator{special: true, immediates: immediateIndex}, "table.get table.set"},
	// Memory instructions (§5.4.6).
	operatorRun{0x28, operator{params: i32, results: i32, immediates: immediateMemory, align: 2}, "i32.load"},
	operatorRun{0x29, operator{params: i32, results: i64, immediates: immediateMemory, align: 3}, "i64.load"},
	operatorRun{0x2a, operator{params: i32, results: f32, immediates: immediateMemory, align: 2}, "f32.load"},
	operatorRun{0x2b, operator{params: i32, results: f64, immediates: immediateMemory, align: 3}, "f64.load"},
	operatorRun{0x2c, operator{params: i32, results: i32, immediates: immediateMemory}, "i32.load8_s i32.load8_u"},
	operatorRun{0x2e, operator{params: i32, results: i32, immediates: immediateMemory, align: 1},
		"i32.load16_s i32.load16_u"},
	operatorRun{0x30, operator{params: i32, results: i64, immediates: immediateMemory}, "i64.load8_s i64.load8_u"},
	operatorRun{0x32, operator{params: i32, results: i64, immediates: immediateMemory, align: 1},
		"i64.load16_s i64.load16_u"},
	operatorRun{0x34, operator{params: i32, results: i64, immediates: immediateMemory, align: 2},
		"i64.load32_s i64.load32_u"},
	operatorRun{0x36, operator{params: i32 + i32, immediates: immediateMemory, align: 2}, "i32.store"},
	operatorRun{0x37, operator{params: i32 + i64, immediates: immediateMemory, align: 3}, "i64.store"},
	operatorRun{0x38, operator{params: i32 + f32, immediates: immediateMemory, align: 2}, "f32.store"},
	operatorRun{0x39, operator{params: i32 + f64, immediates: immediateMemory, align: 3}, "f64.store"},
	operatorRun{0x3a, operator{params: i32 + i32, immediates: immediateMemory}, "i32.store8"},
	operatorRun{0x3b, operator{params: i32 + i32, immediates: immediateMemory, align: 1}, "i32.store16"},
	operatorRun{0x3c, operator{params: i32 + i64, immediates: immediateMemory}, "i64.store8"},
	operatorRun{0x3d, operator{params: i32 + i64, immediates: immediateMemory, align: 1}, "i64.store16"},
	operatorRun{0x3e, operator{params: i32 + i64, immediates: immediateMemory, align: 2}, "i64.store32"},
	operatorRun{0x3f, operator{results: i32, immediates: immediateZero}, "memory.size"},
	operatorRun{0x40, operator{params: i32, results: i32, immediates: immediateZero}, "memory.grow"},
	// Numeric instructions (§5.4.7): constants.
	operatorRun{0x41, operator{results: i32, immediates: immediateI32}, "i32.const"},
	operatorRun{0x42, operator{results: i64, immediates: immediateI64}, "i64.const"},
	operatorRun{0x43, operator{results: f32, immediates: immediateF32}, "f32.const"},
	operatorRun{0x44, operator{results: f64, immediates: immediateF64}, "f64.const"},
	// Tests and comparisons.
	operatorRun{0x45, operator{params: i32, results: i32}, "i32.eqz"},
	operatorRun{0x46, operator{params: i32 + i32, results: i32},
		"i32.eq i32.ne i32.lt_s i32.lt_u i32.gt_s i32.gt_u i32.le_s i32.le_u i32.ge_s i32.ge_u"},
	operatorRun{0x50, operator{params: i64, results: i32}, "i64.eqz"},
	operatorRun{0x51, operator{params: i64 + i64, results: i32},
		"i64.eq i64.ne i64.lt_s i64.lt_u i64.gt_s i64.gt_u i64.le_s i64.le_u i64.ge_s i64.ge_u"},
	operatorRun{0x5b, operator{params: f32 + f32, results: i32}, "f32.eq f32.ne f32.lt f32.gt f32.le f32.ge"},
	operatorRun{0x61, operator{params: f64 + f64, results: i32}, "f64.eq f64.ne f64.lt f64.gt f64.le f64.ge"},
	// Arithmetic.
	operatorRun{0x67, operator{params: i32, results: i32}, "i32.clz i32.ctz i32.popcnt"},
	operatorRun{0x6a, operator{params: i32 + i32, results: i32},
		"i32.add i32.sub i32.mul i32.div_s i32.div_u i32.rem_s i32.rem_u i32.and i32.or i32.xor i32.shl i32.shr_s " +
			"i32.shr_u i32.rotl i32.rotr"},
	operatorRun{0x79, operator{params: i64, results: i64}, "i64.clz i64.ctz i64.popcnt"},
	operatorRun{0x7c, operator{params: i64 + i64, results: i64},
		"i64.add i64.sub i64.mul i64.div_s i64.div_u i64.rem_s i64.rem_u i64.and i64.or i64.xor i64.shl i64.shr_s " +
			"i64.shr_u i64.rotl i64.rotr"},
	operatorRun{0x8b, operator{params: f32, results: f32},
		"f32.abs f32.neg f32.ceil f32.floor f32.trunc f32.nearest f32.sqrt"},
	operatorRun{0x92, operator{params: f32 + f32, results: f32},
		"f32.add f32.sub f32.mul f32.div f32.min f32.max f32.copysign"},
	operatorRun{0x99, operator{params: f64, results: f64},
		"f64.abs f64.neg f64.ceil f64.floor f64.trunc f64.nearest f64.sqrt"},
	operatorRun{0xa0, operator{params: f64 + f64, results: f64},
		"f64.add f64.sub f64.mul f64.div f64.min f64.max f64.copysign"},
	// Conversions.
	operatorRun{0xa7, operator{params: i64, results: i32}, "i32.wrap_i64"},
	operatorRun{0xa8, operator{params: f32, results: i32}, "i32.trunc_f32_s i32.trunc_f32_u"},
	operatorRun{0xaa, operator{params: f64, results: i32}, "i32.trunc_f64_s i32.trunc_f64_u"},
	operatorRun{0xac, operator{params: i32, results: i64}, "i64.extend_i32_s i64.extend_i32_u"},
	operatorRun{0xae, operator{params: f32, results: i64}, "i64.trunc_f32_s i64.trunc_f32_u"},
	operatorRun{0xb0, operator{params: f64, results: i64}, "i64.trunc_f64_s i64.trunc_f64_u"},
	operatorRun{0xb2, operator{params: i32, results: f32}, "f32.convert_i32_s f32.convert_i32_u"},
	operatorRun{0xb4, operator{params: i64, results: f32}, "f32.convert_i64_s f32.convert_i64_u"},
	operatorRun{0xb6, operator{params: f64, results: f32}, "f32.demote_f64"},
	operatorRun{0xb7, operator{params: i32, results: f64}, "f64.convert_i32_s f64.convert_i32_u"},
	operatorRun{0xb9, operator{params: i64, results: f64}, "f64.convert_i64_s f64.convert_i64_u"},
	operatorRun{0xbb, operator{params: f32, results: f64}, "f64.promote_f32"},
	operatorRun{0xbc, operator{params: f32, results: i32}, "i32.reinterpret_f32"},
	operatorRun{0xbd, operator{params: f64, results: i64}, "i64.reinterpret_f64"},
	operatorRun{0xbe, operator{params: i32, results: f32}, "f32.reinterpret_i32"},
	operatorRun{0xbf, operator{params: i64, results: f64}, "f64.reinterpret_i64"},
	// Sign extension.
	operatorRun{0xc0, operator{params: i32, results: i32}, "i32.extend8_s i32.extend16_s"},
	operatorRun{0xc2, operator{params: i64, results: i64}, "i64.extend8_s i64.extend16_s i64.extend32_s"},
	// Reference instructions (§5.4.2).
	operatorRun{0xd0, operator{special: true, immediates: immediateReference}, "ref.null"},
	operatorRun{0xd1, operator{special: true}, "ref.is_null"},
	operatorRun{0xd2, operator{special: true, immediates: immediateIndex}, "ref.func"},
)

// numberedOperators are the instructions with the prefix 0xfc (§5.4.5–5.4.7). It is read-only.
var numberedOperators = operatorTable(
	// Saturating truncation (§5.4.7).
	operatorRun{0, operator{params: f32, results: i32}, "i32.trunc_sat_f32_s i32.trunc_sat_f32_u"},
	operatorRun{2, operator{params: f64, results: i32}, "i32.trunc_sat_f64_s i32.trunc_sat_f64_u"},
	operatorRun{4, operator{params: f32, results: i64}, "i64.trunc_sat_f32_s i64.trunc_sat_f32_u"},
	operatorRun{6, operator{params: f64, results: i64}, "i64.trunc_sat_f64_s i64.trunc_sat_f64_u"},
	// Memory instructions (§5.4.6).
	operatorRun{8, operator{special: true, params: i32 + i32 + i32, immediates: immediateIndexZero}, "memory.init"},
	operatorRun{9, operator{special: true, immediates: immediateIndex}, "data.drop"},
	operatorRun{10, operator{params: i32 + i32 + i32, immediates: immediateTwoZeros}, "memory.copy"},
	operatorRun{11, operator{params: i32 + i32 + i32, immediates: immediateZero}, "memory.fill"},
	// Table instructions (§5.4.5).
	operatorRun{12, operator{special: true, params: i32 + i32 + i32, immediates: immediateTwoIndices}, "table.init"},
	operatorRun{13, operator{special: true, immediates: immediateIndex}, "elem.drop"},
	operatorRun{14, operator{special: true, params: i32 + i32 + i32, immediates: immediateTwoIndices}, "table.copy"},
	operatorRun{15, operator{special: true, immediates: immediateIndex}, "table.grow"},
	operatorRun{16, operator{special: true, results: i32, immediates: immediateIndex}, "table.size"},
	operatorRun{17, operator{special: true, immediates: immediateIndex}, "table.fill"},
)

// vectorOperators are the instructions with the prefix 0xfd (§5.4.8). Missing numbers are
// undefined. It is read-only.
var vectorOperators = operatorTable(
	operatorRun{0, operator{params: i32, results: v128, immediates: immediateMemory, align: 4}, "v128.load"},
	operatorRun{1, operator{params: i32, results: v128, immediates: immediateMemory, align: 3},
		"v128.load8x8_s v128.load8x8_u v128.load16x4_s v128.load16x4_u v128.load32x2_s v128.load32x2_u"},
	operatorRun{7, operator{params: i32, results: v128, immediates: immediateMemory}, "v128.load8_splat"},
	operatorRun{8, operator{params: i32, results: v128, immediates: immediateMemory, align: 1}, "v128.load16_splat"},
	operatorRun{9, operator{params: i32, results: v128, immediates: immediateMemory, align: 2}, "v128.load32_splat"},
	operatorRun{10, operator{params: i32, results: v128, immediates: immediateMemory, align: 3}, "v128.load64_splat"},
	operatorRun{11, operator{params: i32 + v128, immediates: immediateMemory, align: 4}, "v128.store"},
	operatorRun{12, operator{results: v128, immediates: immediateV128}, "v128.const"},
	operatorRun{13, operator{params: v128 + v128, results: v128, immediates: immediateShuffle}, "i8x16.shuffle"},
	operatorRun{14, operator{params: v128 + v128, results: v128}, "i8x16.swizzle"},
	operatorRun{15, operator{params: i32, results: v128}, "i8x16.splat i16x8.splat i32x4.splat"},
	operatorRun{18, operator{params: i64, results: v128}, "i64x2.splat"},
	operatorRun{19, operator{params: f32, results: v128}, "f32x4.splat"},
	operatorRun{20, operator{params: f64, results: v128}, "f64x2.splat"},
	operatorRun{21, operator{params: v128, results: i32, immediates: immediateLane, lanes: 16},
		"i8x16.extract_lane_s i8x16.extract_lane_u"},
	operatorRun{23, operator{params: v128 + i32, results: v128, immediates: immediateLane, lanes: 16},
		"i8x16.replace_lane"},
	operatorRun{24, operator{params: v128, results: i32, immediates: immediateLane, lanes: 8},
		"i16x8.extract_lane_s i16x8.extract_lane_u"},
	operatorRun{26, operator{params: v128 + i32, results: v128, immediates: immediateLane, lanes: 8},
		"i16x8.replace_lane"},
	operatorRun{27, operator{params: v128, results: i32, immediates: immediateLane, lanes: 4}, "i32x4.extract_lane"},
	operatorRun{28, operator{params: v128 + i32, results: v128, immediates: immediateLane, lanes: 4},
		"i32x4.replace_lane"},
	operatorRun{29, operator{params: v128, results: i64, immediates: immediateLane, lanes: 2}, "i64x2.extract_lane"},
	operatorRun{30, operator{params: v128 + i64, results: v128, immediates: immediateLane, lanes: 2},
		"i64x2.replace_lane"},
	operatorRun{31, operator{params: v128, results: f32, immediates: immediateLane, lanes: 4}, "f32x4.extract_lane"},
	operatorRun{32, operator{params: v128 + f32, results: v128, immediates: immediateLane, lanes: 4},
		"f32x4.replace_lane"},
	operatorRun{33, operator{params: v128, results: f64, immediates: immediateLane, lanes: 2}, "f64x2.extract_lane"},
	operatorRun{34, operator{params: v128 + f64, results: v128, immediates: immediateLane, lanes: 2},
		"f64x2.replace_lane"},
	operatorRun{35, operator{params: v128 + v128, results: v128},
		"i8x16.eq i8x16.ne i8x16.lt_s i8x16.lt_u i8x16.gt_s i8x16.gt_u i8x16.le_s i8x16.le_u i8x16.ge_s i8x16.ge_u " +
			"i16x8.eq i16x8.ne i16x8.lt_s i16x8.lt_u i16x8.gt_s i16x8.gt_u i16x8.le_s i16x8.le_u i16x8.ge_s i16x8.ge_u " +
			"i32x4.eq i32x4.ne i32x4.lt_s i32x4.lt_u i32x4.gt_s i32x4.gt_u i32x4.le_s i32x4.le_u i32x4.ge_s i32x4.ge_u " +
			"f32x4.eq f32x4.ne f32x4.lt f32x4.gt f32x4.le f32x4.ge f64x2.eq f64x2.ne f64x2.lt f64x2.gt f64x2.le f64x2.ge"},
	operatorRun{77, operator{params: v128, results: v128}, "v128.not"},
	operatorRun{78, operator{params: v128 + v128, results: v128}, "v128.and v128.andnot v128.or v128.xor"},
	operatorRun{82, operator{params: v128 + v128 + v128, results: v128}, "v128.bitselect"},
	operatorRun{83, operator{params: v128, results: i32}, "v128.any_true"},
	operatorRun{84, operator{params: i32 + v128, results: v128, immediates: immediateMemoryLane, lanes: 16},
		"v128.load8_lane"},
	operatorRun{85, operator{params: i32 + v128, results: v128, immediates: immediateMemoryLane, align: 1, lanes: 8},
		"v128.load16_lane"},
	operatorRun{86, operator{params: i32 + v128, results: v128, immediates: immediateMemoryLane, align: 2, lanes: 4},
		"v128.load32_lane"},
	operatorRun{87, operator{params: i32 + v128, results: v128, immediates: immediateMemoryLane, align: 3, lanes: 2},
		"v128.load64_lane"},
	operatorRun{88, operator{params: i32 + v128, immediates: immediateMemoryLane, lanes: 16}, "v128.store8_lane"},
	operatorRun{89, operator{params: i32 + v128, immediates: immediateMemoryLane, align: 1, lanes: 8},
		"v128.store16_lane"},
	operatorRun{90, operator{params: i32 + v128, immediates: immediateMemoryLane, align: 2, lanes: 4},
		"v128.store32_lane"},
	operatorRun{91, operator{params: i32 + v128, immediates: immediateMemoryLane, align: 3, lanes: 2},
		"v128.store64_lane"},
	operatorRun{92, operator{params: i32, results: v128, immediates: immediateMemory, align: 2}, "v128.load32_zero"},
	operatorRun{93, operator{params: i32, results: v128, immediates: immediateMemory, align: 3}, "v128.load64_zero"},
	operatorRun{94, operator{params: v128, results: v128},
		"f32x4.demote_f64x2_zero f64x2.promote_low_f32x4 i8x16.abs i8x16.neg i8x16.popcnt"},
	operatorRun{99, operator{params: v128, results: i32}, "i8x16.all_true i8x16.bitmask"},
	operatorRun{101, operator{params: v128 + v128, results: v128}, "i8x16.narrow_i16x8_s i8x16.narrow_i16x8_u"},
	operatorRun{103, operator{params: v128, results: v128}, "f32x4.ceil f32x4.floor f32x4.trunc f32x4.nearest"},
	operatorRun{107, operator{params: v128 + i32, results: v128}, "i8x16.shl i8x16.shr_s i8x16.shr_u"},
	operatorRun{110, operator{params: v128 + v128, results: v128},
		"i8x16.add i8x16.add_sat_s i8x16.add_sat_u i8x16.sub i8x16.sub_sat_s i8x16.sub_sat_u"},
	operatorRun{116, operator{params: v128, results: v128}, "f64x2.ceil f64x2.floor"},
	operatorRun{118, operator{params: v128 + v128, results: v128}, "i8x16.min_s i8x16.min_u i8x16.max_s i8x16.max_u"},
	operatorRun{122, operator{params: v128, results: v128}, "f64x2.trunc"},
	operatorRun{123, operator{params: v128 + v128, results: v128}, "i8x16.avgr_u"},
	operatorRun{124, operator{params: v128, results: v128},
		"i16x8.extadd_pairwise_i8x16_s i16x8.extadd_pairwise_i8x16_u i32x4.extadd_pairwise_i16x8_s " +
			"i32x4.extadd_pairwise_i16x8_u i16x8.abs i16x8.neg"},
	operatorRun{130, operator{params: v128 + v128, results: v128}, "i16x8.q15mulr_sat_s"},
	operatorRun{131, operator{params: v128, results: i32}, "i16x8.all_true i16x8.bitmask"},
	operatorRun{133, operator{params: v128 + v128, results: v128}, "i16x8.narrow_i32x4_s i16x8.narrow_i32x4_u"},
	operatorRun{135, operator{params: v128, results: v128},
		"i16x8.extend_low_i8x16_s i16x8.extend_high_i8x16_s i16x8.extend_low_i8x16_u i16x8.extend_high_i8x16_u"},
	operatorRun{139, operator{params: v128 + i32, results: v128}, "i16x8.shl i16x8.shr_s i16x8.shr_u"},
	operatorRun{142, operator{params: v128 + v128, results: v128},
		"i16x8.add i16x8.add_sat_s i16x8.add_sat_u i16x8.sub i16x8.sub_sat_s i16x8.sub_sat_u"},
	operatorRun{148, operator{params: v128, results: v128}, "f64x2.nearest"},
	operatorRun{149, operator{params: v128 + v128, results: v128},
		"i16x8.mul i16x8.min_s i16x8.min_u i16x8.max_s i16x8.max_u"},
	operatorRun{155, operator{params: v128 + v128, results: v128},
		"i16x8.avgr_u i16x8.extmul_low_i8x16_s i16x8.extmul_high_i8x16_s i16x8.extmul_low_i8x16_u " +
			"i16x8.extmul_high_i8x16_u"},
	operatorRun{160, operator{params: v128, results: v128}, "i32x4.abs i32x4.neg"},
	operatorRun{163, operator{params: v128, results: i32}, "i32x4.all_true i32x4.bitmask"},
	operatorRun{167, operator{params: v128, results: v128},
		"i32x4.extend_low_i16x8_s i32x4.extend_high_i16x8_s i32x4.extend_low_i16x8_u i32x4.extend_high_i16x8_u"},
	operatorRun{171, operator{params: v128 + i32, results: v128}, "i32x4.shl i32x4.shr_s i32x4.shr_u"},
	operatorRun{174, operator{params: v128 + v128, results: v128}, "i32x4.add"},
	operatorRun{177, operator{params: v128 + v128, results: v128}, "i32x4.sub"},
	operatorRun{181, operator{params: v128 + v128, results: v128},
		"i32x4.mul i32x4.min_s i32x4.min_u i32x4.max_s i32x4.max_u i32x4.dot_i16x8_s"},
	operatorRun{188, operator{params: v128 + v128, results: v128},
		"i32x4.extmul_low_i16x8_s i32x4.extmul_high_i16x8_s i32x4.extmul_low_i16x8_u i32x4.extmul_high_i16x8_u"},
	operatorRun{192, operator{params: v128, results: v128}, "i64x2.abs i64x2.neg"},
	operatorRun{195, operator{params: v128, results: i32}, "i64x2.all_true i64x2.bitmask"},
	operatorRun{199, operator{params: v128, results: v128},
		"i64x2.extend_low_i32x4_s i64x2.extend_high_i32x4_s i64x2.extend_low_i32x4_u i64x2.extend_high_i32x4_u"},
	operatorRun{203, operator{params: v128 + i32, results: v128}, "i64x2.shl i64x2.shr_s i64x2.shr_u"},
	operatorRun{206, operator{params: v128 + v128, results: v128}, "i64x2.add"},
	operatorRun{209, operator{params: v128 + v128, results: v128}, "i64x2.sub"},
	operatorRun{213, operator{params: v128 + v128, results: v128},
		"i64x2.mul i64x2.eq i64x2.ne i64x2.lt_s i64x2.gt_s i64x2.le_s i64x2.ge_s i64x2.extmul_low_i32x4_s " +
			"i64x2.extmul_high_i32x4_s i64x2.extmul_low_i32x4_u i64x2.extmul_high_i32x4_u"},
	operatorRun{224, operator{params: v128, results: v128}, "f32x4.abs f32x4.neg"},
	operatorRun{227, operator{params: v128, results: v128}, "f32x4.sqrt"},
	operatorRun{228, operator{params: v128 + v128, results: v128},
		"f32x4.add f32x4.sub f32x4.mul f32x4.div f32x4.min f32x4.max f32x4.pmin f32x4.pmax"},
	operatorRun{236, operator{params: v128, results: v128}, "f64x2.abs f64x2.neg"},
	operatorRun{239, operator{params: v128, results: v128}, "f64x2.sqrt"},
	operatorRun{240, operator{params: v128 + v128, results: v128},
		"f64x2.add f64x2.sub f64x2.mul f64x2.div f64x2.min f64x2.max f64x2.pmin f64x2.pmax"},
	operatorRun{248, operator{params: v128, results: v128},
		"i32x4.trunc_sat_f32x4_s i32x4.trunc_sat_f32x4_u f32x4.convert_i32x4_s f32x4.convert_i32x4_u " +
			"i32x4.trunc_sat_f64x2_s_zero i32x4.trunc_sat_f64x2_u_zero f64x2.convert_low_i32x4_s f64x2.convert_low_i32x4_u"},
)
