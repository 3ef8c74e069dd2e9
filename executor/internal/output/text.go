package output

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caisson-run/caisson/tool"
)

// fit returns the beginning of the text that has room together with its mark, with the mark, and the length of that
// beginning. The mark may depend on the length; a byte or two of room may be left where that makes the mark shorter.
// If not even the mark has room, fit returns the beginning of the mark.
func fit(text string, room int, mark func(kept int64) string) (string, int64) {
	kept := len(head(text, room))
	// A mark that grows by a digit makes the text shorter, and that seldom more than once.
	for range 8 {
		sentence := mark(int64(kept))
		over := len(text[:kept]) + len(separator(text[:kept], sentence)) + len(sentence) - room
		if over <= 0 {
			return join(text[:kept], sentence), int64(kept)
		}
		if kept == 0 {
			return head(sentence, room), 0
		}
		kept = len(head(text, max(0, kept-over)))
	}
	return head(mark(0), room), 0
}

// join appends the mark to the text on a separate line.
func join(text, mark string) string { return text + separator(text, mark) + mark }

func separator(text, mark string) string {
	if text == "" || mark == "" || strings.HasSuffix(text, "\n") {
		return ""
	}
	return "\n"
}

// maxBack is the maximum number of code points that head drops so as not to cut a character that consists of
// several. Longer characters are cut between code points.
const maxBack = 16

// head returns the longest beginning of a valid text that fits and does not end inside a character.
func head(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := runeBefore(text, max(limit, 0))
	back := end
	for range maxBack {
		if back == 0 || !joined(text, back) {
			return text[:back]
		}
		_, n := utf8.DecodeLastRuneInString(text[:back])
		back -= n
	}
	return text[:end]
}

// runeBefore returns the start of the last code point at or before a byte.
func runeBefore(text string, at int) int {
	for at > 0 && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

// runeAfter returns the start of the first code point at or after a byte, or the end of the text.
func runeAfter(text string, at int) int {
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return at
}

const zeroWidthJoiner = '\u200D'

// joined reports whether the code points on both sides belong to one character, such as an emoji of several parts.
func joined(text string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	after, _ := utf8.DecodeRuneInString(text[at:])
	if after < utf8.RuneSelf {
		return before == '\r' && after == '\n'
	}
	return before == zeroWidthJoiner || after == zeroWidthJoiner ||
		unicode.Is(unicode.M, after) || after >= 0x1F3FB && after <= 0x1F3FF
}

// partBytes is the overhead of each part of the content: many empty parts must be bounded as well.
const partBytes = 16

const replacement = "\uFFFD"

// size returns the number of bytes of a result that a model reads.
func size(r *tool.Result) int {
	size := len(r.Error) + contentSize(r.Content)
	if r.ModelReadsData() {
		return size + len(r.Data)
	}
	return size + len(r.Output)
}

func contentSize(parts []tool.Content) int {
	size := 0
	for i := range parts {
		size += partSize(&parts[i])
	}
	return size
}

func partSize(p *tool.Content) int { return aboutSize(p) + len(p.Text) + len(p.Data) }

// aboutSize returns the size of a part without its text and data.
func aboutSize(p *tool.Content) int {
	return partBytes + len(p.Type) + len(p.URL) + len(p.Name) + len(p.MIMEType)
}

// Valid returns the result with all text as valid UTF-8, with U+FFFD in place of invalid bytes. The given result is
// never written to. In JSON, invalid bytes can only be inside strings.
func Valid(r tool.Result) tool.Result {
	r.Output, r.Error = validText(r.Output), validText(r.Error)
	if !utf8.Valid(r.Data) {
		r.Data = bytes.ToValidUTF8(r.Data, []byte(replacement))
	}
	if slices.ContainsFunc(r.Content, func(p tool.Content) bool {
		return !utf8.ValidString(p.Text) || !utf8.ValidString(p.Type) || !utf8.ValidString(p.URL) ||
			!utf8.ValidString(p.Name) || !utf8.ValidString(p.MIMEType)
	}) {
		r.Content = slices.Clone(r.Content)
		for i := range r.Content {
			p := &r.Content[i]
			p.Text, p.Type, p.URL = validText(p.Text), validText(p.Type), validText(p.URL)
			p.Name, p.MIMEType = validText(p.Name), validText(p.MIMEType)
		}
	}
	return r
}

func validText(text string) string {
	if utf8.ValidString(text) { // which is many times faster to find out than to bring about
		return text
	}
	return strings.ToValidUTF8(text, replacement)
}

func Clone(r tool.Result) tool.Result {
	r.Data = bytes.Clone(r.Data)
	r.Content = slices.Clone(r.Content)
	for i := range r.Content {
		r.Content[i].Data = bytes.Clone(r.Content[i].Data)
	}
	return r
}
