//go:build !race

package engine

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
)

// This file draws modules of random instructions that have many values at hand, for instructions_random_test.go. Where
// an instruction may return any NaN, code after it sets all bits of the NaN.

// Where drawn modules load and store, and where their functions leave their locals, each in so many bytes.
const drawnMask, localsAt, localBytes = 8<<10 - 1, 16 << 10, 1 << 10

// pressing draws a module whose functions have about as many values at hand as there are registers, or more.
type pressing struct {
	*drawing
	byResult map[byte][]acceptedInstruction // 0: those without
	sinks    []int                          // functions that only store their parameters
}

// drawInstructions draws a module. Its functions call those of the host, which have two parameters and a result of one
// type each.
func drawInstructions(seed uint64, accepted []acceptedInstruction) []byte {
	p := &pressing{drawing: &drawing{Rand: rand.New(rand.NewPCG(seed, 2))}, byResult: map[byte][]acceptedInstruction{}}
	for _, in := range accepted {
		t := append(in.result, 0)[0]
		p.byResult[t] = append(p.byResult[t], in)
	}
	for _, t := range hostTypes {
		p.importing("test", hostName(t), drawnType{[]byte{t, t}, []byte{t}})
	}
	for range 3 {
		p.sinks = append(p.sinks, p.function(drawnType{params: p.mixed(1 + p.IntN(8))}, nil).declared())
	}
	var drawn []int
	for range 2 {
		f := p.function(drawnType{p.mixed(p.IntN(8)), p.mixed(p.IntN(3))}, p.mixed(10+p.IntN(25)))
		f.depth = 1 + p.IntN(3)
		f.statements(1+p.IntN(8), 2)
		drawn = append(drawn, f.declared())
	}
	for range 6 {
		kind := one(p.drawing, registers...)
		f := p.function(drawnType{params: p.some(p.IntN(4), kind)}, join(p.some(10+p.IntN(10), kind), p.some(3, allTypes)))
		f.depth, f.brief = 1, true
		one(p.drawing, f.loopFromTop, f.loopFromTop, f.loop, f.branch, f.inner, f.inner)(1)
		drawn = append(drawn, f.declared())
	}
	run := p.function(drawnType{}, p.mixed(10+p.IntN(25)))
	run.depth = 2
	for range 3 {
		run.statement(2)
		for _, n := range drawn {
			run.call(n)
		}
	}
	p.export("run", run.declared())
	return p.encoded()
}

func (p *pressing) encoded() []byte {
	var types, functions, globals, data []byte
	for _, of := range p.functions[len(p.imports):] {
		functions = append(functions, p.typeIndex(of)...)
	}
	for _, of := range p.types {
		types = append(types, of.bytes()...)
	}
	for _, t := range allTypes {
		globals = join(globals, []byte{t, 1}, zeroOf[t], []byte{0x0b})
	}
	for range (drawnMask + 1) / 16 {
		data = append(data, p.constant(typeV128)[2:]...)
	}
	p.exports = append(p.exports, join(name("memory"), []byte{2, 0}))
	vector := func(id byte, count int, content ...[]byte) []byte {
		return section(id, join(leb(count), join(content...))...)
	}
	return withData(join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0}, vector(1, len(p.types), types), vector(2, len(p.imports), p.imports...),
		vector(3, len(p.bodies), functions), section(5, 1, 0, 1), vector(6, len(allTypes), globals), vector(7, len(p.exports), p.exports...),
		vector(10, len(p.bodies), p.bodies...)), data)
}

// registers are types whose values compete for the same registers.
var registers = [][]byte{{typeV128}, {typeF32, typeF64, typeV128}, {typeI64}, {typeI32, typeI64}}

func (p *pressing) some(n int, of []byte) (types []byte) {
	for range n {
		types = append(types, one(p.drawing, of...))
	}
	return types
}

// mixed draws types, most of which compete.
func (p *pressing) mixed(n int) []byte {
	few := n / 6
	return join(p.some(n-few, one(p.drawing, append(registers, allTypes)...)), p.some(few, allTypes))
}

// constant draws the instruction for a constant, often one at a limit of some type.
func (p *pressing) constant(t byte) []byte {
	whole := one(p.drawing, 0, 0, 1, -1, 1<<31, math.MinInt64>>p.IntN(64), p.Int64(), p.Int64()>>p.IntN(64), p.Int64N(256)-128)
	number := one(p.drawing, 0, math.Copysign(0, -1), 1, -1.5, math.Inf(1), math.Inf(-1), math.NaN(), 1<<31, -1<<31, 1<<32, 1<<63, -1<<63, 1<<64,
		p.NormFloat64()*100, math.Ldexp(p.NormFloat64(), p.IntN(140)-70))
	double, single := math.Float64bits(number), math.Float32bits(float32(number))
	if p.chance(20) {
		double, single = p.Uint64(), p.Uint32()
	}
	switch t {
	case typeI32:
		return join([]byte{0x41}, sleb(int64(int32(whole))))
	case typeI64:
		return join([]byte{0x42}, sleb(whole))
	case typeF32:
		return binary.LittleEndian.AppendUint32([]byte{0x43}, single)
	case typeF64:
		return binary.LittleEndian.AppendUint64([]byte{0x44}, double)
	}
	low := one(p.drawing, uint64(whole), double, uint64(single)<<32|uint64(uint32(whole)))
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64([]byte{0xfd, 12}, low), one(p.drawing, p.Uint64(), double, low))
}

