package schema

import (
	"encoding/json"
	"strings"
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
	var text string
	if err := json.Unmarshal([]byte(literal), &text); err != nil {
		return "", &textError{"", err.Error()}
	}
	return text, nil
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
