package programs

import (
	"encoding/binary"
	"fmt"
)

// Module returns the program in the binary format. It fails where a branch has no block to go
// to, which is so only in what [Shrink] tries.
func (p *Program) Module() ([]byte, error) {
	e := &encoder{p: p, known: map[string]int{}}
	code := unsigned(len(p.Functions))
	var functions []byte
	for _, f := range p.Functions {
		functions = append(functions, unsigned(e.signature(f.Type))...)
		body, err := e.function(f)
		if err != nil {
			return nil, err
		}
		code = append(append(code, unsigned(len(body))...), body...)
	}
	imports := unsigned(len(p.Imports))
	for _, i := range p.Imports {
		imports = append(append(imports, text(i.Module)...), text(i.Name)...)
		imports = append(append(imports, 0), unsigned(e.signature(i.Type))...)
	}
	tables := []byte{2, byte(funcref), 1}
	tables = append(append(tables, unsigned(len(p.Slots))...), unsigned(len(p.Slots))...)
	tables = append(tables, byte(funcref), 1, spareElements, mostSpare)
	globals := unsigned(len(p.Globals))
	for _, g := range p.Globals {
		globals = append(globals, byte(g.Type), 1)
		globals = append(append(globals, valueOf(g.Type, g.Value)...), 0x0b)
	}
	exports := unsigned(len(p.Exports) + 1)
	exports = append(append(exports, text("memory")...), 2, 0)
	for _, export := range p.Exports {
		exports = append(append(append(exports, text(export.Name)...), 0), unsigned(export.Function)...)
	}
	module := []byte("\x00asm\x01\x00\x00\x00")
	add := func(id byte, content []byte) {
		module = append(append(append(module, id), unsigned(len(content))...), content...)
	}
	add(1, append(unsigned(len(e.types)), joined(e.types)...))
	add(2, imports)
	add(3, append(unsigned(len(p.Functions)), functions...))
	add(4, tables)
	add(5, append(append([]byte{1, 1}, unsigned(p.Pages)...), mostPages))
	add(6, globals)
	add(7, exports)
	if p.Start >= 0 {
		add(8, unsigned(p.Start))
	}
	add(9, p.elements())
	if len(p.Data) > 0 {
		add(12, unsigned(len(p.Data)))
	}
	add(10, code)
	if len(p.Data) > 0 {
		add(11, p.data())
	}
	return module, nil
}

// elements is the element section: the first table's functions, those that code refers to, and
// the passive segments, which so have the indices from 2 on.
func (p *Program) elements() []byte {
	content := unsigned(2 + len(p.Elements))
	list := func(functions []int) []byte {
		all := unsigned(len(functions))
		for _, f := range functions {
			all = append(all, unsigned(f)...)
		}
		return all
	}
	content = append(append(content, 0, 0x41, 0, 0x0b), list(p.Slots)...)
	every := make([]int, len(p.Functions))
	for n := range every {
		every[n] = len(p.Imports) + n
	}
	content = append(append(content, 3, 0), list(every)...)
	for _, s := range p.Elements {
		content = append(append(content, 1, 0), list(s.Functions)...)
	}
	return content
}

func (p *Program) data() []byte {
	content := unsigned(len(p.Data))
	for _, s := range p.Data {
		if s.Offset < 0 {
			content = append(content, 1)
		} else {
			content = append(append(append(content, 0, 0x41), signed(int64(s.Offset))...), 0x0b)
		}
		content = append(append(content, unsigned(len(s.Bytes))...), s.Bytes...)
	}
	return content
}

type encoder struct {
	p     *Program
	types [][]byte
	known map[string]int
	open  []*Node // the blocks around an instruction
}

// signature returns the index of a type.
func (e *encoder) signature(s Signature) int {
	encoded := []byte{0x60}
	for _, types := range [][]Type{s.Params, s.Results} {
		encoded = append(encoded, unsigned(len(types))...)
		for _, t := range types {
			encoded = append(encoded, byte(t))
		}
	}
	n, found := e.known[string(encoded)]
	if !found {
		n = len(e.types)
		e.known[string(encoded)] = n
		e.types = append(e.types, encoded)
	}
	return n
}

func (e *encoder) function(f *Function) ([]byte, error) {
	body := unsigned(len(f.Locals))
	for _, t := range f.Locals {
		body = append(body, 1, byte(t))
	}
	e.open = nil
	body, err := e.nodes(body, f.Body)
	return append(body, 0x0b), err
}

func (e *encoder) nodes(out []byte, nodes []*Node) (_ []byte, err error) {
	for _, n := range nodes {
		if out, err = e.node(out, n); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (e *encoder) node(out []byte, n *Node) (_ []byte, err error) {
	if out, err = e.nodes(out, n.Args); err != nil {
		return nil, err
	}
	out = append(out, n.Op.code...)
	switch n.Op.immediate {
	case constant32, constant64:
		out = append(out, signed(n.Value)...)
	case constantF64:
		out = binary.LittleEndian.AppendUint64(out, uint64(n.Value))
	case index:
		out = append(out, unsigned(int(n.Value))...)
	case indexes:
		out = append(append(out, unsigned(int(n.Value))...), unsigned(int(n.Second))...)
	case access:
		out = append(append(out, 0), unsigned(int(n.Value))...)
	case zero:
		out = append(out, 0)
	case zeros:
		out = append(out, 0, 0)
	case indexAndNul:
		out = append(append(out, unsigned(int(n.Value))...), 0)
	case heapType:
		out = append(out, byte(n.Value))
	case indirect:
		out = append(append(out, unsigned(e.signature(n.Block))...), 0)
	case label, labels:
		if n.Op == brTableOp {
			out = append(out, unsigned(len(n.Targets)-1)...)
		}
		for _, target := range n.Targets {
			depth, err := e.depth(target)
			if err != nil {
				return nil, err
			}
			out = append(out, unsigned(depth)...)
		}
	case blockType:
		return e.block(out, n)
	}
	return out, nil
}

func (e *encoder) block(out []byte, n *Node) (_ []byte, err error) {
	switch s := n.Block; {
	case len(s.Params) == 0 && len(s.Results) == 0:
		out = append(out, 0x40)
	case len(s.Params) == 0 && len(s.Results) == 1:
		out = append(out, byte(s.Results[0]))
	default:
		out = append(out, signed(int64(e.signature(s)))...)
	}
	e.open = append(e.open, n)
	defer func() { e.open = e.open[:len(e.open)-1] }()
	if out, err = e.nodes(out, n.Body); err != nil {
		return nil, err
	}
	if n.HasElse {
		if out, err = e.nodes(append(out, 0x05), n.Else); err != nil {
			return nil, err
		}
	}
	return append(out, 0x0b), nil
}

// depth counts the blocks from the innermost one to a target.
func (e *encoder) depth(target *Node) (int, error) {
	if target == nil {
		return len(e.open), nil
	}
	for depth := range e.open {
		if e.open[len(e.open)-1-depth] == target {
			return depth, nil
		}
	}
	return 0, fmt.Errorf("a branch leads to a %s that is not around it", target.Op.name)
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

func joined(parts [][]byte) (all []byte) {
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
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
