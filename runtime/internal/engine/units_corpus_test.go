package engine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// unitCase is a guest whose function "run" repeats one instruction or shape until its fuel is used up.
type unitCase struct {
	name   string
	source []byte
	fill   func(memory []byte) // prepares the memory; may be nil
}

const typeV128 = 0x7b // as the binary format writes it

// shape is a module for one case. Function 0 is "run", of type 0, which has no parameters and results.
type shape struct {
	imports   int              // of "test.host", before the functions
	types     [][]byte         // those after type 0
	functions []shapedFunction // the first is "run"
	pages     int              // of memory; 0 means 16
	globals   int              // mutable ones of i32, after one each of i64, f32, f64 and v128
	elements  int              // of table 0; those that are not null refer to the functions after the first
}

// shapedFunction has locals of i32 only, after those that are given.
type shapedFunction struct {
	kind   int
	locals []byte // types
	more   int    // locals of i32
	body   []byte
}

func typeOf(params, results []byte) []byte {
	return join([]byte{0x60}, leb(len(params)), params, leb(len(results)), results)
}

func (s shape) bytes() []byte {
	types := append([][]byte{typeOf(nil, nil)}, s.types...)
	var imports, kinds, bodies, globals, indices [][]byte
	for range s.imports {
		imports = append(imports, join(name("test"), name("host"), []byte{0, 0}))
	}
	for _, f := range s.functions {
		var groups [][]byte
		for _, local := range f.locals {
			groups = append(groups, []byte{1, local})
		}
		if f.more > 0 {
			groups = append(groups, join(leb(f.more), []byte{typeI32}))
		}
		kinds = append(kinds, leb(f.kind))
		bodies = append(bodies, function(join(leb(len(groups)), join(groups...)), f.body))
	}
	globals = append(globals, []byte{typeI64, 1, 0x42, 0, 0x0b}, []byte{typeF32, 1, 0x43, 0, 0, 0, 0, 0x0b},
		join([]byte{typeF64, 1, 0x44}, make([]byte, 8), []byte{0x0b}), join([]byte{typeV128, 1, 0xfd, 12}, make([]byte, 16), []byte{0x0b}))
	for range s.globals {
		globals = append(globals, []byte{typeI32, 1, 0x41, 0, 0x0b})
	}
	elements := max(s.elements, 16)
	for n := range min(elements, 1<<16) {
		indices = append(indices, leb(s.imports+min(1, len(s.functions)-1)+n%max(1, len(s.functions)-1))) // not run
	}
	pages := s.pages
	if pages == 0 {
		pages = 16
	}
	count := func(parts [][]byte) []byte { return join(leb(len(parts)), join(parts...)) }
	module := [][]byte{[]byte("\x00asm\x01\x00\x00\x00"), section(1, count(types)...)}
	if s.imports > 0 {
		module = append(module, section(2, count(imports)...))
	}
	return join(append(module,
		section(3, count(kinds)...),
		section(4, join([]byte{1, 0x70, 0}, leb(elements))...),
		section(5, join([]byte{1, 0}, leb(pages))...),
		section(6, count(globals)...),
		section(7, join([]byte{1}, name("run"), []byte{0}, leb(s.imports))...),
		section(9, join([]byte{3, 0, 0x41, 0, 0x0b}, count(indices), []byte{1, 0}, leb(16), make([]byte, 16), []byte{3, 0, 1, byte(s.imports)})...),
		section(12, 1),
		section(10, count(bodies)...),
		section(11, join([]byte{1, 1}, leb(1<<17), make([]byte, 1<<17))...))...)
}

// Instructions.
func get(n int) []byte       { return join([]byte{0x20}, leb(n)) }
func set(n int) []byte       { return join([]byte{0x21}, leb(n)) }
func globalGet(n int) []byte { return join([]byte{0x23}, leb(n)) }
func globalSet(n int) []byte { return join([]byte{0x24}, leb(n)) }
func number(n int) []byte    { return join([]byte{0x41}, signed(n)) }
func callTo(n int) []byte    { return join([]byte{0x10}, leb(n)) }

