package permission

import (
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

const maxPath = 1024 // bytes of the path of a URL or a guest in a permission

// URLPath is the set of URL paths that begin with a prefix of whole segments. "/v1" includes /v1 and /v1/x but not
// /v10. "/v1/" is the same without /v1. "/" includes every path. The zero value includes none.
type URLPath struct{ prefix string }

const urlPathFix = "start with / and leave out .., //, %, ?, #, * and spaces"

// ParseURLPath parses a prefix. Prefixes are compared with decoded paths, so it rejects texts that
// could be decoded, cleaned or cut to something else.
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

// Matches reports whether a request's path has the prefix. An ambiguous path matches only "/".
func (p URLPath) Matches(requested RequestPath) bool {
	return p.IsEvery() || !requested.ambiguous && hasPrefix(requested.text, p.prefix)
}

// MatchesLoosely reports whether some server could interpret a request's path as one with the prefix. It is for
// denials: a path that is denied under one spelling is denied under all.
func (p URLPath) MatchesLoosely(requested RequestPath) bool {
	return p.IsEvery() || p.prefix != "" && (requested.ambiguous || hasPrefix(loosely(requested.text), loosely(p.prefix)))
}

// Covers reports whether every path with the other prefix has this one.
func (p URLPath) Covers(other URLPath) bool { return hasPrefix(other.prefix, p.prefix) }

// Intersect returns the paths that have both prefixes, or false if there are none. Two prefixes are
// either nested or disjoint.
func (p URLPath) Intersect(other URLPath) (URLPath, bool) { return nested(p, other) }

// hasPrefix reports whether a path is the prefix or is below it. If the prefix ends in a slash, the
// path without that slash does not have it.
func hasPrefix(path, prefix string) bool {
	rest, found := strings.CutPrefix(path, prefix)
	return found && prefix != "" && (rest == "" || rest[0] == '/' || strings.HasSuffix(prefix, "/"))
}

// RequestPath is the path of a request's URL. The zero value matches only the prefix "/".
type RequestPath struct {
	text      string // decoded
	ambiguous bool
}

// ReadRequestPath returns the path of a URL, decoded and as escaped in the URL. It accepts any
// path. An empty one is "/" (RFC 9110, section 4.2.3).
func ReadRequestPath(decoded, escaped string) RequestPath {
	if decoded == "" {
		decoded = "/"
	}
	return RequestPath{decoded, isAmbiguous(decoded, escaped)}
}

// String returns the decoded path.
func (p RequestPath) String() string { return p.text }

// IsAmbiguous reports whether a server, or a proxy before it, could interpret the path as another
// one by cleaning it, decoding it again or removing parameters from its segments.
func (p RequestPath) IsAmbiguous() bool { return p.ambiguous }

// escape matches text that could be decoded again.
var escape = regexp.MustCompile("%[0-9A-Fa-f]{2}")

func isAmbiguous(decoded, escaped string) bool {
	escaped = strings.ToLower(escaped)
	if strings.Contains(decoded, "//") || strings.Contains(decoded, `\`) || strings.Contains(escaped, "%2f") ||
		escape.MatchString(decoded) {
		return true
	}
	for segment := range strings.SplitSeq(decoded, "/") {
		name, _, _ := strings.Cut(segment, ";")
		if name != "" && strings.Trim(name, ". ") == "" { // Windows drops trailing dots and spaces
			return true
		}
	}
	if !utf8.ValidString(decoded) { // a lax parser reads %c0%ae as a dot
		return true
	}
	return strings.ContainsFunc(decoded, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// loosely returns a path as the laxest server reads it: in lower case, without parameters, query and final dots.
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
