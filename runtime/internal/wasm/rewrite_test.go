package wasm

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files in testdata")

// sample is a module with an imported function 0 and the bodies of functions 1 and up, of
// type (i32) -> (i32) each, with one local. All but the last are exported by letters, and
// the table holds function 1.
func sample(bodies ...[]byte) []byte {
	var coded, exports [][]byte
	for n, instructions := range bodies {
		coded = append(coded, body(raw(1, 1, byte(I32)), instructions...))
		if n > 0 {
			exports = append(exports, concat(name(string(rune('a'+n-1))), raw(0, byte(n))))
		}
	}
	return module(
		custom("name", raw(1, 4, 1, 1, 1, 'x')),
		section(SectionType, vector(raw(0x60, 1, byte(I32), 1, byte(I32)), raw(0x60, 0, 2, byte(I32), byte(I64)))),
		section(SectionImport, vector(concat(name("env"), name("f"), raw(0, 0)))),
		section(SectionFunction, repeat(len(bodies), 0)),
		section(SectionTable, vector(raw(0x70, 0, 4))),
		section(SectionMemory, vector(raw(0, 1))),
		section(SectionGlobal, vector(raw(byte(FuncRef), 0, opRefFunc, 1, opEnd))),
		section(SectionExport, vector(exports...)),
		section(SectionElement, vector(
			concat(raw(0), i32Zero, vector(leb(1))),
			raw(5, 0x70, 2, opRefFunc, 0, opEnd, opRefFunc, 1, opEnd),
		)),
		section(SectionDataCount, leb(1)),
		section(SectionCode, vector(coded...)),
		section(SectionData, vector(concat(leb(1), name("data")))),
	)
}

// golden compares with a file, or writes it.
func golden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", "rewrite", file+".txt")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want := read(t, path)
	assert.Equal(t, string(want), got)
}

func TestRewriteGolden(t *testing.T) {
	identity := raw(0x20, 0)
	loop := raw(
		0x03, 0x40, // loop
		0x20, 0, 0x41, 1, 0x6b, 0x22, 0, // n = n - 1
		0x0d, 0, // br_if 0
		0x0b, 0x20, 1,
	)
	branches := raw(
		0x02, 0x40, // block
		0x02, 0x40, // block: branched to
		0x20, 0, 0x0e, 1, 0, 1, // br_table
		0x01, // nop: never reached
		0x0b,
		0x20, 0, 0x04, 0x7f, // if
		0x41, 1, 0x05, 0x41, 2, 0x0b,
		0x21, 1,
		0x02, 0x40, 0x0b, // a block that nothing branches to
		0x20, 1, 0x0f, // return
		0x0b, 0x41, 3,
	)
	dispatch := raw(
		0x03, 0x40, 0x02, 0x40, 0x02, 0x40, 0x02, 0x40, // loop, three blocks
		0x20, 0, 0x0e, 2, 0, 1, 2, // br_table: the places 0, 1 and 2
		0x0b,
		0x20, 1, 0x10, 0, 0x04, 0x40, 0x41, 2, 0x21, 0, 0x0c, 3, 0x0b, // to place 2, which is ahead
		0x0b,
		0x41, 0, 0x21, 0, 0x0c, 1, // to place 0, which is before it
		0x0b, 0x0b, 0x20, 1,
	)
	calls := raw(0x20, 0, 0x10, 0, 0x10, 1, 0x41, 0, 0x11, 0, 0, 0xd2, 1, 0x1a)
	bulk := raw(
		0x41, 0, 0x41, 0, 0x20, 0, 0xfc, 11, 0, // memory.fill
		0x41, 0, 0x41, 1, 0x20, 0, 0xfc, 10, 0, 0, // memory.copy
		0x41, 0, 0x41, 0, 0x41, 4, 0xfc, 8, 0, 0, // memory.init
		0x41, 0, 0x41, 0, 0x41, 1, 0xfc, 12, 1, 0, // table.init
		0x20, 0,
	)
	recursion := raw(
		0x20, 0, 0x45, 0x04, 0x40, 0x41, 0, 0x0f, 0x0b, // if n == 0 return 0
		0x20, 0, 0x41, 1, 0x6b, 0x10, 2, // f(n - 1)
	)
	tail := raw(0x20, 0, 0x04, 0x40, 0x20, 0, 0x12, 2, 0x0b, 0x41, 0)
	for _, test := range []struct {
		title  string
		passes Passes
		bodies [][]byte
	}{
		{"meter-leaf", Passes{Meter: true}, [][]byte{identity}},
		{"meter-loop", Passes{Meter: true}, [][]byte{identity, loop}},
		{"meter-branches", Passes{Meter: true}, [][]byte{identity, branches}},
		{"meter-dispatch", Passes{Meter: true}, [][]byte{identity, dispatch}},
		{"meter-calls", Passes{Meter: true}, [][]byte{identity, calls}},
		{"meter-bulk", Passes{Meter: true}, [][]byte{identity, bulk}},
		{"depth-recursion", Passes{Depth: true}, [][]byte{identity, recursion}},
		{"depth-tail-call", Passes{Depth: true}, [][]byte{identity, tail}},
		{"all", Passes{Meter: true, Depth: true}, [][]byte{identity, recursion, loop}},
	} {
		t.Run(test.title, func(t *testing.T) {
			source := sample(test.bodies...)
			a := checked(t, source, Features{TailCalls: true})
			got := rewrote(t, source, a, test.passes)
			golden(t, test.title, printed(t, got.Source))
			checkAllPasses(t, source, a)
		})
	}
}