// repeat repeats code.
func repeat(n int, parts ...[]byte) []byte { return slices.Repeat(join(parts...), n) }

// each is the code for each of n numbers.
func each(n int, of func(int) []byte) []byte {
	var parts [][]byte
	for i := range n {
		parts = append(parts, of(i))
	}
	return join(parts...)
}

// again repeats code in a loop.
func again(parts ...[]byte) []byte {
	return join([]byte{0x03, 0x40}, join(parts...), []byte{0x0c, 0, 0x0b})
}

// never is code that is not executed, which the compiler does not know. An instruction in it that
// branches to label 0 branches to its end.
func never(parts ...[]byte) []byte {
	return join(number(neverAt), loadNumber, []byte{0x04, 0x40}, join(parts...), []byte{0x0b})
}

// increments assigns n locals.
func increments(first, n int) []byte {
	return each(n, func(i int) []byte { return join(get(first+i), number(1), add, set(first+i)) })
}

var (
	loadNumber  = []byte{0x28, 2, 0}
	storeNumber = []byte{0x36, 2, 0}
	add         = []byte{0x6a}
	end         = []byte{0x0b}
	// scramble replaces local 0 with the next of a sequence of random numbers, in 5 instructions.
	scramble = join(get(0), number(1664525), []byte{0x6c}, number(1013904223), add, set(0))
)

// randomBits pushes some bits of local 0.
func randomBits(bits int) []byte { return join(get(0), number(32-bits), []byte{0x76}) }

// Addresses: of a zero; of the operands of instructions, of 16 bytes each; of their results.
const (
	neverAt    = 1024
	operandsAt = 2048
	resultAt   = 32
)

// repeatedCode is a module with a function that repeats code. It has locals of i32.
func repeatedCode(locals int, parts ...[]byte) []byte {
	return shape{functions: []shapedFunction{{more: locals, body: again(parts...)}}}.bytes()
}

// corpus returns all cases: each instruction with several operands, and the shapes.
func corpus(t testing.TB) []unitCase { return slices.Concat(instructionCases(t), shapeCases()) }

// instruction is one that takes its operands from the stack, with its immediates.
type instruction struct {
	code    []byte
	params  []byte
	results []byte
}

// instructionsOf finds the instructions of WebAssembly core 2.0 that the engine accepts, and their types, by
// trying. It leaves out those of control, variables, tables and references, and those with lengths: shapes have them.
func instructionsOf(t testing.TB) (all []instruction) {
	tuples := [][]byte{nil, {typeV128, typeV128, typeV128}}
	kinds := []byte{typeI32, typeI64, typeF32, typeF64, typeV128}
	for _, a := range kinds {
		tuples = append(tuples, []byte{a})
		for _, b := range kinds {
			tuples = append(tuples, []byte{a, b})
		}
	}
	immediates := [][]byte{nil, {0, 0x27}, {0, 0x27, 0}, {0}, slices.Repeat([]byte{0x1f}, 16)}
	const constants = 0x41 // to 0x44
	find := func(prefix []byte, number int) {
		base := append(prefix, leb(number)...)
		for _, immediate := range immediates {
			code := append(slices.Clone(base), immediate...)
			// Whatever the stack holds, and followed by an instruction that cannot be an immediate.
			if accepts(nil, nil, join([]byte{0x00}, code, []byte{0x41, 0, 0x00})) == nil {
				continue
			}
			for _, params := range tuples {
				for _, result := range append([][]byte{nil}, []byte{typeI32}, []byte{typeI64}, []byte{typeF32}, []byte{typeF64}, []byte{typeV128}) {
					if accepts(params, result, join(each(len(params), get), code)) != nil {
						all = append(all, instruction{code, params, result})
					}
				}
			}
			return
		}
	}
	for n := 0x28; n < 0xd0; n++ {
		if n != 0x40 && (n < constants || n > constants+3) {
			find(nil, n)
		}
	}
	for n := range 8 {
		find([]byte{0xfc}, n)
	}
	for n := range 0x100 {
		if n != 12 {
			find([]byte{0xfd}, n)
		}
	}
	// Core 2.0 has 25 loads and stores, memory.size, 128 numeric instructions without constants, 8 that saturate and
	// 235 of vectors.
	require.Len(t, all, 23+1+128+8+235)
	return all
}

