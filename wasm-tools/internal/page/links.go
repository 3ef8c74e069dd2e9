package page

import (
	"net/url"
	"strings"

	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
)

const (
	maxURL = 2048 // bytes
	// maxWork bounds the total bytes of resolved addresses, each with its base.
	maxWork     = 1 << 20
	maxLinkText = 200 // characters
	// maxBytes bounds the total bytes of a page's links.
	maxBytes = 256 << 10
)

// links collects the links of a page.
type links struct {
	base    *url.URL
	rebased bool
	// baseLength is that of the base, in bytes.
	baseLength int
	self       string
	limit      int
	work       int
	bytes      int
	seen       map[string]int // indices in found
	found      []Link
	more       bool
}

func newLinks(address string, limit int) links {
	l := links{base: &url.URL{}, limit: limit, seen: map[string]int{}}
	l.setBase(address)
	l.self, _ = l.absolute("")
	return l
}

// rebase handles a base element. The first one counts.
func (l *links) rebase(href string) {
	if l.rebased || href == "" {
		return
	}
	l.rebased = true
	if address, ok := l.absolute(href); ok {
		l.setBase(address)
	}
}

func (l *links) setBase(address string) {
	if base, err := url.Parse(address); err == nil {
		l.base, l.baseLength = base, len(address)
	}
}

var lineBreaks = strings.NewReplacer("\n", "", "\r", "", "\t", "")

// absolute resolves an address as browsers do: without surrounding white space, line breaks and tabs.
// It fails unless the scheme is http or https.
func (l *links) absolute(href string) (string, bool) {
	if len(href) > maxURL {
		return "", false
	}
	href = lineBreaks.Replace(strings.Trim(href, " \n\r\t\f"))
	reference, err := url.Parse(href)
	if err != nil {
		return "", false
	}
	absolute := l.base.ResolveReference(reference)
	absolute.Fragment, absolute.RawFragment, absolute.User = "", "", nil
	if absolute.Scheme != "http" && absolute.Scheme != "https" || absolute.Hostname() == "" {
		return "", false
	}
	absolute.Host = strings.ToLower(absolute.Host)
	if absolute.Path == "" {
		absolute.Path = "/"
	}
	text := absolute.String()
	return text, len(text) <= maxURL && (isPrintable(text) || plain.Line(text, maxURL) == text)
}

// isPrintable is a fast check that nearly all addresses pass.
func isPrintable(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] >= 0x7f {
			return false
		}
	}
	return true
}

// add adds a link and returns its address, unless it leads to the page itself.
func (l *links) add(href, text, rel string) (string, bool) {
	if href == "" || strings.HasPrefix(href, "#") {
		return "", false
	}
	if l.work += l.baseLength + len(href); l.work > maxWork {
		l.more = true
		return "", false
	}
	address, ok := l.absolute(href)
	if !ok || address == l.self {
		return "", false
	}
	text = plain.Line(text, maxLinkText)
	if at, twice := l.seen[address]; twice {
		if l.found[at].Text == "" { // of an image; a link with text often follows
			l.found[at].Text = text
		}
		return address, true
	}
	if len(l.found) == l.limit || l.bytes > maxBytes {
		l.more = true
		return address, true
	}
	l.seen[address] = len(l.found)
	l.bytes += len(address) + len(text)
	l.found = append(l.found, Link{URL: address, Text: text, Rel: plain.Line(rel, maxLinkText)})
	return address, true
}
