package wasm

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fixture is a module with one of each thing, and one body that a test fills in.
//
// Types: 0 () -> (), 1 (i32) -> (i32), 2 () -> (i32, i32), 3 (externref) -> ().
// Functions: 0 imported, of type 1; 1, of type 0, the body; 2, of type 0, not declared.
// Globals: 0 imported, i32, constant; 1 i64, mutable; 2 externref, mutable.
// Tables: 0 funcref; 1 externref. Segments: 0 funcref and 0 data. Memories: 1.
func fixture(instructions ...byte) []byte {
	return module(
		section(SectionType, vector(emptyType, raw(0x60, 1, byte(I32), 1, byte(I32)), raw(0x60, 0, 2, byte(I32), byte(I32)), raw(0x60, 1, byte(ExternRef), 0))),
		section(SectionImport, vector(concat(name("m"), name("f"), raw(0, 1)), concat(name("m"), name("g"), raw(3, byte(I32), 0)))),
		section(SectionFunction, vector(leb(0), leb(0))),
		section(SectionTable, vector(raw(0x70, 0, 1), raw(0x6f, 0, 1))),
		section(SectionMemory, vector(raw(0, 1))),
		section(SectionGlobal, vector(raw(byte(I64), 1, opI64Const, 0, opEnd), raw(byte(ExternRef), 1, opRefNull, 0x6f, opEnd))),
		section(SectionExport, vector(concat(name("run"), raw(0, 1)))),
		section(SectionElement, vector(raw(1, 0, 1, 0))),
		section(SectionDataCount, leb(1)),
		section(SectionCode, vector(body(raw(1, 1, byte(F32)), instructions...), body(noLocals))),
		section(SectionData, vector(concat(leb(1), name("d")))),
	)
}

// bodyAt is where the instructions of fixture begin.
func bodyAt(t *testing.T) int {
	t.Helper()
	m := inspected(t, fixture())
	return m.Functions[0].Offset + 3
}

