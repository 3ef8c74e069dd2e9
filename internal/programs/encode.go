package programs

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Module returns the program in the binary format. It fails where a branch has no block to go
// to, which is so only in what [Shrink] tries.
func (p *Program) Module() ([]byte, error) {
	e := &encoder{known: map[string]int{}}
	imports := vector(p.Imports, func(i Import) []byte {
		return slices.Concat(text(i.Module), text(i.Name), []byte{0}, unsigned(e.signature(i.Type)))
	})
	functions := vector(p.Functions, func(f *Function) []byte { return unsigned(e.signature(f.Type)) })
	code := vector(p.Functions, e.function)
	if e.err != nil {
		return nil, e.err
	}
	module := []byte("\x00asm\x01\x00\x00\x00")
	add := func(id byte, content ...[]byte) {
		section := slices.Concat(content...)
		module = slices.Concat(module, []byte{id}, unsigned(len(section)), section)
	}
	add(1, vector(e.types, func(encoded []byte) []byte { return encoded }))
	add(2, imports)
	add(3, functions)
	add(4, []byte{2, byte(funcref), 1}, unsigned(len(p.Slots)), unsigned(len(p.Slots)), []byte{byte(funcref), 1, spareElements, mostSpare})
	add(5, []byte{1, 1}, unsigned(p.Pages), []byte{mostPages})
	add(6, vector(p.Globals, func(g Global) []byte {
		return slices.Concat([]byte{byte(g.Type), 1}, valueOf(g.Type, g.Value), []byte{0x0b})
	}))
	add(7, unsigned(len(p.Exports)+1), text("memory"), []byte{2, 0}, joined(p.Exports, func(export Export) []byte {
		return slices.Concat(text(export.Name), []byte{0}, unsigned(export.Function))
	}))
	if p.Start >= 0 {
		add(8, unsigned(p.Start))
	}
	add(9, p.elements())
	if len(p.Data) > 0 {
		add(12, unsigned(len(p.Data)))
	}
	add(10, code)
	if len(p.Data) > 0 {
		add(11, vector(p.Data, func(s Segment) []byte {
			mode := []byte{1}
			if s.Offset >= 0 {
				mode = slices.Concat([]byte{0}, valueOf(I32, uint64(s.Offset)), []byte{0x0b})
			}
			return slices.Concat(mode, unsigned(len(s.Bytes)), s.Bytes)
		}))
	}
	return module, nil
}

// elements is the element section: the first table's functions, those that code refers to, and
// the passive segments, which so have the indices from 2 on.
func (p *Program) elements() []byte {
	every := make([]int, len(p.Functions))
	for n := range every {
		every[n] = len(p.Imports) + n
	}
	return slices.Concat(unsigned(2+len(p.Elements)),
		[]byte{0, 0x41, 0, 0x0b}, vector(p.Slots, unsigned),
		[]byte{3, 0}, vector(every, unsigned),
		joined(p.Elements, func(s Segment) []byte { return append([]byte{1, 0}, vector(s.Functions, unsigned)...) }))
}

// encoder encodes the code of a program, one function after the other.
type encoder struct {
	types [][]byte
	known map[string]int
	out   []byte  // of the function
	open  []*Node // the blocks around an instruction
	err   error   // the first failure
}

// signature returns the index of a type.
func (e *encoder) signature(s Signature) int {
	one := func(t Type) []byte { return []byte{byte(t)} }
	encoded := slices.Concat([]byte{0x60}, vector(s.Params, one), vector(s.Results, one))
	n, found := e.known[string(encoded)]
	if !found {
		n = len(e.types)
		e.known[string(encoded)] = n
		e.types = append(e.types, encoded)
	}
	return n
}

func (e *encoder) function(f *Function) []byte {
	e.open = nil
	e.out = vector(f.Locals, func(t Type) []byte { return []byte{1, byte(t)} })
	e.nodes(f.Body)
	e.put(0x0b)
	return append(unsigned(len(e.out)), e.out...)
}

func (e *encoder) put(bytes ...byte) { e.out = append(e.out, bytes...) }

func (e *encoder) number(n int64) { e.put(unsigned(int(n))...) }

func (e *encoder) nodes(nodes []*Node) {
	for _, n := range nodes {
		e.nodes(n.Args)
		e.put(n.Op.code...)
		e.immediates(n)
	}
}

func (e *encoder) immediates(n *Node) {
	switch n.Op.immediate {
	case constant32, constant64:
		e.put(signed(n.Value)...)
	case constantF64:
		e.out = binary.LittleEndian.AppendUint64(e.out, uint64(n.Value))
	case index:
		e.number(n.Value)
	case indexes:
		e.number(n.Value)
		e.number(n.Second)
	case access:
		e.put(0)
		e.number(n.Value)
	case zero:
		e.put(0)
	case zeros:
		e.put(0, 0)
	case indexAndNul:
		e.number(n.Value)
		e.put(0)
	case heapType:
		e.put(byte(n.Value))
	case indirect:
		e.number(int64(e.signature(n.Block)))
		e.put(0)
	case label, labels:
		if n.Op == brTableOp {
			e.number(int64(len(n.Targets) - 1))
		}
		for _, target := range n.Targets {
			e.number(int64(e.depth(target)))
		}
	case blockType:
		e.block(n)
	}
}

func (e *encoder) block(n *Node) {
	switch s := n.Block; {
	case len(s.Params) == 0 && len(s.Results) == 0:
		e.put(0x40)
	case len(s.Params) == 0 && len(s.Results) == 1:
		e.put(byte(s.Results[0]))
	default:
		e.put(signed(int64(e.signature(s)))...)
	}
	e.open = append(e.open, n)
	e.nodes(n.Body)
	if n.HasElse {
		e.put(0x05)
		e.nodes(n.Else)
	}
	e.open = e.open[:len(e.open)-1]
	e.put(0x0b)
}

// depth counts the blocks from the innermost one to a target.
func (e *encoder) depth(target *Node) int {
	if target == nil {
		return len(e.open)
	}
	at := slices.Index(e.open, target)
	if at < 0 && e.err == nil {
		e.err = fmt.Errorf("a branch leads to a %s that is not around it", target.Op.name)
	}
	return len(e.open) - 1 - at
}

func valueOf(t Type, value uint64) []byte {
	switch t {
	case I32:
		return append([]byte{0x41}, signed(int64(int32(value)))...)
	case I64:
		return append([]byte{0x42}, signed(int64(value))...)
	default:
		return binary.LittleEndian.AppendUint64([]byte{0x44}, value)
	}
}

// vector is how many elements there are, and the elements.
func vector[T any](all []T, encode func(T) []byte) []byte {
	return append(unsigned(len(all)), joined(all, encode)...)
}

func joined[T any](all []T, encode func(T) []byte) (out []byte) {
	for _, each := range all {
		out = append(out, encode(each)...)
	}
	return out
}

func text(s string) []byte { return append(unsigned(len(s)), s...) }

func unsigned(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

// signed is a signed integer in LEB128.
func signed(n int64) []byte {
	var encoded []byte
	for {
		low := byte(n & 0x7f)
		n >>= 7
		if n == 0 && low&0x40 == 0 || n == -1 && low&0x40 != 0 {
			return append(encoded, low)
		}
		encoded = append(encoded, low|0x80)
	}
}
