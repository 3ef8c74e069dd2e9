package wasm

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInspectEverything(t *testing.T) {
	source := everything()
	m := inspected(t, source)

	write := FuncType{Params: []ValueType{I32, F64}, Results: []ValueType{I64}}
	assert.Equal(t, []FuncType{{}, write}, m.Types)
	assert.Equal(t, []Import{
		{Module: "wasi_snapshot_preview1", Name: "fd_write", Kind: ExternFunction, Function: write},
		{Module: "env", Name: "table", Kind: ExternTable, Table: Table{Element: ExternRef, Limits: Limits{Min: 2, Max: 3, HasMax: true}}},
		{Module: "env", Name: "global", Kind: ExternGlobal, Global: Global{Type: V128, Mutable: true}},
		{Module: "wasi_snapshot_preview1", Name: "fd_read", Kind: ExternFunction},
	}, m.Imports)
	assert.Equal(t, []Table{{Element: FuncRef, Limits: Limits{Min: 1, Max: 9, HasMax: true}}}, m.Tables)
	assert.Equal(t, []Limits{{Min: 2, Max: 256, HasMax: true}}, m.Memories)
	assert.Equal(t, []Global{{I32, true}, {I64, false}, {F32, false}, {F64, false}, {V128, false}, {FuncRef, false}, {FuncRef, false}, {V128, false}}, m.Globals)
	assert.Equal(t, []Export{
		{"_start", ExternFunction, 2}, {"read", ExternFunction, 1}, {"write", ExternFunction, 0}, {"run", ExternFunction, 3},
		{"table", ExternTable, 1}, {"memory", ExternMemory, 0}, {"global", ExternGlobal, 8},
	}, m.Exports)
	assert.Equal(t, Start{Function: 2, Present: true}, m.Start)
	assert.Equal(t, 8, m.ElementSegments)
	assert.Equal(t, 3, m.DataSegments)

	require.Len(t, m.Functions, 2)
	assert.Equal(t, uint32(0), m.Functions[0].Type)
	assert.Equal(t, []int{2, 0}, []int{m.Functions[0].Size, m.Functions[0].Locals})
	assert.Equal(t, uint32(1), m.Functions[1].Type)
	assert.Equal(t, []int{9, 302}, []int{m.Functions[1].Size, m.Functions[1].Locals})
	for _, f := range m.Functions {
		assert.Equal(t, byte(opEnd), source[f.Offset+f.Size-1])
	}
}

func TestSectionsTileTheModule(t *testing.T) {
	source := everything()
	m := inspected(t, source)

	var ids []SectionID
	end := headerBytes
	for _, s := range m.Sections {
		assert.Equal(t, end, s.Offset)
		assert.Equal(t, byte(s.ID), source[s.Offset])
		assert.Greater(t, s.Content, s.Offset)
		ids, end = append(ids, s.ID), s.End
	}
	assert.Equal(t, len(source), end)
	assert.Equal(t, []SectionID{
		SectionCustom, SectionType, SectionImport, SectionFunction, SectionTable, SectionMemory, SectionGlobal,
		SectionExport, SectionStart, SectionElement, SectionDataCount, SectionCode, SectionCustom, SectionData,
		SectionCustom, SectionCustom,
	}, ids)
}

func TestExportedFunction(t *testing.T) {
	m := inspected(t, everything())
	tests := []struct {
		name, want string
		found      bool
	}{
		{"_start", "() -> ()", true}, // defined, the first
		{"run", "(i32, f64) -> (i64)", true},
		{"write", "(i32, f64) -> (i64)", true}, // imported, the first
		{"read", "() -> ()", true},             // imported, the last
		{"memory", "", false},
		{"absent", "", false},
		{"", "", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, found := m.ExportedFunction(test.name)
			require.Equal(t, test.found, found)
			if found {
				assert.Equal(t, test.want, got.String())
			}
		})
	}
}

func TestImportedModules(t *testing.T) {
	m := inspected(t, everything())
	assert.Equal(t, []string{"wasi_snapshot_preview1", "env"}, m.ImportedModules())

	m = inspected(t, module())
	assert.Empty(t, m.ImportedModules())
}

func TestModuleSharesNoMemoryWithSource(t *testing.T) {
	source := everything()
	m := inspected(t, source)
	again := inspected(t, source)
	clear(source)
	assert.Equal(t, again, m)
	assert.Equal(t, "fd_write", m.Imports[0].Name)
}

func TestStrings(t *testing.T) {
	all := FuncType{Params: []ValueType{I32, I64, F32, F64, V128, FuncRef, ExternRef}, Results: []ValueType{0x12}}
	assert.Equal(t, "(i32, i64, f32, f64, v128, funcref, externref) -> (type 0x12)", all.String())
	assert.Equal(t, "data count", SectionDataCount.String())
	assert.Equal(t, "unknown (99)", SectionID(99).String())
	for kind, want := range []string{"function", "table", "memory", "global", "kind 4"} {
		assert.Equal(t, want, ExternKind(kind).String())
	}
}

