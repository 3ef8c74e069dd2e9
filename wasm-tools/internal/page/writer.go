package page

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
)

// writer turns pieces of text into lines: it collapses white space, separates paragraphs by one empty
// line, and starts each line with the indentation and the markers of its place.
type writer struct {
	out bytes.Buffer
	// sink is where the text goes, piece by piece, or nil if all of it stays in out.
	sink    io.Writer
	failed  error // of the sink
	started bool  // some text was written
	left    int   // remaining characters
	full    bool
	gap     int  // line breaks before the next text: 0, 1 or 2
	space   bool // a space precedes the next text
	fresh   bool // at the start of a line

	lists  []list
	quotes int
	marker string // of the list item or heading that has no text yet
	cells  int    // bars before the next text
	pre    int
	// opened means that preformatted text has just started, whose first line break is ignored.
	opened bool
	// written counts the pieces of text, so that callers can see whether any was written since.
	written int
}

// list is an open list.
type list struct {
	ordered bool
	next    int
}

const (
	maxIndent = 8  // levels of lists and of quotations that show
	maxMarker = 64 // bytes
)

func newWriter(limit int, sink io.Writer) writer { return writer{left: limit, fresh: true, sink: sink} }

// pieceSize is the number of bytes written to the sink at once.
const pieceSize = 32 << 10

// flush passes the text on to the sink.
func (w *writer) flush() {
	if w.sink == nil || w.failed != nil {
		return
	}
	if _, w.failed = w.sink.Write(w.out.Bytes()); w.failed != nil {
		w.full = true
	}
	w.out.Reset()
}

// breakLine requests at least so many line breaks before the next text. They are ignored before the
// first text of a list item, a heading or a table's cell.
func (w *writer) breakLine(n int) {
	w.space = false
	if w.marker == "" && w.cells == 0 && w.started {
		w.gap = max(w.gap, n)
	}
}

// part breaks the line before and after an element, as its class requires.
func (w *writer) part(c class) {
	switch {
	case c&separated != 0:
		w.breakLine(2)
	case c&block != 0:
		w.breakLine(1)
	}
}

// text writes a piece of the page's text.
func (w *writer) text(piece []byte) {
	if w.pre > 0 {
		w.verbatim(piece)
		return
	}
	for len(piece) > 0 && !w.full {
		if n := printed(piece); n > 0 {
			w.begin()
			w.ascii(piece[:n])
			piece = piece[n:]
			continue
		}
		r, size := utf8.DecodeRune(piece)
		piece = piece[size:]
		switch {
		case plain.Space(r):
			w.space = true
		case plain.Visible(r):
			w.begin()
			w.rune(r)
		}
	}
}

// verbatim writes text and keeps its white space.
func (w *writer) verbatim(piece []byte) {
	for len(piece) > 0 && !w.full {
		r, size := utf8.DecodeRune(piece)
		piece = piece[size:]
		opened := w.opened
		w.opened = false
		switch {
		case r == '\n' && opened:
		case r == '\n':
			w.begin()
			w.rune('\n')
			w.fresh = true
		case r == '\t' || r == ' ' || r == '\u00a0' || plain.Visible(r):
			w.begin()
			w.rune(r)
		}
	}
}

// begin writes the pending space or line breaks, and the start of the line, before the next character.
func (w *writer) begin() {
	w.written++
	if w.gap == 0 && !w.fresh && w.cells == 0 {
		if w.space {
			w.rune(' ')
		}
		w.space = false
		return
	}
	for ; w.gap > 0; w.gap-- {
		w.rune('\n')
		w.fresh = true
	}
	if w.fresh {
		w.startLine()
	}
	for ; w.cells > 0 && !w.full; w.cells-- {
		w.string(" | ")
	}
	w.cells = 0
	w.space = false
}

func (w *writer) startLine() {
	w.fresh = false
	w.string(strings.Repeat("> ", min(w.quotes, maxIndent)))
	depth := min(len(w.lists), maxIndent)
	if w.marker != "" && depth > 0 {
		depth--
	}
	w.string(strings.Repeat("  ", depth))
	w.string(w.marker)
	w.marker = ""
}

// raw writes text that is not the page's.
func (w *writer) raw(text string) {
	w.begin()
	w.string(text)
}

func (w *writer) string(text string) {
	for _, r := range text {
		w.rune(r)
	}
}

func (w *writer) rune(r rune) {
	if w.left <= 0 {
		w.full = true
		return
	}
	w.left--
	w.started = true
	w.out.WriteRune(r)
	if w.sink != nil && w.out.Len() >= pieceSize {
		w.flush()
	}
}

// printed returns how many characters a text starts with that are ASCII and neither space nor control.
func printed(text []byte) int {
	for i, c := range text {
		if c <= ' ' || c >= 0x7f {
			return i
		}
	}
	return len(text)
}

// ascii writes characters of one byte.
func (w *writer) ascii(text []byte) {
	if len(text) > w.left {
		text, w.full = text[:w.left], true
	}
	w.left -= len(text)
	w.started = true
	w.out.Write(text)
	if w.sink != nil && w.out.Len() >= pieceSize {
		w.flush()
	}
}

// mark adds a marker before the next text.
func (w *writer) mark(marker string) {
	if len(w.marker)+len(marker) <= maxMarker {
		w.marker += marker
	}
}

// unmark drops markers that have no text.
func (w *writer) unmark() { w.marker = "" }
