// Package page reads one web page: its text, its links and what it says about itself.
//
// HTML is read as a stream of tokens, in one pass, by a model of open elements that is
// smaller than the standard's: it keeps enough of them to tell what is hidden, and where
// lists, tables and links end. A tree would be nearer to what browsers build, but a page can
// make one that is a hundred thousand times its own size. So any page takes time in
// proportion to its length, and memory that the [Options] bound.
//
// What a page hides from people is left out: it is no part of what they would read, and
// where pages put words that only a model should see. Style sheets and scripts are not run,
// so what they hide shows, and what they write is missing.
package page

import (
	"encoding/json"

	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
)

// Source is what a server sent.
type Source struct {
	URL         string // where it came from, after redirects: absolute
	ContentType string // the header of that name; may be empty
	Body        []byte // Read may change it
	Cut         bool   // there was more of it
}

// Options bound what is read. A zero field is its default.
type Options struct {
	Text  int // the most characters of text; 100,000
	Links int // the most links; 200
	// Targets puts the address of each link behind it in the text.
	Targets bool
}

const (
	defaultText  = 100_000
	defaultLinks = 200
)

// Page is what was read.
type Page struct {
	URL  string
	Type string // the media type, such as text/html
	// Title and the following are one line each, and empty where the page does not say.
	Title, Description, Language string
	// Canonical is the address that the page gives as its own, and Refresh the one that it
	// sends browsers on to. Both are absolute.
	Canonical, Refresh string
	Meta               []Property
	Headings           []Heading
	Links              []Link
	MoreLinks          bool // there were more links than the options allow
	// Data are the blocks of JSON-LD that could be read.
	Data []json.RawMessage
	// Text is the page for reading: paragraphs, "#" headings, "-" lists, "|" tables.
	Text     string
	MoreText bool // there was more text than the options allow
	// Note says what was lost in reading, or is empty.
	Note string
}

// Property is a meta element's.
type Property struct {
	Name    string `json:"name"`
	Content string `json:"content"`
}

// Heading is one of the outline.
type Heading struct {
	Level int    `json:"level"` // 1 to 6
	Text  string `json:"text"`
}

// Link leads to another page. Its URL is absolute, with the scheme http or https, and has no
// fragment and no user name.
type Link struct {
	URL  string `json:"url"`
	Text string `json:"text"`
	Rel  string `json:"rel,omitempty"`
}

// maxBody is how much of a page is read, in bytes. Text that grows in decoding may take half
// as much again.
const maxBody = 5 << 20

// bounded returns as much of the body as is read, and whether there is more of it here. It
// ends in a whole character.
func bounded(source Source) (body []byte, more bool) {
	more = len(source.Body) > maxBody
	body = source.Body[:min(len(source.Body), maxBody)]
	if more || source.Cut {
		body = plain.WholeRunes(body)
	}
	return body, more
}

// Read reads what a server sent. It fails for media that have no text.
func Read(source Source, options Options) (*Page, error) {
	if options.Text <= 0 {
		options.Text = defaultText
	}
	if options.Links <= 0 {
		options.Links = defaultLinks
	}
	kind, media, err := mediaOf(source)
	if err != nil {
		return nil, err
	}
	p := &Page{URL: source.URL, Type: media}
	body, cut := bounded(source)
	text, err := decode(body, source.ContentType, kind)
	if err != nil {
		return nil, err
	}
	if cut {
		p.Note = "the page is larger than this tool reads: its end is missing"
	}
	if kind == asHTML {
		p.scan(text, options)
	} else {
		p.plain(text, options)
	}
	return p, nil
}
