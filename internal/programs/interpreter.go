package programs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Outcome is what a run comes to.
type Outcome struct {
	// Fuel is what the call of the entry takes, with that of the start function unless another
	// function is called in between.
	Fuel int64
	// Observed is what was seen of the same.
	Observed Observer
	// Endless: the program came to where it does not come out of.
	Endless bool
}

// errors of the interpreter. What a generated program does otherwise is a bug of this package.
var (
	errLong = errors.New("it takes longer than was asked for")
	errDeep = errors.New("it calls too deep")
)

const mostDeep = 200

// Run interprets the program, but no further than to so much fuel. The error says that it did
// not come to its end: it is a trap, or no end is in sight.
func (p *Program) Run(limit int64) (outcome Outcome, err error) {
	m := &machine{p: p, limit: limit, memory: make([]byte, p.Pages<<16), slots: append([]int(nil), p.Slots...), spare: make([]int, spareElements)}
	for _, g := range p.Globals {
		m.globals = append(m.globals, g.Value)
	}
	for _, s := range p.Data {
		if s.Offset >= 0 {
			copy(m.memory[s.Offset:], s.Bytes)
		}
	}
	for n := range m.spare {
		m.spare[n] = nothing
	}
	var begun int64
	defer func() {
		outcome.Fuel, outcome.Observed, outcome.Endless = m.fuel-begun, m.observed, m.endless
		if value := recover(); value != nil {
			failure, ours := value.(error)
			if !ours {
				failure = fmt.Errorf("trap: %v", value)
			}
			err = failure
		}
	}()
	if p.Start >= 0 {
		m.call(p.Start)
	}
	if p.Before != "" {
		m.call(p.exported(p.Before))
		begun, m.observed = m.fuel, Observer{}
	}
	m.call(p.exported(p.Entry))
	return outcome, nil
}

func (p *Program) exported(name string) int {
	for _, export := range p.Exports {
		if export.Name == name {
			return export.Function
		}
	}
	panic("no function " + name)
}

// nothing is the null reference.
const nothing = -1

