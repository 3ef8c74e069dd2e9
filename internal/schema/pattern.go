package schema

import (
	"errors"
	"io"
	"math/bits"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pattern is a regular expression with the cost of matching a byte.
type pattern struct {
	*regexp.Regexp
	steps int
}

// compilePattern returns a pattern and its size, which is also set if there is an error. The error is errLarge if the
// size is over limit, or a [*syntax.Error]. What takes much time or memory is counted before it is done.
func compilePattern(source string, limit int) (pattern, int, error) {
	size := expansionOf(source)
	if size > limit {
		return pattern{}, size, errLarge
	}
	parsed, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return pattern{}, size, err
	}
	if count := instructionsOf(parsed); count > 4*maxProgram { // it is not exact
		return pattern{}, size + count, errLarge
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return pattern{}, size, err
	}
	if size += len(program.Inst); len(program.Inst) > maxProgram || size > limit {
		return pattern{}, size, errLarge
	}
	// Without the group, the regexp package may copy the ranges of a class to each instruction that leads to it.
	compiled, err := regexp.Compile("(" + source + ")")
	return pattern{compiled, stepsOf(program)}, size, err
}

var errLarge = errors.New("the pattern is too large")

// expansionOf returns how much a regular expression may take beyond what its length and its instructions do, in
// instructions. A Unicode class has up to 1,400 ends of ranges, which the program keeps. If case does not matter, the
// parser visits each character of a range, and the end of a range may be far away.
func expansionOf(source string) int {
	const (
		unicodeClass       = 80
		shortRange         = 2
		runesOfInstruction = 32 // that are visited
	)
	size := unicodeClass * (strings.Count(source, `\p`) + strings.Count(source, `\P`))
	if !foldsCase(source) {
		return size
	}
	size += strings.Count(source, `\`) // classes such as \W
	before, after, found := strings.Cut(source, "-")
	for found {
		low, _ := utf8.DecodeLastRuneInString(before)
		size += shortRange + max(0, int(endOf(after)-low))/runesOfInstruction
		before, after, found = strings.Cut(after, "-")
		if before == "" {
			before = "-"
		}
	}
	return size
}

// foldsCase reports whether a regular expression has a group that sets the flag i.
func foldsCase(source string) bool {
	for _, group := range strings.Split(source, "(?")[1:] {
		flags := group[:len(group)-len(strings.TrimLeft(group, "imsU-"))]
		if strings.Contains(flags, "i") {
			return true
		}
	}
	return false
}

// endOf returns the character that a text begins with. For one written as a number, it may return a later one.
func endOf(text string) rune {
	r, _ := utf8.DecodeRuneInString(text)
	if number, ok := strings.CutPrefix(text, `\x{`); ok {
		number, _, _ = strings.Cut(number, "}")
		if n, err := strconv.ParseUint(number, 16, 32); err == nil && n < unicode.MaxRune {
			return rune(n)
		}
		return unicode.MaxRune
	} else if r == '\\' {
		return 0o777 // the last one of three digits
	}
	return r
}

// instructionsOf returns about how many instructions a regular expression compiles to, and a million if there are more.
func instructionsOf(parsed *syntax.Regexp) int {
	count := 1
	if parsed.Op == syntax.OpLiteral {
		count = len(parsed.Rune)
	}
	for _, sub := range parsed.Sub {
		count += instructionsOf(sub)
	}
	if parsed.Op == syntax.OpRepeat {
		count *= max(parsed.Min, parsed.Max, 1)
	}
	return min(count, 1e6)
}

// stepsOf returns how many steps a program makes at each byte, at most. An instruction that looks
// for a character among many ranges, such as those of a script, takes several.
func stepsOf(program *syntax.Prog) int {
	const few = 8 // numbers of ranges that are searched one by one, two for each range
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

// shortMatch is the maximum cost of a match without a look at the context. Matches that Go makes faster cost less.
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
