package page

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
)

// scanner reads the tokens of one page.
type scanner struct {
	page    *Page
	options Options
	stack   stack
	writer  writer
	about   about
	links   links

	title   bool // the next text is the title
	data    bool // the next text is JSON-LD
	heading *captured
	anchor  *anchor
	// row is the number of cells in the current row, and rowStart the writer's count at its start.
	row, rowStart int
}

// captured is the text of an element, up to a limit.
type captured struct{ text bytes.Buffer }

// maxCapture bounds a captured text, in bytes. No more of it is shown anyway.
const maxCapture = 2000

func (c *captured) add(piece []byte) {
	c.text.Write(piece[:min(len(piece), maxCapture-c.text.Len())])
}

// anchor is a link whose text is being read.
type anchor struct {
	captured
	href, rel string
	start     int // the writer's count
}

// scan reads HTML. The text goes to the sink or, if that is nil, into the page.
func (p *Page) scan(body io.Reader, options Options, sink io.Writer) error {
	s := &scanner{page: p, options: options, stack: newStack(), writer: newWriter(options.Text, sink)}
	s.about.page = p
	s.links = newLinks(p.URL, options.Links)
	tokens := html.NewTokenizer(body)
	if sink != nil {
		tokens.SetMaxBuf(maxToken)
	}
	for s.writer.failed == nil {
		switch tokens.Next() {
		case html.ErrorToken: // the end
			s.stack.cut(0, s.closed)
			s.finish()
			if err := tokens.Err(); err != io.EOF {
				return err
			}
			return s.writer.failed
		case html.TextToken:
			s.text(textOf(tokens))
		case html.StartTagToken:
			s.start(tokens, false)
		case html.SelfClosingTagToken:
			s.start(tokens, true)
		case html.EndTagToken:
			name, _ := tokens.TagName()
			s.end(name)
		}
	}
	return s.writer.failed
}

// textOf returns the text of a token. For most texts, that is the raw text, and checking for this is quicker than
// decoding it.
func textOf(tokens *html.Tokenizer) []byte {
	raw := tokens.Raw()
	if bytes.IndexByte(raw, '&') < 0 && bytes.IndexByte(raw, '\r') < 0 && bytes.IndexByte(raw, 0) < 0 {
		return raw
	}
	return tokens.Text()
}

func (s *scanner) text(piece []byte) {
	title, data := s.title, s.data
	s.title, s.data = false, false
	switch {
	case title:
		s.about.title(string(piece))
	case data:
		s.about.data(piece)
	case s.stack.visible():
		s.show(piece)
	}
}

// show writes a visible piece of text.
func (s *scanner) show(piece []byte) {
	s.writer.text(piece)
	s.capture(piece)
}

// capture adds a piece of text to the heading and the link that are being read.
func (s *scanner) capture(piece []byte) {
	if s.heading != nil {
		s.heading.add(piece)
	}
	if s.anchor != nil {
		s.anchor.add(piece)
	}
}

func (s *scanner) start(tokens *html.Tokenizer, selfClosing bool) {
	s.title, s.data = false, false
	text, more := tokens.TagName()
	name, custom := nameOf(text)
	var a attributes
	if more {
		a = attributes{}
	}
	for more {
		var key, value []byte
		key, value, more = tokens.TagAttr()
		a.set(key, value)
	}
	c := classes()[name]
	if at := s.stack.drawing(c); at >= 0 {
		s.stack.cut(at, s.closed)
	}
	if at := s.stack.implied(name, c); at >= 0 {
		s.stack.cut(at, s.closed)
	}
	switch {
	case name == atom.Html || name == atom.Head || name == atom.Body:
		s.about.language(name, a["lang"])
	case c&void != 0:
		s.void(name, a)
	case selfClosing && (name == atom.Svg || s.stack.has(atom.Svg)): // in HTML itself, the slash has no effect
	default:
		s.openElement(element{name: name, custom: custom, class: c, hidden: isHidden(name, c, a)}, a)
	}
}

// nameOf returns the name of an element, which is custom if it is not in the standard.
func nameOf(text []byte) (name atom.Atom, custom string) {
	if name = atom.Lookup(text); name == 0 {
		custom = string(text[:min(len(text), maxName)])
	}
	return name, custom
}

// maxName bounds the name of a custom element.
const maxName = 64

// void handles an element that has no content.
func (s *scanner) void(name atom.Atom, a attributes) {
	switch name {
	case atom.Meta:
		s.about.meta(a)
		return
	case atom.Base:
		s.links.rebase(a["href"])
		return
	case atom.Link:
		if s.about.canonical == "" && hasWord(a["rel"], "canonical") {
			s.about.canonical = a["href"]
		}
		return
	}
	if !s.stack.visible() || a["hidden"] != "" {
		return
	}
	switch name {
	case atom.Br:
		s.lineBreak()
	case atom.Hr:
		s.writer.breakLine(2)
		s.writer.raw("---")
		s.writer.breakLine(2)
	case atom.Img:
		if alt := plain.Line(a["alt"], maxLine); alt != "" {
			s.show([]byte("[image: " + alt + "]"))
		}
	}
}

