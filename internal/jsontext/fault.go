package jsontext

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// What the reader expects.
const (
	aValue = "a value"
	aDigit = "a digit"
)

// maxDepth is the maximum nesting of JSON in the standard library.
const maxDepth = 10_000

// Fault is the first place at which a text is not JSON.
type Fault struct {
	// Offset is the byte of the place; the length of the text if that ends too early.
	Offset int
	// Early means that the text ends in the middle of a value.
	Early bool
	// What describes the mistake in words.
	What  string
	place string
}

// Error describes the mistake and its place, without naming the text.
func (f *Fault) Error() string { return f.What + ", at " + f.place }

// FaultIn returns why a text is not JSON, or nil if it is. It knows no limit but the standard library's depth.
func FaultIn(text string) *Fault {
	_, err := Parse(text, Outermost())
	wrong, ok := errors.AsType[*Error](err)
	if !ok {
		return nil
	}
	f := &Fault{Offset: wrong.Offset}
	rest := text[min(wrong.Offset, len(text)):]
	switch {
	case strings.Trim(rest, " \t\r\n") == "":
		f.Offset, f.Early, f.What = len(text), true, "it ends too early"
	case wrong.Err == ErrSyntax:
		f.What = "want " + wrong.want + ", not " + first(rest)
	case wrong.Err == ErrBehind:
		f.What = "text follows the value"
	case wrong.Err == ErrDepth:
		f.What = fmt.Sprintf("nested deeper than %d levels", maxDepth)
	default:
		f.What = wrong.Error()
	}
	f.place = fmt.Sprintf("byte %d", f.Offset)
	if before := text[:f.Offset]; strings.Contains(before, "\n") {
		line := before[strings.LastIndexByte(before, '\n')+1:]
		f.place += fmt.Sprintf(" (line %d, column %d)", 1+strings.Count(before, "\n"), 1+utf8.RuneCountInString(line))
	}
	return f
}

func first(text string) string {
	r, size := utf8.DecodeRuneInString(text)
	if r == utf8.RuneError && size == 1 {
		return fmt.Sprintf("the byte %#x", text[0])
	}
	return strconv.QuoteRuneToASCII(r)
}
