package metered_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/runtime/internal/wasm/metered"
)

// Metered modules that are written by hand. Function 0 is refill, 1 more, 2 take. The types are
// () -> (), (i64) -> (i64), (i32) -> (), (i32) -> (i32), fd_read's, and () -> () again, its lengths in two bytes.
const (
	attackTest = "\x23\x00\x42\x00\x59\x04\x40\x05\x10\x01\x0b"
	attackTake = "\x23\x00\x20\x00\xad\x7d\x24\x00" + attackTest
)

func leb(n int64) (e []byte) {
	for {
		b := byte(n & 0x7f)
		if n >>= 7; n == 0 && b&0x40 == 0 || n == -1 && b&0x40 != 0 {
			return append(e, b)
		}
		e = append(e, b|0x80)
	}
}

func attackCharge(units int64) []byte {
	return slices.Concat([]byte{0x23, 0, 0x42}, leb(units), []byte{0x7d, 0x24, 0})
}

func attackCount(local byte, units int64) []byte {
	return slices.Concat([]byte{0x20, local, 0x41}, leb(units), []byte{0x6a, 0x21, local})
}

func attackHandOver(local byte, units int64) []byte {
	return slices.Concat([]byte{0x23, 0, 0x20, local, 0x41}, leb(units), []byte{0x6a, 0xad, 0x7d, 0x24, 0, 0x41, 0, 0x21, local})
}

func attackBelow(local byte, bound int64) []byte {
	return slices.Concat([]byte{0x20, local, 0x41}, leb(bound), []byte{0x48, 0x04, 0x40})
}

// attackLoop is a loop with its two headers.
func attackLoop(local byte, bound int64, code ...[]byte) []byte {
	return slices.Concat([]byte{0x03, 0x40}, attackBelow(local, bound), []byte{0x05, 0x20, local, 0x10, 2, 0x41, 0, 0x21, local, 0x0b},
		[]byte{0x03, 0x40}, slices.Concat(code...), []byte{0x0b, 0x0b})
}

// attackBack branches back to a loop.
func attackBack(local byte, bound int64, outer byte) []byte {
	return slices.Concat(attackBelow(local, bound), []byte{0x0c, outer, 0x0b, 0x0c, outer})
}

// attackBody is a body with so many locals of type i32, each in a separate group.
func attackBody(locals int, code ...[]byte) []byte {
	b := slices.Concat(unsigned(locals), slices.Repeat([]byte{1, 0x7f}, locals), slices.Concat(code...), []byte{0x0b})
	return append(unsigned(len(b)), b...)
}

// attackModule has bodies from function 3 on, with types. The first is in the table, the last is exported as "run".
func attackModule(types []byte, bodies ...[]byte) []byte {
	return attackModuleWith(section(4, vector([]byte{0x70, 0, 1})), nil, types, bodies...)
}

// attackModuleWith is the same with another section of tables, and more imports.
func attackModuleWith(tables []byte, imports [][]byte, types []byte, bodies ...[]byte) []byte {
	types = slices.Concat([]byte{0, 2}, types)
	bodies = slices.Concat([][]byte{attackBody(0, []byte("\x23\x00\x10\x00\x24\x00")), attackBody(0, []byte(attackTake))}, bodies)
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, vector([]byte{0x60, 0, 0}, []byte{0x60, 1, 0x7e, 1, 0x7e}, []byte{0x60, 1, 0x7f, 0}, []byte{0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f}, []byte{0x60, 0x80, 0, 0x80, 0})),
		section(2, vector(append([][]byte{slices.Concat(text("caisson:meter@1"), text("refill"), []byte{0, 1})}, imports...)...)),
		section(3, append(unsigned(len(types)), types...)),
		tables,
		section(6, vector([]byte{0x7e, 1, 0x42, 0, 0x0b})),
		section(7, vector(slices.Concat(text("caisson:meter@1"), []byte{3, 0}), slices.Concat(text("run"), []byte{0}, binary.AppendUvarint(nil, uint64(len(types)))))),
		section(9, vector([]byte{0, 0x41, 0, 0x0b, 1, 3})),
		section(10, append(unsigned(len(bodies)), slices.Concat(bodies...)...)))
}

