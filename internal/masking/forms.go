package masking

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxBetween is the maximum number of separators between two characters of a value in Base64 or hexadecimal, such as a
// line break and indentation. A value with more separators in a row is not found.
const MaxBetween = 32

// form is one way to write a value. Texts are normalized while they are read; needles are normalized already.
type form struct {
	reader
	needles []needle
	longest int // needle, in bytes
}

type reader interface {
	// occursIn reports whether a text may hold the form at all.
	occursIn(text []byte) bool
	// read reads the characters that begin in text[from:to], and returns where the last one ends.
	read(w *window, text []byte, from, to int) int
	// width returns the length of the character at the beginning of text.
	width(text []byte) int
	// write returns the needles for a value.
	write(value string) []needle
}

// needle is a value in the normalized spelling of a form.
type needle struct {
	text []byte
	// sharesFirst and sharesLast report whether the characters before and after text hold bits of
	// the value too. Their other bits are unknown.
	sharesFirst, sharesLast bool
	shown                   string // the placeholder
}

func newForms() []form {
	return []form{{reader: plain{}}, {reader: escapes{'%', percent}}, {reader: escapes{'\\', jsonEscape}},
		{reader: newBase64()}, {reader: newHexadecimal()}}
}

func (f *form) add(shown, value string) {
	for _, n := range f.write(value) {
		n.shown = shown
		f.needles = append(f.needles, n)
		f.longest = max(f.longest, len(n.text))
	}
}

// longestForm returns the length of the longest form of a value: hexadecimal with separators between all characters.
func longestForm(length int) int { return 2 * length * (1 + MaxBetween) }

// gap marks a part of a window that cannot be part of a value. No value contains it.
const gap = 0

// window is the part of a text that has been read and is being searched.
type window struct {
	bytes  []byte
	starts []int // where each of the bytes begins in the text
	kept   int   // number of bytes from previous stretches
	// Used only by alphabet:
	run     int // where the characters after the last gap begin
	between int // separators since the last character
}

func (w *window) reset(size int) {
	w.bytes, w.starts = slices.Grow(w.bytes[:0], size), slices.Grow(w.starts[:0], size)
	w.kept, w.run, w.between = 0, 0, 0
}

func (w *window) add(c byte, start int) {
	w.bytes, w.starts = append(w.bytes, c), append(w.starts, start)
}

// keep drops all but the last count bytes.
func (w *window) keep(count int) {
	first := max(0, len(w.bytes)-count)
	w.bytes, w.starts = w.bytes[:copy(w.bytes, w.bytes[first:])], w.starts[:copy(w.starts, w.starts[first:])]
	w.kept, w.run = len(w.bytes), max(0, w.run-first)
}

// plain reads unencoded values.
type plain struct{}

func (plain) occursIn([]byte) bool        { return true }
func (plain) width([]byte) int            { return 1 }
func (plain) write(value string) []needle { return []needle{{text: []byte(value)}} }

func (plain) read(w *window, text []byte, from, to int) int {
	w.bytes = append(w.bytes, text[from:to]...)
	for at := from; at < to; at++ {
		w.starts = append(w.starts, at)
	}
	return to
}

// escapes reads values of which any characters may be escaped.
type escapes struct {
	mark byte // begins every escape
	// decode decodes the escape at the beginning of text, appends the result to out and returns
	// the length of the escape, or 0 if there is none.
	decode func(out, text []byte) ([]byte, int)
}

func (e escapes) occursIn(text []byte) bool   { return bytes.IndexByte(text, e.mark) >= 0 }
func (e escapes) write(value string) []needle { return plain{}.write(value) }

func (e escapes) width(text []byte) int {
	if text[0] == e.mark {
		if _, width := e.decode(nil, text); width > 0 {
			return width
		}
	}
	return 1
}

func (e escapes) read(w *window, text []byte, from, to int) int {
	var scratch [utf8.UTFMax]byte
	for from < to {
		escape := bytes.IndexByte(text[from:to], e.mark)
		if escape < 0 {
			return plain{}.read(w, text, from, to)
		}
		from = plain{}.read(w, text, from, from+escape)
		decoded, width := e.decode(scratch[:0], text[from:])
		if width == 0 {
			decoded, width = append(decoded, e.mark), 1
		}
		for _, c := range decoded {
			w.add(c, from)
		}
		from += width
	}
	return from
}