// The block around a body has all of its results.
func TestDepthKeepsSeveralResults(t *testing.T) {
	source := module(
		section(SectionType, vector(raw(0x60, 1, byte(I32), 2, byte(I32), byte(I64)))),
		oneFunc,
		section(SectionCode, vector(body(noLocals, 0x20, 0, 0x10, 0))),
	)
	a := checked(t, source, Features{})
	got := rewrote(t, source, a, Passes{Depth: true})
	assert.Contains(t, printed(t, got.Source), "  block () -> (i32, i64)\n")
	checkRewritten(t, source, a, Passes{Depth: true})
}

func TestRewriteRefusesItsNames(t *testing.T) {
	exports := func(text string) []byte {
		return module(oneMemory, section(SectionExport, vector(concat(name(text), raw(2, 0)))))
	}
	imports := func(from string) []byte {
		return module(oneType, section(SectionImport, vector(concat(name(from), name("other"), raw(0, 0)))))
	}
	for want, source := range map[string][]byte{
		`export section at byte 13: exports "caisson:meter@1", which is reserved`:        exports(CounterName),
		`export section at byte 13: exports "caisson:depth@1", which is reserved`:        exports(depthName),
		`export section at byte 13: exports "caisson:global@1:7", which is reserved`:     exports("caisson:global@1:7"),
		`export section at byte 13: exports "caisson:fork@1", which is reserved`:         exports(ForkName),
		`import section at byte 14: imports from "caisson:meter@1", which is reserved`:   imports(MeterModule),
		`import section at byte 14: imports from "caisson:fork@1", which is reserved`:    imports(ForkModule),
		`import section at byte 14: imports from "caisson:counter@1", which is reserved`: imports(CounterModule),
		`import section at byte 8: imports "caisson:meter@1", which is reserved`:         module(section(SectionImport, vector(concat(name("library"), name(CounterName), raw(3, byte(I64), 1))))),
		`import section at byte 8: imports "caisson:depth@1", which is reserved`:         module(section(SectionImport, vector(concat(name("library"), name(depthName), raw(3, byte(I32), 1))))),
	} {
		a := checked(t, source, Features{})
		for _, passes := range passesOf() {
			_, err := Rewrite(t.Context(), source, a, passes)
			if passes.none() {
				require.NoError(t, err)
				continue
			}
			require.ErrorIs(t, err, ErrUnsupported)
			require.EqualError(t, err, want)
		}
	}
	t.Run("what was rewritten before", func(t *testing.T) {
		source := sample(raw(0x20, 0))
		a := checked(t, source, Features{})
		once := rewrote(t, source, a, Passes{Meter: true})
		a = checked(t, once.Source, Features{})
		_, err := Rewrite(t.Context(), once.Source, a, Passes{Meter: true})
		require.ErrorIs(t, err, ErrUnsupported)
	})
}

