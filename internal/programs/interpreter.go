package programs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
)

// Outcome is the result of a run.
type Outcome struct {
	// Fuel is the fuel that the call of the entry used. It includes the start function, unless another function is called
	// in between.
	Fuel int64
	// Observed has the host's observations during that call.
	Observed Observer
	// Endless is set if the program entered a loop that never terminates.
	Endless bool
}

// Errors of the interpreter. Any other failure of a generated program is a bug of this package.
var (
	errLong = errors.New("the fuel limit is exceeded")
	errDeep = errors.New("calls are nested too deeply")
)

// Run interprets the program until it has used that much fuel. The error is a trap, or says that the
// program did not terminate within the limit.
func (p *Program) Run(limit int64) (Outcome, error) {
	var begun int64
	all, err := p.execute(limit, func(r *run) {
		if p.Before != "" {
			begun, r.observed = r.fuel, Observer{}
		}
	})
	r := all[0].run
	return Outcome{r.fuel - begun, r.observed, r.endless}, err
}

// Trace has the progress of a program's modules, up to a number of executed units.
type Trace struct {
	// Steps lists, for each module by its name, how many units were executed when the progress of
	// the module reached 1, 2, and so on. The program itself has the name "".
	Steps map[string][]int64
	// Executed is the number of units that were executed at the end.
	Executed int64
}

// Trace interprets the program, with [Program.Before] as part of the run, until it has executed that many units. The
// count is the documented cost of the executed code, and nothing else.
func (p *Program) Trace(limit int64) (Trace, error) {
	all, err := p.execute(limit, func(*run) {})
	trace := Trace{Steps: map[string][]int64{}, Executed: all[0].fuel}
	for _, m := range all {
		trace.Steps[m.name] = m.steps
	}
	if errors.Is(err, errLong) {
		err = nil
	}
	return trace, err
}

// execute calls the start functions, the function to call before the entry, and the entry. It
// reports when the entry begins.
func (p *Program) execute(limit int64, begins func(*run)) (all []*machine, err error) {
	all = p.machines(limit)
	defer func() {
		if value := recover(); value != nil {
			if err, _ = value.(error); err == nil {
				err = fmt.Errorf("trap: %v", value)
			}
		}
	}()
	for _, m := range all {
		if m.p.Start >= 0 {
			m.call(m.p.Start)
		}
	}
	main := all[len(all)-1]
	if p.Before != "" {
		main.call(p.exported(p.Before))
	}
	begins(main.run)
	main.call(p.exported(p.Entry))
	return all, nil
}

func (p *Program) machines(limit int64) (all []*machine) {
	shared := &run{limit: limit, frames: map[*Function][2]int{}, costs: map[*Function]map[*Node]int64{}}
	linked := map[string]*machine{}
	for _, library := range append(slices.Clip(p.Libraries), Library{"", p}) {
		m := library.machine(shared, linked)
		m.name = library.Name
		all, linked[m.name] = append(all, m), m
	}
	return all
}

func (p *Program) machine(shared *run, linked map[string]*machine) *machine {
	m := &machine{run: shared, p: p, linked: linked, memory: make([]byte, p.Pages<<16),
		tables: [2][]int{slices.Clone(p.Slots), slices.Repeat([]int{nothing}, spareElements)}}
	for _, g := range p.Globals {
		m.globals = append(m.globals, g.Value)
	}
	for _, s := range p.Data {
		if s.Offset >= 0 {
			copy(m.memory[s.Offset:], s.Bytes)
		}
	}
	return m
}

func (p *Program) exported(name string) int {
	return p.Exports[slices.IndexFunc(p.Exports, func(e Export) bool { return e.Name == name })].Function
}

// nothing is the null reference.
const nothing = -1

// run is the state that the modules of a program share.
type run struct {
	fuel, limit int64
	observed    Observer
	endless     bool
	frames      map[*Function][2]int          // frameOf and compiledFrame of each
	costs       map[*Function]map[*Node]int64 // of blocks and loops, see costsOf
}

// machine is the abstract machine of the specification (chapter 4), with a fuel counter.
type machine struct {
	*run
	name           string
	p              *Program
	linked         map[string]*machine // the modules that it may import from
	stack, globals []uint64
	locals         []uint64
	costs          map[*Node]int64 // of the blocks and loops of the function
	memory         []byte
	tables         [2][]int
	depth          int     // of the calls, in bytes of the stack, as frameOf has it
	compiled       int     // the same as compiledFrame has it
	deepest        int     // the maximum of that
	steps          []int64 // the fuel at each step of the progress
}

func (m *machine) push(v uint64) { m.stack = append(m.stack, v) }

func (m *machine) pop() uint64 {
	v := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	return v
}

