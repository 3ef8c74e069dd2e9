package wasm

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBoundTables(t *testing.T) {
	header := []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
	tables := []byte{4, 18, 4, 0x70, 0, 1, 0x6f, 1, 2, 5, 0x70, 1, 3, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x70, 0}
	tables = append(tables, 100) // the last has a minimum of 100
	tables[1] = byte(len(tables) - 2)
	memory := []byte{5, 3, 1, 0, 1}
	source := append(append(append([]byte(nil), header...), tables...), memory...)
	m := inspected(t, source)

	bounded := BoundTables(source, m, 50)
	again := inspected(t, bounded)
	assert.Equal(t, []Table{
		{FuncRef, Limits{Min: 1, Max: 50, HasMax: true}},
		{ExternRef, Limits{Min: 2, Max: 5, HasMax: true}},
		{FuncRef, Limits{Min: 3, Max: 50, HasMax: true}},
		{FuncRef, Limits{Min: 100, Max: 100, HasMax: true}},
	}, again.Tables)
	assert.Equal(t, memory, bounded[len(bounded)-len(memory):], "the rest stays as it is")

	without := append(append([]byte(nil), header...), memory...)
	m = inspected(t, without)
	assert.Equal(t, without, BoundTables(without, m, 50))
}

func TestExportStart(t *testing.T) {
	types, functions := []byte{1, 4, 1, 0x60, 0, 0}, []byte{3, 3, 2, 0, 0}
	exports := []byte{7, 5, 1, 1, 'f', 0, 0}
	custom := []byte{0, 2, 1, 'x'}
	start := []byte{8, 1, 1}
	code := []byte{10, 7, 2, 2, 0, 0x0b, 2, 0, 0x0b}
	build := func(sections ...[]byte) []byte {
		module := []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
		for _, s := range sections {
			module = append(module, s...)
		}
		return module
	}
	for name, source := range map[string][]byte{
		"with exports":          build(types, functions, exports, start, code),
		"without exports":       build(types, functions, start, code),
		"custom sections there": build(types, functions, exports, custom, start, custom, code),
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
	without := build(types, functions, exports, code)
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
	tests := []struct {
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
	}
	for _, test := range tests {
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
	// A size may be written with more bytes than it needs; what is kept stays as it is.
	padded := raw(0, 0x82, 0x80, 0, 1, 'p')
	long := raw(1, 0x84, 0x80, 0x80, 0, 1, 0x60, 0, 0)
	tests := []struct {
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
	}
	for _, test := range tests {
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