// accepts returns a module with a function, or nil if it is not valid.
func accepts(params, results, body []byte) []byte {
	source := shape{types: [][]byte{typeOf(params, results)}, functions: []shapedFunction{{kind: 1, body: body}}}.bytes()
	description, err := wasm.Inspect(source)
	if err != nil {
		return nil
	}
	if _, err := wasm.Validate(source, description); err != nil {
		return nil
	}
	return source
}

// operands are the operands of instructions: small numbers and denormal ones, ordinary ones, and extremes.
var operands = []struct {
	name     string
	integers [3]uint64
	doubles  [3]float64
	singles  [3]float32
}{
	{"small", [3]uint64{8, 3, 5}, [3]float64{5e-324, 1e-310, 3e-320}, [3]float32{1e-45, 1e-40, 3e-42}},
	{"ordinary", [3]uint64{4093, 7, 2}, [3]float64{1.5, 2.75, 3}, [3]float32{1.5, 2.75, 3}},
	{"extreme", [3]uint64{1<<63 | 1<<31 | 1, 0x7ffffff17ffffff1, 1<<63 - 3}, [3]float64{math.NaN(), math.MaxFloat64, math.Inf(1)},
		[3]float32{float32(math.NaN()), math.MaxFloat32, float32(math.Inf(1))}},
}

// numericTypes are the types of operands, and how they are loaded and stored.
var numericTypes = []struct {
	kind        byte
	load, store []byte
}{
	{typeI32, loadNumber, storeNumber},
	{typeI64, []byte{0x29, 3, 0}, []byte{0x37, 3, 0}},
	{typeF32, []byte{0x2a, 2, 0}, []byte{0x38, 2, 0}},
	{typeF64, []byte{0x2b, 3, 0}, []byte{0x39, 3, 0}},
	{typeV128, []byte{0xfd, 0, 4, 0}, []byte{0xfd, 11, 4, 0}},
}

// instructionCases has each instruction with each of the operands, so that each result is stored, and where
// that is possible so that it is the first operand of the next.
func instructionCases(t testing.TB) (cases []unitCase) {
	const unrolled = 32
	var locals, load []byte
	places := map[byte]int{}
	for n, numeric := range numericTypes {
		places[numeric.kind] = n
		for i := range 3 {
			locals = append(locals, numeric.kind)
			load = join(load, number(operandsAt+(3*n+i)*16), numeric.load, set(3*n+i))
		}
	}
	operand := func(in instruction, n int) []byte { return get(3*places[in.params[n]] + n) }
	for _, in := range instructionsOf(t) {
		push := func(from int) (code []byte) {
			for n := from; n < len(in.params); n++ {
				code = append(code, operand(in, n)...)
			}
			return code
		}
		forms := map[string][]byte{"": join(push(0), in.code)}
		if len(in.results) > 0 {
			sink := numericTypes[places[in.results[0]]].store
			forms[""] = join(number(resultAt), forms[""], sink)
			if len(in.params) > 0 && in.params[0] == in.results[0] {
				forms[" in a chain"] = join(number(resultAt), operand(in, 0), repeat(unrolled, push(1), in.code), sink)
			}
		}
		for form, body := range forms {
			source := shape{functions: []shapedFunction{{locals: locals, body: join(load, again(repeat(unrolled, body)))}}}.bytes()
			for _, values := range operands {
				cases = append(cases, unitCase{fmt.Sprintf("%x%s, %s operands", in.code, form, values.name), source, func(memory []byte) {
					for i := range 3 {
						at := func(kind byte) []byte { return memory[operandsAt+(3*places[kind]+i)*16:] }
						binary.LittleEndian.PutUint32(at(typeI32), uint32(values.integers[i]))
						binary.LittleEndian.PutUint64(at(typeI64), values.integers[i])
						binary.LittleEndian.PutUint32(at(typeF32), math.Float32bits(values.singles[i]))
						for _, place := range [][]byte{at(typeF64), at(typeV128), at(typeV128)[8:]} {
							binary.LittleEndian.PutUint64(place, math.Float64bits(values.doubles[i]))
						}
					}
				}})
			}
		}
	}
	return cases
}