func (m *machine) pop32() int { return int(uint32(m.pop())) }

func (m *machine) charge(fuel int64) {
	if m.fuel += fuel; m.fuel > m.limit {
		panic(errLong)
	}
}

// keep drops all values above the base except the topmost ones.
func (m *machine) keep(base, arity int) {
	n := copy(m.stack[base:], m.stack[len(m.stack)-arity:])
	m.stack = m.stack[:base+n]
}

func (m *machine) call(function int) {
	if function < len(m.p.Imports) {
		m.imported(m.p.Imports[function])
		return
	}
	f := m.p.Functions[function-len(m.p.Imports)]
	frame, compiled := m.frame(f)
	if m.depth += frame; m.depth > maxStack {
		panic(errDeep)
	}
	m.compiled += compiled
	m.deepest = max(m.deepest, m.compiled)
	base := len(m.stack) - len(f.Type.Params)
	locals := make([]uint64, len(f.Type.Params)+len(f.Locals))
	copy(locals, m.stack[base:])
	m.stack = m.stack[:base]
	if m.run.costs[f] == nil {
		m.run.costs[f] = costsOf(f)
	}
	callersLocals, callersCosts := m.locals, m.costs
	m.locals, m.costs = locals, m.run.costs[f]
	m.sequence(f.Body)
	m.locals, m.costs = callersLocals, callersCosts
	m.keep(base, len(f.Type.Results))
	m.depth, m.compiled = m.depth-frame, m.compiled-compiled
}

func (m *machine) imported(i Import) {
	library := m.linked[i.Module]
	if library == nil {
		m.host(i.Name)
		return
	}
	m.pass(library, len(i.Type.Params))
	library.call(library.p.exported(i.Name))
	library.pass(m, len(i.Type.Results))
}

// pass moves the topmost values of the stack to that of another module.
func (m *machine) pass(to *machine, values int) {
	rest := len(m.stack) - values
	to.stack = append(to.stack, m.stack[rest:]...)
	m.stack = m.stack[:rest]
}

func (m *machine) host(name string) {
	switch name {
	case Observe:
		m.observed.Observe(m.pop())
	case Finish:
		m.observed.Finish(m.memory[:m.pop()<<16])
	case Echo:
	case Yield:
		m.push(0)
	default:
		panic("no import " + name)
	}
}

// branch says where execution continues: at the next instruction, or at a target.
type branch struct {
	taken  bool
	target *Node
}

func (m *machine) sequence(nodes code) branch {
	for _, n := range nodes {
		if b := m.execute(n); b.taken {
			return b
		}
	}
	return branch{}
}

func (m *machine) execute(n *Node) branch {
	if b := m.sequence(n.Args); b.taken {
		return b
	}
	if !n.Op.free {
		m.charge(1)
	}
	switch n.Op {
	case nopOp:
	case unreachableOp:
		panic("unreachable")
	case blockOp, ifOp, loopOp:
		return m.block(n)
	case brOp:
		return branch{true, n.Targets[0]}
	case brIfOp:
		return branch{m.pop32() != 0, n.Targets[0]}
	case brTableOp:
		return branch{true, n.Targets[min(m.pop32(), len(n.Targets)-1)]}
	case returnOp:
		return branch{true, nil}
	case callOp:
		m.call(int(n.Value))
	case indirectOp:
		function := m.tables[0][m.pop32()]
		if !m.p.typeOf(function).equal(n.Block) {
			panic("indirect call type mismatch")
		}
		m.call(function)
	default:
		m.effect(n)
	}
	return branch{}
}

// block executes a block, a loop or an if, whose condition is on the stack.
func (m *machine) block(n *Node) branch {
	body := n.Body
	if n.Op == ifOp && m.pop32() == 0 {
		body = n.Else
	}
	m.endless = m.endless || n.endless
	base := len(m.stack) - len(n.Block.Params)
	if n.Op == loopOp {
		m.charge(m.costs[n])
	}
	for {
		b := m.sequence(body)
		if !b.taken && n.Op == blockOp {
			m.charge(m.costs[n])
		}
		if !b.taken || b.target != n {
			return b
		}
		if n.Op != loopOp {
			m.keep(base, len(n.Block.Results))
			return branch{}
		}
		m.keep(base, len(n.Block.Params))
	}
}

const (
	growCost  = 4096 // of memory.grow and table.grow
	unitBytes = 16   // that one unit of fuel fills or copies
)

