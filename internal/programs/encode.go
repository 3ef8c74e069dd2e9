package programs

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Module returns the program in the binary format. It fails if a branch leads to a block that does
// not enclose it, which only programs that [Shrink] tries have.
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
	add(4, []byte{2, byte(funcref), 1}, unsigned(len(p.Slots)), unsigned(len(p.Slots)),
		[]byte{byte(funcref), 1, spareElements, mostSpare})
	add(5, []byte{1, 1}, unsigned(p.Pages), unsigned(p.MostPages))
	add(6, vector(p.Globals, func(g Global) []byte {
		return append([]byte{byte(g.Type), 1}, initial(g.Type, g.Value)...)
	}))
	exports := [][]byte{append(text("memory"), 2, 0)}
	if p.Progress >= 0 {
		exports = append(exports, slices.Concat(text(ProgressName), []byte{3}, unsigned(p.Progress)))
	}
	for _, export := range p.Exports {
		exports = append(exports, slices.Concat(text(export.Name), []byte{0}, unsigned(export.Function)))
	}
	add(7, vector(exports, func(encoded []byte) []byte { return encoded }))
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
				mode = append([]byte{0}, initial(I32, uint64(s.Offset))...)
			}
			return slices.Concat(mode, unsigned(len(s.Bytes)), s.Bytes)
		}))
	}
	return module, nil
}

// elements returns the element section: the functions of the first table, those that code refers
// to, and the passive segments, whose indices therefore start at 2.
func (p *Program) elements() []byte {
	var every []int
	for n, i := range p.Imports {
		if i.Module != WASIModule && i.Module != HostModule {
			every = append(every, n)
		}
	}
	for n := range p.Functions {
		every = append(every, len(p.Imports)+n)
	}
	return slices.Concat(unsigned(2+len(p.Elements)),
		[]byte{0, 0x41, 0, 0x0b}, vector(p.Slots, unsigned),
		[]byte{3, 0}, vector(every, unsigned),
		joined(p.Elements, func(s Segment) []byte { return append([]byte{1, 0}, vector(s.Functions, unsigned)...) }))
}

// encoder encodes the functions of a program one after another.
type encoder struct {
	types [][]byte
	known map[string]int
	out   []byte // of the current function
	open  code   // the enclosing blocks, the outermost first
	err   error  // the first failure
}

// signature returns the index of a type, which it adds if it is new.
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
	e.open, e.out = nil, vector(f.Locals, func(t Type) []byte { return []byte{1, byte(t)} })
	e.code(f.Body)
	e.put(0x0b)
	return append(unsigned(len(e.out)), e.out...)
}

func (e *encoder) put(bytes ...byte) { e.out = append(e.out, bytes...) }

func (e *encoder) number(n int) { e.put(unsigned(n)...) }

func (e *encoder) code(nodes code) {
	for _, n := range nodes {
		e.code(n.Args)
		e.put(n.Op.code...)
		e.immediates(n)
	}
}

func (e *encoder) immediates(n *Node) {
	for _, kind := range n.Op.immediates {
		switch kind {
		case 'v':
			e.number(int(n.Value))
		case 's':
			e.number(int(n.Second))
		case 'i':
			e.put(signed(n.Value)...)
		case 'f':
			e.out = binary.LittleEndian.AppendUint64(e.out, uint64(n.Value))
		case '0':
			e.put(0)
		case 't':
			e.number(e.signature(n.Block))
		case 'n':
			e.number(len(n.Targets) - 1)
		case 'l':
			for _, target := range n.Targets {
				e.number(e.depth(target))
			}
		case 'b':
			e.block(n)
		}
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
	e.code(n.Body)
	if n.HasElse {
		e.put(0x05)
		e.code(n.Else)
	}
	e.open = e.open[:len(e.open)-1]
	e.put(0x0b)
}

// depth returns the label index of a target: how many blocks are between it and the instruction.
func (e *encoder) depth(target *Node) int {
	if target == nil {
		return len(e.open)
	}
	at := slices.Index(e.open, target)
	if at < 0 && e.err == nil {
		e.err = fmt.Errorf("a branch leads to a %s that does not enclose it", target.Op.name)
	}
	return len(e.open) - 1 - at
}

// initial returns the constant expression of a value.
func initial(t Type, value uint64) []byte {
	switch t {
	case I32:
		return slices.Concat([]byte{0x41}, signed(int64(int32(value))), []byte{0x0b})
	case I64:
		return slices.Concat([]byte{0x42}, signed(int64(value)), []byte{0x0b})
	default:
		return append(binary.LittleEndian.AppendUint64([]byte{0x44}, value), 0x0b)
	}
}

// vector encodes the number of elements and then the elements.
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

// signed encodes a signed integer in LEB128.
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
