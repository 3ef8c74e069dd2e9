package patterns

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// program is a nondeterministic automaton over bytes. It accepts what the expressions match, and more: it
// takes assertions such as \b for granted, and does not tell the characters of classes beyond ASCII apart.
type program struct {
	steps []step
}

// step takes one byte, or none.
type step struct {
	kind     stepKind
	low, top byte // the bytes that it takes
	next     int
	other    int // of a split
}

type stepKind uint8

const (
	take stepKind = iota
	split
	match
)

// maxSteps bounds the program. A repetition such as (x{100}){100} is written out.
const maxSteps = 20_000

func (p *program) add(s step) int {
	p.steps = append(p.steps, s)
	return len(p.steps) - 1
}

// bytes adds steps that take one of the bytes, but no line feed.
func (p *program) bytes(low, top byte, next int) int {
	const lineFeed = '\n'
	switch {
	case next < 0, low == lineFeed && top == lineFeed:
		return -1
	case low == lineFeed:
		low++
	case top == lineFeed:
		top--
	case low < lineFeed && top > lineFeed:
		return p.either(p.add(step{take, low, lineFeed - 1, next, 0}), p.add(step{take, lineFeed + 1, top, next, 0}))
	}
	return p.add(step{take, low, top, next, 0})
}

// either adds a choice between two steps; -1 is a step that never matches.
func (p *program) either(a, b int) int {
	switch {
	case a < 0:
		return b
	case b < 0:
		return a
	}
	return p.add(step{kind: split, next: a, other: b})
}

// beyondASCII takes any characters that are not ASCII.
func (p *program) beyondASCII(next int) int {
	if next < 0 {
		return -1
	}
	loop := p.add(step{kind: split})
	p.steps[loop].next = p.bytes(utf8.RuneSelf, 0xff, loop)
	p.steps[loop].other = next
	return p.bytes(utf8.RuneSelf, 0xff, loop)
}

// compile adds the steps of an expression, which lead to next, and returns the first, or -1 if none can match.
func (p *program) compile(e *syntax.Regexp, next int) int {
	if len(p.steps) > maxSteps || next < 0 {
		return next
	}
	switch e.Op {
	case syntax.OpNoMatch:
		return -1
	case syntax.OpLiteral:
		for _, r := range slices.Backward(e.Rune) {
			next = p.character(r, e.Flags&syntax.FoldCase != 0, next)
		}
		return next
	case syntax.OpCharClass:
		return p.class(e.Rune, next)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return p.class([]rune{0, unicode.MaxRune}, next)
	case syntax.OpCapture:
		return p.compile(e.Sub[0], next)
	case syntax.OpConcat:
		for _, sub := range slices.Backward(e.Sub) {
			next = p.compile(sub, next)
		}
		return next
	case syntax.OpAlternate:
		first := -1
		for _, sub := range slices.Backward(e.Sub) {
			first = p.either(p.compile(sub, next), first)
		}
		return first
	case syntax.OpQuest:
		return p.either(p.compile(e.Sub[0], next), next)
	case syntax.OpStar, syntax.OpPlus:
		loop := p.add(step{kind: split, other: next})
		first := p.compile(e.Sub[0], loop)
		if first < 0 {
			first = next
		}
		p.steps[loop].next = first
		if e.Op == syntax.OpPlus {
			return first
		}
		return loop
	}
	return next // an assertion, or nothing
}

// character takes one character, in any case if it folds.
func (p *program) character(r rune, folds bool, next int) int {
	first := p.encoded(r, next)
	if folds {
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			first = p.either(p.encoded(other, next), first)
		}
	}
	if r == utf8.RuneError {
		return p.either(p.beyondASCII(next), first)
	}
	return first
}

func (p *program) encoded(r rune, next int) int {
	var encoded [utf8.UTFMax]byte
	for _, b := range slices.Backward(encoded[:utf8.EncodeRune(encoded[:], r)]) {
		next = p.bytes(b, b, next)
	}
	return next
}

// class takes a character in one of the ranges, which are pairs.
func (p *program) class(ranges []rune, next int) int {
	first := -1
	for i := 0; i+1 < len(ranges) && ranges[i] < utf8.RuneSelf; i += 2 {
		if at := p.bytes(byte(ranges[i]), byte(min(ranges[i+1], utf8.RuneSelf-1)), next); at >= 0 {
			first = p.either(at, first)
		}
	}
	if len(ranges) > 0 && ranges[len(ranges)-1] >= utf8.RuneSelf {
		first = p.either(p.beyondASCII(next), first)
	}
	return first
}

// automaton is the deterministic form of a program. It makes a state when a text first leads to it.
type automaton struct {
	program program
	start   int        // the first step
	classes [256]uint8 // bytes that no step tells apart have one class
	width   int        // how many classes there are
	samples []byte     // a byte of each class
	next    []int32    // by state and class; states are multiplied by width
	sets    [][]int    // the steps of each state
	states  map[string]int32
	leaves  [256]bool // bytes that lead from the first state to another one
	resets  int
	marks   []bool // of the steps that have been reached
	marked  []int
	key     []byte
}