// effect executes an instruction other than control flow. One unit has been charged.
func (m *machine) effect(n *Node) {
	switch n.Op {
	case dropOp:
		m.pop()
	case selectOp, selectF64:
		m.charge(m.costs[n])
		condition, other := m.pop32(), m.pop()
		if condition == 0 {
			m.pop()
			m.push(other)
		}
	case localGet:
		m.push(m.locals[n.Value])
	case localSet:
		m.locals[n.Value] = m.pop()
	case localTee:
		m.locals[n.Value] = m.stack[len(m.stack)-1]
	case globalGet:
		m.push(m.globals[n.Value])
	case globalSet:
		m.globals[n.Value] = m.pop()
		if int(n.Value) == m.p.Progress {
			m.steps = append(m.steps, m.fuel)
		}
	case i32Const:
		m.push(uint64(uint32(n.Value)))
	case i64Const, f64Const, refFunc:
		m.push(uint64(n.Value))
	case i32Load:
		m.push(uint64(binary.LittleEndian.Uint32(m.at(n, 4))))
	case i64Load:
		m.push(binary.LittleEndian.Uint64(m.at(n, 8)))
	case i32Load8:
		m.push(uint64(m.at(n, 1)[0]))
	case i32Store:
		value := m.pop()
		binary.LittleEndian.PutUint32(m.at(n, 4), uint32(value))
	case i64Store:
		value := m.pop()
		binary.LittleEndian.PutUint64(m.at(n, 8), value)
	case i32Store8:
		value := m.pop()
		m.at(n, 1)[0] = byte(value)
	case memorySize:
		m.push(uint64(len(m.memory) >> 16))
	case memoryGrow:
		by, size := m.pop32(), len(m.memory)>>16
		if m.grow(size, by, m.p.MostPages) {
			m.memory = append(m.memory, make([]byte, by<<16)...)
		}
	case memoryFill:
		length, value, to := m.pop32(), m.pop(), m.pop32()
		m.charge(int64(length / unitBytes))
		fill(m.memory[to:to+length], byte(value))
	case memoryCopy:
		copied(m, m.memory, m.memory, unitBytes)
	case memoryInit:
		copied(m, m.memory, m.p.Data[n.Value].Bytes, unitBytes)
	case refNull:
		none := int64(nothing)
		m.push(uint64(none))
	case refIsNull:
		m.push(truth[uint64](int64(m.pop()) == nothing))
	case tableGet:
		m.push(uint64(m.tables[n.Value][m.pop32()]))
	case tableSet:
		function := int(m.pop())
		m.tables[n.Value][m.pop32()] = function
	case tableSize:
		m.push(uint64(len(m.tables[n.Value])))
	case tableGrow:
		by, function, size := m.pop32(), int(m.pop()), len(m.tables[1])
		if m.grow(size, by, mostSpare) {
			m.tables[1] = append(m.tables[1], slices.Repeat([]int{function}, by)...)
		}
	case tableFill:
		length, function, to := m.pop32(), int(m.pop()), m.pop32()
		m.charge(int64(length))
		fill(m.tables[1][to:to+length], function)
	case tableCopy:
		copied(m, m.tables[1], m.tables[1], 1)
	case tableInit: // the first two element segments are not passive
		copied(m, m.tables[1], m.p.Elements[n.Value-2].Functions, 1)
	default:
		base := len(m.stack) - len(n.Op.params)
		m.charge(m.costs[n])
		m.stack = append(m.stack[:base], n.Op.eval(m.stack[base:]))
	}
}

func (m *machine) at(n *Node, size int) []byte {
	address := m.pop32() + int(n.Value)
	return m.memory[address : address+size]
}

// grow charges for growing something, pushes its old size or -1, and reports whether it may grow.
func (m *machine) grow(size, by, limit int) bool {
	m.charge(growCost - 1)
	if size+by > limit {
		m.push(math.MaxUint32)
		return false
	}
	m.push(uint64(size))
	return true
}

func fill[T any](target []T, value T) {
	for i := range target {
		target[i] = value
	}
}

// copied pops the operands of a bulk copy and performs it. A unit of fuel pays for so many elements.
func copied[T any](m *machine, into, from []T, unit int) {
	length, source, to := m.pop32(), m.pop32(), m.pop32()
	m.charge(int64(length / unit))
	copy(into[to:to+length], from[source:source+length])
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Observer computes a checksum of the observable effects of a program.
type Observer struct {
	Seen int // the number of observed values
	sum  uint32
}

// Observe adds a value.
func (o *Observer) Observe(value uint64) {
	o.Seen++
	o.Finish(binary.LittleEndian.AppendUint64(nil, value))
}

// Finish adds the contents of the memory.
func (o *Observer) Finish(memory []byte) { o.sum = crc32.Update(o.sum, castagnoli, memory) }

// Sum returns the checksum.
func (o *Observer) Sum() uint32 { return o.sum }
