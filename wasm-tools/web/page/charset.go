package page

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
)

// decode returns the body as UTF-8. A mark at its start counts most, then the label. Where
// neither is right it takes UTF-8, or Windows-1252 for what is not, which is what browsers
// take. Note says what could not be read.
func decode(body []byte, label string) (text []byte, note string) {
	switch {
	case bytes.HasPrefix(body, []byte("\ufeff")):
		return valid(body[len("\ufeff"):]), ""
	case bytes.HasPrefix(body, []byte{0xff, 0xfe}):
		return wide(body[2:], little), ""
	case bytes.HasPrefix(body, []byte{0xfe, 0xff}):
		return wide(body[2:], big), ""
	}
	label = strings.ToLower(strings.TrimSpace(label))
	switch label {
	case "utf-16", "utf-16le":
		return wide(body, little), ""
	case "utf-16be":
		return wide(body, big), ""
	case "utf-8", "utf8", "unicode-1-1-utf-8", "":
		return utf8OrWestern(body), ""
	}
	if table, ok := tables[label]; ok {
		// Pages that are UTF-8 and say otherwise are many; text in another charset that is
		// valid UTF-8 by chance is rare.
		if utf8.Valid(body) {
			return body, ""
		}
		return narrow(body, table), ""
	}
	if utf8.Valid(body) {
		return body, ""
	}
	return valid(body), fmt.Sprintf("the page is in the charset %q, which this tool cannot read: characters beyond ASCII are shown as \ufffd", plain.Line(label, 40))
}

func valid(body []byte) []byte { return bytes.ToValidUTF8(body, []byte("\ufffd")) }

// utf8OrWestern takes a few wrong bytes for damage, and many for another charset.
func utf8OrWestern(body []byte) []byte {
	if utf8.Valid(body) {
		return body
	}
	good, bad := 0, 0
	for rest := body; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			bad++
		case size > 1:
			good++
		}
		rest = rest[size:]
	}
	if good > bad {
		return valid(body)
	}
	return narrow(body, &windows1252)
}

// narrow decodes a charset of single bytes, the upper half of which is in the table.
func narrow(body []byte, table *[128]rune) []byte {
	text := make([]byte, 0, len(body)+len(body)/8)
	for _, b := range body {
		if len(text) > maxDecoded {
			break
		}
		if b < utf8.RuneSelf {
			text = append(text, b)
		} else {
			text = utf8.AppendRune(text, table[b-utf8.RuneSelf])
		}
	}
	return text
}

func little(b []byte) uint16 { return uint16(b[0]) | uint16(b[1])<<8 }
func big(b []byte) uint16    { return uint16(b[1]) | uint16(b[0])<<8 }

// maxDecoded bounds a text that is longer in UTF-8, in bytes.
const maxDecoded = maxBody + maxBody/2

// wide decodes UTF-16.
func wide(body []byte, unit func([]byte) uint16) []byte {
	text := make([]byte, 0, len(body))
	for len(body) >= 2 && len(text) <= maxDecoded {
		r := rune(unit(body))
		body = body[2:]
		if utf16.IsSurrogate(r) && len(body) >= 2 {
			if pair := utf16.DecodeRune(r, rune(unit(body))); pair != utf8.RuneError {
				r, body = pair, body[2:]
			}
		}
		text = utf8.AppendRune(text, r) // U+FFFD for half a pair
	}
	return text
}

// declaredCharset looks for a meta element that names the charset, in the first bytes.
func declaredCharset(body []byte) string {
	const looked = 2048
	tokens := html.NewTokenizer(bytes.NewReader(body[:min(len(body), looked)]))
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			return ""
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := tokens.TagName()
			if string(name) != "meta" {
				continue
			}
			if label := metaCharset(tokens, more); label != "" {
				return label
			}
		}
	}
}

func metaCharset(tokens *html.Tokenizer, more bool) string {
	var label, content string
	contentType := false
	for more {
		var key, value []byte
		key, value, more = tokens.TagAttr()
		switch string(key) {
		case "charset":
			label = string(value)
		case "content":
			content = string(value)
		case "http-equiv":
			contentType = strings.EqualFold(string(value), "content-type")
		}
	}
	if label == "" && contentType {
		if _, after, ok := strings.Cut(strings.ToLower(content), "charset="); ok {
			label = strings.Trim(strings.SplitN(after, ";", 2)[0], `"' `)
		}
	}
	if strings.HasPrefix(strings.ToLower(label), "utf-16") {
		return "utf-8" // or the element could not have been read
	}
	return label
}
