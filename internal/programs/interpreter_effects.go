package programs

import "encoding/binary"

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
