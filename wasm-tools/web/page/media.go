package page

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
)

// kind is how a body is read.
type kind int

const (
	asText kind = iota
	asHTML
)

// mediaOf says what a body is, by its header, and where there is none by its beginning.
func mediaOf(source Source) (k kind, media string, err error) {
	media, _, err = mime.ParseMediaType(source.ContentType)
	if err != nil && media == "" {
		media, _, _ = strings.Cut(source.ContentType, ";")
		media = plain.Line(strings.ToLower(media), maxMedia)
	}
	switch {
	case media == "" || media == "application/octet-stream":
		return sniff(source.Body)
	case media == "text/html" || media == "application/xhtml+xml":
		return asHTML, media, nil
	case isText(media):
		return asText, media, nil
	}
	return 0, "", fmt.Errorf("it is %s, which has no text that this tool can read", plain.Line(media, maxMedia))
}

// maxMedia bounds the name of a type, in characters.
const maxMedia = 100

func isText(media string) bool {
	switch media {
	case "application/json", "application/xml", "application/javascript", "application/ecmascript", "application/yaml",
		"application/x-yaml", "application/toml", "application/x-ndjson", "application/jsonlines", "application/sql",
		"application/x-sh", "application/x-javascript":
		return true
	}
	return strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "+xml") && media != "image/svg+xml"
}

// sniff tells HTML from text and text from the rest. Servers that do not name the type send
// all three.
func sniff(body []byte) (kind, string, error) {
	const looked = 1024
	start := bytes.TrimLeft(bytes.TrimPrefix(body[:min(len(body), looked)], []byte("\ufeff")), " \t\r\n")
	switch {
	case bytes.HasPrefix(start, []byte("<")) && !bytes.HasPrefix(start, []byte("<?xml")):
		return asHTML, "text/html", nil
	case bytes.IndexByte(start, 0) < 0 && utf8.Valid(plain.WholeRunes(start)):
		return asText, "text/plain", nil
	}
	return 0, "", errors.New("it is binary data of a type that the server does not name")
}

// plain reads a text that is no HTML.
func (p *Page) plain(body []byte, options Options) {
	// Characters are four bytes at most, so this is enough of them.
	const longest = utf8.UTFMax
	p.MoreText = len(body) > longest*options.Text
	lines := plain.Lines(string(body[:min(len(body), longest*options.Text)]))
	p.Text = plain.First(lines, options.Text)
	p.MoreText = p.MoreText || len(p.Text) < len(lines)
}

// decode returns the body as UTF-8. A mark at its start counts most, then the header, then what
// HTML says of itself. Where none of them is right it takes UTF-8, or Windows-1252 for what is
// not, which is what browsers take.
func decode(body []byte, contentType string, k kind) ([]byte, error) {
	looked := 1024
	if k != asHTML {
		looked = len("\ufeff")
	}
	encoding, name, certain := charset.DetermineEncoding(body[:min(len(body), looked)], contentType)
	switch {
	case name == "utf-16le" || name == "utf-16be":
	case utf8.Valid(body):
		// Pages that are UTF-8 and say otherwise are many; text in another charset that is valid
		// UTF-8 by chance is rare.
		return bytes.TrimPrefix(body, []byte("\ufeff")), nil
	case name == "utf-8" || name == "windows-1252" && !certain: // which it says of what says nothing, too
		if isDamaged(body) {
			return bytes.ToValidUTF8(body, []byte("\ufffd")), nil
		}
		encoding, _ = charset.Lookup("windows-1252")
	}
	const longest = maxBody + maxBody/2 // some texts are longer in UTF-8
	text, err := io.ReadAll(io.LimitReader(encoding.NewDecoder().Reader(bytes.NewReader(body)), longest))
	return bytes.TrimPrefix(plain.WholeRunes(text), []byte("\ufeff")), err
}

// isDamaged tells UTF-8 with a few wrong bytes from another charset.
func isDamaged(body []byte) bool {
	good, bad := 0, 0
	for len(body) > 0 {
		r, size := utf8.DecodeRune(body)
		switch {
		case r == utf8.RuneError && size == 1:
			bad++
		case size > 1:
			good++
		}
		body = body[size:]
	}
	return good > bad
}
