package page

import (
	"strings"

	"golang.org/x/net/html/atom"
)

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
