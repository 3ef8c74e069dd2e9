package wasm

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The original maximum is left to the host, except for the largest one, which no memory reaches.
func TestRaiseMemory(t *testing.T) {
	for _, test := range []struct {
		name           string
		memory, raised string
	}{
		{"a maximum", "\x01\x01\x01\x02", "\x01\x01\x01\x03"},
		{"equal to the minimum", "\x01\x01\x7f\x7f", "\x01\x01\x7f\x80\x01"},
		{"no maximum", "\x01\x00\x01", "\x01\x00\x01"},
		{"the largest maximum", "\x01\x01\x00\x80\x80\x04", "\x01\x01\x00\x80\x80\x04"},
		{"no memory", "\x00", "\x00"},
	} {
		t.Run(test.name, func(t *testing.T) {
			with := func(memory string) []byte {
				return module(section(SectionMemory, []byte(memory)), section(SectionExport, []byte{0}))
			}
			source := with(test.memory)
			assert.Equal(t, with(test.raised), RaiseMemory(source, inspected(t, source)))
		})
	}
	without := module()
	assert.Equal(t, without, RaiseMemory(without, inspected(t, without)))
}

func TestBoundTables(t *testing.T) {
	tables := section(SectionTable, vector(raw(0x70, 0, 1), raw(0x6f, 1, 2, 5), concat(raw(0x70, 1, 3), claim), raw(0x70, 0, 100)))
	source := module(tables, oneMemory)
	m := inspected(t, source)

	bounded := BoundTables(source, m, 50)
	again := inspected(t, bounded)
	assert.Equal(t, []Table{
		{FuncRef, Limits{Min: 1, Max: 1, HasMax: true}},
		{ExternRef, Limits{Min: 2, Max: 2, HasMax: true}},
		{FuncRef, Limits{Min: 3, Max: 3, HasMax: true}},
		{FuncRef, Limits{Min: 100, Max: 100, HasMax: true}},
	}, again.Tables, "they have more from the beginning")
	assert.Equal(t, []Table{
		{FuncRef, Limits{Min: 1, Max: 24, HasMax: true}},
		{ExternRef, Limits{Min: 2, Max: 5, HasMax: true}},
		{FuncRef, Limits{Min: 3, Max: 26, HasMax: true}},
		{FuncRef, Limits{Min: 100, Max: 123, HasMax: true}},
	}, inspected(t, BoundTables(source, m, 200)).Tables)
	bounded = BoundTables(source, m, 50)
	assert.Equal(t, oneMemory, bounded[len(bounded)-len(oneMemory):], "the rest stays unchanged")

	without := module(oneMemory)
	m = inspected(t, without)
	assert.Equal(t, without, BoundTables(without, m, 50))
}

func TestExportStart(t *testing.T) {
	functions, code := section(SectionFunction, repeat(2, 0)), section(SectionCode, repeat(2, 2, 0, opEnd))
	exports, start, noted := section(SectionExport, vector(concat(name("f"), raw(0, 0)))), section(SectionStart, leb(1)), custom("x")
	for name, source := range map[string][]byte{
		"with exports":          module(oneType, functions, exports, start, code),
		"without exports":       module(oneType, functions, start, code),
		"custom sections there": module(oneType, functions, exports, noted, start, noted, code),
	} {
		m := inspected(t, source)
		moved, err := ExportStart(source, m)
		require.NoError(t, err)
		again := inspected(t, moved)
		assert.False(t, again.Start.Present, name)
		assert.Equal(t, append(append([]Export{}, m.Exports...), Export{StartName, ExternFunction, 1}), again.Exports, name)
		assert.Len(t, again.Custom, len(m.Custom), name)

		_, err = ExportStart(moved, again)
		require.ErrorIs(t, err, ErrUnsupported, "a module that has the name already")
	}
	without := module(oneType, functions, exports, code)
	m := inspected(t, without)
	same, err := ExportStart(without, m)
	require.NoError(t, err)
	assert.Equal(t, without, same)
}

func TestCustomSections(t *testing.T) {
	source := everything()
	m := inspected(t, source)
	var names []string
	for _, c := range m.Custom {
		names = append(names, c.Name)
		require.NoError(t, c.Problem)
		read := reader{source: source, at: c.Offset}
		assert.Equal(t, byte(SectionCustom), read.byte("an id"))
		size := read.size("a section")
		assert.Equal(t, c.Size, read.at-c.Offset+size)
	}
	assert.Equal(t, []string{"first", "middle", "name", "first"}, names)
}