// percent decodes percent-encoding (RFC 3986, section 2.1).
func percent(out, text []byte) ([]byte, int) {
	if len(text) < 3 {
		return out, 0
	}
	if value, ok := number(text[1:3]); ok {
		return append(out, byte(value)), 3
	}
	return out, 0
}

// jsonEscape decodes the escapes in JSON strings (RFC 8259, section 7).
func jsonEscape(out, text []byte) ([]byte, int) {
	if len(text) < 2 {
		return out, 0
	}
	if text[1] == 'u' {
		return unicodeEscape(out, text)
	}
	if i := strings.IndexByte(`"\/bfnrt`, text[1]); i >= 0 {
		return append(out, "\"\\/\b\f\n\r\t"[i]), 2
	}
	return out, 0
}

// unicodeEscape decodes \uXXXX, or a surrogate pair of two of them.
func unicodeEscape(out, text []byte) ([]byte, int) {
	if len(text) < 6 {
		return out, 0
	}
	first, ok := number(text[2:6])
	if !ok {
		return out, 0
	}
	if len(text) >= 12 && text[6] == '\\' && text[7] == 'u' {
		if second, ok := number(text[8:12]); ok {
			if pair := utf16.DecodeRune(first, second); pair != utf8.RuneError {
				return utf8.AppendRune(out, pair), 12
			}
		}
	}
	return utf8.AppendRune(out, first), 6
}

// number parses two or four hexadecimal digits.
func number(digits []byte) (value rune, ok bool) {
	var decoded [2]byte
	n, err := hex.Decode(decoded[:], digits)
	for _, b := range decoded[:n] {
		value = value<<8 | rune(b)
	}
	return value, err == nil
}

// alphabet reads values in an encoding whose characters have a few bits each.
type alphabet struct {
	characters [256]byte // the normalized character, gap or separator for each byte
	bits       int
	least      int // characters of the shortest needle
	encode     func(value []byte) string
}

// separator marks a byte that is ignored between characters.
const separator = 1

func newAlphabet(bits int, characters, separators string, encode func(value []byte) string) *alphabet {
	a := &alphabet{bits: bits, encode: encode}
	for _, c := range []byte(characters) {
		a.characters[c] = c
	}
	for _, c := range []byte(separators) {
		a.characters[c] = separator
	}
	return a
}

const whiteSpace = " \t\r\n"

func newBase64() *alphabet {
	a := newAlphabet(6, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", whiteSpace,
		base64.RawStdEncoding.EncodeToString)
	a.characters['-'], a.characters['_'] = '+', '/'
	return a
}

func newHexadecimal() *alphabet {
	a := newAlphabet(4, "0123456789abcdef", whiteSpace+":-", hex.EncodeToString)
	for c := byte('A'); c <= 'F'; c++ {
		a.characters[c] = c | 0x20
	}
	return a
}

func (a *alphabet) occursIn([]byte) bool { return true }
func (a *alphabet) width([]byte) int     { return 1 }

// write returns the characters that depend only on the value, for each number of bytes that may precede it. They repeat
// after a number of bytes that fills whole characters.
func (a *alphabet) write(value string) []needle {
	var needles []needle
	for before := 0; before == 0 || 8*before%a.bits != 0; before++ {
		encoded := a.encode(append(make([]byte, before), value...))
		first, last := 8*before, 8*(before+len(value)) // bits
		text := []byte(encoded[(first+a.bits-1)/a.bits : last/a.bits])
		needles = append(needles, needle{text: text, sharesFirst: first%a.bits != 0, sharesLast: last%a.bits != 0})
		if a.least == 0 || len(text) < a.least {
			a.least = len(text)
		}
	}
	return needles
}

func (a *alphabet) read(w *window, text []byte, from, to int) int {
	for at, c := range text[from:to] {
		switch c = a.characters[c]; {
		case c > separator:
			w.add(c, from+at)
			w.between = 0
		case c == separator && w.between < MaxBetween:
			w.between++
		default:
			a.divide(w, from+at)
		}
	}
	return to
}

// divide ends a run. It drops a run that is too short to hold a value, as most are.
func (a *alphabet) divide(w *window, at int) {
	if len(w.bytes)-w.run < a.least {
		w.bytes, w.starts, w.kept = w.bytes[:w.run], w.starts[:w.run], min(w.kept, w.run)
	} else {
		w.add(gap, at)
	}
	w.run = len(w.bytes)
}
