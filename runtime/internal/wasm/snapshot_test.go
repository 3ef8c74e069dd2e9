package wasm

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// forking is a command that names fd_read, its function 1, in every possible way. It is imported twice.
func forking() []byte {
	four := repeat(4, byte(I32))
	return module(
		section(SectionType, vector(emptyType, concat(raw(0x60), four, raw(1, byte(I32))))),
		section(SectionImport, vector(
			concat(name("env"), name("f"), raw(0, 0)),
			concat(name("wasi_snapshot_preview1"), name("fd_read"), raw(0, 1)),
			concat(name("wasi_snapshot_preview1"), name("fd_write"), raw(0, 1)),
			concat(name("wasi_snapshot_preview1"), name("fd_read"), raw(0, 1)),
		)),
		section(SectionFunction, vector(leb(0), leb(1))),
		section(SectionTable, vector(raw(0x70, 0, 3))),
		section(SectionMemory, vector(raw(0, 1))),
		section(SectionGlobal, vector(raw(byte(FuncRef), 0, opRefFunc, 1, opEnd))),
		section(SectionExport, vector(
			concat(name("_start"), raw(0, 4)),
			concat(name("read"), raw(0, 3)),
			concat(name("write"), raw(0, 2)),
		)),
		section(SectionElement, vector(
			concat(raw(0), i32Zero, vector(leb(1), leb(5), leb(2))),
			raw(5, 0x70, 2, opRefFunc, 3, opEnd, opRefFunc, 4, opEnd),
		)),
		section(SectionCode, vector(
			body(noLocals, 0xd2, 1, 0x1a, 0x41, 0, 0x41, 0, 0x41, 0, 0x41, 0, 0x10, 5, 0x1a, 0x10, 0),
			body(noLocals, 0x20, 0, 0x20, 1, 0x20, 2, 0x20, 3, 0x10, 1, 0x1a, 0x20, 0, 0x20, 1, 0x20, 2, 0x20, 3, 0x12, 3),
		)),
	)
}

// stateful has a global of each numeric type that changes, one that does not, an imported
// one in front of them, and data segments that overlap.
func stateful() []byte {
	return module(
		oneType,
		section(SectionImport, vector(concat(name("env"), name("g"), raw(3, byte(I32), 0)))),
		oneFunc,
		section(SectionMemory, vector(raw(0, 2))),
		section(SectionGlobal, vector(
			concat(raw(byte(I32), 1), i32Zero),
			concat(raw(byte(I64), 0, opI64Const, 7, opEnd)),
			concat(raw(byte(I64), 1, opI64Const, 7, opEnd)),
			concat(raw(byte(F32), 1, opF32Const, 1, 2, 3, 4, opEnd)),
			concat(raw(byte(F64), 1, opF64Const, 1, 2, 3, 4, 5, 6, 7, 8, opEnd)),
		)),
		section(SectionDataCount, leb(4)),
		oneBody,
		section(SectionData, vector(
			concat(raw(0, opI32Const, 0xc0, 0, opEnd), name("first")),
			concat(raw(1), name("passive")),
			concat(raw(2, 0, opI32Const, 0xc2, 0, opEnd), name("second")),
			concat(raw(0, opI32Const, 0x80, 0x80, 0x08, opEnd), name("")),
		)),
	)
}

// described returns a module as text, with the parts that printed leaves out and the findings of Rewrite.
func described(t *testing.T, r *Rewritten) string {
	t.Helper()
	m := inspected(t, r.Source)
	var out strings.Builder
	for _, id := range []SectionID{SectionGlobal, SectionElement, SectionDataCount, SectionData} {
		if at, present := m.section(id); present {
			fmt.Fprintf(&out, "section %s: %s\n", id, hex.EncodeToString(r.Source[at.Content:at.End]))
		}
	}
	fmt.Fprintf(&out, "shift %d, forks %t\nglobals %v, unrestorable %q\n", r.FunctionShift, r.Forks, r.Globals, r.Unrestorable)
	fmt.Fprintf(&out, "data kept %q\n", r.DataKept)
	for _, s := range r.Data {
		fmt.Fprintf(&out, "segment at %d: %q\n", s.Offset, s.Bytes)
	}
	return printed(t, r.Source) + out.String()
}

