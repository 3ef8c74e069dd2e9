package permission

import (
	"path"
	"strings"
	"unicode/utf8"
)

const maxPath = 1024 // bytes of a URL's or a guest's path in a permission

// URLPath is the paths of URLs that begin with a prefix, whole segments of it: "/v1" is /v1 and
// /v1/x, and not /v10; "/v1/" is the same without /v1 itself; "/" is every path. The zero value is
// none.
type URLPath struct{ prefix string }

const urlPathFix = "start with / and leave out .., //, %, ?, #, * and spaces"

// ParseURLPath reads a prefix. It is compared with decoded paths, so what could be decoded, cleaned
// or cut to something else is refused.
func ParseURLPath(text string) (URLPath, error) {
	clean := path.Clean(text)
	if clean != "/" && strings.HasSuffix(text, "/") {
		clean += "/"
	}
	if !strings.HasPrefix(text, "/") || clean != text || len(text) > maxPath ||
		strings.ContainsAny(text, "%?#\\* ") || !isVisible(text) || isAmbiguous(text, text) {
		return URLPath{}, &Error{What: "path", Text: text, Problem: "is not a clean path", Fix: urlPathFix}
	}
	return URLPath{text}, nil
}

// String returns the prefix.
func (p URLPath) String() string { return p.prefix }

// IsEvery reports whether the prefix is "/".
func (p URLPath) IsEvery() bool { return p.prefix == "/" }

// Matches reports whether a request's path is below the prefix. Of a path that can be read as
// another one nothing is known but that it is a path.
func (p URLPath) Matches(requested RequestPath) bool {
	return p.IsEvery() || !requested.ambiguous && hasPrefix(requested.text, p.prefix)
}

// MatchesLoosely reports whether some server could take a request's path for one below the prefix.
// What is denied under one of its names is denied under all.
func (p URLPath) MatchesLoosely(requested RequestPath) bool {
	return p.IsEvery() || p.prefix != "" && (requested.ambiguous || hasPrefix(loosely(requested.text), loosely(p.prefix)))
}

// Covers reports whether every path below the other prefix is below this one.
func (p URLPath) Covers(other URLPath) bool { return hasPrefix(other.prefix, p.prefix) }

// Intersect returns the paths that are below both, or false where there are none. Two prefixes are
// nested, or have nothing in common.
func (p URLPath) Intersect(other URLPath) (URLPath, bool) { return nested(p, other) }

// hasPrefix reports whether a path is the prefix or below it. A prefix with a slash at its end is
// not among the paths below it.
func hasPrefix(path, prefix string) bool {
	rest, found := strings.CutPrefix(path, prefix)
	return found && prefix != "" && (rest == "" || rest[0] == '/' || strings.HasSuffix(prefix, "/"))
}

// RequestPath is the path of a request's URL. The zero value is below no prefix.
type RequestPath struct {
	text      string // decoded
	ambiguous bool
}

// ReadRequestPath reads the path of a URL, of which it takes any: decoded, and as it stands in the
// URL. An empty one is "/" (RFC 9110, section 4.2.3).
func ReadRequestPath(decoded, escaped string) RequestPath {
	if decoded == "" {
		decoded = "/"
	}
	return RequestPath{decoded, isAmbiguous(decoded, escaped)}
}

// String returns the decoded path.
func (p RequestPath) String() string { return p.text }

// IsAmbiguous reports whether a server, or a proxy before it, could take the path for another one:
// because it cleans the path, decodes it once more, or cuts parameters off its segments.
func (p RequestPath) IsAmbiguous() bool { return p.ambiguous }

func isAmbiguous(decoded, escaped string) bool {
	escaped = strings.ToLower(escaped)
	if strings.Contains(decoded, "//") || strings.Contains(decoded, `\`) || strings.Contains(escaped, "%2f") || holdsEscape(decoded) {
		return true
	}
	for segment := range strings.SplitSeq(decoded, "/") {
		name, _, _ := strings.Cut(segment, ";")
		if name != "" && strings.Trim(name, ". ") == "" { // Windows drops dots and spaces at the end
			return true
		}
	}
	if !utf8.ValidString(decoded) { // %c0%ae is a dot to a lax reader
		return true
	}
	return strings.ContainsFunc(decoded, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// holdsEscape reports whether a text that was decoded could be decoded again.
func holdsEscape(text string) bool {
	for i := 0; i+2 < len(text); i++ {
		if text[i] == '%' && isHex(text[i+1]) && isHex(text[i+2]) {
			return true
		}
	}
	return false
}

func isHex(b byte) bool {
	return b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'f'
}

// loosely returns a path as the laxest of servers reads it: without parameters, an escaped query,
// and dots and spaces at the end of segments, and in lower case.
func loosely(path string) string {
	if end := strings.IndexAny(path, "?#"); end >= 0 {
		path = path[:end]
	}
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		name, _, _ := strings.Cut(segment, ";")
		segments[i] = strings.ToLower(strings.TrimRight(name, ". "))
	}
	return strings.Join(segments, "/")
}
