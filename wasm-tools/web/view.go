package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	caisson "github.com/caisson-run/caisson/sdk/go"
	"github.com/caisson-run/caisson/wasm-tools/internal/page"
	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
)

// The modes.
const (
	text       = "text"
	links      = "links"
	structured = "structured"
)

// view selects the parts of a page to return.
type view struct {
	mode    string
	chars   int // maximum characters of text
	offset  int // of the first character
	links   int // maximum
	targets bool
	another bool // only another tool can continue
}

const (
	excerpt = 1000 // characters of text in the mode structured
	// fewChars is a text so short that scripts may write most of the page.
	fewChars = 80
)

func (v view) textLimit() int {
	if v.mode == structured {
		return min(excerpt, v.chars)
	}
	return v.offset + v.chars
}

// shown is a page in a result.
type shown struct {
	output string
	data   document
}

// document is the data of a page, in any mode.
type document struct {
	URL       string   `json:"url"`
	Status    int      `json:"status"`
	Type      string   `json:"content_type"`
	Title     string   `json:"title"`
	Truncated bool     `json:"truncated"`
	Notes     []string `json:"notes,omitempty"`
	// NextOffset is where the text continues, in the mode text.
	NextOffset int             `json:"next_offset,omitempty"`
	Links      *[]page.Link    `json:"links,omitempty"`
	About      *aboutPage      `json:"about,omitempty"`
	Headings   *[]page.Heading `json:"headings,omitempty"`
	// JSONLD are the page's blocks of JSON-LD.
	JSONLD *[]json.RawMessage `json:"json_ld,omitempty"`
}

// aboutPage is the metadata of a page, in the mode structured.
type aboutPage struct {
	Description string          `json:"description,omitempty"`
	Language    string          `json:"language,omitempty"`
	Canonical   string          `json:"canonical,omitempty"`
	Meta        []page.Property `json:"meta,omitempty"`
	Links       int             `json:"links"`
	Excerpt     string          `json:"excerpt"`
}

func (v view) of(response *caisson.Response, p *page.Page) shown {
	s := shown{data: document{URL: p.URL, Status: response.Status, Type: p.Type, Title: p.Title,
		Notes: notes(response, p)}}
	var b strings.Builder
	b.WriteString(s.data.head(v.mode == text && strings.HasPrefix(p.Text, "# "+p.Title+"\n")))
	switch v.mode {
	case links:
		v.showLinks(&b, &s.data, p)
	case structured:
		showStructure(&b, &s.data, p)
	default:
		v.showText(&b, &s.data, p)
	}
	s.output = strings.TrimRight(b.String(), "\n")
	return s
}

// notes returns remarks for the reader about the extraction.
func notes(response *caisson.Response, p *page.Page) []string {
	var list []string
	if response.Truncated {
		list = append(list, "the page is larger than this call may fetch: its end is missing")
	}
	if p.Note != "" {
		list = append(list, p.Note)
	}
	if p.Refresh != "" && p.Refresh != p.URL {
		list = append(list, "the page sends browsers on to "+p.Refresh)
	}
	if isHTML(p.Type) && len(response.Body) > 2000 && utf8.RuneCountInString(p.Text) < fewChars && !p.MoreText {
		list = append(list, "the page has nearly no text of its own: scripts may write it, which are not run")
	}
	return list
}

func (d document) head(titleIsInText bool) string {
	var b strings.Builder
	if d.Title != "" && !titleIsInText {
		b.WriteString(d.Title + "\n")
	}
	b.WriteString(d.URL + "\n")
	for _, note := range d.Notes {
		fmt.Fprintf(&b, "[note: %s]\n", note)
	}
	b.WriteByte('\n')
	return b.String()
}

func (v view) showText(b *strings.Builder, d *document, p *page.Page) {
	piece := p.Text[len(plain.First(p.Text, v.offset)):]
	count := utf8.RuneCountInString(piece)
	switch {
	case piece == "" && v.offset > 0:
		fmt.Fprintf(b, "[the text ends before offset %d]", v.offset)
	case piece == "":
		b.WriteString("[the page has no text]")
	}
	b.WriteString(piece)
	if p.MoreText {
		d.Truncated, d.NextOffset = true, v.offset+count
		how := "go on"
		if v.another {
			how = "fetch_page goes on"
		}
		fmt.Fprintf(b, "\n[cut: %s at offset %d]", how, d.NextOffset)
	}
}

func (v view) showLinks(b *strings.Builder, d *document, p *page.Page) {
	d.Links, d.Truncated = list(p.Links), p.MoreLinks
	for _, link := range p.Links {
		fmt.Fprintf(b, "- %s <%s>", cmp.Or(link.Text, "(no text)"), link.URL)
		if link.Rel != "" {
			fmt.Fprintf(b, " (%s)", link.Rel)
		}
		b.WriteByte('\n')
	}
	switch {
	case len(p.Links) == 0:
		b.WriteString("[the page has no links]")
	case p.MoreLinks:
		fmt.Fprintf(b, "[cut after %d links]", len(p.Links))
	}
}

func showStructure(b *strings.Builder, d *document, p *page.Page) {
	d.About = &aboutPage{
		Description: p.Description, Language: p.Language, Canonical: p.Canonical, Meta: p.Meta,
		Links: len(p.Links), Excerpt: p.Text,
	}
	d.Headings, d.JSONLD, d.Truncated = list(p.Headings), list(p.Data), p.MoreText
	for _, property := range append([]page.Property{{Name: "description", Content: p.Description},
		{Name: "language", Content: p.Language}, {Name: "canonical", Content: p.Canonical}}, p.Meta...) {
		if property.Content != "" {
			fmt.Fprintf(b, "%s: %s\n", property.Name, property.Content)
		}
	}
	fmt.Fprintf(b, "links: %d\nblocks of JSON-LD: %d\n", len(p.Links), len(p.Data))
	for _, heading := range p.Headings {
		fmt.Fprintf(b, "%s %s\n", strings.Repeat("#", heading.Level), heading.Text)
	}
	if p.Text != "" {
		fmt.Fprintf(b, "\n%s", p.Text)
		if p.MoreText {
			b.WriteString(" […]")
		}
	}
}

// list returns a list that is [] in JSON if it is empty.
func list[T any](items []T) *[]T {
	if items == nil {
		items = []T{}
	}
	return &items
}