func TestSnapshotGolden(t *testing.T) {
	for _, test := range []struct {
		title  string
		source []byte
		passes Passes
	}{
		{"snapshot-globals", stateful(), Passes{Globals: true}},
		{"snapshot-data", stateful(), Passes{Data: true}},
		{"snapshot-fork", forking(), Passes{Fork: true}},
		{"snapshot-fork-meter", forking(), Passes{Fork: true, Meter: true}},
		{"snapshot-linked", stateful(), Passes{Meter: true, Linked: true, Globals: true}},
		{"snapshot-all", stateful(), Passes{Meter: true, Depth: true, Globals: true, Data: true, Fork: true}},
	} {
		t.Run(test.title, func(t *testing.T) {
			a := checked(t, test.source, Features{TailCalls: true})
			got := rewrote(t, test.source, a, test.passes)
			golden(t, test.title, described(t, got))
			checkAllPasses(t, test.source, a)
		})
	}
}

// checkSnapshotPasses checks the promises of the passes for snapshots for every module.
func checkSnapshotPasses(t *testing.T, a *Analysis, m *Module, got *Rewritten, passes Passes) {
	t.Helper()
	if !passes.Globals {
		require.Empty(t, got.Unrestorable)
	}
	if !passes.Globals || got.Unrestorable != "" {
		require.Empty(t, got.Globals)
	}
	require.True(t, passes.Fork || !got.Forks)
	shift := 0
	if passes.Meter {
		shift++
	}
	if got.Forks {
		shift += 2
	}
	require.Equal(t, shift, got.FunctionShift)
	imports := len(a.module.Imports) + shift
	if passes.Linked {
		imports++
	}
	require.Len(t, m.Imports, imports)
	checkSegments(t, a, m, got, passes)
}

// checkSegments: either all segments stay, or none, or as many without the bytes of active ones.
func checkSegments(t *testing.T, a *Analysis, m *Module, got *Rewritten, passes Passes) {
	t.Helper()
	if !passes.Data || got.DataKept != "" {
		require.Empty(t, got.Data)
		require.Equal(t, a.module.DataSegments, m.DataSegments)
		return
	}
	require.LessOrEqual(t, len(got.Data), a.module.DataSegments)
	if a.bulk&(1<<opMemoryInit.number()|1<<opDataDrop.number()) != 0 {
		require.Equal(t, a.module.DataSegments, m.DataSegments)
	} else {
		require.Zero(t, m.DataSegments)
	}
	for _, s := range got.Data {
		require.LessOrEqual(t, uint64(s.Offset)+uint64(len(s.Bytes)), uint64(m.Memories[0].Min)<<16)
	}
}

