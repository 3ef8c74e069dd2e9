package page

import (
	"slices"
	"strings"
	"sync"

	"golang.org/x/net/html/atom"
)

// class is a set of properties of an element.
type class uint8

const (
	// void elements have no content and no end tag.
	void class = 1 << iota
	// block elements are on separate lines, and end a paragraph.
	block
	// dropped elements are left out with their content.
	dropped
	// scope elements keep end tags inside them from closing elements outside.
	scope
	// breakout elements cannot be in a drawing: they end it.
	breakout
	// separated elements have an empty line before and after them.
	separated
)

// classes returns the classes of all elements that have any.
var classes = sync.OnceValue(func() map[atom.Atom]class {
	table := map[atom.Atom]class{}
	for _, members := range []struct {
		class class
		names string
	}{
		{void, "area base basefont bgsound br col embed hr img input keygen link meta param source track wbr"},
		{block,
			"hr address article aside blockquote center dd details dialog dir div dl dt fieldset figcaption figure footer form" +
				" h1 h2 h3 h4 h5 h6 header hgroup legend li main menu nav ol p pre listing section summary ul optgroup search" +
				" table td th caption tr tbody thead tfoot marquee"},
		{separated, "article aside dl figure footer header main nav p section table"},
		{scope, "table td th caption marquee template object select"},
		{breakout, "br embed hr img meta blockquote center dd div dl dt h1 h2 h3 h4 h5 h6 li menu ol p pre listing ul table" +
			" b big code em i nobr ruby s small span strong strike sub sup tt u var"},
		{dropped,
			"script style noscript template svg iframe object canvas audio video select datalist noembed noframes frameset " +
				"title rp"},
	} {
		for _, name := range atoms(members.names) {
			table[name] |= members.class
		}
	}
	return table
})

// atoms returns the elements with these names.
func atoms(names string) (list []atom.Atom) {
	for name := range strings.FieldsSeq(names) {
		list = append(list, atom.Lookup([]byte(name)))
	}
	return list
}

// rule says which open elements a start tag ends implicitly, in addition to the paragraph that every
// block ends, and which elements it does not look past.
type rule struct{ ends, until []atom.Atom }

var rules = sync.OnceValue(func() map[atom.Atom]rule {
	const parts, heading = "tbody thead tfoot", "h1 h2 h3 h4 h5 h6"
	table := map[atom.Atom]rule{}
	for _, r := range []struct{ tags, ends, until string }{
		{"li", "li", "ul ol menu dir"},
		{"dd dt", "dd dt", "dl"},
		{"tr", "tr caption", "table"},
		{"td th", "td th", "tr table"},
		{parts, parts + " caption", "table"},
		// The standard ends a heading only if the other one is its child. Ending it in any case loses
		// nothing.
		{heading, heading, ""},
		{"a", "a", ""},
		{"button", "button", ""},
	} {
		for _, tag := range atoms(r.tags) {
			table[tag] = rule{atoms(r.ends), atoms(r.until)}
		}
	}
	return table
})

// level returns the level of a heading, or 0.
func level(name atom.Atom) int {
	return slices.Index([]atom.Atom{atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6}, name) + 1
}

// attributes are the attributes of a start tag that matter for reading, by name.
type attributes map[string]string

// set adds an attribute. The first one of a name counts, as in browsers, unless it is empty. Attributes
// that hide an element always count.
func (a attributes) set(key, value []byte) {
	switch name := string(key); name {
	case "href", "src", "alt", "rel", "lang", "name", "property", "content", "http-equiv", "type", "start":
		if a[name] == "" {
			a[name] = string(value)
		}
	case "hidden", "open":
		a[name] = "true"
	case "aria-hidden":
		if strings.EqualFold(string(value), "true") {
			a["hidden"] = "true"
		}
	case "style":
		if hides(string(value)) {
			a["hidden"] = "true"
		}
	}
}

// isHidden reports whether an element itself is hidden.
func isHidden(name atom.Atom, c class, a attributes) bool {
	if name == atom.Body || name == atom.Html {
		return false // a script may show the page later
	}
	return c&dropped != 0 || a["hidden"] != "" || name == atom.Dialog && a["open"] == ""
}

// maxStyle is the maximum number of bytes read of a style attribute.
const maxStyle = 4096

// hides reports whether a style attribute hides an element. It recognizes the plain forms, without
// escapes.
func hides(style string) bool {
	style = style[:min(len(style), maxStyle)]
	for declaration := range strings.SplitSeq(strings.ToLower(style), ";") {
		property, value, _ := strings.Cut(declaration, ":")
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

// zero reports whether a number, with or without a unit, is zero: "0", "0.0px", "0%".
func zero(value string) bool {
	number := strings.TrimRight(value, "abcdefghijklmnopqrstuvwxyz% ")
	return number != "" && strings.Trim(number, "0.") == ""
}
