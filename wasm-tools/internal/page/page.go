// Package page extracts the text, the links and the metadata of a web page.
//
// It reads HTML as a stream of tokens in one pass, with a stack of open elements that is simpler than
// the standard's: it suffices to find hidden elements, and the ends of lists, tables and links. A tree
// would be closer to that of browsers, but a page can make one that is a hundred thousand times
// larger than the page. With the stack, any page takes time in proportion to its length, and memory
// that the [Options] bound.
//
// Text that a page hides from people is left out: they would not read it, and pages hide text there that
// only a model should see. Style sheets and scripts are not run, so text that they hide is included, and
// text that they write is missing.
package page

import (
	"bytes"
	"cmp"
	"encoding/json"

	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
)

// Source is a server's response.
type Source struct {
	URL         string // where it came from, after redirects: absolute
	ContentType string // the header of that name; may be empty
	Body        []byte // Read may change it
	Cut         bool   // the body was truncated
}

// Options are limits and settings. A zero field means its default.
type Options struct {
	Text  int // maximum characters of text; default 100,000
	Links int // maximum links; default 200
	// Targets adds the address of each link to the text.
	Targets bool
}

const (
	defaultText  = 100_000
	defaultLinks = 200
)

// Page is the content of a page.
type Page struct {
	URL  string
	Type string // the media type, such as text/html
	// Title, Description and Language are one line each; any may be empty.
	Title, Description, Language string
	// Canonical is the address that the page declares as its own, and Refresh the one that it
	// redirects browsers to. Both are absolute.
	Canonical, Refresh string
	Meta               []Property
	Headings           []Heading
	Links              []Link
	MoreLinks          bool // there were more links than the options allow
	// Data are the valid blocks of JSON-LD.
	Data []json.RawMessage
	// Text has paragraphs, "#" headings, "-" lists and "|" tables.
	Text     string
	MoreText bool // there was more text than the options allow
	// Note describes missing parts of the page, or is empty.
	Note string
}

// Property is the name and the content of a meta element.
type Property struct {
	Name    string `json:"name"`
	Content string `json:"content"`
}

// Heading is a heading of the page.
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

// maxBody is the maximum number of bytes read of a page. The decoded text may be half as long again.
const maxBody = 5 << 20

// bounded returns the part of the body to read, without an incomplete character at its end, and
// whether there is more.
func bounded(source Source) (body []byte, more bool) {
	more = len(source.Body) > maxBody
	body = source.Body[:min(len(source.Body), maxBody)]
	if more || source.Cut {
		body = plain.WholeRunes(body)
	}
	return body, more
}

// Read reads a page. It fails for types without text.
func Read(source Source, options Options) (*Page, error) {
	options.Text = cmp.Or(max(options.Text, 0), defaultText)
	options.Links = cmp.Or(max(options.Links, 0), defaultLinks)
	media, err := mediaOf(source)
	if err != nil {
		return nil, err
	}
	p := &Page{URL: source.URL, Type: media}
	body, cut := bounded(source)
	text, err := decode(body, source.ContentType, isHTML(media))
	if err != nil {
		return nil, err
	}
	if cut {
		p.Note = "the page is larger than this tool reads: its end is missing"
	}
	if isHTML(media) {
		err = p.scan(bytes.NewReader(text), options, nil)
	} else {
		p.plain(text, options)
	}
	return p, err
}