// additions is ordinary code.
func additions() unitCase {
	return unitCase{name: "additions", source: repeatedCode(1, repeat(64, get(0), number(1), add, set(0)))}
}

// loopsInARow is n loops that do nothing.
func loopsInARow(n int) unitCase {
	return unitCase{name: fmt.Sprintf("%d loops in a row", n), source: repeatedCode(0, repeat(n, []byte{0x03, 0x40, 0x0b}))}
}

// joins is a loop around the ends of n blocks in a row, where paths join. The other path to each is never taken, and
// comes with other values in the registers: it has used all of them for something else, and then some of the locals. So
// the compiler loads and stores registers between one end and the next. No instruction is executed there.
func joins(n int) unitCase {
	const vectors, integers, vectorRegisters, integerRegisters = 40, 24, 15, 12
	const all, flag = vectors + integers, vectors + integers
	loadVector, storeVector := []byte{0xfd, 0, 0, 0}, []byte{0xfd, 11, 0, 0}
	store := func(i int) []byte {
		if i < vectors {
			return join(number(resultAt), get(i), storeVector)
		}
		return join(number(resultAt), get(i), storeNumber)
	}
	loads := each(all, func(i int) []byte {
		if i < vectors {
			return join(number(16*i), loadVector, set(i))
		}
		return join(number(16*i), loadNumber, set(i))
	})
	evict := join(number(resultAt), repeat(vectorRegisters, number(0), loadVector), repeat(vectorRegisters-1, []byte{0xfd, 0x51}), storeVector,
		number(resultAt), repeat(integerRegisters, number(0), loadNumber), repeat(integerRegisters-1, add), storeNumber)
	other := func(k int) []byte {
		random := rand.New(rand.NewPCG(uint64(k), 7))
		v, i := random.Perm(vectors), random.Perm(integers)
		return join(evict, each(vectorRegisters, func(n int) []byte { return store(v[n]) }), each(integerRegisters, func(n int) []byte { return store(vectors + i[n]) }),
			get(flag), []byte{0x0d}, leb(k+1))
	}
	body := join(loads, number(neverAt), loadNumber, set(flag), []byte{0x03, 0x40},
		repeat(n+1, []byte{0x02, 0x40}), get(flag), []byte{0x45, 0x0d, 0}, // br_if to the innermost end
		each(n, other), repeat(n+1, end),
		get(flag), []byte{0x04, 0x40}, each(all, store), end, // all are used after the last end
		[]byte{0x0c, 0, 0x0b})
	return unitCase{name: fmt.Sprintf("%d ends of blocks in a row", n), source: shape{functions: []shapedFunction{
		{locals: bytes.Repeat([]byte{typeV128}, vectors), more: integers + 1, body: body}}}.bytes()}
}

// nestedBlocks is a block, a loop or an if in another, depth times. The innermost has a branch to each of them
// which is not taken, after n assignments to different locals.
func nestedBlocks(opcode byte, depth, n int) unitCase {
	open, condition := []byte{opcode, 0x40}, []byte(nil)
	if opcode == 0x04 {
		condition = number(1)
	}
	table := join(number(neverAt), loadNumber, []byte{0x0e}, leb(depth-1), each(depth, func(i int) []byte { return leb(i + 1) }))
	body := join(repeat(depth, condition, open), never(increments(0, n), table), repeat(depth, end))
	return unitCase{name: fmt.Sprintf("%d of %s nested, %d locals", depth, map[byte]string{0x02: "block", 0x03: "loop", 0x04: "if"}[opcode], n),
		source: repeatedCode(n, body)}
}