func TestStackBytes(t *testing.T) {
	// Functions 1 to 4, each with 1,000 locals: 1 calls 2 calls 3, and 4 calls itself.
	locals := concat(leb(1), leb(1_000), raw(byte(I64)))
	source := module(oneType, section(SectionFunction, repeat(4, 0)),
		section(SectionCode, vector(body(locals, 0x10, 1), body(locals, 0x10, 2), body(locals), body(locals, 0x10, 3))))
	a := checked(t, source, Features{})
	const frame = frameBytes + 1_000*valueBytes

	got := rewrote(t, source, a, Passes{Depth: true})
	assert.Equal(t, 1, got.Recursive)
	assert.Equal(t, int64(3*frame), got.ChainBytes)
	assert.Equal(t, depthName, got.DepthGlobal)

	for _, test := range []struct {
		bytes int64
		want  string
	}{
		{4 * frame, ""},
		{4*frame - 1, "code section at byte 47: a function takes some 8064 bytes of stack, chains of calls leave 8063"},
		{3*frame - 1, "code section at byte 21: a chain of calls takes some 24192 bytes of stack, the limit is 24191"},
	} {
		_, err := Rewrite(t.Context(), source, a, Passes{Depth: true, StackBytes: test.bytes})
		if test.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrLimit)
		assert.EqualError(t, err, test.want)
	}
	for _, wrong := range []int64{-1, maxStackBytes + 1} {
		_, err := Rewrite(t.Context(), source, a, Passes{StackBytes: wrong})
		require.ErrorIs(t, err, ErrBounds)
	}
}

func TestFunctionNames(t *testing.T) {
	long := make([]byte, 600)
	for i := range long {
		long[i] = "é"[i%2]
	}
	names := vector(
		concat(leb(0), name("imported")), concat(leb(1), name("own")), concat(leb(2), name("not there")), concat(leb(1), name("own, again")),
	)
	source := module(
		custom("other", raw(1, 4, 1, 1, 1, 'x')),
		oneType, section(SectionImport, vector(importFunc)), oneFunc, oneBody,
		custom("name", raw(0, 2, 1, 'm'), raw(1), leb(len(names)), names),
		custom("name", raw(1), leb(4), raw(1, 1, 9, 'x')), // with a problem
	)
	m := inspected(t, source)
	assert.Equal(t, map[uint32]string{0: "imported", 1: "own, again"}, FunctionNames(source, m))

	source = module(oneType, oneFunc, oneBody, custom("name", raw(1), name(string(vector(concat(leb(0), name("x"+string(long))))))))
	m = inspected(t, source)
	assert.Equal(t, "x"+string(long[:510]), FunctionNames(source, m)[0], "cut between characters")

	m = inspected(t, module())
	assert.Empty(t, FunctionNames(module(), m))
}

