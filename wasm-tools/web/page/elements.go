package page

import "golang.org/x/net/html/atom"

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
)

var classes = map[atom.Atom]class{
	atom.Area: void, atom.Base: void, atom.Col: void, atom.Input: void, atom.Link: void, atom.Param: void,
	atom.Source: void, atom.Track: void, atom.Wbr: void, atom.Keygen: void, atom.Bgsound: void, atom.Basefont: void,
	atom.Br: void | breakout, atom.Embed: void | breakout, atom.Hr: void | block | breakout, atom.Img: void | breakout,
	atom.Meta: void | breakout,

	atom.Address: block, atom.Article: block, atom.Aside: block, atom.Blockquote: block | breakout, atom.Center: block | breakout,
	atom.Dd: block | breakout, atom.Details: block, atom.Dialog: block, atom.Dir: block, atom.Div: block | breakout,
	atom.Dl: block | breakout, atom.Dt: block | breakout, atom.Fieldset: block, atom.Figcaption: block, atom.Figure: block,
	atom.Footer: block, atom.Form: block, atom.H1: block | breakout, atom.H2: block | breakout, atom.H3: block | breakout,
	atom.H4: block | breakout, atom.H5: block | breakout, atom.H6: block | breakout, atom.Header: block, atom.Hgroup: block,
	atom.Legend: block, atom.Li: block | breakout, atom.Main: block, atom.Menu: block | breakout, atom.Nav: block,
	atom.Ol: block | breakout, atom.P: block | breakout, atom.Pre: block | breakout, atom.Listing: block | breakout,
	atom.Section: block, atom.Summary: block, atom.Ul: block | breakout, atom.Optgroup: block, atom.Search: block,

	atom.Table: block | scope | breakout, atom.Td: block | scope, atom.Th: block | scope, atom.Caption: block | scope,
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
