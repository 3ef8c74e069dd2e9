package wasm

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBoundsHaveDefaults(t *testing.T) {
	filled, err := Bounds{}.withDefaults()
	require.NoError(t, err)
	fields := reflect.ValueOf(filled)
	for i := range fields.NumField() {
		assert.Positive(t, fields.Field(i).Int(), fields.Type().Field(i).Name)
	}
}

func TestBoundsRefuseNegativeValues(t *testing.T) {
	fields := reflect.TypeFor[Bounds]()
	for i := range fields.NumField() {
		field := fields.Field(i).Name
		t.Run(field, func(t *testing.T) {
			var bounds Bounds
			reflect.ValueOf(&bounds).Elem().Field(i).SetInt(-1)
			_, err := InspectWithin(module(), bounds)
			require.ErrorIs(t, err, ErrBounds)
			assert.EqualError(t, err, "invalid bounds: "+field+" is -1; want 0 for the default, or more")
			assert.NotErrorIs(t, err, ErrLimit)
		})
	}
}

type boundTest struct {
	field  string
	value  int // what the module has
	source []byte
	want   string
}

// Each bound admits a module that reaches it and refuses the same module when it is one
// lower; with the default in its place the module is admitted.
func TestBoundsAreExact(t *testing.T) {
	twice := func(id SectionID, element ...byte) []byte { return section(id, repeat(2, element...)) }
	tests := []boundTest{
		{"Types", 2, module(twice(SectionType, 0x60, 0, 0)), "type section at byte 10: has 2 types, the limit is 1"},
		{"Params", 2, module(section(SectionType, vector(raw(0x60, 2, 0x7f, 0x7f, 0)))), "type section at byte 12: has 2 parameters, the limit is 1"},
		{"Results", 2, module(section(SectionType, vector(raw(0x60, 0, 2, 0x7f, 0x7f)))), "type section at byte 13: has 2 results, the limit is 1"},
		{"Imports", 2, module(oneType, section(SectionImport, vector(importFunc, importFunc))), "import section at byte 16: has 2 imports, the limit is 1"},
		{"Functions", 2, module(oneType, twice(SectionFunction, 0), twice(SectionCode, 2, 0, opEnd)), "function section at byte 16: has 2 functions, the limit is 1"},
		{"BodyBytes", 2, module(oneType, oneFunc, oneBody), "code section at byte 21: the body of a function has 2 bytes, the limit is 1"},
		{"LocalsPerFunction", 2, module(oneType, oneFunc, section(SectionCode, vector(body(raw(1, 2, 0x7f))))), "code section at byte 23: a function has 2 locals or more, the limit is 1"},
		{"Locals", 2, module(oneType, twice(SectionFunction, 0), twice(SectionCode, 4, 1, 1, 0x7f, opEnd)), "code section at byte 28: the functions have more than 1 locals together"},
		{"Tables", 2, module(twice(SectionTable, 0x70, 0, 0)), "table section at byte 10: has 2 tables, the limit is 1"},
		{"TableElements", 6, module(twice(SectionTable, 0x70, 0, 3)), "table section at byte 14: the tables start with 6 elements or more, the limit is 5"},
		{"Globals", 2, module(twice(SectionGlobal, byte(I32), 0, opI32Const, 0, opEnd)), "global section at byte 10: has 2 globals, the limit is 1"},
		{"Exports", 2, module(oneMemory, section(SectionExport, vector(concat(name("a"), raw(2, 0)), concat(name("b"), raw(2, 0))))), "export section at byte 15: has 2 exports, the limit is 1"},
		{"ElementSegments", 2, module(twice(SectionElement, 1, 0, 0)), "element section at byte 10: has 2 element segments, the limit is 1"},
		{"DataSegments", 2, module(twice(SectionData, 1, 0)), "data section at byte 10: has 2 data segments, the limit is 1"},
		{"CustomSections", 2, module(custom("a"), custom("b")), "custom section at byte 12: there are more than 1 custom sections"},
		{"NameBytes", 2, module(custom("ab")), "custom section at byte 10: the name of a custom section has 2 bytes, the limit is 1"},
	}
	inBody := func(instructions ...byte) []byte {
		return module(oneType, oneFunc, section(SectionCode, vector(body(noLocals, instructions...))))
	}
	tests = append(tests, []boundTest{
		{"BlockDepth", 2, inBody(2, 0x40, 2, 0x40, opEnd, opEnd), "code section at byte 25: a function has 2 blocks inside one another or more, the limit is 1"},
		{"Blocks", 2, inBody(2, 0x40, opEnd, 2, 0x40, opEnd), "code section at byte 26: a function has 2 blocks or more, the limit is 1"},
		{"Branches", 2, inBody(0x0c, 0, 0x0f), "code section at byte 25: a function has 2 branches or more, the limit is 1"},
		{"ControlSquares", 9, inBody(2, 0x40, 0x0c, 0, 0x0f, opEnd), "code section at byte 30: the squares of the functions' blocks and branches are more than 8 together"},
		{"BlockLocals", 6, module(oneType, oneFunc, section(SectionCode, vector(body(raw(1, 3, byte(I32)), 2, 0x40, opEnd, 2, 0x40, opEnd)))), "code section at byte 32: a function has 2 blocks × 3 locals, the limit is 5"},
		{"AllBlockLocals", 9, module(oneType, oneFunc, section(SectionCode, vector(body(raw(1, 3, byte(I32)), 2, 0x40, opEnd, 2, 0x40, opEnd)))), "code section at byte 32: the functions have more than 8 pairs of a block and a local together"},
		{"BranchTargets", 3, inBody(opI32Const, 0, 0x0e, 2, 0, 0, 0), "code section at byte 25: a function has 3 labels in br_table or more, the limit is 2"},
		{"AllBranchTargets", 4, inBody(opI32Const, 0, 0x0e, 1, 0, 0, opI32Const, 0, 0x0e, 1, 0, 0), "code section at byte 31: the functions have more than 3 labels in br_table together"},
		{"OperandStack", 2, inBody(opI32Const, 0, opI32Const, 0, 0), "code section at byte 25: the operand stack has 2 values, the limit is 1"},
		{"StackMoves", 5, inBody(2, 0x7f, opI32Const, 0, opEnd, 0x1a, 2, 0x7f, opI32Const, 0, 0x0c, 0, opEnd, 0), "code section at byte 35: calls, blocks and branches move more than 4 values in all"},
	}...)
	require.Len(t, tests, reflect.TypeFor[Bounds]().NumField(), "a case for each bound")
	for _, test := range tests {
		t.Run(test.field, func(t *testing.T) {
			inspect := func(value int) error {
				var bounds Bounds
				reflect.ValueOf(&bounds).Elem().FieldByName(test.field).SetInt(int64(value))
				_, err := check(test.source, bounds, Features{})
				return err
			}
			require.NoError(t, inspect(0))
			require.NoError(t, inspect(test.value))
			err := inspect(test.value - 1)
			require.ErrorIs(t, err, ErrLimit)
			assert.EqualError(t, err, test.want)
		})
	}
}