func TestValidateBodies(t *testing.T) {
	tests := []struct {
		title        string
		instructions []byte
		at           int    // of the offending instruction, from the first one
		want         string // empty: valid
	}{
		{"nothing", nil, 0, ""},
		{"addition", raw(0x41, 1, 0x41, 2, 0x6a, 0x1a), 0, ""},
		{"addition of one value", raw(0x41, 1, 0x6a, 0x1a), 2, "i32.add takes a value, the block has none on the stack"},
		{"addition of another type", raw(0x41, 1, 0x42, 1, 0x6a, 0x1a), 4, "i32.add takes i32, i64 is on the stack"},
		{"a value too many", raw(0x41, 1), 2, "the block ends with 1 values too many on the stack"},
		{"below unreachable anything goes", raw(0x00, 0x6a, 0x1a), 0, ""},
		{"but not a wrong type", raw(0x00, 0x42, 1, 0x6a, 0x1a), 3, "i32.add takes i32, i64 is on the stack"},
		{"a value from outside the block", raw(0x41, 1, 0x02, 0x40, 0x1a, 0x0b, 0x1a), 4, "drop takes a value, the block has none on the stack"},
		{"else without if", raw(0x02, 0x40, 0x05, 0x0b), 2, "else is outside of an if"},
		{"if with a result and no else", raw(0x41, 1, 0x04, 0x7f, 0x41, 1, 0x0b, 0x1a), 6, "an if without else has the type () -> (i32); want as many results as parameters, of the same types"},
		{"if whose parameters are its results", raw(0x41, 1, 0x41, 1, 0x04, 1, 0x0b, 0x1a), 0, ""},
		{"block of a type that is not there", raw(0x02, 9, 0x0b), 0, "block has the type 9, there are 4"},
		{"block with two results", raw(0x02, 2, 0x41, 1, 0x41, 2, 0x0b, 0x1a, 0x1a), 0, ""},
		{"label that is not there", raw(0x0c, 1), 0, "br refers to label 1, there are 1"},
		{"branch without its value", raw(0x02, 0x7f, 0x0c, 0, 0x0b, 0x1a), 2, "br takes a value, the block has none on the stack"},
		{"loop label takes parameters", raw(0x03, 0x7f, 0x0c, 0, 0x0b, 0x1a), 0, ""},
		{"br_if leaves the label's values", raw(0x02, 0x7f, 0x41, 1, 0x41, 1, 0x0d, 0, 0x0b, 0x1a), 0, ""},
		{"br_table with labels of different arity", raw(0x02, 0x7f, 0x41, 1, 0x41, 0, 0x0e, 1, 0, 1, 0x0b, 0x1a), 6, "br_table has labels that take 1 and 0 values"},
		{"br_table with labels of different types", raw(0x02, 0x7f, 0x02, 0x7e, 0x42, 1, 0x41, 0, 0x0e, 1, 0, 1, 0x0b, 0x1a, 0x41, 1, 0x0b, 0x1a), 8, "br_table takes i32, i64 is on the stack"},
		{"br_table of a label that is not there", raw(0x41, 0, 0x0e, 1, 0, 7), 2, "br_table refers to label 7, there are 1"},
		{"call without an argument", raw(0x10, 0), 0, "call takes a value, the block has none on the stack"},
		{"call of what is not there", raw(0x10, 3), 0, "calls function 3, there are 3"},
		{"call_indirect", raw(0x41, 7, 0x41, 0, 0x11, 1, 0, 0x1a), 0, ""},
		{"call_indirect of a type that is not there", raw(0x41, 0, 0x11, 9, 0), 2, "call_indirect has the type 9, there are 4"},
		{"call_indirect in a table of externref", raw(0x41, 0, 0x11, 0, 1), 2, "call_indirect needs a table of funcref"},
		{"call_indirect in a table that is not there", raw(0x41, 0, 0x11, 0, 2), 2, "call_indirect refers to table 2, there are 2"},
		{"select", raw(0x42, 1, 0x42, 2, 0x41, 0, 0x1b, 0x1a), 0, ""},
		{"select of two types", raw(0x42, 1, 0x41, 2, 0x41, 0, 0x1b, 0x1a), 6, "select takes two values of one type, i64 and i32 are on the stack"},
		{"select of references", raw(0xd0, 0x70, 0xd0, 0x70, 0x41, 0, 0x1b, 0x1a), 6, "select takes funcref only if it names the type"},
		{"typed select of references", raw(0xd0, 0x70, 0xd0, 0x70, 0x41, 0, 0x1c, 1, 0x70, 0x1a), 0, ""},
		{"typed select of no type", raw(0x41, 0, 0x1c, 0, 0x1a), 2, "select names 0 types; want 1"},
		{"local", raw(0x20, 0, 0x22, 0, 0x21, 0), 0, ""},
		{"local of another type", raw(0x41, 0, 0x21, 0), 2, "local.set takes f32, i32 is on the stack"},
		{"local that is not there", raw(0x20, 1, 0x1a), 0, "local.get refers to local 1, there are 1"},
		{"global", raw(0x23, 1, 0x24, 1), 0, ""},
		{"global that cannot change", raw(0x23, 0, 0x24, 0), 2, "global.set changes global 0, which cannot change"},
		{"global that is not there", raw(0x42, 0, 0x24, 3), 2, "global.set refers to global 3, there are 3"},
		{"load", raw(0x41, 0, 0x28, 2, 0, 0x1a), 0, ""},
		{"load with too large an alignment", raw(0x41, 0, 0x28, 3, 0, 0x1a), 2, "i32.load has an alignment of 8 bytes, the most is 4"},
		{"lane", raw(0x41, 0, 0xfd, 15, 0xfd, 22, 15, 0x1a), 0, ""},
		{"lane that is not there", raw(0x41, 0, 0xfd, 15, 0xfd, 22, 16, 0x1a), 4, "i8x16.extract_lane_u refers to lane 16, there are 16"},
		{"shuffle with a lane that is not there", concat(raw(0x00, 0xfd, 13), make([]byte, 15), raw(32, 0x1a)), 1, "i8x16.shuffle refers to lane 32, there are 32"},
		{"ref.func", raw(0xd2, 1, 0x1a), 0, ""},
		{"ref.func that is not declared", raw(0xd2, 2, 0x1a), 0, "ref.func refers to function 2, which no export, global or element segment names"},
		{"ref.func that is not there", raw(0xd2, 3, 0x1a), 0, "ref.func refers to function 3, there are 3"},
		{"ref.is_null of a number", raw(0x41, 0, 0xd1, 0x1a), 2, "ref.is_null takes a reference, i32 is on the stack"},
		{"memory.init", raw(0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 8, 0, 0), 0, ""},
		{"memory.init of what is not there", raw(0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 8, 1, 0), 6, "memory.init refers to data segment 1, there are 1"},
		{"data.drop of what is not there", raw(0xfc, 9, 1), 0, "data.drop refers to data segment 1, there are 1"},
		{"table.init", raw(0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 12, 0, 0), 0, ""},
		{"table.init of another type", raw(0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 12, 0, 1), 6, "table.init copies funcref to table 1, which holds another type"},
		{"elem.drop of what is not there", raw(0xfc, 13, 1), 0, "elem.drop refers to element segment 1, there are 1"},
		{"table.copy between types", raw(0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 14, 0, 1), 6, "table.copy copies between tables 1 and 0, which hold different types"},
		{"table.grow", raw(0xd0, 0x6f, 0x41, 0, 0xfc, 15, 1, 0x1a), 0, ""},
		{"table.fill", raw(0x41, 0, 0xd0, 0x6f, 0x41, 0, 0xfc, 17, 1), 0, ""},
		{"table.set of another type", raw(0x41, 0, 0xd0, 0x6f, 0x26, 0), 4, "table.set takes funcref, externref is on the stack"},
		{"table.get of what is not there", raw(0x41, 0, 0x25, 2, 0x1a), 2, "table.get refers to table 2, there are 2"},
		{"end of the body before its end", raw(0x0b), 1, "1 bytes are left over"},
		{"a block that stays open", raw(0x02, 0x40), 3, "ends within an instruction"},
	}
	at := bodyAt(t)
	for _, test := range tests {
		t.Run(test.title, func(t *testing.T) {
			_, err := check(fixture(test.instructions...), Bounds{}, Features{})
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			var failure *Error
			require.ErrorAs(t, err, &failure)
			assert.Equal(t, test.want, failure.Message)
			assert.Equal(t, "code", failure.Section)
			assert.Equal(t, at+test.at, failure.Offset)
			assert.True(t, failure.Kind == ErrInvalid || failure.Kind == ErrMalformed)
		})
	}
}

