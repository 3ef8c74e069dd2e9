package secrets

import (
	"net/url"
	"strings"

	"github.com/caisson-run/caisson/manifests"
)

// setParameter removes every parameter of a name from a query or a form, however the name
// is escaped, and adds it with a value. So it does with names that a server may take for it: some
// ignore case, PHP reads a dot as _, skips spaces in front and ends at a NUL, with name[] begins a
// list, and others read [name] as the name; and with names whose escapes are broken, which
// servers mend in their own ways. All others stay as they are, byte for byte.
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
	key, err := url.QueryUnescape(key)
	return err != nil || bare(key) == bare(name)
}

// bare returns a name folded, without what stands around it that some servers skip.
func bare(name string) string {
	name, _, _ = strings.Cut(name, "\x00")
	name = strings.TrimFunc(name, func(r rune) bool { return manifests.FoldName(string(r)) == "-" })
	name, _, _ = strings.Cut(name, "[")
	return strings.Trim(manifests.FoldName(name), "-")
}

// escapeParameter writes a space as %20, which queries and forms both read as one.
func escapeParameter(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}