// lineBreak handles a br. Two of them separate paragraphs.
func (s *scanner) lineBreak() {
	w := &s.writer
	if w.pre > 0 {
		w.verbatim([]byte("\n"))
		return
	}
	w.breakLine(min(w.gap+1, 2))
	s.capture([]byte(" "))
}

func hasWord(list, word string) bool {
	return slices.ContainsFunc(strings.Fields(list), func(each string) bool { return strings.EqualFold(each, word) })
}

// openElement handles the start of an element.
func (s *scanner) openElement(e element, a attributes) {
	if s.stack.visible() {
		s.title = e.name == atom.Title
		s.data = e.name == atom.Script && strings.EqualFold(strings.TrimSpace(a["type"]), "application/ld+json")
	}
	tracked := s.stack.push(e)
	if !s.stack.visible() {
		return
	}
	w := &s.writer
	if !tracked {
		w.part(e.class &^ separated)
		return
	}
	switch e.name {
	case atom.Ul, atom.Menu, atom.Dir:
		w.breakLine(s.listGap())
		w.lists = append(w.lists, list{})
	case atom.Ol:
		w.breakLine(s.listGap())
		first, err := strconv.Atoi(a["start"])
		if err != nil || first < 0 || first > 1_000_000 {
			first = 1
		}
		w.lists = append(w.lists, list{ordered: true, next: first})
	case atom.Li:
		w.breakLine(1)
		w.mark(s.bullet())
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.breakLine(2)
		w.mark(strings.Repeat("#", level(e.name)) + " ")
		s.heading = &captured{}
	case atom.Blockquote:
		w.breakLine(2)
		w.quotes++
	case atom.Pre, atom.Listing:
		w.breakLine(2)
		if w.pre++; w.pre == 1 {
			w.raw("```")
			w.gap, w.opened = 1, true
		}
	case atom.Tr:
		w.breakLine(1)
		s.row, s.rowStart = 0, w.written
	case atom.Td, atom.Th:
		if s.row++; s.row > 1 {
			if w.written > s.rowStart {
				w.gap, w.space = 0, false
			}
			w.cells++
		}
	case atom.A:
		s.anchor = &anchor{href: a["href"], rel: a["rel"], start: w.written}
	default:
		w.part(e.class)
	}
}

// listGap returns the line breaks around a list. A nested list is part of the outer one.
func (s *scanner) listGap() int {
	if len(s.writer.lists) > 0 {
		return 1
	}
	return 2
}

func (s *scanner) bullet() string {
	lists := s.writer.lists
	if len(lists) == 0 || !lists[len(lists)-1].ordered {
		return "- "
	}
	inner := &lists[len(lists)-1]
	inner.next++
	return strconv.Itoa(inner.next-1) + ". "
}

func (s *scanner) end(text []byte) {
	s.title, s.data = false, false
	name, custom := nameOf(text)
	if name == atom.Br { // as browsers do
		s.void(name, nil)
		return
	}
	if at := s.stack.ended(name, custom); at >= 0 {
		s.stack.cut(at, s.closed)
	} else if s.stack.visible() {
		s.writer.part(classes()[name] &^ separated)
	}
}

// closed handles the end of a tracked element.
func (s *scanner) closed(e element) {
	if !e.visible {
		return
	}
	w := &s.writer
	switch e.name {
	case atom.Ul, atom.Ol, atom.Menu, atom.Dir:
		w.lists = w.lists[:len(w.lists)-1]
		w.unmark()
		w.breakLine(s.listGap())
	case atom.Li:
		w.unmark()
		w.breakLine(1)
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		s.endHeading(level(e.name))
	case atom.Blockquote:
		w.breakLine(2)
		w.quotes--
	case atom.Pre, atom.Listing:
		if w.pre--; w.pre == 0 {
			if w.gap == 0 && !w.fresh {
				w.gap = 1
			}
			w.raw("```")
		}
		w.breakLine(2)
	case atom.Tr:
		w.cells = 0
		if w.gap > 0 {
			w.gap = 1
		}
		w.breakLine(1)
	case atom.Td, atom.Th: // handled by the next cell or row
	case atom.A:
		s.endAnchor()
	default:
		w.part(e.class)
	}
}

func (s *scanner) endHeading(level int) {
	w := &s.writer
	w.unmark()
	w.breakLine(2)
	if s.heading == nil {
		return
	}
	s.about.heading(level, s.heading.text.String())
	s.heading = nil
}

func (s *scanner) endAnchor() {
	a := s.anchor
	s.anchor = nil
	if a == nil {
		return
	}
	if s.writer.sink != nil {
		return // the caller wants no links
	}
	link, ok := s.links.add(a.href, a.text.String(), a.rel)
	if ok && s.options.Targets && s.writer.written > a.start && !s.writer.full {
		s.writer.string(" <" + link + ">")
	}
}

func (s *scanner) finish() {
	p := s.page
	s.about.finish(&s.links)
	p.Links, p.MoreLinks = s.links.found, s.links.more
	s.writer.flush()
	p.Text, p.MoreText = s.writer.out.String(), s.writer.full
	if !p.MoreText { // otherwise the next piece begins exactly where this one ends
		p.Text = strings.TrimRight(p.Text, " \n\t")
	}
}
