package page

import (
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
)

// writer makes lines of text out of the pieces of a page: it joins white space, keeps
// paragraphs apart by one empty line, and puts before each line what its place asks for.
type writer struct {
	out   strings.Builder
	left  int // characters that may still be written
	full  bool
	gap   int  // line breaks before the next text: 0, 1 or 2
	space bool // a space before it
	fresh bool // at the start of a line

	lists  []list
	quotes int
	marker string // of the list item or heading whose text has not come yet
	cells  int    // bars before the next text
	pre    int
	// opened tells that a preformatted text has just begun, whose first line break is none.
	opened bool
	// written counts the pieces of text, so that callers see whether there was any since.
	written int
}

// list is one that is open.
type list struct {
	ordered bool
	next    int
}

const (
	maxIndent = 8  // levels of lists and of quotations that show
	maxMarker = 64 // bytes
)

func newWriter(limit int) writer { return writer{left: limit, fresh: true} }

// breakLine asks for at least so many line breaks before the next text. There is none before
// the first text of a list item, a heading or a table's cell.
func (w *writer) breakLine(n int) {
	w.space = false
	if w.marker == "" && w.cells == 0 && w.out.Len() > 0 {
		w.gap = max(w.gap, n)
	}
}

// part breaks the line before and behind an element of a class that asks for it.
func (w *writer) part(c class) {
	switch {
	case c&apart != 0:
		w.breakLine(2)
	case c&block != 0:
		w.breakLine(1)
	}
}

// text writes a piece of the page.
func (w *writer) text(piece []byte) {
	if w.pre > 0 {
		w.verbatim(piece)
		return
	}
	for len(piece) > 0 && !w.full {
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

// verbatim writes text whose white space counts.
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

// begin writes what stands before the next character.
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

// raw writes a text of our own in the flow of the page's.
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
	w.out.WriteRune(r)
}

// mark puts a marker before the next text, behind those that wait already.
func (w *writer) mark(marker string) {
	if len(w.marker)+len(marker) <= maxMarker {
		w.marker += marker
	}
}

// unmark drops the markers of what had no text.
func (w *writer) unmark() { w.marker = "" }
