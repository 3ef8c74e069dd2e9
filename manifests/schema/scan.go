package schema

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// next goes to the next element of a container, from what opens the container or from the
// element before. It returns false, behind the container, if there is none.
func (d *decoder) next(closing byte) bool {
	d.space()
	if d.text[d.offset] != closing {
		d.offset++ // what opens the container, or a comma
		d.space()
		if d.text[d.offset] != closing {
			return true
		}
	}
	d.offset++
	return false
}

// word returns a number, true, false or null.
func (d *decoder) word() string {
	start := d.offset
	for ; d.offset < len(d.text); d.offset++ {
		switch d.text[d.offset] {
		case ',', ']', '}', ' ', '\t', '\r', '\n':
			return d.text[start:d.offset]
		}
	}
	return d.text[start:]
}

// string returns what a string says.
func (d *decoder) string() (string, error) {
	start, escaped := d.offset, false
	for d.offset++; ; d.offset++ {
		d.offset += strings.IndexAny(d.text[d.offset:], `"\`)
		if d.text[d.offset] == '"' {
			break
		}
		escaped = true
		d.offset++ // what is escaped
	}
	d.offset++
	literal := d.text[start:d.offset]
	if !escaped {
		return literal[1 : len(literal)-1], nil
	}
	return d.unescape(literal[1 : len(literal)-1])
}

// maxPiece is how much of an escaped string is read between two looks at the context.
const maxPiece = 64 << 10

// unescape returns what the inside of a string says. A long one is read in pieces, none of which
// ends within an escape, a character or a pair of surrogates.
func (d *decoder) unescape(inside string) (string, error) {
	var whole strings.Builder
	begin, high := 0, false // high: what is before is the first half of a pair
	for at := 0; at < len(inside); {
		length, first, second := unit(inside[at:])
		if at-begin >= maxPiece && !(high && second) {
			if err := d.piece(&whole, inside[begin:at]); err != nil {
				return "", err
			}
			begin = at
		}
		high = first
		at += length
	}
	if err := d.piece(&whole, inside[begin:]); err != nil {
		return "", err
	}
	return whole.String(), nil
}

func (d *decoder) piece(whole *strings.Builder, inside string) error {
	if err := ended(d.ctx); err != nil {
		return err
	}
	var text string
	if err := json.Unmarshal([]byte(`"`+inside+`"`), &text); err != nil {
		return &textError{"", err.Error()}
	}
	whole.WriteString(text)
	return nil
}

// unit returns how long the escape or the character is that a text begins with, and whether it is
// the first or the second of a pair of surrogates.
func unit(text string) (length int, first, second bool) {
	switch {
	case text[0] != '\\':
		_, length = utf8.DecodeRuneInString(text)
		return length, false, false
	case text[1] != 'u':
		return 2, false, false
	}
	code, _ := strconv.ParseUint(text[2:6], 16, 16)
	return 6, code&0xFC00 == 0xD800, code&0xFC00 == 0xDC00
}

func (d *decoder) space() {
	for d.offset < len(d.text) {
		switch d.text[d.offset] {
		case ' ', '\t', '\r', '\n':
			d.offset++
		default:
			return
		}
	}
}