func TestValidateModules(t *testing.T) {
	imported := section(SectionImport, vector(concat(name("m"), name("g"), raw(3, byte(I32), 1))))
	table := section(SectionTable, vector(raw(0x70, 0, 1)))
	global := func(content ...byte) []byte { return section(SectionGlobal, vector(content)) }
	for _, test := range []struct {
		title  string
		source []byte
		want   string
	}{
		{"constant of another type", module(global(byte(I32), 0, opI64Const, 0, opEnd)), "global section at byte 13: a constant expression has a value of type i64; want i32"},
		{"constant without a value", module(global(byte(I32), 0, opEnd)), "global section at byte 13: a constant expression leaves 0 values; want 1, of type i32"},
		{"constant with two values", module(global(byte(I32), 0, opI32Const, 0, opI32Const, 0, opEnd)), "global section at byte 13: a constant expression leaves 2 values; want 1, of type i32"},
		{"constant of a global of the module's own", module(global(byte(I32), 0, opGlobalGet, 0, opEnd)), "global section at byte 13: a constant expression refers to global 0; want one of the 0 that are imported"},
		{"constant of a global that changes", module(imported, global(byte(I32), 0, opGlobalGet, 0, opEnd)), "global section at byte 23: a constant expression refers to global 0, which can change"},
		{"constant of a function that is not there", module(global(byte(FuncRef), 0, opRefFunc, 0, opEnd)), "global section at byte 13: refers to function 0, there are 0"},
		{"start function with a result", module(section(SectionType, vector(raw(0x60, 0, 1, 0x7f))), oneFunc, section(SectionStart, leb(0)), section(SectionCode, vector(body(noLocals, 0x41, 0)))), "start section at byte 21: the start function 0 has the type () -> (i32); want no parameters and no results"},
		{"elements without a table", module(section(SectionElement, vector(concat(raw(0), i32Zero, raw(0))))), "element section at byte 11: an element segment is for table 0, there are 0"},
		{"elements of another type", module(table, section(SectionElement, vector(concat(raw(6, 0), i32Zero, raw(0x6f, 0))))), "element section at byte 17: an element segment of externref is for table 0, which holds funcref"},
		{"elements that are not there", module(table, section(SectionElement, vector(concat(raw(0), i32Zero, raw(1, 0))))), "element section at byte 22: refers to function 0, there are 0"},
		{"elements at an offset of another type", module(table, section(SectionElement, vector(raw(0, opI64Const, 0, opEnd, 0)))), "element section at byte 18: a constant expression has a value of type i64; want i32"},
		{"data without a memory", module(section(SectionData, vector(concat(raw(0), i32Zero, raw(0))))), "data section at byte 11: an active data segment needs a memory, there is none"},
		{"data for another memory", module(oneMemory, section(SectionData, vector(concat(raw(2, 1), i32Zero, raw(0))))), "data section at byte 16: a data segment is for memory 1"},
		{"load without a memory", module(oneType, oneFunc, section(SectionCode, vector(body(noLocals, 0x41, 0, 0x28, 0, 0, 0x1a)))), "code section at byte 25: i32.load needs a memory, there is none"},
		{"memory.init without a data count", module(oneType, oneFunc, oneMemory, section(SectionCode, vector(body(noLocals, 0, 0xfc, 8, 0, 0))), section(SectionData, vector(raw(1, 0)))), "code section at byte 29: memory.init needs a data count section"},
	} {
		t.Run(test.title, func(t *testing.T) {
			_, err := check(test.source, Bounds{}, Features{})
			require.EqualError(t, err, test.want)
			var failure *Error
			require.ErrorAs(t, err, &failure)
			assert.True(t, failure.Kind == ErrInvalid || failure.Kind == ErrMalformed)
		})
	}
}

