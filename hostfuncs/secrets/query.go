package secrets

import (
	"net/url"
	"strings"

	"github.com/caisson-run/caisson/manifests"
)

// setParameter removes every parameter of a name from a query or a form, however the name
// is escaped, and adds it with a value. So it does with names that a server may take for it: some
// ignore case, PHP reads a dot as _, skips spaces in front, ends at a NUL, takes name[] for a list and
// a bracket that is never closed for _, and others read [name] as the name, or begin a parameter at a
// semicolon; and with names whose escapes are broken, which servers mend in their own ways. All others
// stay as they are, byte for byte.
func setParameter(query, name, value string) string {
	var out strings.Builder
	out.Grow(len(query) + len(name) + len(value) + len("&="))
	name, wanted := escapeParameter(name), bare(name)
	if query != "" {
		for part := range strings.SplitSeq(query, "&") {
			if !holdsParameter(part, wanted) {
				out.WriteString(part)
				out.WriteByte('&')
			}
		}
	}
	out.WriteString(name)
	out.WriteByte('=')
	out.WriteString(escapeParameter(value))
	return out.String()
}

// holdsParameter reports whether what stands between two ampersands is a parameter of a name, which is
// bare, or has one behind a semicolon.
func holdsParameter(part, wanted string) bool {
	for part != "" {
		one, rest, _ := strings.Cut(part, ";")
		if isParameter(one, wanted) {
			return true
		}
		part = rest
	}
	return false
}

func isParameter(part, wanted string) bool {
	key, _, _ := strings.Cut(part, "=")
	key, err := url.QueryUnescape(key)
	if err != nil {
		return true
	}
	key, _, _ = strings.Cut(key, "\x00")
	return bare(key) == wanted || strings.Contains(key, "[") && strings.Trim(manifests.FoldName(key), "-") == wanted
}

// bare returns a name folded, without what stands around it that some servers skip.
func bare(name string) string {
	name = strings.TrimFunc(name, func(r rune) bool {
		return (r < 'a' || 'z' < r) && (r < 'A' || 'Z' < r) && (r < '0' || '9' < r)
	})
	name, _, _ = strings.Cut(name, "[")
	return strings.Trim(manifests.FoldName(name), "-")
}

// escapeParameter writes a space as %20, which queries and forms both read as one.
func escapeParameter(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}