// Every cut of a module that has everything is refused or a module of fewer sections.
func TestCuts(t *testing.T) {
	source := everything()
	m := inspected(t, source)
	ends := map[int]bool{headerBytes: true}
	for _, s := range m.Sections {
		ends[s.End] = true
	}
	for n := range source {
		_, err := Inspect(source[:n:n])
		if !ends[n] {
			require.ErrorIs(t, err, ErrMalformed, "cut to %d bytes", n)
		}
		if err != nil {
			require.NotContains(t, err.Error(), "%!", "cut to %d bytes", n)
		}
	}
}

func TestLEB128(t *testing.T) {
	tests := []struct {
		title  string
		bits   uint
		signed bool
		bytes  []byte
		ok     bool
	}{
		{"zero", 32, false, raw(0), true},
		{"zero, padded to the most bytes", 32, false, raw(0x80, 0x80, 0x80, 0x80, 0), true},
		{"one byte too many", 32, false, raw(0x80, 0x80, 0x80, 0x80, 0x80, 0), false},
		{"the largest", 32, false, claim, true},
		{"one over the largest", 32, false, raw(0x80, 0x80, 0x80, 0x80, 0x10), false},
		{"unused bit 6", 32, false, raw(0xff, 0xff, 0xff, 0xff, 0x4f), false},
		{"cut off", 32, false, raw(0x80), false},
		{"empty", 32, false, nil, false},
		{"minus one", 32, true, raw(0x7f), true},
		{"minus one, padded", 32, true, raw(0xff, 0xff, 0xff, 0xff, 0x7f), true},
		{"sign not extended", 32, true, raw(0xff, 0xff, 0xff, 0xff, 0x0f), false},
		{"sign extended in part", 32, true, raw(0xff, 0xff, 0xff, 0xff, 0x4f), false},
		{"positive with a sign", 32, true, raw(0x80, 0x80, 0x80, 0x80, 0x70), false},
		{"the smallest", 32, true, raw(0x80, 0x80, 0x80, 0x80, 0x78), true},
		{"the largest", 32, true, raw(0xff, 0xff, 0xff, 0xff, 0x07), true},
		{"signed, one byte too many", 32, true, raw(0xff, 0xff, 0xff, 0xff, 0xff, 0x7f), false},
		{"minus one", 64, true, raw(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f), true},
		{"sign not extended", 64, true, raw(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01), false},
		{"the largest", 64, true, raw(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00), true},
		{"one byte too many", 64, true, raw(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0), false},
	}
	for _, test := range tests {
		t.Run(test.title, func(t *testing.T) {
			r := reader{source: test.bytes}
			r.leb(test.bits, test.signed, "a number")
			if !test.ok {
				require.ErrorIs(t, r.failure(), ErrMalformed)
				return
			}
			require.NoError(t, r.failure())
			assert.Zero(t, r.left())
		})
	}
}

func TestLEB128Value(t *testing.T) {
	r := reader{source: concat(leb(0), leb(127), leb(128), leb(624485), claim)}
	for _, want := range []uint32{0, 127, 128, 624485, 4294967295} {
		assert.Equal(t, want, r.u32("a number"))
	}
	require.NoError(t, r.failure())
}

func TestNames(t *testing.T) {
	tests := []struct {
		title, text string
		ok          bool
	}{
		{"empty", "", true},
		{"one to four bytes a character", "aé€😀", true},
		{"with a NUL", "a\x00b", true},
		{"the last code point", "\U0010ffff", true},
		{"over the last code point", "\xf4\x90\x80\x80", false},
		{"a surrogate", "\xed\xa0\x80", false},
		{"longer than need be", "\xc0\x80", false},
		{"a continuation alone", "\x80", false},
		{"cut off", "\xe2\x82", false},
	}
	for _, test := range tests {
		t.Run(test.title, func(t *testing.T) {
			r := reader{source: name(test.text)}
			got := r.name("a name", 100)
			if !test.ok {
				require.ErrorIs(t, r.failure(), ErrMalformed)
				assert.Equal(t, 1, r.err.Offset)
				return
			}
			require.NoError(t, r.failure())
			assert.Equal(t, test.text, got)
		})
	}
}

func TestFirstFailureSticks(t *testing.T) {
	r := reader{source: raw(1, 2, 3), section: "code"}
	r.skip(4, "a body")
	first := r.failure()
	require.EqualError(t, first, "code section at byte 0: ends within a body")
	assert.Zero(t, r.byte("a byte"))
	assert.Zero(t, r.count("things", 1, 10))
	assert.Empty(t, r.name("a name", 10))
	part := r.part(1, "a part")
	assert.Equal(t, first, part.failure())
	r.end()
	assert.Equal(t, first, r.failure())
	assert.Zero(t, r.at, "a failed reader does not move")
}
