package schema

import (
	"io"
	"math/bits"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

// pattern is a regular expression with what it costs to match a byte with it.
type pattern struct {
	*regexp.Regexp
	steps int
}

// programOf returns what a regular expression compiles to.
func programOf(source string) (*syntax.Prog, error) {
	parsed, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, err
	}
	return syntax.Compile(parsed.Simplify())
}

// sizeOf returns about how much memory the regexp package takes for a program, in instructions. It copies the ranges of
// each instruction of those that begin at the start of a text and may be matched without looking back.
func sizeOf(program *syntax.Prog) int {
	const (
		runesPerInstruction = 32
		onePass             = 1000 // instructions; programs that have as many are not
	)
	size := len(program.Inst)
	first := &program.Inst[program.Start]
	if size >= onePass || first.Op != syntax.InstEmptyWidth || syntax.EmptyOp(first.Arg)&syntax.EmptyBeginText == 0 {
		return size
	}
	runes := 0
	for i := range program.Inst {
		runes += len(program.Inst[i].Rune)
	}
	return size + runes/runesPerInstruction
}

// stepsOf returns how many steps a program makes at each byte, at most. An instruction that looks
// for a character among many ranges, such as those of a script, takes several.
func stepsOf(program *syntax.Prog) int {
	const few = 8 // numbers of ranges that are looked through as they are, two for each
	steps := 0
	for i := range program.Inst {
		steps++
		switch in := &program.Inst[i]; {
		case in.Op != syntax.InstRune && in.Op != syntax.InstRune1:
		case len(in.Rune) > few:
			steps += bits.Len(uint(len(in.Rune))) / 2
		case len(in.Rune) == 1 && syntax.Flags(in.Arg)&syntax.FoldCase != 0:
			steps++
		}
	}
	return steps
}

// shortMatch is what a match may cost during which nobody looks at the context. Those that Go makes
// in another way than the longer ones, and faster, cost less.
const shortMatch = 1 << 16

// matches pays for matching a text with a pattern, and does it. A match that takes long is given the
// text by a reader: the regexp package can be interrupted in no other way.
func (m *meter) matches(p pattern, text string) bool {
	cost := 1 + (len(text)+1)*p.steps/matchesPerUnit
	m.charge(cost)
	if cost <= shortMatch {
		return p.MatchString(text)
	}
	return p.MatchReader(&watchedText{meter: m, every: max(1, lookEvery*matchesPerUnit/p.steps), text: text})
}

// watchedText reads a text, and ends the validation if its context has ended meanwhile.
type watchedText struct {
	meter       *meter
	every, left int // how many characters are read between two looks, and how many until the next
	text        string
}

// ReadRune implements [io.RuneReader].
func (w *watchedText) ReadRune() (rune, int, error) {
	if w.left--; w.left < 0 {
		w.left = w.every
		w.meter.look()
	}
	if w.text == "" {
		return 0, 0, io.EOF
	}
	r, size := utf8.DecodeRuneInString(w.text)
	w.text = w.text[size:]
	return r, size, nil
}