// pressingFunction is a function of such a module.
type pressingFunction struct {
	*pressing
	of     drawnType
	locals []byte // types, those of parameters first. After them are two that count turns, and one for each type of NaN
	depth  int    // of its expressions
	brief  bool   // it has no calls, before which values leave their registers, and stores results instead of assigning them
	used   []int  // locals that are operands
	code   []byte
}

// function begins a function, whose locals have values from memory.
func (p *pressing) function(of drawnType, locals []byte) *pressingFunction {
	f := &pressingFunction{pressing: p, of: of, locals: join(of.params, locals)}
	for n := len(of.params); n < len(f.locals); n++ {
		f.put(loaded(f.locals[n], p.IntN(drawnMask-15)), set(n))
	}
	return f
}

func (f *pressingFunction) put(code ...[]byte) { f.code = append(f.code, join(code...)...) }

// declared ends a function: it stores some of its locals, passes some to sinks, and stores the remaining ones.
func (f *pressingFunction) declared() int {
	left := f.Perm(len(f.locals))
	if f.chance(50) { // operands last, so that they are passed
		left = append(slices.DeleteFunc(left, func(n int) bool { return slices.Contains(f.used, n) }), f.used...)
	}
	store := func(locals []int) {
		for _, n := range locals {
			f.put(stored(f.locals[n], localsAt+localBytes*len(f.bodies)+16*n, get(n)))
		}
	}
	first := max(f.IntN(len(left)+1), len(left)-len(f.used))
	store(left[:first])
	left = left[first:]
	for range min(len(f.sinks), 1+f.IntN(2)) {
		sink := one(f.drawing, f.sinks...)
		for _, t := range f.functions[sink].params {
			if n := slices.IndexFunc(left, func(n int) bool { return f.locals[n] == t }); n < 0 {
				f.put(f.leaf(t))
			} else {
				f.put(get(left[n]))
				left = slices.Delete(left, n, n+1)
			}
		}
		f.put([]byte{0x10}, leb(sink))
	}
	store(left)
	f.put(number(0), number(0), []byte{0x10, 0, 0x1a}) // the host looks at the memory
	for _, t := range f.of.results {
		f.put(f.expression(t, 1))
	}
	var locals []byte
	for _, t := range append(f.locals[len(f.of.params):], typeI32, typeI32, typeF32, typeF64, typeV128) {
		locals = append(locals, 1, t)
	}
	return f.declare(f.of, function(join(leb(len(locals)/2), locals), f.code))
}

func (f *pressingFunction) statements(n, nesting int) {
	for range n {
		f.statement(nesting)
	}
}

// statement writes a statement, which may contain further statements unless nesting is 0.
func (f *pressingFunction) statement(nesting int) {
	switch n := f.IntN(100); {
	case n < 15 && nesting > 0:
		one(f.drawing, f.loop, f.loopFromTop)(nesting)
	case n < 35 && nesting > 0:
		one(f.drawing, f.branch, f.blocks)(nesting)
	case n < 50 && !f.brief:
		f.call(f.IntN(len(hostTypes) + len(f.sinks)))
	case n < 57:
		global := f.IntN(len(allTypes))
		f.put(f.expression(allTypes[global], f.depth), []byte{0x24}, leb(global))
	case n < 70:
		f.put(f.instruction(one(f.drawing, f.byResult[0]...), f.depth-1))
	default:
		if t := one(f.drawing, allTypes...); f.brief && f.chance(80) {
			f.put(stored(t, f.IntN(drawnMask-15), f.expression(t, f.depth)))
			break
		}
		local := f.IntN(len(f.locals))
		f.put(f.expression(f.locals[local], f.depth), set(local))
	}
}

// inner writes the statements of a block.
func (f *pressingFunction) inner(nesting int) { f.statements(1+f.IntN(4), nesting-1) }

// turns begins a loop by setting a local to its number of iterations.
func (f *pressingFunction) turns(nesting int) (local int) {
	f.put(number(1+f.IntN(3)), set(len(f.locals)+nesting-1))
	return len(f.locals) + nesting - 1
}

func (f *pressingFunction) loop(nesting int) {
	turns := f.turns(nesting)
	f.put([]byte{0x03, 0x40})
	f.inner(nesting)
	f.put(get(turns), number(1), []byte{0x6b, 0x22}, leb(turns), []byte{0x0d, 0, 0x0b})
}

