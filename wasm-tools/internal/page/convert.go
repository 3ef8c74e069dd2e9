package page

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"

	"golang.org/x/net/html"

	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
)

const (
	// deciding is how much of a document decides about its encoding, in bytes.
	deciding = 64 << 10
	// maxToken bounds a tag, or a text without tags in it, in bytes.
	maxToken = 8 << 20
)

// Convert reads HTML of any length and writes its text as it goes. The page that it returns is like that
// of [Read], without the text. If it fails, what it has written is the start of the text.
func Convert(in io.Reader, out io.Writer) (*Page, error) {
	body := bufio.NewReaderSize(in, deciding)
	start, err := body.Peek(deciding)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if len(start) == deciding {
		start = plain.WholeRunes(start)
	}
	text := io.Reader(body)
	if stored := encodingOf(start, "", true); stored != nil {
		text = stored.NewDecoder().Reader(body)
	}
	p := &Page{Type: "text/html"}
	err = p.scan(text, Options{Text: math.MaxInt, Links: defaultLinks}, out)
	if errors.Is(err, html.ErrBufferExceeded) {
		err = fmt.Errorf("it has a tag or a text without tags of more than %d MiB: what follows cannot be read", maxToken>>20)
	}
	return p, err
}
