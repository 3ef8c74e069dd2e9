package output

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/tool"
)

// partBytes is what each part of the content counts beside its text: a part has members and
// braces, so that very many empty ones are not nothing.
const partBytes = 16

const replacement = "\uFFFD"

func size(r *tool.Result) int {
	return len(r.Output) + len(r.Error) + len(r.Data) + contentSize(r.Content)
}

func contentSize(parts []tool.Content) int {
	size := 0
	for i := range parts {
		size += partSize(&parts[i])
	}
	return size
}

func partSize(p *tool.Content) int { return aboutSize(p) + len(p.Text) + len(p.Data) }

// aboutSize is the size of all of a part but its text and data.
func aboutSize(p *tool.Content) int {
	return partBytes + len(p.Type) + len(p.URL) + len(p.Name) + len(p.MIMEType)
}

func valid(r *tool.Result) bool {
	if !utf8.ValidString(r.Output) || !utf8.ValidString(r.Error) || !utf8.Valid(r.Data) {
		return false
	}
	for i := range r.Content {
		if !validPart(&r.Content[i]) {
			return false
		}
	}
	return true
}

func validPart(p *tool.Content) bool {
	return utf8.ValidString(p.Text) && utf8.ValidString(p.Type) && utf8.ValidString(p.URL) &&
		utf8.ValidString(p.Name) && utf8.ValidString(p.MIMEType)
}

// makeValid makes all text valid UTF-8. It writes to copies of what others may hold as well.
// In JSON, what is not valid can only be inside strings.
func makeValid(r *tool.Result) {
	r.Output, r.Error = validText(r.Output), validText(r.Error)
	if !utf8.Valid(r.Data) {
		r.Data = bytes.ToValidUTF8(r.Data, []byte(replacement))
	}
	copied := false
	for i := range r.Content {
		if validPart(&r.Content[i]) {
			continue
		}
		if !copied {
			r.Content, copied = slices.Clone(r.Content), true
		}
		p := &r.Content[i]
		p.Text, p.Type, p.URL = validText(p.Text), validText(p.Type), validText(p.URL)
		p.Name, p.MIMEType = validText(p.Name), validText(p.MIMEType)
	}
}

func validText(text string) string {
	if utf8.ValidString(text) { // which is many times faster to find out than to bring about
		return text
	}
	return strings.ToValidUTF8(text, replacement)
}
