// Package pieces assembles texts and calls from the pieces in which they are streamed.
package pieces

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Text is a JSON string that may be a piece of a longer one. Servers that count in UTF-16 split texts
// between the surrogates of a character, and write each as an escape: "\ud83d", "\ude00". Decoded one by one
// both are lost, so a Text keeps the surrogate that it begins or ends with.
//
// The zero value is empty. null decodes to it.
type Text struct {
	second rune // the second half of a character, with which the text begins, or 0
	text   string
	first  rune // the first half of a character, with which the text ends, or 0
}

// NewText returns a text that does not begin or end with half a character.
func NewText(text string) Text { return Text{text: text} }

// UnmarshalJSON reads a JSON string, or null.
func (t *Text) UnmarshalJSON(data []byte) error {
	*t = Text{}
	if string(data) == "null" {
		return nil
	}
	if err := json.Unmarshal(data, &t.text); err != nil {
		return err
	}
	inner := data[1 : len(data)-1]
	// A surrogate without its pair is decoded as the replacement character.
	if half := escape(inner); half >= 0xdc00 && half <= 0xdfff {
		t.second, t.text = half, t.text[utf8.RuneLen(utf8.RuneError):]
	}
	if half := lastEscape(inner); half >= 0xd800 && half <= 0xdbff {
		t.first, t.text = half, t.text[:len(t.text)-utf8.RuneLen(utf8.RuneError)]
	}
	return nil
}

// escape returns the character of the escape \uXXXX with which the inside of a string begins, or 0.
func escape(inner []byte) rune {
	if len(inner) < 6 || inner[0] != '\\' || inner[1] != 'u' {
		return 0
	}
	code, err := strconv.ParseUint(string(inner[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(code)
}

// lastEscape returns the character of the escape \uXXXX with which the inside of a string ends, or 0.
func lastEscape(inner []byte) rune {
	at := len(inner) - 6
	if at < 0 {
		return 0
	}
	before := at
	for before > 0 && inner[before-1] == '\\' {
		before--
	}
	if (at-before)%2 != 0 {
		return 0 // the backslash is itself escaped
	}
	return escape(inner[at:])
}

func (t Text) Empty() bool { return t == Text{} }

// String returns the text with U+FFFD for halves of characters.
func (t Text) String() string {
	var halves Halves
	return halves.Add(t) + halves.End()
}

// Halves joins the pieces of a text. The zero value is ready.
type Halves struct{ first rune }

// Add returns the text that the next piece completes: all of it, except for half a character at its end.
func (h *Halves) Add(piece Text) string {
	if piece.Empty() {
		return ""
	}
	var joined strings.Builder
	switch {
	case h.first != 0 && piece.second != 0:
		joined.WriteRune(utf16.DecodeRune(h.first, piece.second))
	case h.first != 0 || piece.second != 0:
		joined.WriteRune(utf8.RuneError)
	}
	h.first = piece.first
	if joined.Len() == 0 {
		return piece.text
	}
	joined.WriteString(piece.text)
	return joined.String()
}

// End ends the text. It returns U+FFFD if the text ends with half a character, else "".
func (h *Halves) End() string {
	if h.first == 0 {
		return ""
	}
	h.first = 0
	return string(utf8.RuneError)
}

// Arguments are a call's arguments, or a piece of them. They are documented as a JSON string; some servers
// send the object itself, whose JSON is then the text.
type Arguments struct{ Text }

// UnmarshalJSON reads any JSON value.
func (a *Arguments) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '"', 'n':
		return a.Text.UnmarshalJSON(data)
	}
	a.Text = NewText(string(data))
	return nil
}