// passed is a chain of blocks in one another that have n results, and a branch to each that is not taken.
func passed(depth, n int) unitCase {
	table := join(number(neverAt), loadNumber, []byte{0x0e}, leb(depth-1), each(depth, func(i int) []byte { return leb(i + 1) }))
	body := join(repeat(depth, []byte{0x02, 1}), each(n, get),
		number(neverAt), loadNumber, []byte{0x04, 2}, table, end, repeat(depth, end),
		each(n, func(i int) []byte { return set(n - 1 - i) }))
	values := slices.Repeat([]byte{typeI32}, n)
	return unitCase{name: fmt.Sprintf("%d of block nested, %d results", depth, n), source: shape{
		types:     [][]byte{typeOf(nil, values), typeOf(values, values)},
		functions: []shapedFunction{{more: n, body: again(body)}}}.bytes()}
}

// assigned is a loop around a branch that is not taken, and that assigns n locals.
func assigned(n int) unitCase {
	return unitCase{name: fmt.Sprintf("branch that assigns %d locals", n), source: repeatedCode(n, never(increments(0, n)))}
}

// afterCall uses n globals after a call, in a branch that is not taken.
func afterCall(n int, call []byte, name string) unitCase {
	sum := each(n, func(i int) []byte { return join(globalGet(4+i), add) })
	return unitCase{name: fmt.Sprintf("%s before a use of %d globals", name, n), source: shape{globals: max(n, 1),
		functions: []shapedFunction{{body: again(call, never(number(resultAt), number(0), sum, storeNumber))}, {}, {}}}.bytes()}
}

// called is a loop that calls a function with n parameters and as many results, which are the parameters of
// the next call.
func called(n int, indirect bool) unitCase {
	values := slices.Repeat([]byte{typeI32}, n)
	call, name := callTo(1), "call"
	if indirect {
		call, name = join(number(1), []byte{0x11, 1, 0}), "call_indirect"
	}
	return unitCase{name: fmt.Sprintf("%s with %d parameters and results", name, n), source: shape{types: [][]byte{typeOf(values, values)},
		functions: []shapedFunction{
			{more: n, body: join(each(n, get), []byte{0x03, 1}, call, []byte{0x0c, 0, 0x0b}, repeat(n, drop))},
			{kind: 1, body: each(n, get)},
		}}.bytes()}
}

// chained is a loop whose n values are its parameters.
func chained(n int) unitCase {
	values := slices.Repeat([]byte{typeI32}, n)
	return unitCase{name: fmt.Sprintf("br to a loop with %d parameters", n), source: shape{types: [][]byte{typeOf(values, values)},
		functions: []shapedFunction{{more: n, body: join(each(n, get), []byte{0x03, 1},
			// They change places, so that they are moved.
			set(0), each(max(0, n-2), func(i int) []byte { return nil }), get(0), []byte{0x0c, 0, 0x0b}, repeat(n, drop))}}}.bytes()}
}

// cycle fills memory with addresses that lead through all places in a random order.
func cycle(places []int) func([]byte) {
	order := rand.New(rand.NewPCG(1, 2)).Perm(len(places))
	return func(memory []byte) {
		for n, place := range order {
			binary.LittleEndian.PutUint32(memory[places[place]:], uint32(places[order[(n+1)%len(order)]]))
		}
		binary.LittleEndian.PutUint32(memory, uint32(places[order[0]]))
	}
}

// dependent loads from one of n places after the other. Each tells where the next is.
func dependent(name string, pages, n int, place func(int) int) unitCase {
	places := make([]int, n)
	for i := range places {
		places[i] = place(i)
	}
	return unitCase{name: name, fill: cycle(places), source: shape{pages: pages, functions: []shapedFunction{{more: 1,
		body: join(number(0), loadNumber, set(0), again(get(0), repeat(64, loadNumber), set(0)))}}}.bytes()}
}