func TestUnrestorable(t *testing.T) {
	global := func(t ValueType, mutable byte, value ...byte) []byte {
		return concat(raw(byte(t), mutable), value, raw(opEnd))
	}
	vectorZero := concat(raw(opVector, opV128Const), make([]byte, 16))
	imports := func(what ...byte) []byte {
		return section(SectionImport, vector(
			concat(name("env"), name("g"), raw(3, byte(I32), 0)), concat(name("env"), name("x"), what)))
	}
	elements := section(SectionElement, vector(raw(1, 0, 0)))
	for _, test := range []struct {
		title  string
		source []byte
		want   string
	}{
		{"nothing", module(), ""},
		{"memory and numbers", stateful(), ""},
		{"a passive segment that nothing uses", fixtureWithData(raw(1)), ""},
		{"a table that nothing changes", module(oneTable), ""},
		{"imported memory", module(imports(2, 0, 1)), "the memory is imported"},
		{"imported table", module(imports(1, 0x70, 0, 1)), "a table is imported"},
		{"imported mutable global", module(imports(3, byte(I64), 1)), "global 1 is mutable and imported"},
		{"imported constant vector", module(imports(3, byte(V128), 0)), ""},
		{"mutable vector", module(imports(3, byte(I32), 0), section(SectionGlobal, vector(global(I32, 1, opI32Const, 0), global(V128, 1, vectorZero...)))), "global 3 is mutable and of type v128"},
		{"mutable reference", module(section(SectionGlobal, vector(global(FuncRef, 1, opRefNull, 0x70)))), "global 0 is mutable and of type funcref"},
		{"constant vector", module(section(SectionGlobal, vector(global(V128, 0, vectorZero...)))), ""},
		{"many globals", module(section(SectionGlobal, repeat(maxRestoredGlobals, byte(I32), 1, opI32Const, 0, opEnd))), ""},
		{"too many globals", module(section(SectionGlobal, repeat(maxRestoredGlobals+1, byte(I32), 1, opI32Const, 0, opEnd))), "1001 globals are mutable, more than 1000"},
		{"table.set", module(oneType, oneFunc, oneTable, oneMemory, section(SectionCode, vector(body(noLocals, 0x41, 0, 0xd0, 0x70, 0x26, 0)))), "an instruction can change a table"},
		{"elem.drop", module(oneType, oneFunc, oneTable, elements, section(SectionCode, vector(body(noLocals, 0xfc, 13, 0)))), "an instruction uses a data or element segment, which can be dropped"},
		{"data.drop", fixtureWithData(raw(1), 0xfc, 9, 0), "an instruction uses a data or element segment, which can be dropped"},
	} {
		t.Run(test.title, func(t *testing.T) {
			a := checked(t, test.source, Features{})
			got := rewrote(t, test.source, a, Passes{Globals: true})
			assert.Equal(t, test.want, got.Unrestorable)
			checkRewritten(t, test.source, a, Passes{Globals: true, Data: true, Meter: true})
		})
	}
}

// fixtureWithData has two pages of memory, and a data segment of three bytes after its mode and offset.
func fixtureWithData(placed []byte, instructions ...byte) []byte {
	return module(
		oneType,
		section(SectionImport, vector(concat(name("env"), name("g"), raw(3, byte(I32), 0)))),
		oneFunc,
		section(SectionMemory, vector(raw(0, 2))),
		section(SectionDataCount, leb(1)),
		section(SectionCode, vector(body(noLocals, instructions...))),
		section(SectionData, vector(concat(placed, name("abc")))),
	)
}

