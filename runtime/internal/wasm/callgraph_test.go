package wasm

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// graphOf makes a call graph of lists of callees.
func graphOf(callees ...[]uint32) *callGraph {
	g := &callGraph{functions: len(callees), first: []uint32{0}}
	for _, list := range callees {
		g.callees = append(g.callees, list...)
		g.first = append(g.first, uint32(len(g.callees)))
	}
	return g
}

func TestRecursion(t *testing.T) {
	for _, test := range []struct {
		title     string
		callees   [][]uint32
		recursive []uint32
		chain     int64 // with 10 for each node, and its number
	}{
		{"nothing", nil, nil, 0},
		{"alone", [][]uint32{{}}, nil, 10},
		{"itself", [][]uint32{{0}}, []uint32{0}, 0},
		{"a chain", [][]uint32{{1}, {2}, {}}, nil, 33},
		{"the heavier of two ways", [][]uint32{{1, 2}, {3}, {3}, {}}, nil, 10 + 12 + 13},
		{"each other", [][]uint32{{1}, {0}}, []uint32{0, 1}, 0},
		{"a cycle on the way", [][]uint32{{1}, {2}, {1, 3}, {}}, []uint32{1, 2}, 10 + 13},
		{"two cycles", [][]uint32{{1}, {0, 2}, {3}, {2}}, []uint32{0, 1, 2, 3}, 0},
		{"a cycle that is entered twice", [][]uint32{{1, 2}, {2}, {3}, {1}}, []uint32{1, 2, 3}, 10},
		{"calls twice", [][]uint32{{1, 1, 1}, {}}, nil, 21},
	} {
		t.Run(test.title, func(t *testing.T) {
			found := graphOf(test.callees...).recursion(func(node uint32) int64 { return 10 + int64(node) })
			var recursive []uint32
			for node := range uint32(len(test.callees)) {
				if found.recursive.has(node) {
					recursive = append(recursive, node)
				}
			}
			assert.Equal(t, test.recursive, recursive)
			assert.Equal(t, test.chain, found.chain)
		})
	}
}

// A long chain does not take stack here, nor much time.
func TestRecursionOfALongChain(t *testing.T) {
	const n = 1_000_000
	callees := make([][]uint32, n)
	for i := range callees[:n-1] {
		callees[i] = []uint32{uint32(i) + 1}
	}
	found := graphOf(callees...).recursion(func(uint32) int64 { return 1 })
	assert.Equal(t, int64(n), found.chain)
}

// In random graphs, a node is recursive if and only if a walk from it comes back.
func TestRecursionAgreesWithWalks(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		n := 1 + random.IntN(12)
		callees := make([][]uint32, n)
		for range random.IntN(2 * n) {
			from := random.IntN(n)
			callees[from] = append(callees[from], uint32(random.IntN(n)))
		}
		found := graphOf(callees...).recursion(func(uint32) int64 { return 1 })
		for node := range n {
			assert.Equal(t, returns(callees, uint32(node)), found.recursive.has(uint32(node)), "%d in %v", node, callees)
		}
	}
}

