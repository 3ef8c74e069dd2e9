package kernels

const (
	machineMemory = 256
	machineStack  = 256
	machineDepth  = 64 // calls inside one another
	machineLocals = 4  // of each call
)

// Interpreter runs a program on a stack machine, whose instructions a switch in a loop
// tells apart. The program takes size turns.
func Interpreter(size int32) uint64 {
	var m machine
	m.stack[0] = uint64(max(size, 0))
	m.used = 1
	if !m.run(program) {
		return 0
	}
	checksum := mix(checksumSeed, m.stack[m.used-1])
	for _, cell := range m.memory {
		checksum = mix(checksum, cell)
	}
	return checksum
}

// machine takes programs that leave the stack as they have to; what depends on values, it
// checks.
type machine struct {
	memory [machineMemory]uint64
	stack  [machineStack]uint64
	used   int // of the stack
	frames [machineDepth]frame
}

type frame struct {
	locals [machineLocals]uint64
	back   int // the caller's next instruction
}

// run says whether the program came to its end.
func (m *machine) run(program []instruction) bool {
	depth := 0
	f := &m.frames[0]
	for at := 0; ; {
		i := program[at]
		at++
		switch i.code {
		case opPush:
			m.push(i.operand)
		case opDup:
			m.push(m.stack[m.used-1])
		case opSwap:
			m.stack[m.used-1], m.stack[m.used-2] = m.stack[m.used-2], m.stack[m.used-1]
		case opDrop:
			m.used--
		case opGet:
			m.push(f.locals[i.operand])
		case opSet:
			f.locals[i.operand] = m.pop()
		case opIncrement:
			f.locals[i.operand]++
		case opAdd:
			value := m.pop()
			m.stack[m.used-1] += value
		case opSubtract:
			value := m.pop()
			m.stack[m.used-1] -= value
		case opMultiply:
			value := m.pop()
			m.stack[m.used-1] *= value
		case opDivide:
			value := m.pop()
			if value == 0 {
				return false
			}
			m.stack[m.used-1] /= value
		case opRemainder:
			value := m.pop()
			if value == 0 {
				return false
			}
			m.stack[m.used-1] %= value
		case opAnd:
			value := m.pop()
			m.stack[m.used-1] &= value
		case opOr:
			value := m.pop()
			m.stack[m.used-1] |= value
		case opXor:
			value := m.pop()
			m.stack[m.used-1] ^= value
		case opShiftLeft:
			value := m.pop()
			m.stack[m.used-1] <<= value & 63
		case opShiftRight:
			value := m.pop()
			m.stack[m.used-1] >>= value & 63
		case opEqual:
			value := m.pop()
			m.stack[m.used-1] = truth(m.stack[m.used-1] == value)
		case opLess:
			value := m.pop()
			m.stack[m.used-1] = truth(m.stack[m.used-1] < value)
		case opJump:
			at = int(i.operand)
		case opJumpIf:
			if m.pop() != 0 {
				at = int(i.operand)
			}
		case opJumpUnless:
			if m.pop() == 0 {
				at = int(i.operand)
			}
		case opLoad:
			address := m.pop()
			if address >= machineMemory {
				return false
			}
			m.push(m.memory[address])
		case opStore:
			address, value := m.pop(), m.pop()
			if address >= machineMemory {
				return false
			}
			m.memory[address] = value
		case opCall:
			if depth++; depth == machineDepth {
				return false
			}
			f = &m.frames[depth]
			*f = frame{back: at}
			at = int(i.operand)
		case opReturn:
			if depth == 0 {
				return false
			}
			at = f.back
			depth--
			f = &m.frames[depth]
		case opHalt:
			return true
		default:
			return false
		}
	}
}

func (m *machine) push(value uint64) {
	m.stack[m.used] = value
	m.used++
}

func (m *machine) pop() uint64 {
	m.used--
	return m.stack[m.used]
}

func truth(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}