// lengths are those that instructions get which have one.
var lengths = []int{0, 1, 15, 16, 127, 4095, 65535, 65536}

// shapeCases has the instructions that do not only compute, and shapes that compilers make expensive.
func shapeCases() (cases []unitCase) {
	plain := func(name string, locals int, parts ...[]byte) {
		cases = append(cases, unitCase{name: name, source: repeatedCode(locals, parts...)})
	}
	of := func(name string, s shape) { cases = append(cases, unitCase{name: name, source: s.bytes()}) }
	add3 := func(a, b, c int) []byte { return join(number(a), number(b), number(c)) }

	cases = append(cases, additions())
	plain("an empty loop", 0)
	plain("nop", 0, repeat(64, []byte{0x01}))
	for _, n := range []int{1, 16, 100, 127, 128, 1000, 20_000} {
		cases = append(cases, assigned(n))
	}
	for _, depth := range []int{1, 10, 100, 1000, 9_000} {
		for _, n := range []int{0, 1, 7, 31, 127, 128, 1000} {
			if depth*n <= 1_200_000 {
				cases = append(cases, nestedBlocks(0x02, depth, n))
			}
			if depth <= 1000 && depth*n <= 150_000 {
				cases = append(cases, nestedBlocks(0x03, depth, n), nestedBlocks(0x04, depth, n), passed(depth, n))
			}
		}
	}
	for _, n := range []int{10, 1000, 5_900} { // there are two of each in the rewritten module
		cases = append(cases, loopsInARow(n))
		plain(fmt.Sprintf("%d blocks in a row, each with a branch to its end that is not taken", n), 1, number(neverAt), loadNumber, set(0), repeat(n, []byte{0x02, 0x40}, get(0), []byte{0x0d, 0, 0x0b}))
	}
	for _, n := range []int{10, 100, 1000, 4000} {
		cases = append(cases, joins(n))
	}
	for _, n := range []int{1, 16, 127, 128, 1000} {
		cases = append(cases, called(n, false), called(n, true), chained(n))
	}
	for _, n := range []int{1, 127, 128, 1000, 2_000, 20_000} {
		cases = append(cases, afterCall(n, callTo(2), "call"))
	}
	for name, code := range map[string][]byte{
		"memory.grow 0": join(number(0), []byte{0x40, 0}, drop), "call_indirect": join(number(2), []byte{0x11, 0, 0}),
		"table.grow 0": join([]byte{0xd0, 0x70}, number(0), []byte{0xfc, 15, 0}, drop), "memory.fill 0": join(add3(0, 0, 0), []byte{0xfc, 11, 0}),
		"ref.func": join(number(3), []byte{0xd2, 0}, []byte{0x26, 0}), "memory.size": join([]byte{0x3f, 0}, drop),
	} {
		cases = append(cases, afterCall(127, code, name), afterCall(2_000, code, name))
	}

	// Memory: misses of the caches and of the translation of addresses.
	cases = append(cases,
		dependent("loads from 16 MiB", 256, 1<<18, func(i int) int { return i << 6 }),
		dependent("loads from 16 MiB across lines", 256, 1<<18, func(i int) int { return max(0, i<<6-2) }),
		dependent("loads from 128 MiB", 2048, 1<<20, func(i int) int { return i << 7 }),
		dependent("loads from 128 MiB across pages", 2048, 1<<14, func(i int) int { return i<<13 + (1<<12-2)*min(i, 1) }),
	)
	at := join(get(0), number(6), []byte{0x74}, number(1<<24-1), []byte{0x71})
	of("stores to random places in 16 MiB", shape{pages: 257, functions: []shapedFunction{{more: 1, body: again(repeat(16, scramble, at, get(0), storeNumber))}}})

	// Branches that no processor predicts, and code that no cache holds.
	plain("branches at random", 2, repeat(16, scramble, randomBits(1), []byte{0x04, 0x40}, get(1), number(3), add, set(1), []byte{0x05}, get(1), number(5), []byte{0x73}, set(1), end))
	plain("select at random", 2, repeat(16, scramble, get(0), get(1), randomBits(1), []byte{0x1b}, set(1)))
	plain("select of many", 2, number(resultAt), get(0), repeat(1000, get(1), get(0), []byte{0x1b}), storeNumber)
	for bits, targets := range map[int]int{4: 16, 10: 1024, 16: 50_000} {
		depth := min(targets, 1024)
		table := join([]byte{0x0e}, leb(targets-1), each(targets, func(i int) []byte { return leb(i % depth) }))
		plain(fmt.Sprintf("br_table with %d targets at random", targets), 2, repeat(depth, []byte{0x02, 0x40}), scramble, randomBits(bits), table,
			each(depth, func(i int) []byte {
				return join(end, get(1), number(i), add, set(1), []byte{0x0c}, leb(depth-1-i))
			}))
	}
	plain("200,000 instructions in a row", 1, each(200_000/4, func(i int) []byte { return join(get(0), number(i<<12), add, set(0)) }))
	small, large := make([]shapedFunction, 1<<14), make([]shapedFunction, 1<<12)
	for i := range large {
		large[i] = shapedFunction{more: 1, body: never(repeat(60, get(0), number(i<<8), add, set(0)))}
	}
	indirect := func(bits int) []byte { return again(repeat(8, scramble, randomBits(bits), []byte{0x11, 0, 0})) }
	for bits, functions := range map[int][]shapedFunction{4: small[:1<<4], 12: large, 14: small} {
		of(fmt.Sprintf("calls of %d functions at random", len(functions)), shape{elements: len(functions),
			functions: append([]shapedFunction{{more: 1, body: indirect(bits)}}, functions...)})
	}

	// Calls.
	of("calls of an empty function", shape{functions: []shapedFunction{{body: again(repeat(64, callTo(1)))}, {}}})
	of("calls of a function with a loop", shape{functions: []shapedFunction{{body: again(repeat(64, callTo(1)))}, {body: []byte{0x03, 0x40, 0x0b}}}})
	of("calls of the host", shape{imports: 1, functions: []shapedFunction{{body: again(repeat(64, callTo(0)))}}})
	parameter := [][]byte{typeOf([]byte{typeI32}, nil)}
	deep := join(get(0), []byte{0x04, 0x40}, get(0), number(1), []byte{0x6b})
	of("recursion, 1,000 deep", shape{types: parameter, functions: []shapedFunction{{body: again(number(1000), callTo(1))}, {kind: 1, body: join(deep, callTo(1), end)}}})
	of("recursion through a table, 1,000 deep", shape{types: parameter, functions: []shapedFunction{{body: again(number(1000), callTo(1))}, {kind: 1, body: join(deep, number(1), []byte{0x11, 1, 0}, end)}}})
	for _, n := range []int{100, 9_000} {
		values := each(n, func(i int) []byte { return join(number(4*i), loadNumber) })
		sum := join(repeat(n-1, add), set(0))
		of(fmt.Sprintf("%d values across a call", n), shape{functions: []shapedFunction{{more: 1, body: again(values, callTo(1), sum)}, {}}})
		of(fmt.Sprintf("%d values across a loop of calls", n), shape{functions: []shapedFunction{
			{more: 1, body: join(values, []byte{0x03, 0x40}, callTo(1), number(neverAt), loadNumber, []byte{0x45, 0x0d, 0, 0x0b}, sum, number(resultAt), get(0), storeNumber)}, {}}})
		of(fmt.Sprintf("calls of a function that keeps %d values, not taken", n), shape{functions: []shapedFunction{
			{body: again(callTo(1))}, {more: 1, body: never(values, callTo(2), sum)}, {}}})
	}
	plain("50,000 locals, one used", 50_000, repeat(64, get(49_999), number(1), add, set(49_999)))
	plain("50,000 locals, 20,000 in a branch", 50_000, never(increments(30_000, 20_000)))
	plain("50,000 locals, 10,000 shifted", 50_000, each(10_000, func(i int) []byte { return join(get(i+1), number(1), add, set(i)) }))

	// Tables and references.
	plain("table.get", 0, repeat(64, number(3), []byte{0x25, 0, 0xd1}, drop))
	plain("table.get and set", 0, repeat(64, number(3), number(4), []byte{0x25, 0, 0x26, 0}))
	plain("ref.func and table.set", 0, repeat(64, number(3), []byte{0xd2, 0, 0x26, 0}))
	plain("ref.func", 0, repeat(64, []byte{0xd2, 0}, drop))
	plain("ref.null", 0, repeat(64, []byte{0xd0, 0x70, 0xd1}, drop))
	plain("table.size", 1, repeat(64, []byte{0xfc, 16, 0}, set(0)))
	of("table.set at random", shape{elements: 1 << 19, functions: []shapedFunction{{more: 1, body: again(repeat(16, scramble, randomBits(19), []byte{0xd0, 0x70, 0x26, 0}))}}})
	for _, n := range []int{0, 1, 1_000, 1_000_000} {
		plain(fmt.Sprintf("table.grow %d", n), 0, []byte{0xd0, 0x70}, number(n), []byte{0xfc, 15, 0}, drop)
		plain(fmt.Sprintf("memory.grow %d", n), 0, number(n/100), []byte{0x40, 0}, drop)
	}
	plain("memory.size", 1, repeat(64, []byte{0x3f, 0}, set(0)))
	plain("data.drop and elem.drop", 0, repeat(64, []byte{0xfc, 9, 0, 0xfc, 13, 1}))

	// Globals.
	for n, kind := range []string{"i64", "f32", "f64", "v128", "i32"} {
		of("global.get and set, "+kind, shape{globals: 1, functions: []shapedFunction{{body: again(repeat(64, globalGet(n), globalSet(n)))}}})
	}
	of("global.get of 20,000", shape{globals: 20_000, functions: []shapedFunction{{more: 1, body: again(each(20_000, func(i int) []byte { return join(globalGet(4+i), get(0), add, set(0)) }))}}})

	// Lengths.
	for _, n := range lengths {
		few := max(1, 32*64/(n+64))
		for _, operation := range []struct {
			name string
			code []byte
			most int
			to   int
		}{
			{"memory.init", []byte{0xfc, 8, 0, 0}, 1 << 17, 1<<16 - 1}, {"memory.copy", []byte{0xfc, 10, 0, 0}, 1 << 18, 1<<18 + 3}, {"memory.fill", []byte{0xfc, 11, 0}, 1 << 18, 1<<16 - 1},
			{"table.init", []byte{0xfc, 12, 1, 0}, 16, 3}, {"table.copy", []byte{0xfc, 14, 0, 0}, 1 << 17, 1 << 17}, {"table.fill", []byte{0xfc, 17, 0}, 1 << 17, 3},
		} {
			if n > operation.most {
				continue
			}
			from := number(0)
			if operation.name == "table.fill" {
				from = []byte{0xd0, 0x70}
			}
			of(fmt.Sprintf("%s of %d", operation.name, n), shape{elements: 1 << 19, functions: []shapedFunction{{body: again(repeat(few, number(operation.to), from, number(n), operation.code))}}})
		}
	}
	of("memory.copy of 16 MiB", shape{pages: 513, functions: []shapedFunction{{body: again(add3(1<<24, 1, 1<<24), []byte{0xfc, 10, 0, 0})}}})
	of("memory.copy of 64 bytes at random", shape{pages: 513, functions: []shapedFunction{{more: 1, body: again(repeat(16, scramble, at, get(0), number(1<<24), add, number(1<<24-1), []byte{0x71}, number(64), []byte{0xfc, 10, 0, 0}))}}})
	return cases
}
