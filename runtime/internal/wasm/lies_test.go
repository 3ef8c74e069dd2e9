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

// allocated returns how many bytes f allocates: the least of three runs, because the
// counter is the process's.
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
	claims  string  // what is counted, as the error names it
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

// believe does what a reader does that trusts a count: it works out the slice to make.
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

// The same lies with bytes behind them, which a check against "anything left" would pass.
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

func TestLiesAboutSizes(t *testing.T) {
	tests := []struct {
		title  string
		source []byte
		want   string
	}{
		{"section", module(raw(1), claim), "type section at byte 9: the section claims 4294967295 bytes, 0 bytes are left"},
		{"custom section", module(raw(0), claim), "custom section at byte 9: the section claims 4294967295 bytes, 0 bytes are left"},
		{"name", module(section(SectionImport, leb(1), claim)), "import section at byte 11: the module of an import claims 4294967295 bytes, 0 bytes are left"},
		{"body", module(oneType, oneFunc, section(SectionCode, leb(1), claim)), "code section at byte 21: the body of a function claims 4294967295 bytes, 0 bytes are left"},
		{"data", module(section(SectionData, leb(1), raw(1), claim)), "data section at byte 12: a data segment claims 4294967295 bytes, 0 bytes are left"},
	}
	for _, test := range tests {
		t.Run(test.title, func(t *testing.T) {
			var err error
			spent := allocated(func() { _, err = Inspect(test.source) })
			require.ErrorIs(t, err, ErrMalformed)
			assert.EqualError(t, err, test.want)
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

	m, err := Inspect(locals(concat(leb(50_000), raw(byte(I64)))))
	require.NoError(t, err)
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
	tests := []struct {
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
	}
	for _, test := range tests {
		t.Run(test.title, func(t *testing.T) {
			var err error
			spent := allocated(func() { _, err = Inspect(test.source) })
			assert.LessOrEqual(t, spent, budget(len(test.source)))
			t.Logf("%d bytes in, %d allocated: %.1f a byte (%v)", len(test.source), spent, float64(spent)/float64(len(test.source)), err)
		})
	}
}