func TestDefaultBoundsRefuseBombs(t *testing.T) {
	table := func(minimum int) []byte { return concat(raw(0x70, 0), leb(minimum)) }
	tests := []struct {
		title  string
		source []byte
		want   string
	}{
		{"a huge table", module(section(SectionTable, vector(table(1_000_001)))), "start with 1000001 elements"},
		{"the hugest table", module(section(SectionTable, vector(concat(raw(0x70, 0), claim)))), "start with 4294967295 elements"},
		{"large tables", module(section(SectionTable, vector(table(600_000), table(600_000)))), "start with 1200000 elements"},
		{"parameters", module(section(SectionType, vector(concat(raw(0x60), repeat(1_001, 0x7f), raw(0))))), "has 1001 parameters"},
		{"a body", module(oneType, oneFunc, section(SectionCode, vector(body(noLocals, make([]byte, 2<<20)...)))), "has 2097154 bytes, the limit is 2097152"},
		{"locals in all", module(oneType, section(SectionFunction, repeat(21, 0)),
			section(SectionCode, repeat(21, body(vector(concat(leb(50_000), raw(byte(I64)))))...))), "more than 1000000 locals together"},
	}
	for _, test := range tests {
		t.Run(test.title, func(t *testing.T) {
			_, err := Inspect(test.source)
			require.ErrorIs(t, err, ErrLimit)
			assert.ErrorContains(t, err, test.want)
		})
	}
}
