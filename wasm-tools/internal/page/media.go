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
	"golang.org/x/text/encoding"

	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
)

// mediaOf returns the type of a body from its header or, if there is none, from its first bytes.
func mediaOf(source Source) (string, error) {
	media, _, err := mime.ParseMediaType(source.ContentType)
	if err != nil && media == "" {
		media, _, _ = strings.Cut(source.ContentType, ";")
		media = plain.Line(strings.ToLower(media), maxMedia)
	}
	switch {
	case media == "" || media == "application/octet-stream":
		return sniff(source.Body)
	case isHTML(media) || isText(media):
		return media, nil
	}
	return "", fmt.Errorf("it is %s, which has no text that this tool can read", plain.Line(media, maxMedia))
}

// maxMedia bounds the name of a type, in characters.
const maxMedia = 100

func isHTML(media string) bool { return media == "text/html" || media == "application/xhtml+xml" }

func isText(media string) bool {
	switch media {
	case "application/json", "application/xml", "application/javascript", "application/ecmascript", "application/yaml",
		"application/x-yaml", "application/toml", "application/x-ndjson", "application/jsonlines", "application/sql",
		"application/x-sh", "application/x-javascript":
		return true
	}
	return strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "+json") ||
		strings.HasSuffix(media, "+xml") && media != "image/svg+xml"
}

// sniff returns the type of a body that a server sent without one.
func sniff(body []byte) (string, error) {
	const looked = 1024
	start := bytes.TrimLeft(bytes.TrimPrefix(body[:min(len(body), looked)], []byte("\ufeff")), " \t\r\n")
	switch {
	case bytes.HasPrefix(start, []byte("<")) && !bytes.HasPrefix(start, []byte("<?xml")):
		return "text/html", nil
	case bytes.IndexByte(start, 0) < 0 && utf8.Valid(plain.WholeRunes(start)):
		return "text/plain", nil
	}
	return "", errors.New("it is binary data of a type that the server does not name")
}

// plain reads text other than HTML.
func (p *Page) plain(body []byte, options Options) {
	// Enough bytes for the wanted number of characters.
	const longest = utf8.UTFMax
	p.MoreText = len(body) > longest*options.Text
	lines := plain.Lines(string(body[:min(len(body), longest*options.Text)]))
	p.Text = plain.First(lines, options.Text)
	p.MoreText = p.MoreText || len(p.Text) < len(lines)
}

// decode returns the body as UTF-8.
func decode(body []byte, contentType string, html bool) ([]byte, error) {
	switch stored, _ := encodingOf(body, contentType, html); {
	case stored != nil:
		const longest = maxBody + maxBody/2 // some texts are longer in UTF-8
		text, err := io.ReadAll(io.LimitReader(stored.NewDecoder().Reader(bytes.NewReader(body)), longest))
		return bytes.TrimPrefix(plain.WholeRunes(text), []byte(byteOrderMark)), err
	case utf8.Valid(body):
		return bytes.TrimPrefix(body, []byte(byteOrderMark)), nil
	}
	return bytes.ToValidUTF8(body, []byte("\ufffd")), nil
}

const byteOrderMark = "\ufeff"

const western = "windows-1252"

// encodingOf returns the encoding of a text: nil for UTF-8, which may be damaged. A byte order mark
// takes precedence over the header, and the header over a declaration in HTML. Without a valid one it
// assumes UTF-8, or else Windows-1252, as browsers do.
func encodingOf(start []byte, contentType string, html bool) (stored encoding.Encoding, name string) {
	looked := 1024
	if !html {
		looked = len(byteOrderMark)
	}
	stored, name, certain := charset.DetermineEncoding(start[:min(len(start), looked)], contentType)
	switch {
	case name == "utf-16le" || name == "utf-16be":
	case utf8.Valid(start):
		// Many pages are UTF-8 but declare something else. Text in another charset is rarely valid
		// UTF-8.
		return nil, "utf-8"
	case name == "utf-8" || name == western && !certain: // its answer also if nothing is declared
		if isDamaged(start) {
			return nil, "utf-8"
		}
		stored, name = charset.Lookup(western)
	}
	return stored, name
}

// isDamaged reports whether a text is UTF-8 with a few wrong bytes rather than another charset.
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
