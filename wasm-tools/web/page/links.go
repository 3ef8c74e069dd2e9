package page

import (
	"net/url"
	"strings"

	"github.com/caisson-run/caisson/wasm-tools/internal/plain"
)

const (
	maxURL = 2048 // bytes
	// maxWork bounds the bytes of all addresses that are resolved, each with its base.
	maxWork     = 1 << 20
	maxLinkText = 200 // characters
	// maxBytes bounds all links of a page, however long each is.
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
	seen       map[string]int // places in found
	found      []Link
	more       bool
}

func newLinks(address string, limit int) links {
	l := links{limit: limit, seen: map[string]int{}}
	if base, err := url.Parse(address); err == nil {
		l.base, l.baseLength = base, len(address)
	} else {
		l.base = &url.URL{}
	}
	l.self, _ = l.absolute("")
	return l
}

// rebase takes a base element. The first counts.
func (l *links) rebase(href string) {
	if l.rebased || href == "" {
		return
	}
	l.rebased = true
	if address, ok := l.absolute(href); ok {
		if base, err := url.Parse(address); err == nil {
			l.base, l.baseLength = base, len(address)
		}
	}
}

// absolute resolves an address as a browser does: without the white space around it, and
// without line breaks and tabs. It fails for what is not http or https.
func (l *links) absolute(href string) (string, bool) {
	if len(href) > maxURL {
		return "", false
	}
	href = strings.Trim(href, " \n\r\t\f")
	if strings.ContainsAny(href, "\n\r\t") {
		href = strings.NewReplacer("\n", "", "\r", "", "\t", "").Replace(href)
	}
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

// isPrintable tells what nearly all addresses are, quickly.
func isPrintable(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] >= 0x7f {
			return false
		}
	}
	return true
}

// add takes one link, and returns its address unless it leads nowhere else.
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
		if l.found[at].Text == "" { // an image's link, whose words come second
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