// machine is the abstract machine of the specification (chapter 4), which counts.
type machine struct {
	p              *Program
	fuel, limit    int64
	stack, globals []uint64
	locals         []uint64
	memory         []byte
	slots, spare   []int
	depth          int
	observed       Observer
	endless        bool
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

// keep leaves as many values as given of those above the base.
func (m *machine) keep(base, arity int) {
	n := copy(m.stack[base:], m.stack[len(m.stack)-arity:])
	m.stack = m.stack[:base+n]
}

func (m *machine) call(function int) {
	if function < len(m.p.Imports) {
		m.host(m.p.Imports[function].Name)
		return
	}
	if m.depth++; m.depth > mostDeep {
		panic(errDeep)
	}
	f := m.p.Functions[function-len(m.p.Imports)]
	base := len(m.stack) - len(f.Type.Params)
	locals := make([]uint64, len(f.Type.Params)+len(f.Locals))
	copy(locals, m.stack[base:])
	m.stack = m.stack[:base]
	caller := m.locals
	m.locals = locals
	m.sequence(f.Body)
	m.locals = caller
	m.keep(base, len(f.Type.Results))
	m.depth--
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

// branch is where control goes to: nowhere but on, or to a target.
type branch struct {
	taken  bool
	target *Node
}

func (m *machine) sequence(nodes []*Node) branch {
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
		if m.pop32() != 0 {
			return branch{true, n.Targets[0]}
		}
	case brTableOp:
		return branch{true, n.Targets[min(m.pop32(), len(n.Targets)-1)]}
	case returnOp:
		return branch{true, nil}
	case callOp:
		m.call(int(n.Value))
	case indirectOp:
		m.indirect(n)
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
	if n.endless {
		m.endless = true
	}
	base := len(m.stack) - len(n.Block.Params)
	for {
		b := m.sequence(body)
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

func (m *machine) indirect(n *Node) {
	function := m.slots[m.pop32()]
	if !m.p.typeOf(function).equal(n.Block) {
		panic("indirect call type mismatch")
	}
	m.call(function)
}

// The cost of growing, and how many bytes a unit pays for.
const (
	growCost  = 4096
	unitBytes = 16
)

// effect executes an instruction that has nothing to do with control. One unit is paid.
func (m *machine) effect(n *Node) {
	switch n.Op {
	case dropOp:
		m.pop()
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
	case i32Const:
		m.push(uint64(uint32(n.Value)))
	case i64Const, f64Const:
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
		m.charge(growCost - 1)
		size, by := len(m.memory)>>16, m.pop32()
		if size+by > mostPages {
			m.push(uint64(uint32(1<<32 - 1)))
			return
		}
		m.memory = append(m.memory, make([]byte, by<<16)...)
		m.push(uint64(size))
	case memoryFill, memoryCopy, memoryInit:
		m.bulkMemory(n)
	case refIsNull:
		m.push(truth(int64(m.pop()) == nothing))
	case refNull:
		none := int64(nothing)
		m.push(uint64(none))
	case refFunc:
		m.push(uint64(n.Value))
	case tableGet, tableSet, tableSize, tableGrow, tableFill, tableCopy, tableInit:
		m.table(n)
	default:
		operands := m.stack[len(m.stack)-n.Op.takes:]
		result := n.Op.rule(operands)
		m.stack = append(m.stack[:len(m.stack)-n.Op.takes], result)
	}
}

func (m *machine) at(n *Node, size int) []byte {
	address := m.pop32() + int(n.Value)
	return m.memory[address : address+size]
}

func (m *machine) bulkMemory(n *Node) {
	length, source, to := m.pop32(), m.pop(), m.pop32()
	m.charge(int64(length / unitBytes))
	target := m.memory[to : to+length]
	switch n.Op {
	case memoryFill:
		for i := range target {
			target[i] = byte(source)
		}
	case memoryCopy:
		from := int(uint32(source))
		copy(target, m.memory[from:from+length])
	default:
		from := int(uint32(source))
		copy(target, m.p.Data[n.Value].Bytes[from:from+length])
	}
}

// table executes what is done with tables: 0 has the functions to call, 1 is to spare.
func (m *machine) table(n *Node) {
	table := &m.spare
	if n.Value == 0 {
		table = &m.slots
	}
	switch n.Op {
	case tableGet:
		m.push(uint64((*table)[m.pop32()]))
	case tableSet:
		function := m.pop()
		(*table)[m.pop32()] = int(function)
	case tableSize:
		m.push(uint64(len(*table)))
	case tableGrow:
		m.charge(growCost - 1)
		by, size := m.pop32(), len(m.spare)
		function := int(m.pop())
		if size+by > mostSpare {
			m.push(uint64(uint32(1<<32 - 1)))
			return
		}
		for range by {
			m.spare = append(m.spare, function)
		}
		m.push(uint64(size))
	case tableFill:
		length, function, to := m.pop32(), int(m.pop()), m.pop32()
		m.charge(int64(length))
		for i := range m.spare[to : to+length] {
			m.spare[to+i] = function
		}
	case tableCopy:
		length, from, to := m.pop32(), m.pop32(), m.pop32()
		m.charge(int64(length))
		copy(m.spare[to:to+length], m.spare[from:from+length])
	case tableInit: // of table 1, named second; the passive segments follow two others
		length, from, to := m.pop32(), m.pop32(), m.pop32()
		m.charge(int64(length))
		copy(m.spare[to:to+length], m.p.Elements[n.Value-2].Functions[from:from+length])
	}
}

// The functions that programs import, beside WASI's sched_yield.
const (
	HostModule = "test"
	Observe    = "observe" // (i64) -> (): what the program wants seen
	Finish     = "finish"  // (i32) -> (): its memory has so many pages
	Echo       = "echo"    // (i32) -> (i32): the same number
	WASIModule = "wasi_snapshot_preview1"
	Yield      = "sched_yield" // () -> (i32): 0
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Observer condenses what a program does that can be seen.
type Observer struct {
	Seen int // values
	sum  uint32
}

// Observe adds a value.
func (o *Observer) Observe(value uint64) {
	o.Seen++
	var bytes [8]byte
	binary.LittleEndian.PutUint64(bytes[:], value)
	o.sum = crc32.Update(o.sum, castagnoli, bytes[:])
}

// Finish adds the memory.
func (o *Observer) Finish(memory []byte) { o.sum = crc32.Update(o.sum, castagnoli, memory) }

// Sum returns what equal runs have in common.
func (o *Observer) Sum() uint32 { return o.sum }
