package secrets

import (
	"net/url"
	"strings"

	"github.com/caisson-run/caisson/manifests"
)

// setParameter removes every parameter of a name from a query or a form, however the name
// is escaped, and adds it with a value. So it does with names that a server may take for it: some
// ignore case, PHP reads a dot as _, and with name[] begins a list. All others stay as they are,
// byte for byte.
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
	if decoded, err := url.QueryUnescape(key); err == nil {
		key = decoded
	}
	key, _, _ = strings.Cut(key, "[")
	return manifests.FoldName(key) == manifests.FoldName(name)
}

// escapeParameter writes a space as %20, which queries and forms both read as one.
func escapeParameter(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}