func TestNameSectionProblems(t *testing.T) {
	for _, test := range []struct {
		title   string
		content []byte
		want    string // empty: none
	}{
		{"empty", nil, ""},
		{"subsections twice and out of order", concat(raw(2, 1, 0), raw(1, 1, 0), raw(1, 1, 0)), ""},
		{"a subsection of a proposal", raw(7, 3, 0xff, 0xff, 0xff), ""},
		{"an index of a function that is not there", raw(1, 4, 1, 99, 1, 'x'), ""},
		{"no size", raw(1), "name section at byte 16: ends within a subsection"},
		{"a subsection over the end", raw(7, 9, 0), "name section at byte 16: a subsection claims 9 bytes, 1 bytes are left"},
		{"bytes behind the names", raw(1, 2, 0, 7), "name section at byte 18: 1 bytes are left over"},
		{"bytes behind the module's name", raw(0, 3, 1, 'm', 7), "name section at byte 19: 1 bytes are left over"},
		{"a name over the end", raw(1, 4, 1, 0, 9, 'x'), "name section at byte 19: a name claims 9 bytes, 1 bytes are left"},
		{"a name that is not UTF-8", raw(1, 4, 1, 0, 1, 0xff), "name section at byte 20: a name is not UTF-8"},
		{"the module's name", concat(raw(0, 5), claim), "name section at byte 17: the name of the module claims 4294967295 bytes, 0 bytes are left"},
		{"two names in the room of one", raw(1, 4, 2, 0, 1, 'x'), "name section at byte 17: claims 2 names, 3 bytes are left"},
		{"names of locals cut off", raw(2, 4, 1, 0, 1, 0), "name section at byte 19: claims 1 names, 1 bytes are left"},
	} {
		t.Run(test.title, func(t *testing.T) {
			source := module(custom("name", test.content))
			m := inspected(t, source)
			require.Len(t, m.Custom, 1)
			if test.want == "" {
				require.NoError(t, m.Custom[0].Problem)
				return
			}
			require.ErrorIs(t, m.Custom[0].Problem, ErrMalformed)
			assert.EqualError(t, m.Custom[0].Problem, test.want)
			assert.Equal(t, module(), StripCustom(source, m, none))
		})
	}
}

func none(string) bool { return false }
func all(string) bool  { return true }

func TestOtherCustomSectionsAreNotLookedAt(t *testing.T) {
	m := inspected(t, module(custom("names", raw(1), claim), custom("", claim), custom(".debug_info", claim)))
	for _, c := range m.Custom {
		assert.NoError(t, c.Problem)
	}
}

func TestStripCustom(t *testing.T) {
	a, b := custom("a", raw(1, 2, 3)), custom("b")
	// A size may be written with more bytes than it needs. Sections that are kept stay unchanged.
	padded := raw(0, 0x82, 0x80, 0, 1, 'p')
	long := raw(1, 0x84, 0x80, 0x80, 0, 1, 0x60, 0, 0)
	for _, test := range []struct {
		title  string
		source []byte
		keep   func(string) bool
		want   []byte
	}{
		{"nothing there", module(oneType), none, module(oneType)},
		{"only custom sections", module(a, b, a), none, module()},
		{"around and between", module(a, oneType, b, a, oneMemory, b), none, module(oneType, oneMemory)},
		{"all kept", module(a, oneType, b), all, module(a, oneType, b)},
		{"one kept, each time", module(a, oneType, b, a), func(name string) bool { return name == "a" }, module(a, oneType, a)},
		{"sizes that are padded", module(padded, long, padded), none, module(long)},
		{"a padded one kept", module(a, padded, long), func(name string) bool { return name == "p" }, module(padded, long)},
	} {
		t.Run(test.title, func(t *testing.T) {
			before := slices.Clone(test.source)
			m := inspected(t, test.source)
			got := StripCustom(test.source, m, test.keep)
			assert.Equal(t, test.want, got)
			clear(got)
			assert.Equal(t, before, test.source, "the source is not changed, and shares no memory with the result")
		})
	}
}

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
	for _, test := range []struct {
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
	} {
		t.Run(test.name, func(t *testing.T) {
			got, found := m.ExportedFunction(test.name)
			require.Equal(t, test.found, found)
			if found {
				assert.Equal(t, test.want, got.String())
			}
		})
	}
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
	for _, test := range []struct {
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
	} {
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

	for _, test := range []struct {
		bits  uint
		bytes []byte
		want  int64
	}{
		{32, raw(0x3f), 63}, {32, raw(0x40), -64}, {32, raw(0x7f), -1}, {32, raw(0xff, 0x7f), -1}, {32, raw(0x80, 0x40), -8192},
		{32, raw(0xff, 0xff, 0xff, 0xff, 0x7f), -1}, {32, raw(0x80, 0x80, 0x80, 0x80, 0x78), math.MinInt32}, {32, raw(0xff, 0xff, 0xff, 0xff, 0x07), math.MaxInt32},
		{33, raw(0xff, 0xff, 0xff, 0xff, 0x0f), math.MaxUint32}, {64, raw(0x7f), -1},
		{64, raw(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f), math.MinInt64},
	} {
		r := reader{source: test.bytes}
		assert.Equal(t, test.want, int64(r.leb(test.bits, true, "a number")), "%d bits, % x", test.bits, test.bytes)
		require.NoError(t, r.failure())
	}
}

func TestNames(t *testing.T) {
	for _, test := range []struct {
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
	} {
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