// holes are modules that run for much longer than 65,536 units without a test.
func holes() map[string][]byte {
	work := func(n int) []byte { return slices.Repeat([]byte{0x41, 0, 0x1a}, n) }
	return map[string][]byte{
		// A leaf is called through a table for ever, under a type that is equal but encoded in another way.
		"equal types that are encoded differently": attackModule([]byte{0, 0},
			attackBody(0, attackCharge(60), work(30)),
			attackBody(1, []byte(attackTest), attackLoop(0, 4096, attackHandOver(0, 3), []byte{0x41, 0, 0x11, 4, 0}, attackBack(0, 4096, 1)))),
		// Each loop is left with up to 16,383 units in the counter, where its header says 1.
		"a way back with a higher bound than the header's": attackModule([]byte{0},
			attackBody(2, []byte{0x02, 0x40}, []byte(attackTest), slices.Repeat(slices.Concat(
				attackHandOver(1, 2), []byte{0x41}, leb(3200), []byte{0x21, 0},
				attackLoop(1, 1, attackCount(1, 5), []byte{0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x04, 0x40}, attackBack(1, 1<<14, 2), []byte{0x0b})), 5000),
				[]byte{0x0b, 0x23, 0, 0x20, 1, 0xad, 0x7d, 0x24, 0}, []byte(attackTest))),
		// The code after the recursive call is charged on the way down. So no test finds the meter used up on the way back.
		"work that is charged before a recursive call and done behind it": attackModule([]byte{0},
			attackBody(0, attackCharge(61), []byte(attackTest), []byte{0x10, 3}, work(30), []byte(attackTest))),
		// The charge at the entry is for the whole of a long body.
		"work that is charged long before it is done": attackModule([]byte{0},
			attackBody(0, attackCharge(10_000), []byte(attackTest), work(5_000))),
		// The first block is not the one that the passes add around a body: a local is read after it.
		"values that the end of a function's first block moves": attackModule([]byte{0},
			attackBody(300, []byte{0x02, 0x40}, attackCharge(2), []byte(attackTest), []byte{0x20, 0, 0x0d, 0},
				attackCharge(600), assignAll(300), []byte{0x0b}, attackCharge(2), []byte{0x20, 1, 0x1a})),
		// The code after the call is charged at each level, and none of the calls returns.
		"work that is charged before a call that never returns": attackModule([]byte{0, 0},
			attackBody(0, attackCharge(8192), []byte(attackTest), []byte{0x10, 4}, slices.Repeat([]byte{0x01}, 8191)),
			attackBody(0, attackCharge(2), []byte(attackTest), []byte{0x41, 1, 0x04, 0x40},
				attackCharge(1), []byte(attackTest), []byte{0x10, 3}, attackCharge(1), []byte{0x00, 0x0b}, attackCharge(1), []byte{0x00})),
		// Another module may have functions in a table that it shares. None of this one's has the type.
		"a call of another module's function in an imported table": attackModuleWith(nil, [][]byte{slices.Concat(text("lib"), text("table"), []byte{1, 0x70, 0, 1})}, []byte{0, 0},
			attackBody(0), attackBody(0, attackCharge(3), []byte(attackTest), []byte{0x41, 0, 0x41, 0, 0x11, 2, 0}, slices.Repeat(slices.Concat(attackCharge(8190), slices.Repeat([]byte{1}, 8190)), 20))),
		// A library that exports it may be called for ever by a module whose tests do not see it.
		"an export that does not test": attackModule([]byte{0}, attackBody(0, attackCharge(202), work(101))),
		// 2^31 units are counted that are not executed. The counter is negative then.
		"a counter that overflows": attackModule([]byte{0},
			attackBody(1, []byte(attackTest), attackCount(0, 2), []byte{0x41, 1, 0x04, 0x40}, attackCount(0, 1<<31-1),
				attackLoop(0, 4096, []byte{0x41, 1, 0x04, 0x40}, attackCount(0, 2), attackBack(0, 4096, 2), []byte{0x05}, attackCount(0, 3), attackBack(0, 4096, 2), []byte{0x0b}),
				[]byte{0x05}, attackCount(0, 1), []byte{0x00, 0x0b})),
	}
}

