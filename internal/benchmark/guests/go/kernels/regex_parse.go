package kernels

import "slices"

// regex is a compiled pattern: a machine that may be in several states at once.
type regex struct {
	program []regexInstruction
	classes []byteSet
}

type byteSet [4]uint64

type regexOp uint32

const (
	opMatch regexOp = iota
	opByte          // first: the byte
	opClass         // first: the set of bytes
	opAny
	opForward // first: how far
	opSplit   // first, second: how far, one way and the other
)

// regexInstruction is a state. What reads a byte leads to the next instruction.
type regexInstruction struct {
	op            regexOp
	first, second int32
}

// regexParser turns a pattern into instructions by recursive descent. Distances are relative, so that instructions can
// be moved. Patterns must be valid.
type regexParser struct {
	pattern string
	at      int
	made    regex
}

func compileRegex(pattern string) regex {
	p := regexParser{pattern: pattern}
	p.alternatives()
	p.emit(opMatch, 0, 0)
	return p.made
}

func (p *regexParser) emit(op regexOp, first, second int) {
	p.made.program = append(p.made.program, regexInstruction{op, int32(first), int32(second)})
}

func (p *regexParser) insert(at int, op regexOp, first, second int) {
	p.made.program = slices.Insert(p.made.program, at, regexInstruction{op, int32(first), int32(second)})
}

func (p *regexParser) next() byte {
	b := p.pattern[p.at]
	p.at++
	return b
}

// accept reads the byte if it is the next.
func (p *regexParser) accept(b byte) bool {
	if p.at == len(p.pattern) || p.pattern[p.at] != b {
		return false
	}
	p.at++
	return true
}

func (p *regexParser) alternatives() {
	start := len(p.made.program)
	for p.at < len(p.pattern) && p.pattern[p.at] != '|' && p.pattern[p.at] != ')' {
		p.repeated()
	}
	if !p.accept('|') {
		return
	}
	p.insert(start, opSplit, 1, len(p.made.program)-start+2)
	jump := len(p.made.program)
	p.emit(opForward, 0, 0)
	p.alternatives()
	p.made.program[jump].first = int32(len(p.made.program) - jump)
}

// repeated reads an atom and its quantifier.
func (p *regexParser) repeated() {
	start := len(p.made.program)
	p.single()
	length := len(p.made.program) - start
	switch {
	case p.accept('*'):
		p.insert(start, opSplit, 1, length+2)
		p.emit(opForward, -(length + 1), 0)
	case p.accept('+'):
		p.emit(opSplit, -length, 1)
	case p.accept('?'):
		p.insert(start, opSplit, 1, length+1)
	}
}

func (p *regexParser) single() {
	switch b := p.next(); b {
	case '(':
		p.alternatives()
		p.accept(')')
	case '[':
		p.class()
	case '.':
		p.emit(opAny, 0, 0)
	case '\\':
		p.emit(opByte, int(p.next()), 0)
	default:
		p.emit(opByte, int(b), 0)
	}
}

// class reads single bytes and ranges.
func (p *regexParser) class() {
	var set byteSet
	for !p.accept(']') {
		first := p.next()
		last := first
		if p.accept('-') {
			last = p.next()
		}
		for b := int(first); b <= int(last); b++ {
			set[b>>6] |= 1 << (b & 63)
		}
	}
	p.emit(opClass, len(p.made.classes), 0)
	p.made.classes = append(p.made.classes, set)
}
