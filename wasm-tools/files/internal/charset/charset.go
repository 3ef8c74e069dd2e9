// Package charset reads and writes text as files store it.
package charset

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
)

// Charset is the encoding of a text file. Get one from [Of].
type Charset struct {
	Name  string
	Mark  string            // the byte-order mark that a new file starts with, and a reader leaves out
	codec encoding.Encoding // nil for UTF-8
	// maxRune is the maximum code point, if the codec would take more.
	maxRune rune
}

const (
	utf8Mark  = "\xef\xbb\xbf"
	littleEnd = "\xff\xfe"
	bigEnd    = "\xfe\xff"
)

// Of returns the charset with a name of the WHATWG or of Python; for utf-16, a file's start decides on
// the order of bytes.
func Of(name, start string) (Charset, error) {
	little, big := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM),
		unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	switch label := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "_", "-"); label {
	case "", "utf-8", "utf8":
		return Charset{Name: "utf-8"}, nil
	case "utf-8-sig":
		return Charset{Name: label, Mark: utf8Mark}, nil
	case "utf-16", "utf16":
		if strings.HasPrefix(start, bigEnd) {
			return Charset{Name: "utf-16", codec: big, Mark: bigEnd}, nil
		}
		return Charset{Name: "utf-16", codec: little, Mark: littleEnd}, nil
	case "utf-16le", "utf-16-le":
		return Charset{Name: label, codec: little}, nil
	case "utf-16be", "utf-16-be":
		return Charset{Name: label, codec: big}, nil
	case "ascii", "us-ascii":
		return Charset{Name: label, codec: charmap.ISO8859_1, maxRune: 0x7f}, nil
	case "latin-1", "latin1", "iso-8859-1":
		return Charset{Name: label, codec: charmap.ISO8859_1}, nil
	default:
		if codec, err := htmlindex.Get(label); err == nil && isForFiles(codec) {
			return Charset{Name: label, codec: codec}, nil
		}
	}
	return Charset{},
		fmt.Errorf(
			"the encoding %q is not supported; use utf-8, utf-16, latin-1, windows-1252, gbk, gb18030, big5, shift_jis, "+
				"euc-kr or another that browsers know", plain.Line(name, 40))
}

// isForFiles leaves out encodings of the WHATWG that are not for files, and the one in which a byte's meaning depends
// on all before it, so that no piece could be read.
func isForFiles(codec encoding.Encoding) bool {
	name, err := htmlindex.Name(codec)
	return err == nil && !slices.Contains([]string{"iso-2022-jp", "replacement", "x-user-defined"}, name)
}

// Start returns the first bytes of a file: enough for any byte-order mark.
func Start(file io.ReaderAt) (string, error) {
	start := make([]byte, len(utf8Mark))
	n, err := file.ReadAt(start, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return string(start[:n]), nil
}

// ErrNotText means that bytes are not text in a charset.
var ErrNotText = errors.New("not text")

// Decode returns the text of a piece of a file and how many of its bytes that is. Unless the piece is the last one,
// a character at its end may be incomplete.
func (c Charset) Decode(piece []byte, last bool) (string, int, error) {
	if c.codec == nil {
		if !last {
			piece = plain.WholeRunes(piece)
		}
		if !utf8.Valid(piece) {
			return "", 0, ErrNotText
		}
		return string(piece), len(piece), nil
	}
	text := make([]byte, utf8.UTFMax*len(piece)+utf8.UTFMax)
	written, read, err := c.codec.NewDecoder().Transform(text, piece, last)
	if err != nil && (last || !errors.Is(err, transform.ErrShortSrc)) {
		return "", 0, ErrNotText
	}
	decoded := string(text[:written])
	if strings.ContainsRune(decoded, utf8.RuneError) || c.isBeyond(decoded) {
		return "", 0, ErrNotText
	}
	return decoded, read, nil
}

// Encode returns the bytes of a text.
func (c Charset) Encode(text string) (string, error) {
	if c.codec == nil {
		return text, nil
	}
	encoded, err := c.codec.NewEncoder().String(text)
	if err == nil && !c.isBeyond(text) {
		return encoded, nil
	}
	for _, r := range text {
		if _, err := c.codec.NewEncoder().String(string(r)); err != nil || c.isBeyond(string(r)) {
			return "", fmt.Errorf("%s has no %q; use utf-8", c.Name, r)
		}
	}
	return "", err
}

// isBeyond reports whether a text has characters that the codec knows and the charset does not.
func (c Charset) isBeyond(text string) bool {
	return c.maxRune > 0 && strings.ContainsFunc(text, func(r rune) bool { return r > c.maxRune })
}