// TestHolesAreRefused: modules that run for long without a test.
func TestHolesAreRefused(t *testing.T) {
	for name, source := range holes() {
		assert.ErrorIs(t, metered.Verify(t.Context(), source), metered.ErrUnproved, name)
	}
	tested := attackModule([]byte{0}, attackBody(0, attackCharge(202), []byte(attackTest), slices.Repeat([]byte{0x41, 0, 0x1a}, 101)))
	assert.NoError(t, metered.Verify(t.Context(), tested), "control: an export that tests")
}

// nestedLoops is n loops in one another. Directly after the header of each there is a branch back to the one around it,
// unless the loops are plain, and the innermost ends with work that no test has seen. So what may have been executed at
// a header becomes known at one more header, the next one outwards, each time that the body is walked.
func nestedLoops(n int, plain bool) []byte {
	var code []byte
	for k := range n {
		code = append(code, 0x03, 0x40)
		if k > 0 && !plain {
			code = append(code, 0x41, 1, 0x0d, 1) // br_if to the loop around
		}
	}
	return program(slices.Concat(code, read(), []byte{0x41, 1, 0x0d, 0}, bytes.Repeat([]byte{0x0b}, n)))
}

// The time of a proof is proportional to the size of the module. The control is the time for loops that need no second
// walk.
func TestAttackNestedLoops(t *testing.T) {
	perByte := func(plain bool) float64 {
		source, ok := rewritten(nestedLoops(2000, plain))
		require.True(t, ok)
		least := time.Hour
		for range 5 {
			began := time.Now()
			require.NoError(t, metered.Verify(t.Context(), source))
			least = min(least, time.Since(began))
		}
		return float64(least) / float64(len(source))
	}
	// Walks without a bound on their number would take hundreds of times as long.
	assert.Less(t, perByte(false), 50*perByte(true))
}

// TestIfAroundATable: the guest has an if that looks like the one that the passes add around the table of a dispatch.
func TestIfAroundATable(t *testing.T) {
	for locals := 100; locals <= 300; locals += 10 {
		// Paths join in the blocks around the if, so the number of locals determines the cost of their ends.
		code := slices.Concat([]byte{0x02, 0x40}, assignAll(locals), []byte{0x02, 0x40},
			[]byte{0x20, 0, 0x04, 0x40, 0x20, 1, 0x0e, 1, 1, 1, 0x0b, 0x0c, 1}, []byte{0x0b, 0x0b})
		source, ok := rewritten(localsModule(locals, code))
		require.True(t, ok)
		assert.NoError(t, metered.Verify(t.Context(), source), "%d locals", locals)
	}
}

// assignAll assigns so many locals, at two units each.
func assignAll(locals int) (code []byte) {
	for n := range locals {
		code = append(append(code, 0x41, 0, 0x21), unsigned(n)...)
	}
	return code
}

// localsModule is a module with one function, which is exported, and has so many locals.
func localsModule(locals int, code []byte) []byte {
	body := slices.Concat([]byte{1}, unsigned(locals), []byte{0x7f}, code, []byte{0x0b})
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"), section(1, vector([]byte{0x60, 0, 0})), section(3, []byte{1, 0}),
		section(7, vector(slices.Concat(text("run"), []byte{0, 0}))), section(10, append([]byte{1}, append(unsigned(len(body)), body...)...)))
}

// TestSelectsNameTheirType: only selects of integers and references are proved, and only if they say so.
func TestSelectsNameTheirType(t *testing.T) {
	constants := map[string][]byte{"i32": {0x41, 0}, "i64": {0x42, 0}, "f32": {0x43, 0, 0, 0, 0}, "f64": append([]byte{0x44}, make([]byte, 8)...),
		"v128": append([]byte{0xfd, 12}, make([]byte, 16)...), "funcref": {0xd0, 0x70}, "externref": {0xd0, 0x6f}}
	for name, code := range map[string]byte{"i32": 0x7f, "i64": 0x7e, "f32": 0x7d, "f64": 0x7c, "v128": 0x7b, "funcref": 0x70, "externref": 0x6f} {
		source := func(instruction ...byte) []byte {
			operands := slices.Concat(constants[name], constants[name], []byte{0x41, 0})
			return attackModule([]byte{0}, attackBody(0, attackCharge(5), []byte(attackTest), operands, instruction, []byte{0x1a}))
		}
		err := metered.Verify(t.Context(), source(0x1c, 1, code))
		if name == "f32" || name == "f64" || name == "v128" {
			assert.ErrorIs(t, err, metered.ErrUnproved, name)
		} else {
			assert.NoError(t, err, name)
		}
		assert.ErrorIs(t, metered.Verify(t.Context(), source(0x1b)), metered.ErrUnproved, "%s without a name", name)
	}
}

