package secrets

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// escapes is a set of the ways in which texts escape characters.
type escapes uint8

const (
	percent   escapes = 1 << iota // %2F, as in URLs
	plus                          // + for a space, as in forms
	backslash                     // \/, \u002f and \x2f, as in JSON and programs
	entity                        // &sol; &#47; and &#x2f;, as in HTML
	nul                           // a byte 0, which stands for nothing: UTF-16 and UTF-32 have it beside each letter
)

// maxUnit is the length of the longest escape that a reader must see whole, in bytes, for
// each byte that it stands for: &#x0000002f; in UTF-32. Escapes inside escapes are shorter:
// %5Cu0026%23x2F%3B.
const maxUnit = 48

// unit reads the escape at the beginning of text, which is not empty. It appends what the
// escape stands for to out, and returns the escape's length; 0 where there is none.
func (e escapes) unit(out, text []byte) ([]byte, int) {
	switch c := text[0]; {
	case c == '%' && e&percent != 0:
		return percentUnit(out, text)
	case c == '+' && e&plus != 0:
		return append(out, ' '), 1
	case c == 0 && e&nul != 0:
		return out, 1
	case c == '\\' && e&backslash != 0:
		return backslashUnit(out, text)
	case c == '&' && e&entity != 0:
		return entityUnit(out, text)
	default:
		return out, 0
	}
}

// next returns where the next escape may begin, at or behind a position.
func (e escapes) next(text []byte, from int) int {
	switch e {
	case percent:
		return indexFrom(text, from, '%')
	case backslash:
		return indexFrom(text, from, '\\')
	case entity:
		return indexFrom(text, from, '&')
	case nul:
		return indexFrom(text, from, 0)
	}
	for i, c := range text[from:] {
		if c == '%' || c == '\\' || c == '&' || c == '+' || c == 0 {
			return from + i
		}
	}
	return len(text)
}

func indexFrom(text []byte, from int, c byte) int {
	if i := bytes.IndexByte(text[from:], c); i >= 0 {
		return from + i
	}
	return len(text)
}

// occurring returns the kinds of escapes that a text holds.
func occurring(text []byte) escapes {
	var found escapes
	for _, e := range []escapes{percent, backslash, entity, nul} {
		for i := e.next(text, 0); i < len(text); i = e.next(text, i+1) {
			if _, width := e.unit(nil, text[i:]); width > 0 {
				found |= e
				break
			}
		}
	}
	if bytes.IndexByte(text, '+') >= 0 {
		found |= plus
	}
	return found
}

// decode returns what text stands for, or nil where nothing in it is escaped.
func (e escapes) decode(text []byte) []byte {
	var out []byte
	var scratch [utf8.UTFMax]byte
	done := 0
	for i := e.next(text, 0); i < len(text); i = e.next(text, i) {
		unit, width := e.unit(scratch[:0], text[i:])
		if width == 0 {
			i++
			continue
		}
		if out == nil {
			out = make([]byte, 0, len(text))
		}
		out = append(append(out, text[done:i]...), unit...)
		i += width
		done = i
	}
	if out == nil {
		return nil
	}
	return append(out, text[done:]...)
}

func percentUnit(out, text []byte) ([]byte, int) {
	if len(text) < 3 {
		return out, 0
	}
	value, digits := number(text[1:3], 16)
	if digits != 2 {
		return out, 0
	}
	return append(out, byte(value)), 3
}

func backslashUnit(out, text []byte) ([]byte, int) {
	if len(text) < 2 {
		return out, 0
	}
	switch c := text[1]; c {
	case '/', '\\', '"', '\'':
		return append(out, c), 2
	case 'n':
		return append(out, '\n'), 2
	case 'r':
		return append(out, '\r'), 2
	case 't':
		return append(out, '\t'), 2
	case 'x':
		if value, digits := number(text[2:min(4, len(text))], 16); digits == 2 {
			return append(out, byte(value)), 4
		}
	case 'u':
		return utf16Unit(out, text)
	}
	return out, 0
}

// utf16Unit reads \uXXXX, or two of them that make a pair.
func utf16Unit(out, text []byte) ([]byte, int) {
	first, digits := number(text[2:min(6, len(text))], 16)
	if digits != 4 {
		return out, 0
	}
	if utf16.IsSurrogate(rune(first)) && len(text) >= 12 && text[6] == '\\' && text[7] == 'u' {
		if second, digits := number(text[8:12], 16); digits == 4 {
			if r := utf16.DecodeRune(rune(first), rune(second)); r != utf8.RuneError {
				return utf8.AppendRune(out, r), 12
			}
		}
	}
	return utf8.AppendRune(out, rune(first)), 6
}

// number reads digits at the beginning of text, and returns how many there are.
func number(text []byte, base uint32) (value uint32, digits int) {
	for _, c := range text {
		digit := uint32(hexDigits.values[c])
		if digit >= base {
			break
		}
		value = value*base + digit
		digits++
	}
	return value, digits
}