func returns(callees [][]uint32, start uint32) bool {
	seen, next := map[uint32]bool{}, callees[start]
	for len(next) > 0 {
		node := next[0]
		next = next[1:]
		if node == start {
			return true
		}
		if !seen[node] {
			seen[node] = true
			next = append(append([]uint32(nil), next...), callees[node]...)
		}
	}
	return false
}

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
	// Two functions that have a loop and call an import, so that the passes add to both.
	calls := module(oneType, section(SectionImport, vector(importFunc)), twice(SectionFunction, 0), twice(SectionCode, 7, 0, 0x03, 0x40, opEnd, 0x10, 0, opEnd))
	tests := []boundTest{
		{"Types", 2, module(twice(SectionType, 0x60, 0, 0)), "type section at byte 10: has 2 types, the limit is 1"},
		{"TypeValues", 4, module(twice(SectionType, 0x60, 1, 0x7f, 1, 0x7f)), "type section at byte 16: the types have 4 parameters and results or more, the limit is 3"},
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
		{"References", 3, module(oneType, oneFunc, section(SectionElement, vector(raw(3, 0, 2, 0, 0))), section(SectionCode, vector(body(noLocals, opRefFunc, 0, 0x1a)))),
			"code section at byte 31: the module has more than 2 references to functions, in element segments and as ref.func"},
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
		{"BlockValues", 9, module(oneType, oneFunc, section(SectionCode, vector(body(raw(1, 3, byte(I32)), 2, 0x40, opEnd, 2, 0x40, opEnd)))), "code section at byte 32: a function has more than 8 pairs of a block and a local or an operand"},
		{"BranchTargets", 3, inBody(opI32Const, 0, 0x0e, 2, 0, 0, 0), "code section at byte 25: a function has 3 labels in br_table or more, the limit is 2"},
		{"AllBranchTargets", 4, inBody(opI32Const, 0, 0x0e, 1, 0, 0, opI32Const, 0, 0x0e, 1, 0, 0), "code section at byte 31: the functions have more than 3 labels in br_table together"},
		{"OperandStack", 2, inBody(opI32Const, 0, opI32Const, 0, 0), "code section at byte 25: the operand stack has 2 values, the limit is 1"},
		{"FunctionGlobals", 4, module(oneType, twice(SectionFunction, 0), twice(SectionGlobal, byte(I32), 0, opI32Const, 0, opEnd), twice(SectionCode, 2, 0, opEnd)), "code section at byte 34: 2 functions × 2 globals, the limit is 3"},
		{"JoinedValues", 96, oneBodied(raw(1, 3, byte(I32)), raw(3, 0x40, 0x20, 0, 0x20, 1, 0x21, 0, 0x0d, 0, opEnd)), "code section at byte 37: the squares of the values that come to where a function's paths join, for each path and loop, are more than 95 together"},
		{"JoinMoves", 2, oneBodied(raw(1, 3, byte(I32)), raw(2, 0x40, opI32Const, 0, 0x21, 0, opI32Const, 0, 0x0d, 0, opEnd, 0x20, 0, 0x1a)), "code section at byte 40: a function moves more than 1 values to where paths join"},
		{"KnownAddresses", 3, module(oneType, oneFunc, oneMemory, section(SectionCode, vector(body(noLocals, opI32Const, 0, 0x28, 2, 0, 0x1a, 2, 0x40, opEnd)))), "code section at byte 38: a function has more than 2 pairs of a block and an address that is accessed before it"},
		{"Loops", 2, inBody(3, 0x40, opEnd, 3, 0x40, opEnd), "code section at byte 26: a function has 2 loops or more, the limit is 1"},
		{"Weight", 43, inBody(0x43, 0, 0, 0, 0, 0xa9, 0x1a), "code section at byte 31: the instructions of a function weigh more than 42 together"},
		{"AllWeight", 86, module(oneType, twice(SectionFunction, 0), twice(SectionCode, 9, 0, 0x43, 0, 0, 0, 0, 0xa9, 0x1a, opEnd)), "code section at byte 42: the instructions of all functions weigh more than 85 together"},
		{"FunctionExports", 4, module(oneType, twice(SectionFunction, 0), section(SectionGlobal, vector(raw(byte(I32), 0, opI32Const, 0, opEnd))),
			section(SectionExport, vector(concat(name("a"), raw(0, 0)))), twice(SectionCode, 2, 0, opEnd)), "export section at byte 27: 2 functions × 2 exports and globals, the limit is 3"},
		{"CallGlobals", 12, module(oneType, oneFunc, section(SectionGlobal, vector(raw(byte(I32), 1, opI32Const, 0, opEnd), raw(byte(I32), 0, opI32Const, 0, opEnd))),
			section(SectionCode, vector(body(noLocals, 0x10, 0)))), "code section at byte 39: a function has more than 11 pairs of a call and a global that can change"},
		{"ZeroShifts", 3, inBody(opI32Const, 0xc0, 0, opI32Const, 1, 0x74, opI32Const, 0xa0, 0x7f, 0x76, 0x1a, 0x42, 0x20, 0x42, 0x20, 0x86, 0x42, 0xc0, 0, 0x87, opI32Const, 0, 0x1a, 0x42, 0, 0x88, 0x1a), "code section at byte 48: a function has 3 shifts by nothing or more, the limit is 2"},
		{"FunctionMoves", 2, module(oneType, twice(SectionFunction, 0), twice(SectionCode, 8, 0, 2, 0x7f, opI32Const, 0, opEnd, 0x1a, opEnd)), "code section at byte 31: calls, blocks and branches of a function move more than 1 values"},
		{"StackMoves", 5, inBody(2, 0x7f, opI32Const, 0, opEnd, 0x1a, 2, 0x7f, opI32Const, 0, 0x0c, 0, opEnd, 0), "code section at byte 35: calls, blocks and branches move more than 4 values in all"},
		{"Tests", 3, calls, "code section at byte 34: a function in which loops and calls need 3 tests of whether to stop, the limit is 2"},
		{"RewrittenBody", 89, calls, "code section at byte 34: the body of a function has 89 bytes with what makes it stoppable, the limit is 88"},
		{"RewrittenCode", 180, calls, "code section at byte 42: the code has more than 179 bytes with what makes it stoppable"},
	}...)
	require.Len(t, tests, reflect.TypeFor[Bounds]().NumField(), "a case for each bound")
	for _, test := range tests {
		t.Run(test.field, func(t *testing.T) {
			inspect := func(value int) error {
				var bounds Bounds
				reflect.ValueOf(&bounds).Elem().FieldByName(test.field).SetInt(int64(value))
				analysis, err := check(test.source, bounds, Features{})
				if err == nil {
					_, err = Rewrite(t.Context(), test.source, analysis, Passes{Meter: true})
				}
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
	for _, test := range []struct {
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
	} {
		t.Run(test.title, func(t *testing.T) {
			_, err := Inspect(test.source)
			require.ErrorIs(t, err, ErrLimit)
			assert.ErrorContains(t, err, test.want)
		})
	}
}

// boundless returns bounds that no test reaches.
func boundless() Bounds {
	const many = math.MaxInt
	return Bounds{
		BodyBytes: many, BlockDepth: many, Blocks: many, Branches: many, ControlSquares: many, BlockLocals: many,
		BranchTargets: many, AllBranchTargets: many, OperandStack: many, StackMoves: many,
	}
}

// oneBodied is a module with one function without parameters and results.
func oneBodied(locals []byte, instructions ...[]byte) []byte {
	return module(oneType, oneFunc, section(SectionCode, vector(body(locals, concat(instructions...)...))))
}

// nested are blocks inside one another.
func nested(n int) []byte {
	return concat(bytes.Repeat(raw(2, 0x40), n), bytes.Repeat(raw(opEnd), n))
}

// labelled is a br_table of so many labels.
func labelled(n int) []byte {
	return concat(raw(opI32Const, 0, 0x0e), leb(n-1), make([]byte, n))
}

// Modules for which the compiler takes time with the square of their length are refused,
// in little time, by the bound and by nothing else: under other bounds they are valid.
func TestDefaultBoundsRefuseQuadraticBombs(t *testing.T) {
	aThousandLocals := raw(1, 0xe8, 0x07, byte(I32))
	for _, test := range []struct {
		title  string
		source []byte
		want   string
	}{
		{"nested blocks", oneBodied(noLocals, nested(97_000)), "10001 blocks inside one another"},
		{"ifs in a row", oneBodied(noLocals, bytes.Repeat(raw(opI32Const, 0, 4, 0x40, opEnd), 100_000)), "12001 blocks"},
		{"br_table", oneBodied(noLocals, labelled(1_000_000)), "1000000 labels in br_table"},
		{"branches in a row", oneBodied(noLocals, bytes.Repeat(raw(opI32Const, 0, 0x0d, 0), 100_000)), "12001 branches"},
		{"blocks and locals", oneBodied(aThousandLocals, bytes.Repeat(raw(3, 0x40, opI32Const, 1, 0x21, 7, opI32Const, 0, 0x0d, 0, opEnd), 5_000)), "5000 blocks × 1000 locals"},
		{"many functions, each within its bounds", module(oneType, section(SectionFunction, repeat(30, 0)),
			section(SectionCode, repeat(30, body(noLocals, nested(9_000)...)...))), "squares of the functions' blocks and branches"},
		{"many br_tables, each within its bounds", module(oneType, section(SectionFunction, repeat(50, 0)),
			section(SectionCode, repeat(50, body(noLocals, labelled(49_000)...)...))), "labels in br_table together"},
	} {
		t.Run(test.title, func(t *testing.T) {
			start := time.Now()
			_, err := check(test.source, Bounds{}, Features{})
			took := time.Since(start)
			require.ErrorIs(t, err, ErrLimit)
			assert.ErrorContains(t, err, test.want)
			assert.Less(t, took, 2*time.Second)

			_, err = check(test.source, boundless(), Features{})
			require.NoError(t, err, "control: only the bound refuses it")
		})
	}
}

// Two bytes can move a thousand values, so that the length of a module does not bound the
// time that its validation takes.
func TestStackMovesBoundTime(t *testing.T) {
	const calls = 60_000
	thousand := repeat(1_000, byte(I32))
	source := module(
		section(SectionType, vector(emptyType, concat(raw(0x60), thousand, thousand))),
		section(SectionFunction, vector(leb(0), leb(1))),
		section(SectionCode, vector(
			body(noLocals, concat(bytes.Repeat(raw(opI32Const, 0), 1_000), bytes.Repeat(raw(0x10, 1), calls), bytes.Repeat(raw(0x1a), 1_000))...),
			body(noLocals, 0),
		)),
	)
	start := time.Now()
	_, err := check(source, Bounds{}, Features{})
	require.ErrorIs(t, err, ErrLimit)
	assert.ErrorContains(t, err, "move more than 50000000 values in all")
	guarded := time.Since(start)

	start = time.Now()
	_, err = check(source, boundless(), Features{})
	require.NoError(t, err, "control: the module is valid")
	t.Logf("%d bytes: %v with the bound, %v without", len(source), guarded, time.Since(start))
	assert.Less(t, guarded, time.Since(start))
}

// The labels of one br_table are compared once each, however often they occur in it.
func TestLabelsAreComparedOnce(t *testing.T) {
	thousand := repeat(1_000, byte(I32))
	push := bytes.Repeat(raw(opI32Const, 0), 1_000)
	source := module(
		section(SectionType, vector(emptyType, concat(raw(0x60, 0), thousand))),
		oneFunc,
		section(SectionCode, vector(body(noLocals, concat(
			raw(2, 1), push, raw(opI32Const, 0, 0x0e), leb(40_000), make([]byte, 40_001), raw(opEnd), bytes.Repeat(raw(0x1a), 1_000),
		)...))),
	)
	_, err := check(source, Bounds{StackMoves: 10_000}, Features{})
	require.NoError(t, err)
}

// Modules that cost most for their length stay within the allocations that are promised.
func TestAllocationsOfValidation(t *testing.T) {
	group := concat(leb(50_000), raw(byte(I64)))
	for _, test := range []struct {
		title  string
		source []byte
	}{
		{"nested blocks", oneBodied(noLocals, nested(10_000))},
		{"locals", oneBodied(vector(group))},
		{"locals in many functions", module(oneType, section(SectionFunction, repeat(20, 0)), section(SectionCode, repeat(20, body(vector(group))...)))},
		{"functions", module(oneType, section(SectionFunction, repeat(20_000, 0)), section(SectionCode, repeat(20_000, 2, 0, opEnd)))},
		{"imports", module(oneType, section(SectionImport, repeat(10_000, 0, 0, 0, 0)))},
		{"segments", module(section(SectionElement, repeat(10_000, 1, 0, 0)))},
		{"values", oneBodied(noLocals, bytes.Repeat(raw(opI32Const, 0), 10_000), raw(0))},
		{"labels", oneBodied(noLocals, labelled(50_000))},
	} {
		t.Run(test.title, func(t *testing.T) {
			m := inspected(t, test.source)
			var err error
			spent := allocated(func() { _, err = Validate(test.source, m) })
			require.NoError(t, err)
			assert.LessOrEqual(t, spent, validationBudget(len(test.source)))
			t.Logf("%d bytes in, %d allocated: %.1f a byte", len(test.source), spent, float64(spent)/float64(len(test.source)))
		})
	}
}

// validationBudget is the most that validating so many bytes may allocate, in bytes.
func validationBudget(length int) uint64 { return 192*uint64(length) + 3<<20 }