// TestMiscompiledAreRefused: the verifier refuses instructions that the compiler may get wrong. As the control, it
// accepts other instructions of the same types.
func TestMiscompiledAreRefused(t *testing.T) {
	f32, f64, i64 := []byte{0x43, 0, 0, 0, 0}, append([]byte{0x44}, make([]byte, 8)...), []byte{0x42, 0}
	vector := append([]byte{0xfd, 12}, make([]byte, 16)...)
	verify := func(instruction []byte, operands ...[]byte) error {
		cost := int64(len(operands) + 2)
		return metered.Verify(t.Context(), attackModule([]byte{0}, attackBody(0, attackCharge(cost), []byte(attackTest), slices.Concat(operands...), instruction, []byte{0x1a})))
	}
	for name, test := range map[string]struct {
		wrong, right []byte
		operands     [][]byte
	}{
		"f32.copysign":              {[]byte{0x98}, []byte{0x97}, [][]byte{f32, f32}},
		"f64.copysign":              {[]byte{0xa6}, []byte{0xa5}, [][]byte{f64, f64}},
		"f32.convert_i64_u":         {[]byte{0xb5}, []byte{0xb4}, [][]byte{i64}},
		"f64.convert_i64_u":         {[]byte{0xba}, []byte{0xb9}, [][]byte{i64}},
		"f64x2.replace_lane":        {[]byte{0xfd, 34, 0}, []byte{0xfd, 34, 1}, [][]byte{vector, f64}},
		"v128.bitselect":            {[]byte{0xfd, 82}, nil, [][]byte{vector, vector, vector}},
		"i8x16.popcnt":              {[]byte{0xfd, 98}, []byte{0xfd, 97}, [][]byte{vector}},
		"i64x2.mul":                 {[]byte{0xfd, 213, 1}, []byte{0xfd, 209, 1}, [][]byte{vector, vector}},
		"f32x4.min":                 {[]byte{0xfd, 232, 1}, []byte{0xfd, 234, 1}, [][]byte{vector, vector}},
		"f32x4.max":                 {[]byte{0xfd, 233, 1}, []byte{0xfd, 235, 1}, [][]byte{vector, vector}},
		"f64x2.min":                 {[]byte{0xfd, 244, 1}, []byte{0xfd, 246, 1}, [][]byte{vector, vector}},
		"f64x2.max":                 {[]byte{0xfd, 245, 1}, []byte{0xfd, 247, 1}, [][]byte{vector, vector}},
		"f32x4.convert_i32x4_u":     {[]byte{0xfd, 251, 1}, []byte{0xfd, 250, 1}, [][]byte{vector}},
		"f64x2.convert_low_i32x4_u": {[]byte{0xfd, 255, 1}, []byte{0xfd, 254, 1}, [][]byte{vector}},
	} {
		assert.ErrorIs(t, verify(test.wrong, test.operands...), metered.ErrUnproved, name)
		if test.right != nil {
			assert.NoError(t, verify(test.right, test.operands...), name)
		}
	}
}

// TestNegativeBlockTypes: a block whose type is a negative number of two bytes is not proved. As the control, one whose
// type is a positive number of two bytes is, and so is one without parameters and results.
func TestNegativeBlockTypes(t *testing.T) {
	verify := func(blockType ...byte) error {
		block := slices.Concat([]byte{0x02}, blockType, []byte{0x0b})
		return metered.Verify(t.Context(), attackModule([]byte{0}, attackBody(0, attackCharge(0), []byte(attackTest), block)))
	}
	assert.NoError(t, verify(0x40))
	assert.NoError(t, verify(0x80, 0x00))
	assert.ErrorIs(t, verify(0x80, 0x40), metered.ErrUnproved)
	assert.ErrorIs(t, verify(0xff, 0x7e), metered.ErrUnproved)
}
