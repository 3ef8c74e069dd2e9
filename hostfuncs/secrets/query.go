package secrets

import (
	"net/url"
	"strings"
)

// setParameter removes every parameter of a name from a query or a form, however the name
// is escaped, and adds it with a value. All others stay as they are, byte for byte.
func setParameter(query, name, value string) string {
	var kept []string
	if query != "" {
		for part := range strings.SplitSeq(query, "&") {
			if !isParameter(part, name) {
				kept = append(kept, part)
			}
		}
	}
	return strings.Join(append(kept, escapeParameter(name)+"="+escapeParameter(value)), "&")
}

func isParameter(part, name string) bool {
	key, _, _ := strings.Cut(part, "=")
	decoded, err := url.QueryUnescape(key)
	return key == name || err == nil && decoded == name
}

// escapeParameter writes a space as %20, which queries and forms both read as one.
func escapeParameter(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}
