package page

import (
	"strings"

	"golang.org/x/net/html/atom"
)

// class says how an element behaves.
type class uint8

const (
	// void elements have no content and no end tag.
	void class = 1 << iota
	// block elements stand on lines of their own, and end a paragraph.
	block
	// dropped elements are not for reading, with everything in them.
	dropped
	// scope elements keep the end tags inside them from closing what is outside.
	scope
	// breakout elements cannot stand in a drawing: they end it.
	breakout
	// apart elements stand an empty line from the text around them.
	apart
)

var classes = map[atom.Atom]class{
	atom.Area: void, atom.Base: void, atom.Col: void, atom.Input: void, atom.Link: void, atom.Param: void,
	atom.Source: void, atom.Track: void, atom.Wbr: void, atom.Keygen: void, atom.Bgsound: void, atom.Basefont: void,
	atom.Br: void | breakout, atom.Embed: void | breakout, atom.Hr: void | block | breakout, atom.Img: void | breakout,
	atom.Meta: void | breakout,

	atom.Address: block, atom.Article: block | apart, atom.Aside: block | apart, atom.Blockquote: block | breakout, atom.Center: block | breakout,
	atom.Dd: block | breakout, atom.Details: block, atom.Dialog: block, atom.Dir: block, atom.Div: block | breakout,
	atom.Dl: block | breakout | apart, atom.Dt: block | breakout, atom.Fieldset: block, atom.Figcaption: block, atom.Figure: block | apart,
	atom.Footer: block | apart, atom.Form: block, atom.H1: block | breakout, atom.H2: block | breakout, atom.H3: block | breakout,
	atom.H4: block | breakout, atom.H5: block | breakout, atom.H6: block | breakout, atom.Header: block | apart, atom.Hgroup: block,
	atom.Legend: block, atom.Li: block | breakout, atom.Main: block | apart, atom.Menu: block | breakout, atom.Nav: block | apart,
	atom.Ol: block | breakout, atom.P: block | breakout | apart, atom.Pre: block | breakout, atom.Listing: block | breakout,
	atom.Section: block | apart, atom.Summary: block, atom.Ul: block | breakout, atom.Optgroup: block, atom.Search: block,

	atom.Table: block | scope | breakout | apart, atom.Td: block | scope, atom.Th: block | scope, atom.Caption: block | scope,
	atom.Tr: block, atom.Tbody: block, atom.Thead: block, atom.Tfoot: block,
	atom.Marquee: block | scope,

	atom.B: breakout, atom.Big: breakout, atom.Code: breakout, atom.Em: breakout, atom.I: breakout, atom.Nobr: breakout,
	atom.Ruby: breakout, atom.S: breakout, atom.Small: breakout, atom.Span: breakout, atom.Strong: breakout,
	atom.Strike: breakout, atom.Sub: breakout, atom.Sup: breakout, atom.Tt: breakout, atom.U: breakout, atom.Var: breakout,

	atom.Script: dropped, atom.Style: dropped, atom.Noscript: dropped, atom.Template: dropped | scope, atom.Svg: dropped,
	atom.Iframe: dropped, atom.Object: dropped | scope, atom.Canvas: dropped, atom.Audio: dropped, atom.Video: dropped,
	atom.Select: dropped | scope, atom.Datalist: dropped, atom.Noembed: dropped, atom.Noframes: dropped, atom.Frameset: dropped,
	atom.Title: dropped, atom.Rp: dropped,
}