// Values in next that are not states.
const (
	unknown  int32 = -1
	matching int32 = -2
)

const (
	maxStates = 4000
	// maxResets is the maximum number of times that the automaton drops all states because they are too many. After
	// that it gives up.
	maxResets = 20
)

// newAutomaton returns nil if the expressions are too large.
func newAutomaton(expressions []*syntax.Regexp) *automaton {
	a := &automaton{}
	end := a.program.add(step{kind: match})
	a.start = -1
	for _, e := range expressions {
		a.start = a.program.either(a.program.compile(e.Simplify(), end), a.start)
		if len(a.program.steps) > maxSteps {
			return nil
		}
	}
	var borders [257]bool
	borders['\n'], borders['\n'+1] = true, true
	for _, s := range a.program.steps {
		if s.kind == take {
			borders[s.low], borders[int(s.top)+1] = true, true
		}
	}
	for b := range 256 {
		if b == 0 || borders[b] {
			a.samples = append(a.samples, byte(b))
		}
		a.classes[b] = uint8(len(a.samples) - 1)
	}
	a.width = len(a.samples)
	a.marks = make([]bool, len(a.program.steps))
	a.reset()
	return a
}

func (a *automaton) isExhausted() bool { return a.resets > maxResets }

func (a *automaton) reset() {
	a.next, a.sets, a.states = a.next[:0], a.sets[:0], map[string]int32{}
	var first []int
	if a.start >= 0 {
		first = a.reach(first, a.start)
		a.unmark()
	}
	a.state(first)
	if a.matches(first) {
		return
	}
	for b := range a.leaves {
		class := a.classes[b]
		if a.next[class] == unknown {
			a.learn(0, class)
		}
		a.leaves[b] = a.next[class] != 0
	}
}

// find returns the end of a match that starts at a place or after it, or -1. If the automaton is exhausted, the
// result means nothing.
func (a *automaton) find(text []byte, at int) int {
	if a.isExhausted() {
		return at
	}
	if a.matches(a.sets[0]) {
		return at
	}
	state, next, classes := int32(0), a.next, &a.classes
	for i := at; i < len(text); i++ {
		if state == 0 { // where a text mostly is
			skipped := len(text) - i
			for j, c := range text[i:] {
				if a.leaves[c] {
					skipped = j
					break
				}
			}
			if i += skipped; i == len(text) {
				return -1
			}
		}
		to := next[int(state)+int(classes[text[i]])]
		if to < 0 {
			if to == unknown {
				if to = a.learn(state, classes[text[i]]); a.isExhausted() {
					return at
				}
				next = a.next
			}
			if to == matching {
				return i + 1
			}
		}
		state = to
	}
	return -1
}

// learn computes the state to which a state leads with a class of bytes.
func (a *automaton) learn(state int32, class uint8) int32 {
	b := a.samples[class]
	to := slices.Clone(a.sets[0]) // a match may start anywhere
	for _, at := range to {
		a.mark(at)
	}
	for _, at := range a.sets[int(state)/a.width] {
		if s := a.program.steps[at]; s.kind == take && s.low <= b && b <= s.top {
			to = a.reach(to, s.next)
		}
	}
	a.unmark()
	if a.matches(to) {
		a.next[int(state)+int(class)] = matching
		return matching
	}
	if len(a.sets) == maxStates {
		a.resets++
		a.reset()
		return a.state(to)
	}
	found := a.state(to)
	a.next[int(state)+int(class)] = found
	return found
}

// reach adds the steps that can be next, starting from one of them, unless they are marked.
func (a *automaton) reach(to []int, from int) []int {
	pending := []int{from}
	for len(pending) > 0 {
		at := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if a.marks[at] {
			continue
		}
		a.mark(at)
		if s := a.program.steps[at]; s.kind == split {
			pending = append(pending, s.other, s.next)
		} else {
			to = append(to, at)
		}
	}
	return to
}

func (a *automaton) mark(at int) {
	a.marks[at] = true
	a.marked = append(a.marked, at)
}

func (a *automaton) unmark() {
	for _, at := range a.marked {
		a.marks[at] = false
	}
	a.marked = a.marked[:0]
}

func (a *automaton) matches(steps []int) bool {
	return slices.ContainsFunc(steps, func(at int) bool { return a.program.steps[at].kind == match })
}

// state returns the state of some steps, which it makes unless it is there.
func (a *automaton) state(steps []int) int32 {
	slices.Sort(steps)
	a.key = a.key[:0]
	for _, at := range steps {
		a.key = binary.LittleEndian.AppendUint16(a.key, uint16(at))
	}
	if known, ok := a.states[string(a.key)]; ok {
		return known
	}
	made := int32(len(a.next))
	a.states[string(a.key)] = made
	a.sets = append(a.sets, steps)
	for range a.width {
		a.next = append(a.next, unknown)
	}
	return made
}