// loopFromTop is a loop that tests at its beginning whether it has ended.
func (f *pressingFunction) loopFromTop(nesting int) {
	turns := f.turns(nesting)
	f.put([]byte{0x02, 0x40, 0x03, 0x40}, get(turns), []byte{0x45, 0x0d, 1}, get(turns), number(1), []byte{0x6b}, set(turns))
	f.inner(nesting)
	f.put([]byte{0x0c, 0, 0x0b, 0x0b})
}

func (f *pressingFunction) branch(nesting int) {
	f.put(f.expression(typeI32, f.depth), []byte{0x04, 0x40})
	if f.inner(nesting); f.chance(70) {
		f.put([]byte{0x05})
		f.inner(nesting)
	}
	f.put([]byte{0x0b})
}

// blocks are two blocks, one in the other, of which one is left early.
func (f *pressingFunction) blocks(nesting int) {
	f.put([]byte{0x02, 0x40, 0x02, 0x40})
	f.inner(nesting)
	f.put(f.expression(typeI32, f.depth), one(f.drawing, []byte{0x0d, 0}, []byte{0x0d, 1}, []byte{0x0e, 2, 0, 1, 0}), []byte{0x0b})
	f.inner(nesting)
	f.put([]byte{0x0b})
}

// call calls a function, with what locals hold for the most part.
func (f *pressingFunction) call(n int) {
	of := f.functions[n]
	for _, t := range of.params {
		f.put(f.expression(t, max(0, f.IntN(4)-2)))
	}
	f.put([]byte{0x10}, leb(n))
	for _, t := range slices.Backward(of.results) {
		if local, ok := f.local(t); ok {
			f.put(set(local))
		} else {
			f.put([]byte{0x1a})
		}
	}
}

// local draws a local of a type.
func (f *pressingFunction) local(t byte) (int, bool) {
	for _, n := range f.Perm(len(f.locals)) {
		if f.locals[n] == t {
			return n, true
		}
	}
	return 0, false
}

func (f *pressingFunction) leaf(t byte) []byte {
	if local, ok := f.local(t); ok && f.chance(80) {
		if !slices.Contains(f.used, local) {
			f.used = append(f.used, local)
		}
		return get(local)
	}
	if f.chance(30) {
		return join([]byte{0x23}, leb(slices.Index(allTypes, t)))
	}
	return f.constant(t)
}

// expression returns code for a value.
func (f *pressingFunction) expression(t byte, depth int) []byte {
	switch n := f.IntN(100); {
	case depth == 0 || n < 15:
		return f.leaf(t)
	case n < 19:
		return join(f.expression(t, depth-1), f.expression(t, depth-1), f.expression(typeI32, depth-1), one(f.drawing, []byte{0x1b}, []byte{0x1c, 1, t}))
	case n < 23:
		return join(f.expression(typeI32, depth-1), []byte{0x04, t}, f.expression(t, depth-1), []byte{0x05}, f.expression(t, depth-1), []byte{0x0b})
	}
	in := one(f.drawing, f.byResult[t]...)
	for in.traps() && !f.chance(3) {
		in = one(f.drawing, f.byResult[t]...)
	}
	return f.instruction(in, depth-1)
}

// instruction returns code for an instruction and its operands, most of which let it not trap.
func (f *pressingFunction) instruction(in acceptedInstruction, depth int) []byte {
	var code []byte
	for n, t := range in.operands {
		switch code = append(code, f.expression(t, depth)...); {
		case f.chance(1):
		case in.addressed && n == 0:
			code = join(code, number(drawnMask), []byte{0x71})
		case in.divides() && n == 1:
			code = append(code, map[byte][]byte{typeI32: {0x41, 1, 0x72}, typeI64: {0x42, 1, 0x84}}[t]...)
		}
	}
	code = append(code, in.code...)
	for n, limit := range in.limits {
		if in.addressed && n == 1 {
			code = append(code, 0x80|byte(f.IntN(0x80)))
		} else {
			code = append(code, byte(f.IntN(int(limit)+1)))
		}
	}
	if in.lane() == 0 {
		return code
	}
	t := in.result[0]
	nan := len(f.locals) + 2 + slices.Index([]byte{typeF32, typeF64, typeV128}, t)
	code = join(code, []byte{0x22}, leb(nan))
	unequal := join(get(nan), get(nan)) // only a NaN is unequal to itself
	switch {
	case t == typeF32:
		return join(code, []byte{0xbc, 0x41, 0}, unequal, []byte{0x5c, 0x6b, 0x72, 0xbe})
	case t == typeF64:
		return join(code, []byte{0xbd, 0x42, 0}, unequal, []byte{0x62, 0xad, 0x7d, 0x84, 0xbf})
	}
	return join(code, unequal, map[int][]byte{32: {0xfd, 66, 0xfd, 80}, 64: {0xfd, 72, 0xfd, 80}}[in.lane()])
}