func TestData(t *testing.T) {
	at := func(offset ...byte) []byte { return concat(raw(0, opI32Const), offset, raw(opEnd)) }
	imported := module(section(SectionImport, vector(concat(name("env"), name("m"), raw(2, 0, 1)))), section(SectionData, vector(concat(at(0), name("abc")))))
	whole := module(
		section(SectionMemory, vector(raw(0, 0x80, 0x80, 4))), // 65,536 pages, 4 GiB
		section(SectionData, vector(concat(at(0x7d), name("abc")), concat(at(0x80, 0x80, 0x7c), name("d")), concat(at(0x80, 0x80, 0x80, 0x80, 0x78), name("e")))))
	for _, test := range []struct {
		title  string
		source []byte
		data   []Segment
		kept   string
	}{
		{"no segments", module(oneMemory), nil, ""},
		{"an empty section", module(section(SectionData, vector())), nil, ""},
		{"active", fixtureWithData(at(5)), []Segment{{5, []byte("abc")}}, ""},
		{"active, with the memory named", fixtureWithData(raw(2, 0, opI32Const, 5, opEnd)), []Segment{{5, []byte("abc")}}, ""},
		{"passive, unused", fixtureWithData(raw(1)), nil, ""},
		{"at the end", fixtureWithData(at(0xfd, 0xff, 0x07)), []Segment{{2<<16 - 3, []byte("abc")}}, ""},
		{"over the end", fixtureWithData(at(0xfe, 0xff, 0x07)), nil, "data segment 0 extends past the end of the memory"},
		{"far away", fixtureWithData(at(0x7f)), nil, "data segment 0 extends past the end of the memory"},
		{"the highest addresses", whole, []Segment{{1<<32 - 3, []byte("abc")}, {1<<32 - 1<<16, []byte("d")}, {1 << 31, []byte("e")}}, ""},
		{"an offset of the host's", fixtureWithData(raw(0, opGlobalGet, 0, opEnd)), nil, "data segment 0 takes its offset from an imported global"},
		{"imported memory", imported, nil, "data segment 0 is for an imported memory"},
		{"memory.init", fixtureWithData(at(0), 0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 8, 0, 0), []Segment{{0, []byte("abc")}}, ""},
		{"data.drop", fixtureWithData(at(0), 0xfc, 9, 0), []Segment{{0, []byte("abc")}}, ""},
		{"passive, dropped", fixtureWithData(raw(1), 0xfc, 9, 0), nil, ""},
		{"far away, dropped", fixtureWithData(at(0x7f), 0xfc, 9, 0), nil, "data segment 0 extends past the end of the memory"},
		{"memory.copy", fixtureWithData(at(0), 0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 10, 0, 0), []Segment{{0, []byte("abc")}}, ""},
	} {
		t.Run(test.title, func(t *testing.T) {
			a := checked(t, test.source, Features{})
			got := rewrote(t, test.source, a, Passes{Data: true})
			assert.Equal(t, test.data, got.Data)
			assert.Equal(t, test.kept, got.DataKept)
			m := inspected(t, got.Source)
			_, counted := m.section(SectionDataCount)
			_, before := a.module.section(SectionDataCount)
			used := a.bulk&(1<<opMemoryInit.number()|1<<opDataDrop.number()) != 0
			assert.Equal(t, before && (used || test.kept != ""), counted, "the data count section goes with the segments")
			checkRewritten(t, test.source, a, Passes{Data: true, Meter: true})
		})
	}
}

func TestForks(t *testing.T) {
	build := func(start string, kind byte, startType int, from, function string, readType int) []byte {
		return module(
			section(SectionType, vector(emptyType, raw(0x60, 0, 1, byte(I32)), raw(0x60, 4, byte(I32), byte(I32), byte(I32), byte(I32), 1, byte(I32)))),
			section(SectionImport, vector(concat(name("env"), name("m"), raw(2, 0, 0)), concat(name(from), name(function), raw(0, byte(readType))))),
			section(SectionFunction, vector(leb(startType))),
			section(SectionGlobal, vector(concat(raw(byte(I32), 0), i32Zero), concat(raw(byte(I32), 0), i32Zero))),
			section(SectionExport, vector(concat(name(start), raw(kind, 1)))),
			section(SectionCode, vector(body(noLocals, 0x00))),
		)
	}
	const wasi = "wasi_snapshot_preview1"
	for _, test := range []struct {
		title  string
		source []byte
		want   bool
	}{
		{"a command", build("_start", 0, 0, wasi, "fd_read", 2), true},
		{"everything", forking(), true},
		{"a reactor", build("_initialize", 0, 0, wasi, "fd_read", 2), false},
		{"_start is a global", build("_start", 3, 0, wasi, "fd_read", 2), false},
		{"_start has a result", build("_start", 0, 1, wasi, "fd_read", 2), false},
		{"never reads", build("_start", 0, 0, wasi, "fd_pread", 2), false},
		{"another host's", build("_start", 0, 0, "env", "fd_read", 2), false},
		{"of another type", build("_start", 0, 0, wasi, "fd_read", 0), false},
		{"nothing", module(), false},
	} {
		t.Run(test.title, func(t *testing.T) {
			a := checked(t, test.source, Features{TailCalls: true})
			got := rewrote(t, test.source, a, Passes{Fork: true})
			assert.Equal(t, test.want, got.Forks)
			m := inspected(t, got.Source)
			entry, found := m.ExportedFunction(ForkName)
			assert.Equal(t, test.want, found)
			assert.Empty(t, entry)
			checkAllPasses(t, test.source, a)
		})
	}
}
