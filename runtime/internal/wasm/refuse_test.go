package wasm

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// refusal is a module and why it is refused.
type refusal struct {
	title  string
	source []byte
	kind   error
	want   string
}

func (r refusal) check(t *testing.T) {
	t.Helper()
	m, err := Inspect(r.source)
	require.Error(t, err)
	assert.Nil(t, m)
	assert.ErrorIs(t, err, r.kind)
	assert.EqualError(t, err, r.want)
}

func TestRefuseMalformed(t *testing.T) {
	tests := []struct {
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
		{"name not UTF-8", module(custom("\xff")), "custom section at byte 11: the name of a custom section is not UTF-8"},
	}
	for _, test := range tests {
		t.Run(test.title, func(t *testing.T) {
			refusal{test.title, test.source, ErrMalformed, test.want}.check(t)
		})
	}
}

func TestRefuseUnsupported(t *testing.T) {
	memory := func(content ...byte) []byte { return module(section(SectionMemory, vector(content))) }
	importOf := func(content ...byte) []byte { return concat(name("env"), name("x"), content) }
	global := func(content ...byte) []byte { return module(section(SectionGlobal, vector(content))) }
	tests := []struct {
		title, proposal string
		source          []byte
	}{
		{"shared memory", threads, memory(3, 1, 1)},
		{"imported shared memory", threads, module(section(SectionImport, vector(importOf(2, 3, 1, 1))))},
		{"shared table", threads, module(section(SectionTable, vector(raw(0x70, 3, 1, 1))))},
		{"64-bit memory", memory64, memory(4, 1)},
		{"64-bit memory, shared", threads, memory(7, 1, 1)},
		{"64-bit table", memory64, module(section(SectionTable, vector(raw(0x70, 5, 1, 1))))},
		{"small pages", customPageSizes, memory(8, 1, 0)},
		{"two memories", multipleMemories, module(section(SectionMemory, vector(raw(0, 1), raw(0, 1))))},
		{"two imported memories", multipleMemories, module(section(SectionImport, vector(importOf(2, 0, 1), importOf(2, 0, 1))))},
		{"one memory of each", multipleMemories, module(section(SectionImport, vector(importOf(2, 0, 1))), oneMemory)},
		{"tag section", exceptionHandling, module(section(sectionTag, vector(raw(0, 0))))},
		{"tag section with a lie", exceptionHandling, module(section(sectionTag, claim))},
		{"imported tag", exceptionHandling, module(section(SectionImport, vector(importOf(4, 0, 0))))},
		{"exported tag", exceptionHandling, module(section(SectionExport, vector(concat(name("t"), raw(4, 0)))))},
		{"exnref", exceptionHandling, global(0x69, 0, opEnd)},
		{"nullable reference", functionReferences, global(0x63, 0x70, 0, opEnd)},
		{"reference", functionReferences, module(section(SectionType, vector(raw(0x60, 1, 0x64, 0x70, 0))))},
		{"table with an initializer", functionReferences, module(section(SectionTable, vector(raw(0x40, 0, 0x70, 0, 1, 0xd0, 0x70, opEnd))))},
		{"struct type", garbageCollection, module(section(SectionType, vector(raw(0x5f, 0, 0))))},
		{"recursive types", garbageCollection, module(section(SectionType, vector(raw(0x4e, 1, 0x60, 0, 0))))},
		{"anyref", garbageCollection, global(0x6e, 0, opEnd)},
		{"addition in an expression", extendedConstants, global(byte(I32), 0, opI32Const, 1, opI32Const, 1, 0x6a, opEnd)},
	}
	for _, test := range tests {
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
			want: "module at byte 4: this is a component, not a core module: " +
				"build for WASI preview 1 (such as wasm32-wasip1), without the step that makes a component",
		}.check(t)
	}
}

func TestErrorFields(t *testing.T) {
	_, err := Inspect(module(section(SectionCode, claim)))
	var failure *Error
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, &Error{Kind: ErrMalformed, Section: "code", Offset: 10, Message: "claims 4294967295 functions, 0 bytes are left"}, failure)
}
