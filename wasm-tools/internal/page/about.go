package page

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"golang.org/x/net/html/atom"

	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
)

const (
	maxLine       = 300 // characters of a title, a heading and the like
	maxContent    = 1000
	maxProperties = 60
	maxHeadings   = 200
	maxBlocks     = 10
	maxBlock      = 64 << 10 // bytes of one block of JSON-LD
	maxDepth      = 32       // of its values
	maxNumber     = 100      // digits of its numbers
)

// about collects the metadata of a page.
type about struct {
	page               *Page
	canonical, refresh string
}

func (a *about) title(text string) {
	a.page.Title = cmp.Or(a.page.Title, plain.Line(text, maxLine))
}

func (a *about) language(name atom.Atom, lang string) {
	if name == atom.Html && a.page.Language == "" {
		a.page.Language = plain.Line(lang, 40)
	}
}

// named are the meta elements to report, in addition to OpenGraph's and Twitter's.
var named = []string{
	"author", "keywords", "robots", "generator", "application-name", "date", "last-modified",
	"article:published_time", "article:modified_time", "article:author", "article:section", "article:tag",
	"dc.title", "dc.creator", "dc.date", "citation_title", "citation_author", "citation_publication_date", "citation_doi",
}

func (a *about) meta(attributes attributes) {
	if strings.EqualFold(attributes["http-equiv"], "refresh") && a.refresh == "" {
		if _, target, ok := strings.Cut(attributes["content"], "="); ok {
			a.refresh = strings.Trim(strings.TrimSpace(target), `"'`)
		}
		return
	}
	name := strings.ToLower(cmp.Or(attributes["property"], attributes["name"]))
	content := plain.Line(attributes["content"], maxContent)
	switch {
	case content == "" || len(name) > 100:
	case name == "description":
		a.page.Description = cmp.Or(a.page.Description, content)
	case strings.HasPrefix(name, "og:") || strings.HasPrefix(name, "twitter:") || slices.Contains(named, name):
		if len(a.page.Meta) < maxProperties {
			a.page.Meta = append(a.page.Meta, Property{plain.Line(name, 100), content})
		}
	}
}

func (a *about) heading(level int, text string) {
	if line := plain.Line(text, maxLine); line != "" && len(a.page.Headings) < maxHeadings {
		a.page.Headings = append(a.page.Headings, Heading{level, line})
	}
}

// data handles a block of JSON-LD. One that is not valid JSON or is nested too deeply is left out.
func (a *about) data(text []byte) {
	if len(text) > maxBlock || len(a.page.Data) == maxBlocks {
		return
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil || decoder.More() {
		return
	}
	value, ok := readable(value, maxDepth)
	if !ok {
		return
	}
	var block bytes.Buffer
	encoder := json.NewEncoder(&block)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) == nil {
		a.page.Data = append(a.page.Data, bytes.TrimSpace(block.Bytes()))
	}
}

// readable returns a value with plain texts, and whether every JSON parser can read it.
func readable(value any, depth int) (any, bool) {
	if depth == 0 {
		return nil, false
	}
	switch v := value.(type) {
	case string:
		return plain.Lines(v), true
	case json.Number:
		return v, len(v) <= maxNumber
	case map[string]any:
		members := make(map[string]any, len(v))
		for key, member := range v {
			member, ok := readable(member, depth-1)
			if !ok {
				return nil, false
			}
			members[plain.Line(key, maxLine)] = member
		}
		return members, true
	case []any:
		for i, member := range v {
			member, ok := readable(member, depth-1)
			if !ok {
				return nil, false
			}
			v[i] = member
		}
	}
	return value, true
}

// finish fills in missing metadata from other parts of the page, and resolves its addresses.
func (a *about) finish(l *links) {
	p := a.page
	a.title(a.property("og:title"))
	if len(p.Headings) > 0 {
		a.title(p.Headings[0].Text)
	}
	p.Description = cmp.Or(p.Description, a.property("og:description"))
	if a.canonical != "" {
		p.Canonical, _ = l.absolute(a.canonical)
	}
	if a.refresh != "" {
		p.Refresh, _ = l.absolute(a.refresh)
	}
	if p.Canonical == p.URL {
		p.Canonical = ""
	}
}

func (a *about) property(name string) string {
	at := slices.IndexFunc(a.page.Meta, func(p Property) bool { return p.Name == name })
	if at < 0 {
		return ""
	}
	return a.page.Meta[at].Content
}
