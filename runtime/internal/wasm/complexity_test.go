package wasm

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// boundless has each bound far above what a test needs.
func boundless() Bounds {
	const many = math.MaxInt
	return Bounds{
		BodyBytes: many, BlockDepth: many, Blocks: many, Branches: many, ControlSquares: many, BlockLocals: many,
		BranchTargets: many, AllBranchTargets: many, OperandStack: many, StackMoves: many,
	}
}

// oneBodied is a module with one function without parameters and results.
func oneBodied(locals []byte, instructions ...[]byte) []byte {
	return module(oneType, oneFunc, section(SectionCode, vector(body(locals, concat(instructions...)...))))
}

// nested are blocks inside one another.
func nested(n int) []byte {
	return concat(bytes.Repeat(raw(2, 0x40), n), bytes.Repeat(raw(opEnd), n))
}

// labelled is a br_table of so many labels.
func labelled(n int) []byte {
	return concat(raw(opI32Const, 0, 0x0e), leb(n-1), make([]byte, n))
}

// Modules for which the compiler takes time with the square of their length are refused,
// in little time, by the bound and by nothing else: under other bounds they are valid.
func TestDefaultBoundsRefuseQuadraticBombs(t *testing.T) {
	aThousandLocals := raw(1, 0xe8, 0x07, byte(I32))
	tests := []struct {
		title  string
		source []byte
		want   string
	}{
		{"nested blocks", oneBodied(noLocals, nested(97_000)), "10001 blocks inside one another"},
		{"ifs in a row", oneBodied(noLocals, bytes.Repeat(raw(opI32Const, 0, 4, 0x40, opEnd), 100_000)), "12001 blocks"},
		{"br_table", oneBodied(noLocals, labelled(1_000_000)), "1000000 labels in br_table"},
		{"branches in a row", oneBodied(noLocals, bytes.Repeat(raw(opI32Const, 0, 0x0d, 0), 100_000)), "12001 branches"},
		{"blocks and locals", oneBodied(aThousandLocals, bytes.Repeat(raw(3, 0x40, opI32Const, 1, 0x21, 7, opI32Const, 0, 0x0d, 0, opEnd), 5_000)), "5000 blocks × 1000 locals"},
		{"many functions, each within its bounds", module(oneType, section(SectionFunction, repeat(30, 0)),
			section(SectionCode, repeat(30, body(noLocals, nested(9_000)...)...))), "squares of the functions' blocks and branches"},
		{"many br_tables, each within its bounds", module(oneType, section(SectionFunction, repeat(50, 0)),
			section(SectionCode, repeat(50, body(noLocals, labelled(49_000)...)...))), "labels in br_table together"},
	}
	for _, test := range tests {
		t.Run(test.title, func(t *testing.T) {
			start := time.Now()
			_, err := check(test.source, Bounds{}, Features{})
			took := time.Since(start)
			require.ErrorIs(t, err, ErrLimit)
			assert.ErrorContains(t, err, test.want)
			assert.Less(t, took, 2*time.Second)

			_, err = check(test.source, boundless(), Features{})
			require.NoError(t, err, "control: only the bound refuses it")
		})
	}
}

// Two bytes can move a thousand values, so that the length of a module does not bound the
// time that its validation takes.
func TestStackMovesBoundTime(t *testing.T) {
	const calls = 100_000
	thousand := repeat(1_000, byte(I32))
	source := module(
		section(SectionType, vector(emptyType, concat(raw(0x60), thousand, thousand))),
		section(SectionFunction, vector(leb(0), leb(1))),
		section(SectionCode, vector(
			body(noLocals, concat(bytes.Repeat(raw(opI32Const, 0), 1_000), bytes.Repeat(raw(0x10, 1), calls), bytes.Repeat(raw(0x1a), 1_000))...),
			body(noLocals, 0),
		)),
	)
	start := time.Now()
	_, err := check(source, Bounds{}, Features{})
	require.ErrorIs(t, err, ErrLimit)
	assert.ErrorContains(t, err, "move more than 50000000 values in all")
	guarded := time.Since(start)

	start = time.Now()
	_, err = check(source, boundless(), Features{})
	require.NoError(t, err, "control: the module is valid")
	t.Logf("%d bytes: %v with the bound, %v without", len(source), guarded, time.Since(start))
	assert.Less(t, guarded, time.Since(start))
}

// The labels of one br_table, however often they stand in it, are compared once each.
func TestLabelsAreComparedOnce(t *testing.T) {
	thousand := repeat(1_000, byte(I32))
	push := bytes.Repeat(raw(opI32Const, 0), 1_000)
	source := module(
		section(SectionType, vector(emptyType, concat(raw(0x60, 0), thousand))),
		oneFunc,
		section(SectionCode, vector(body(noLocals, concat(
			raw(2, 1), push, raw(opI32Const, 0, 0x0e), leb(40_000), make([]byte, 40_001), raw(opEnd), bytes.Repeat(raw(0x1a), 1_000),
		)...))),
	)
	_, err := check(source, Bounds{StackMoves: 10_000}, Features{})
	require.NoError(t, err)
}

// Modules that cost most for their length stay within the allocations that are promised.
func TestAllocationsOfValidation(t *testing.T) {
	group := concat(leb(50_000), raw(byte(I64)))
	tests := []struct {
		title  string
		source []byte
	}{
		{"nested blocks", oneBodied(noLocals, nested(10_000))},
		{"locals", oneBodied(vector(group))},
		{"locals in many functions", module(oneType, section(SectionFunction, repeat(20, 0)), section(SectionCode, repeat(20, body(vector(group))...)))},
		{"functions", module(oneType, section(SectionFunction, repeat(20_000, 0)), section(SectionCode, repeat(20_000, 2, 0, opEnd)))},
		{"imports", module(oneType, section(SectionImport, repeat(10_000, 0, 0, 0, 0)))},
		{"segments", module(section(SectionElement, repeat(20_000, 1, 0, 0)))},
		{"values", oneBodied(noLocals, bytes.Repeat(raw(opI32Const, 0), 10_000), raw(0))},
		{"labels", oneBodied(noLocals, labelled(50_000))},
	}
	for _, test := range tests {
		t.Run(test.title, func(t *testing.T) {
			m, err := Inspect(test.source)
			require.NoError(t, err)
			spent := allocated(func() { _, err = Validate(test.source, m) })
			require.NoError(t, err)
			assert.LessOrEqual(t, spent, validationBudget(len(test.source)))
			t.Logf("%d bytes in, %d allocated: %.1f a byte", len(test.source), spent, float64(spent)/float64(len(test.source)))
		})
	}
}

// validationBudget is the most that validating so many bytes may allocate, in bytes.
func validationBudget(length int) uint64 { return 128*uint64(length) + 512<<10 }