func TestValidateEverything(t *testing.T) {
	checked(t, fixture(), Features{})
	// In everything, one constant refers to a global that changes; the rest is as it
	// should be up to there.
	_, err := check(everything(), Bounds{}, Features{})
	require.ErrorIs(t, err, ErrInvalid)
	assert.ErrorContains(t, err, "refers to global 0, which can change")
}

func TestValidateRefusesProposals(t *testing.T) {
	for _, test := range []struct {
		title, proposal string
		instructions    []byte
	}{
		{"try", ExceptionHandling, raw(0x06, 0x40)},
		{"throw", ExceptionHandling, raw(0x08, 0)},
		{"try_table", ExceptionHandling, raw(0x1f, 0x40, 0)},
		{"call_ref", FunctionReferences, raw(0x14, 0)},
		{"ref.eq", GarbageCollection, raw(0xd3)},
		{"struct.new", GarbageCollection, raw(0xfb, 0, 0)},
		{"atomic.fence", Threads, raw(0xfe, 3, 0)},
		{"i8x16.relaxed_swizzle", RelaxedVectors, raw(0xfd, 0x80, 2)},
		{"i64.add128", WideArithmetic, raw(0xfc, 19)},
		{"memory.discard", MemoryDiscarding, raw(0xfc, 18, 0)},
		{"suspend", StackSwitching, raw(0xe2, 0)},
		{"return_call", TailCalls, raw(0x12, 1)},
		{"return_call_indirect", TailCalls, raw(0x41, 0, 0x13, 0, 0)},
		{"block with an exnref", ExceptionHandling, raw(0x02, 0x69)},
		{"a memory index", MultipleMemories, raw(0x41, 0, 0x28, 0x42, 1, 0)},
	} {
		t.Run(test.title, func(t *testing.T) {
			_, err := check(fixture(test.instructions...), Bounds{}, Features{})
			require.ErrorIs(t, err, ErrUnsupported)
			assert.ErrorContains(t, err, " needs "+test.proposal+", which is not supported")
		})
	}
	for _, unknown := range [][]byte{raw(0x27), raw(0xc5), raw(0xff), raw(0xfc, 23), raw(0xfd, 154), raw(0xfd, 0xff, 0x7f)} {
		_, err := check(fixture(unknown...), Bounds{}, Features{})
		require.ErrorIs(t, err, ErrMalformed)
		assert.ErrorContains(t, err, "there is no instruction")
	}
}

func TestAnalysis(t *testing.T) {
	a, err := check(fixture(
		0x03, 0x40, // loop
		0x02, 0x40, // block
		0x41, 0, 0x41, 0, 0x41, 0, 0x11, 1, 0, 0x6a, // call_indirect
		0x0e, 1, 0, 1, // br_table
		0x0b, 0x0b, 0x0f,
	), Bounds{}, Features{})
	require.NoError(t, err)
	assert.Equal(t, []FunctionAnalysis{
		{MaxStack: 3, Spilled: 1, MaxDepth: 2, Blocks: 2, Branches: 2, BranchTargets: 2, Instructions: 12, Loops: true, Calls: true},
		{Instructions: 1},
	}, a.Functions)
	assert.False(t, a.ChangesTables)
	assert.False(t, a.UsesSegments)

	changes := map[string][]byte{
		"table.set":  raw(0x41, 0, 0xd0, 0x70, 0x26, 0),
		"table.grow": raw(0xd0, 0x70, 0x41, 0, 0xfc, 15, 0, 0x1a),
		"table.fill": raw(0x41, 0, 0xd0, 0x70, 0x41, 0, 0xfc, 17, 0),
		"table.copy": raw(0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 14, 0, 0),
	}
	for title, instructions := range changes {
		a := checked(t, fixture(instructions...), Features{})
		assert.True(t, a.ChangesTables, title)
		assert.False(t, a.UsesSegments, title)
	}
	for title, instructions := range map[string][]byte{"data.drop": raw(0xfc, 9, 0), "elem.drop": raw(0xfc, 13, 0)} {
		a := checked(t, fixture(instructions...), Features{})
		assert.False(t, a.ChangesTables, title)
		assert.True(t, a.UsesSegments, title)
	}
}
