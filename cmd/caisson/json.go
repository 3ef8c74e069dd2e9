package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/caisson-run/caisson/tool"
)

// printJSON writes a value to stdout as one line.
func (e environment) printJSON(value any) error {
	text, err := encoded(value)
	if err != nil {
		return err
	}
	if _, err := e.stdout.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("cannot write the output: %w", err)
	}
	return nil
}

// encoded returns a value's JSON, which programs read as exactly what it is. People read it, too, and
// approve of what they see in it: characters that deceive them stand as escapes.
func encoded(value any) (json.RawMessage, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("cannot write the output: %w", err)
	}
	return visible(bytes.TrimRight(b.Bytes(), "\n")), nil
}

// visible returns JSON with all characters escaped that [tool.Deceives], those that shape honest text
// among them: they stand in strings alone, where an escape means the same.
func visible(text []byte) []byte {
	deceives := func(r rune) bool { return r >= 0x7f && tool.Deceives(r) } // what is below can stand between values, and is escaped in them
	if !bytes.ContainsFunc(text, deceives) {
		return text
	}
	var escaped []byte
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case !deceives(r):
			escaped = append(escaped, text[:size]...)
		case r <= 0xffff:
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, high, low)
		}
		text = text[size:]
	}
	return escaped
}

// list returns the slice, or an empty one for nil, so that JSON has [] and not null.
func list[T any](elements []T) []T {
	if elements == nil {
		return []T{}
	}
	return elements
}