// Branches are led only to places that are ahead. Those that stay ways round a loop test the counter, and so do headers
// of loops.
func TestBranchesAreLedAhead(t *testing.T) {
	// A loop, three blocks and a table; then the code at place 0 with the end of the block
	// that leads to place 1, and so on. Labels of the loop are 2, 1 and 0 there.
	dispatch := func(table, first, second, third []byte) []byte {
		return concat(raw(0x03, 0x40, 0x02, 0x40, 0x02, 0x40, 0x02, 0x40), table, raw(0x0b),
			first, raw(0x0b), second, raw(0x0b), third, raw(0x0b, 0x20, 1))
	}
	table := raw(0x20, 0, 0x0e, 2, 0, 1, 2)
	to := func(value, loop byte) []byte { return raw(0x41, value, 0x21, 0, 0x0c, loop) }
	const negative = 0x7f // -1
	calls := raw(0x41, 0, 0x10, 0, 0x1a)
	counted := func(t *testing.T, body []byte) (tests int) {
		source := sample(raw(0x20, 0), body)
		a := checked(t, source, Features{})
		checkAllPasses(t, source, a)
		return strings.Count(printed(t, rewrote(t, source, a, Passes{Meter: true}).Source), "i32.lt_s")
	}
	for _, test := range []struct {
		title string
		body  []byte
		tests int
	}{
		{"control: without a branch", dispatch(table, nil, nil, nil), 1},
		{"the next place", dispatch(table, to(1, 2), nil, nil), 1},
		{"a place ahead", dispatch(table, to(2, 2), nil, nil), 1},
		{"the same place", dispatch(table, to(0, 2), nil, nil), 2},
		{"the same place, further down", dispatch(table, nil, to(1, 1), nil), 2},
		{"a place behind", dispatch(table, nil, nil, to(1, 0)), 2},
		{"behind the table's end", dispatch(table, to(9, 2), nil, nil), 1},
		{"a negative number", dispatch(table, to(negative, 2), nil, nil), 1},
		{"behind the table's end, the first place", dispatch(raw(0x20, 0, 0x0e, 2, 0, 1, 0), to(9, 2), nil, nil), 2},
		{"two labels of one place", dispatch(raw(0x20, 0, 0x0e, 3, 0, 0, 2, 1), to(2, 2), to(3, 1), nil), 2},
		{"the table leads back to the loop", dispatch(raw(0x20, 0, 0x0e, 2, 0, 3, 2), to(1, 2), nil, nil), 2},
		{"the table leads out of the loop", concat(raw(0x02, 0x40),
			dispatch(raw(0x20, 0, 0x0e, 2, 4, 1, 2), to(1, 2), nil, nil), raw(0x1a, 0x0b, 0x20, 1)), 1},
		{"the table leads out of the loop, and so does the branch", concat(raw(0x02, 0x40),
			dispatch(raw(0x20, 0, 0x0e, 2, 0, 4, 2), to(1, 2), nil, nil), raw(0x1a, 0x0b, 0x20, 1)), 2},
		{"another local", dispatch(table, raw(0x41, 1, 0x21, 1, 0x0c, 2), nil, nil), 2},
		{"no constant", dispatch(table, raw(0x20, 1, 0x21, 0, 0x0c, 2), nil, nil), 2},
		{"something in between", dispatch(table, raw(0x41, 1, 0x21, 0, 0x01, 0x0c, 2), nil, nil), 2},
		{"a block's end in between", dispatch(table, raw(0x02, 0x40, 0x41, 1, 0x21, 0, 0x0b, 0x0c, 2), nil, nil), 2},
		{"a condition", dispatch(table, raw(0x20, 1, 0x41, 1, 0x21, 0, 0x0d, 2), nil, nil), 2},
		{"from within blocks", dispatch(table, raw(0x02, 0x40, 0x20, 1, 0x04, 0x40, 0x41, 1, 0x21, 0, 0x0c, 4, 0x0b, 0x0b), nil, nil), 1},
		{"another block in the place of one that ended", dispatch(table, nil, nil, raw(0x02, 0x40, 0x41, 1, 0x21, 0, 0x0c, 1, 0x0b)), 2},
		{"from a loop within, which has a table, too", dispatch(table, raw(
			0x03, 0x40, 0x02, 0x40, 0x20, 1, 0x0e, 0, 0, 0x0b, 0x41, 1, 0x21, 0, 0x0c, 3, 0x0b), nil, nil), 2},
		{"the same, behind the outer table's end", dispatch(table, raw(
			0x03, 0x40, 0x02, 0x40, 0x20, 1, 0x0e, 0, 0, 0x0b, 0x41, 9, 0x21, 0, 0x0c, 3, 0x0b), nil, nil), 2},
		{"behind a loop within", dispatch(table, raw(
			0x03, 0x40, 0x02, 0x40, 0x20, 0, 0x0e, 0, 0, 0x0b, 0x0b), to(2, 1), to(2, 0)), 3},
		{"something in front of the table", dispatch(raw(0x01, 0x20, 0, 0x0e, 2, 0, 1, 2), to(1, 2), nil, nil), 2},
		{"a loop with a result", raw(0x03, 0x7f, 0x02, 0x40, 0x02, 0x40, 0x20, 0, 0x0e, 1, 0, 1, 0x0b,
			0x41, 1, 0x21, 0, 0x0c, 1, 0x0b, 0x20, 1, 0x0b), 1},
		{"a loop with a parameter", raw(0x20, 1, 0x03, 0, 0x02, 0x40, 0x02, 0x40, 0x20, 0, 0x0e, 1, 0, 1, 0x0b,
			0x20, 1, 0x41, 1, 0x21, 0, 0x0c, 1, 0x0b, 0x0b), 2},
		{"a block with a result around the places", raw(0x03, 0x40, 0x02, 0x7f, 0x02, 0x40, 0x02, 0x40, 0x20, 0, 0x0e, 1, 0, 1, 0x0b,
			0x41, 1, 0x21, 0, 0x0c, 2, 0x0b, 0x41, 5, 0x0b, 0x1a, 0x0b, 0x20, 1), 1},
		{"a loop with a place that takes a value", raw(0x03, 0x40, 0x02, 0x7f, 0x20, 0, 0x20, 0, 0x0e, 0, 0, 0x0b, 0x1a,
			0x41, 0, 0x21, 0, 0x0c, 0, 0x0b, 0x20, 1), 2},
	} {
		t.Run(test.title, func(t *testing.T) {
			assert.Equal(t, test.tests, counted(t, concat(calls, test.body)))
		})
	}
	for title, test := range map[string]struct {
		body  []byte
		tests int
	}{
		"from the first place, in a function that calls nothing":  {dispatch(table, to(1, 2), nil, nil), 2},
		"from the second place, in a function that calls nothing": {dispatch(table, nil, to(2, 1), nil), 1},
	} {
		t.Run(title, func(t *testing.T) {
			assert.Equal(t, test.tests, counted(t, test.body))
		})
	}
}
