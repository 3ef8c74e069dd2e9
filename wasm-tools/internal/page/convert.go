package page

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"

	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
)

const (
	// sniffSize is the number of bytes at the start of a document from which its encoding is detected.
	sniffSize = 64 << 10
	// maxToken bounds a tag, or a text without tags in it, in bytes.
	maxToken = 8 << 20
)

// Convert reads HTML of any length and writes its text as it goes. The page that it returns is like that
// of [Read], without the text and the links. If it fails, it has written the start of the text.
func Convert(in io.Reader, out io.Writer) (*Page, error) {
	text, _, err := Decode(bufio.NewReaderSize(in, sniffSize), true)
	if err != nil {
		return nil, err
	}
	return ConvertText(text, out)
}

// ConvertText is [Convert] for HTML that is in UTF-8 already.
func ConvertText(text io.Reader, out io.Writer) (*Page, error) {
	p := &Page{Type: "text/html"}
	err := p.scan(text, Options{Text: math.MaxInt, Links: 1}, out)
	if errors.Is(err, html.ErrBufferExceeded) {
		err = fmt.Errorf("it has a tag or a text without tags of more than %d MiB: what follows cannot be read", maxToken>>20)
	}
	return p, err
}

// Decode returns a reader of a document's text in UTF-8, without a byte order mark, and the name of its
// encoding. It detects the encoding from as much of the start as in can hold. Damaged UTF-8 is returned unchanged.
func Decode(in *bufio.Reader, isHTML bool) (text io.Reader, name string, err error) {
	start, err := in.Peek(in.Size())
	if err != nil && err != io.EOF {
		return nil, "", err
	}
	if len(start) == in.Size() {
		start = plain.WholeRunes(start)
	}
	stored, name := encodingOf(start, "", isHTML)
	for _, mark := range []string{byteOrderMark, "\xff\xfe", "\xfe\xff"} {
		if bytes.HasPrefix(start, []byte(mark)) {
			if _, err := in.Discard(len(mark)); err != nil {
				return nil, "", err
			}
			break
		}
	}
	if stored == nil {
		return in, name, nil
	}
	if !isHTML && name == western && isChinese(start) {
		stored, name = charset.Lookup("gb18030")
	}
	return stored.NewDecoder().Reader(in), name, nil
}

// isChinese reports whether text that is not UTF-8 is in GBK or GB18030: nearly all bytes beyond ASCII are
// pairs that mean one of its common characters. In western texts, such bytes are mostly single.
func isChinese(start []byte) bool {
	pairs, others := 0, 0
	for i := 0; i < len(start); i++ {
		switch {
		case start[i] < 0x80:
		case i+1 < len(start) && start[i] >= 0xa1 && start[i] <= 0xf7 && start[i+1] >= 0xa1:
			if start[i] == 0xa1 || start[i] == 0xa3 || start[i] >= 0xb0 { // punctuation, wide letters, characters
				pairs++
			} else {
				others++
			}
			i++
		default:
			others++
		}
	}
	return pairs > 4*others
}
