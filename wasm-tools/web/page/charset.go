package page

import (
	"bytes"
	"io"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
)

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
	return bytes.TrimPrefix(wholeRunes(text), []byte("\ufeff")), err
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
