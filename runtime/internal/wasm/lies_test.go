package wasm

import (
	"encoding/binary"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// budget is the most that inspecting so many bytes may allocate, in bytes.
func budget(length int) uint64 { return 64*uint64(length) + 64<<10 }

// allocated returns the number of bytes that f allocates: the minimum of three runs, because the counter is the
// process's.
func allocated(f func()) uint64 {
	least := ^uint64(0)
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

// lie is a module in which one count is 4294967295.
type lie struct {
	title   string
	before  []byte // the module up to the count, with which it ends; all sizes are right
	section string
	claims  string  // the counted items, as the error names them
	element uintptr // bytes of memory that one of them takes a reader who believes the count
}

func (l lie) source() []byte { return concat(l.before, claim) }

// counts has a lie for each vector of the format.
func counts() []lie {
	// In open, the count is the last of the section, and the sizes are right.
	open := func(id SectionID, content ...byte) []byte {
		return concat(raw(byte(id)), leb(len(content)+len(claim)), content)
	}
	bodyOpen := concat(raw(1), leb(len(claim))) // one body, which the count fills
	named := func(content ...byte) []byte {
		return open(SectionCustom, concat(name("name"), content)...)
	}
	subsection := func(id byte, content ...byte) []byte {
		return concat(raw(id), leb(len(content)+len(claim)), content)
	}
	word := unsafe.Sizeof(uint32(0))
	slice := unsafe.Sizeof([]byte{})
	return []lie{
		{"types", module(open(SectionType)), "type", "types", unsafe.Sizeof(FuncType{})},
		{"parameters", module(open(SectionType, 1, 0x60)), "type", "parameters", 1},
		{"results", module(open(SectionType, 1, 0x60, 0)), "type", "results", 1},
		{"imports", module(open(SectionImport)), "import", "imports", unsafe.Sizeof(Import{})},
		{"functions", module(open(SectionFunction)), "function", "functions", word},
		{"tables", module(open(SectionTable)), "table", "tables", unsafe.Sizeof(Table{})},
		{"memories", module(open(SectionMemory)), "memory", "memories", unsafe.Sizeof(Limits{})},
		{"globals", module(open(SectionGlobal)), "global", "globals", unsafe.Sizeof(Global{})},
		{"exports", module(open(SectionExport)), "export", "exports", unsafe.Sizeof(Export{})},
		{"element segments", module(open(SectionElement)), "element", "element segments", slice},
		{"elements of an active segment", module(open(SectionElement, concat(raw(1, 0), i32Zero)...)), "element", "elements", word},
		{"elements of a passive segment", module(open(SectionElement, 1, 1, 0)), "element", "elements", word},
		{"elements that are expressions", module(open(SectionElement, 1, 5, 0x70)), "element", "elements", slice},
		{"bodies", module(open(SectionCode)), "code", "functions", unsafe.Sizeof(Function{})},
		{"groups of locals", module(oneType, oneFunc, open(SectionCode, bodyOpen...)), "code", "groups of locals", word},
		{"data segments", module(open(SectionData)), "data", "data segments", slice},
		{"function names", module(named(subsection(1)...)), "name", "names", slice},
		{"functions with names of locals", module(named(subsection(2)...)), "name", "name maps", slice},
		{"names of locals", module(named(subsection(2, 1, 0)...)), "name", "names", slice},
	}
}

// believe computes the size of the slice that a reader makes if it trusts a count.
func believe(source []byte, at int, element uintptr) uint64 {
	n, _ := binary.Uvarint(source[at:])
	return n * uint64(element)
}

func TestLiesAboutCounts(t *testing.T) {
	for _, l := range counts() {
		t.Run(l.title, func(t *testing.T) {
			source := l.source()
			require.LessOrEqual(t, believe(source, len(l.before), l.element)>>20, uint64(1)<<22, "the control computes a sane number")
			require.GreaterOrEqual(t, believe(source, len(l.before), l.element), uint64(4)<<30-1,
				"control: who believes the count makes a slice of 4 GiB or more")

			var m *Module
			var err error
			spent := allocated(func() { m, err = Inspect(source) })
			assert.LessOrEqual(t, spent, uint64(16<<10), "the lie of %d bytes cost %d", len(source), spent)

			if l.section == "name" {
				require.NoError(t, err, "contents of custom sections do not make a module invalid")
				require.Len(t, m.Custom, 1)
				err = m.Custom[0].Problem
			}
			assert.Equal(t, &Error{
				Kind: ErrMalformed, Section: l.section, Offset: len(l.before),
				Message: "claims 4294967295 " + l.claims + ", 0 bytes are left",
			}, err)
		})
	}
}

// The same lies followed by more bytes, which a check against "anything left" would pass.
func TestLiesAboutCountsWithBytesLeft(t *testing.T) {
	for _, id := range []SectionID{
		SectionType, SectionImport, SectionFunction, SectionTable, SectionMemory, SectionGlobal,
		SectionExport, SectionElement, SectionCode, SectionData,
	} {
		t.Run(id.String(), func(t *testing.T) {
			source := module(section(id, claim, make([]byte, 1000)))
			var err error
			spent := allocated(func() { _, err = Inspect(source) })
			require.ErrorIs(t, err, ErrMalformed)
			assert.ErrorContains(t, err, "claims 4294967295 ")
			assert.ErrorContains(t, err, ", 1000 bytes are left")
			assert.LessOrEqual(t, spent, uint64(16<<10))
		})
	}
}

// A group of locals is a number and a type: few bytes, many locals. No count of bytes
// left stops that, so there is a limit.
func TestManyLocalsInFewBytes(t *testing.T) {
	group := concat(claim, raw(byte(I64)))
	locals := func(groups ...[]byte) []byte {
		return module(oneType, oneFunc, section(SectionCode, vector(body(vector(groups...)))))
	}
	many := locals(group)
	assert.Len(t, many, 30)
	assert.Equal(t, uint64(8*4294967295), believe(many, 23, 8), "control: who believes the number makes room for 32 GiB of locals")

	refusal{source: many, kind: ErrLimit, want: "code section at byte 23: a function has 4294967295 locals or more, the limit is 50000"}.check(t)
	refusal{
		source: locals(concat(leb(50_000), raw(byte(I64))), concat(leb(1), raw(byte(I64)))), kind: ErrLimit,
		want: "code section at byte 27: a function has 50001 locals or more, the limit is 50000",
	}.check(t)
	refusal{
		// The sum is taken in 64 bits: in 32 it would come to 1.
		source: locals(concat(leb(2), raw(byte(I64))), group), kind: ErrLimit,
		want: "code section at byte 25: a function has 4294967297 locals or more, the limit is 50000",
	}.check(t)

	m := inspected(t, locals(concat(leb(50_000), raw(byte(I64)))))
	assert.Equal(t, 50_000, m.Functions[0].Locals)
}

// Modules with as much as possible in as few bytes as possible cost the most.
func TestAllocationsOfDenseModules(t *testing.T) {
	const n = 20_000
	exports := make([][]byte, n)
	for i := range exports {
		exports[i] = concat(name(string(rune(0x10+i))), raw(2, 0))
	}
	many := func(count int, one []byte) []byte {
		sections := make([][]byte, count)
		for i := range sections {
			sections[i] = one
		}
		return module(sections...)
	}
	for _, test := range []struct {
		title  string
		source []byte
	}{
		{"empty types", module(section(SectionType, repeat(n, 0x60, 0, 0)))},
		{"types with a parameter", module(section(SectionType, repeat(n, 0x60, 1, byte(I32), 0)))},
		{"types with both", module(section(SectionType, repeat(n, 0x60, 1, byte(I32), 1, byte(I32))))},
		{"imports", module(oneType, section(SectionImport, repeat(10_000, 0, 0, 0, 0)))},
		{"imports with names", module(oneType, section(SectionImport, repeat(10_000, 2, 'a', 'b', 2, 'c', 'd', 0, 0)))},
		{"functions without code", module(oneType, section(SectionFunction, repeat(n, 0)))},
		{"functions", module(oneType, section(SectionFunction, repeat(n, 0)), section(SectionCode, repeat(n, 2, 0, opEnd)))},
		{"tables", module(section(SectionTable, repeat(100, 0x70, 0, 0)))},
		{"globals", module(section(SectionGlobal, repeat(n, byte(I32), 0, opEnd)))},
		{"exports", module(oneMemory, section(SectionExport, vector(exports...)))},
		{"element segments", module(section(SectionElement, repeat(n, 1, 0, 0)))},
		{"data segments", module(section(SectionData, repeat(n, 1, 0)))},
		{"custom sections", many(1_000, raw(0, 1, 0))},
		{"custom sections over the limit", many(n, raw(0, 1, 0))},
		{"bad name sections", many(1_000, custom("name", raw(1)))},
		{"name sections", module(custom("name", raw(1), leb(2*n+3), repeat(n, 0, 0)))},
		{"empty header", module()},
		{"everything", everything()},
	} {
		t.Run(test.title, func(t *testing.T) {
			var err error
			spent := allocated(func() { _, err = Inspect(test.source) })
			assert.LessOrEqual(t, spent, budget(len(test.source)))
			t.Logf("%d bytes in, %d allocated: %.1f a byte (%v)", len(test.source), spent, float64(spent)/float64(len(test.source)), err)
		})
	}
}

// refusal is a module and why it is refused.
type refusal struct {
	title  string
	source []byte
	kind   error
	want   string
}

func (r refusal) check(t *testing.T) {
	t.Helper()
	var m *Module
	var err error
	spent := allocated(func() { m, err = Inspect(r.source) })
	require.Error(t, err)
	assert.LessOrEqual(t, spent, uint64(16<<10))
	assert.Nil(t, m)
	assert.ErrorIs(t, err, r.kind)
	assert.EqualError(t, err, r.want)
}

func TestRefuseMalformed(t *testing.T) {
	for _, test := range []struct {
		title  string
		source []byte
		want   string
	}{
		{"nothing", nil, "module at byte 0: ends within the header: a module has at least 8 bytes"},
		{"half a header", []byte("\x00asm\x01"), "module at byte 5: ends within the header: a module has at least 8 bytes"},
		{"text format", []byte("(module)"), `module at byte 0: starts with "(mod", not with the magic number "\x00asm"`},
		{"version 2", []byte("\x00asm\x02\x00\x00\x00"), "module at byte 4: has the version 02 00 00 00, not 01 00 00 00"},
		{"unknown section", module(section(14)), "module at byte 8: there is no section with the id 14"},
		{"a section twice", module(oneType, oneType), "type section at byte 14: appears twice"},
		{"wrong order", module(oneMemory, oneTable), "table section at byte 13: appears after the memory section"},
		{"a section again later", module(oneType, oneMemory, oneType), "type section at byte 19: appears after the memory section"},
		{"code before data count", module(oneType, oneFunc, oneBody, section(SectionDataCount, leb(0))), "data count section at byte 24: appears after the code section"},
		{"section over the end", module(raw(1, 9, 0)), "type section at byte 9: the section claims 9 bytes, 1 bytes are left"},
		{"section too long for its contents", module(section(SectionType, vector(emptyType), raw(7))), "type section at byte 14: 1 bytes are left over"},
		{"section without contents", module(section(SectionType)), "type section at byte 10: ends within types"},
		{"no function type", module(section(SectionType, vector(raw(0x40, 0, 0)))), "type section at byte 11: a function type cannot be 0x40"},
		{"no value type", module(section(SectionType, vector(raw(0x60, 1, 0x11, 0)))), "type section at byte 13: the type of a parameter cannot be 0x11"},
		{"import kind", module(section(SectionImport, vector(concat(name(""), name(""), raw(9, 0))))), "import section at byte 13: the kind of an import cannot be 0x09"},
		{"import of a type that is not there", module(oneType, section(SectionImport, vector(concat(name(""), name(""), raw(0, 1))))), "import section at byte 20: refers to type 1, there are 1"},
		{"function of a type that is not there", module(oneFunc), "function section at byte 11: refers to type 0, there are 0"},
		{"value type as a reference", module(section(SectionTable, vector(raw(0x7f, 0, 1)))), "table section at byte 11: the element type of a table cannot be 0x7f"},
		{"limits flags", module(section(SectionMemory, vector(raw(0x10, 1)))), "memory section at byte 11: the limits of a memory cannot have the flags 0x10"},
		{"page size of a table", module(section(SectionTable, vector(raw(0x70, 8, 1)))), "table section at byte 12: the limits of a table cannot have the flags 0x08"},
		{"minimum over maximum", module(section(SectionMemory, vector(raw(1, 2, 1)))), "memory section at byte 11: a memory has the minimum 2, over its maximum of 1"},
		{"memory over 4 GiB", module(section(SectionMemory, vector(concat(raw(0), leb(65537))))), "memory section at byte 11: a memory of 65537 pages, the most is 65536"},
		{"maximum over 4 GiB", module(section(SectionMemory, vector(concat(raw(1, 0), leb(65537))))), "memory section at byte 11: a memory of 65537 pages, the most is 65536"},
		{"mutability", module(section(SectionGlobal, vector(concat(raw(byte(I32), 2), i32Zero)))), "global section at byte 12: the mutability of a global cannot be 0x02"},
		{"expression with a call", module(section(SectionGlobal, vector(raw(byte(I32), 0, 0x10, 0, opEnd)))), "global section at byte 13: a constant expression cannot have the instruction 0x10"},
		{"expression with a vector load", module(section(SectionGlobal, vector(raw(byte(V128), 0, opVector, 0, 0, 0, opEnd)))), "global section at byte 13: a constant expression cannot have the vector instruction 0"},
		{"expression without an end", module(section(SectionGlobal, vector(raw(byte(I32), 0, opI32Const, 0)))), "global section at byte 15: ends within a constant expression"},
		{"export kind", module(section(SectionExport, vector(concat(name(""), raw(5, 0))))), "export section at byte 12: the kind of an export cannot be 0x05"},
		{"export of what is not there", module(oneMemory, section(SectionExport, vector(concat(name("m"), raw(2, 1))))), "export section at byte 19: refers to memory 1, there are 1"},
		{"an export twice", module(oneMemory, section(SectionExport, vector(concat(name("m"), raw(2, 0)), concat(name("m"), raw(2, 0))))), `export section at byte 20: exports "m" twice`},
		{"start of what is not there", module(section(SectionStart, leb(0))), "start section at byte 10: refers to function 0, there are 0"},
		{"element flags", module(section(SectionElement, vector(raw(8, 0, 0)))), "element section at byte 11: an element segment cannot have the flags 8"},
		{"element kind", module(section(SectionElement, vector(raw(1, 1, 0)))), "element section at byte 12: the kind of an element segment cannot be 0x01"},
		{"element cut off", module(section(SectionElement, vector(raw(1, 0, 2, 0x80, 0x80)))), "element section at byte 16: ends within the index of a function"},
		{"element with a call", module(section(SectionElement, vector(raw(5, 0x70, 2, 0x10, opEnd)))), "element section at byte 14: a constant expression cannot have the instruction 0x10"},
		{"data mode", module(section(SectionData, vector(raw(3, 0)))), "data section at byte 11: a data segment cannot have the mode 3"},
		{"fewer segments than the data count", module(section(SectionDataCount, leb(2)), section(SectionData, vector(raw(1, 0)))), "data section at byte 16: there are 1 segments for 2 segments in the data count section"},
		{"a data count without data", module(section(SectionDataCount, claim)), "data section at byte 15: there are 0 segments for 4294967295 segments in the data count section"},
		{"functions without code", module(oneType, oneFunc), "code section at byte 18: there are 0 bodies for 1 functions"},
		{"code without functions", module(oneType, oneBody), "code section at byte 16: there are 1 bodies for 0 functions"},
		{"body without locals", module(oneType, oneFunc, section(SectionCode, vector(raw(0)), raw(0, 0))), "code section at byte 22: ends within groups of locals"},
		{"body without an end", module(oneType, oneFunc, section(SectionCode, vector(raw(2, 0, 1)))), "code section at byte 22: the body of a function has no end"},
		{"body over its section", module(oneType, oneFunc, section(SectionCode, vector(raw(3, 0, opEnd)))), "code section at byte 21: the body of a function claims 3 bytes, 2 bytes are left"},
		{"custom section without a name", module(section(SectionCustom)), "custom section at byte 10: ends within the name of a custom section"},
		{"custom section with a name over its end", module(section(SectionCustom, leb(4), raw('a'))), "custom section at byte 10: the name of a custom section claims 4 bytes, 1 bytes are left"},
		{"lie about the size of a section", module(raw(1), claim), "type section at byte 9: the section claims 4294967295 bytes, 0 bytes are left"},
		{"lie about the size of a custom section", module(raw(0), claim), "custom section at byte 9: the section claims 4294967295 bytes, 0 bytes are left"},
		{"lie about the size of a name", module(section(SectionImport, leb(1), claim)), "import section at byte 11: the module of an import claims 4294967295 bytes, 0 bytes are left"},
		{"lie about the size of a body", module(oneType, oneFunc, section(SectionCode, leb(1), claim)), "code section at byte 21: the body of a function claims 4294967295 bytes, 0 bytes are left"},
		{"lie about the size of data", module(section(SectionData, leb(1), raw(1), claim)), "data section at byte 12: a data segment claims 4294967295 bytes, 0 bytes are left"},
		{"name not UTF-8", module(custom("\xff")), "custom section at byte 11: the name of a custom section is not UTF-8"},
	} {
		t.Run(test.title, func(t *testing.T) {
			refusal{test.title, test.source, ErrMalformed, test.want}.check(t)
		})
	}
}

func TestRefuseUnsupported(t *testing.T) {
	memory := func(content ...byte) []byte { return module(section(SectionMemory, vector(content))) }
	importOf := func(content ...byte) []byte { return concat(name("env"), name("x"), content) }
	global := func(content ...byte) []byte { return module(section(SectionGlobal, vector(content))) }
	for _, test := range []struct {
		title, proposal string
		source          []byte
	}{
		{"shared memory", Threads, memory(3, 1, 1)},
		{"imported shared memory", Threads, module(section(SectionImport, vector(importOf(2, 3, 1, 1))))},
		{"shared table", Threads, module(section(SectionTable, vector(raw(0x70, 3, 1, 1))))},
		{"64-bit memory", Memory64, memory(4, 1)},
		{"64-bit memory, shared", Threads, memory(7, 1, 1)},
		{"64-bit table", Memory64, module(section(SectionTable, vector(raw(0x70, 5, 1, 1))))},
		{"small pages", CustomPageSizes, memory(8, 1, 0)},
		{"two memories", MultipleMemories, module(section(SectionMemory, vector(raw(0, 1), raw(0, 1))))},
		{"two imported memories", MultipleMemories, module(section(SectionImport, vector(importOf(2, 0, 1), importOf(2, 0, 1))))},
		{"one memory of each", MultipleMemories, module(section(SectionImport, vector(importOf(2, 0, 1))), oneMemory)},
		{"tag section", ExceptionHandling, module(section(sectionTag, vector(raw(0, 0))))},
		{"tag section with a lie", ExceptionHandling, module(section(sectionTag, claim))},
		{"imported tag", ExceptionHandling, module(section(SectionImport, vector(importOf(4, 0, 0))))},
		{"exported tag", ExceptionHandling, module(section(SectionExport, vector(concat(name("t"), raw(4, 0)))))},
		{"exnref", ExceptionHandling, global(0x69, 0, opEnd)},
		{"nullable reference", FunctionReferences, global(0x63, 0x70, 0, opEnd)},
		{"reference", FunctionReferences, module(section(SectionType, vector(raw(0x60, 1, 0x64, 0x70, 0))))},
		{"table with an initializer", FunctionReferences, module(section(SectionTable, vector(raw(0x40, 0, 0x70, 0, 1, 0xd0, 0x70, opEnd))))},
		{"struct type", GarbageCollection, module(section(SectionType, vector(raw(0x5f, 0, 0))))},
		{"recursive types", GarbageCollection, module(section(SectionType, vector(raw(0x4e, 1, 0x60, 0, 0))))},
		{"anyref", GarbageCollection, global(0x6e, 0, opEnd)},
		{"addition in an expression", ExtendedConstants, global(byte(I32), 0, opI32Const, 1, opI32Const, 1, 0x6a, opEnd)},
	} {
		t.Run(test.title, func(t *testing.T) {
			_, err := Inspect(test.source)
			require.ErrorIs(t, err, ErrUnsupported)
			assert.NotErrorIs(t, err, ErrMalformed)
			assert.ErrorContains(t, err, " needs "+test.proposal+", which is not supported")
		})
	}
}

func TestRefuseComponent(t *testing.T) {
	for _, version := range []string{"\x0d", "\x0a"} { // of now, and before
		refusal{
			source: []byte("\x00asm" + version + "\x00\x01\x00\x01\xff\xff\xff\xff\x0f"),
			kind:   ErrUnsupported,
			want:   "module at byte 4: this is a component, not a core module",
		}.check(t)
	}
}