// closes says which open elements the start tag of an element ends by itself, beside the
// paragraph that every block ends; and until says which elements it does not look past.
var closes = map[atom.Atom]struct{ ends, until []atom.Atom }{
	atom.Li:     {[]atom.Atom{atom.Li}, []atom.Atom{atom.Ul, atom.Ol, atom.Menu, atom.Dir}},
	atom.Dd:     {[]atom.Atom{atom.Dd, atom.Dt}, []atom.Atom{atom.Dl}},
	atom.Dt:     {[]atom.Atom{atom.Dd, atom.Dt}, []atom.Atom{atom.Dl}},
	atom.Tr:     {[]atom.Atom{atom.Tr, atom.Caption}, []atom.Atom{atom.Table}},
	atom.Td:     {[]atom.Atom{atom.Td, atom.Th}, []atom.Atom{atom.Tr, atom.Table}},
	atom.Th:     {[]atom.Atom{atom.Td, atom.Th}, []atom.Atom{atom.Tr, atom.Table}},
	atom.Tbody:  {[]atom.Atom{atom.Tbody, atom.Thead, atom.Tfoot, atom.Caption}, []atom.Atom{atom.Table}},
	atom.Thead:  {[]atom.Atom{atom.Tbody, atom.Thead, atom.Tfoot, atom.Caption}, []atom.Atom{atom.Table}},
	atom.Tfoot:  {[]atom.Atom{atom.Tbody, atom.Thead, atom.Tfoot, atom.Caption}, []atom.Atom{atom.Table}},
	atom.H1:     heading,
	atom.H2:     heading,
	atom.H3:     heading,
	atom.H4:     heading,
	atom.H5:     heading,
	atom.H6:     heading,
	atom.A:      {[]atom.Atom{atom.A}, nil},
	atom.Button: {[]atom.Atom{atom.Button}, nil},
}

// heading is every heading's rule. The standard ends one only where the other stands directly in
// it; where it does not, nothing is lost by ending it as well.
var heading = struct{ ends, until []atom.Atom }{[]atom.Atom{atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6}, nil}

// level returns a heading's, or 0.
func level(name atom.Atom) int {
	switch name {
	case atom.H1:
		return 1
	case atom.H2:
		return 2
	case atom.H3:
		return 3
	case atom.H4:
		return 4
	case atom.H5:
		return 5
	case atom.H6:
		return 6
	}
	return 0
}

// attributes are those of a start tag that count for reading.
type attributes struct {
	href, src, alt, rel, lang        string
	name, property, content, refresh string
	kind                             string // type
	start                            string
	hidden, open                     bool
}

// set takes one attribute. The first of a name counts, as for browsers.
func (a *attributes) set(key, value []byte) {
	to := a.field(string(key))
	if to != nil && *to == "" {
		*to = string(value)
		return
	}
	switch string(key) {
	case "hidden":
		a.hidden = true
	case "open":
		a.open = true
	case "aria-hidden":
		a.hidden = a.hidden || strings.EqualFold(string(value), "true")
	case "style":
		a.hidden = a.hidden || hides(string(value))
	}
}

func (a *attributes) field(key string) *string {
	switch key {
	case "href":
		return &a.href
	case "src":
		return &a.src
	case "alt":
		return &a.alt
	case "rel":
		return &a.rel
	case "lang":
		return &a.lang
	case "name":
		return &a.name
	case "property":
		return &a.property
	case "content":
		return &a.content
	case "http-equiv":
		return &a.refresh
	case "type":
		return &a.kind
	case "start":
		return &a.start
	}
	return nil
}

// isHidden reports whether an element shows nothing, by its own tag.
func isHidden(name atom.Atom, c class, a *attributes) bool {
	if name == atom.Body || name == atom.Html {
		return false // pages that a script shows when it has run
	}
	return c&dropped != 0 || a.hidden || name == atom.Dialog && !a.open
}

// maxStyle is how much of a style attribute is read.
const maxStyle = 4096

// hides reports whether a style attribute makes an element unseen. It reads the plain forms;
// what escapes and style sheets do is not followed.
func hides(style string) bool {
	if len(style) > maxStyle {
		style = style[:maxStyle]
	}
	for declaration := range strings.SplitSeq(strings.ToLower(style), ";") {
		property, value, ok := strings.Cut(declaration, ":")
		if !ok {
			continue
		}
		value, _, _ = strings.Cut(value, "!") // important
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(property) {
		case "display":
			if value == "none" {
				return true
			}
		case "visibility":
			if value == "hidden" || value == "collapse" {
				return true
			}
		case "opacity", "font-size":
			if zero(value) {
				return true
			}
		}
	}
	return false
}

// zero reports whether a number, with or without a unit, is nought: "0", "0.0px", "0%".
func zero(value string) bool {
	number := strings.TrimRight(value, "abcdefghijklmnopqrstuvwxyz% ")
	return number != "" && strings.Trim(number, "0.") == ""
}
