package manifests

import "strings"

// FoldName returns what the name of a header or a parameter becomes in servers that make variables
// of names, as CGI, WSGI and PHP do, or that ignore case: letters in lower case, and "-" for each
// character that is neither an ASCII letter nor a digit. To one of these servers, names that are
// equal then are the same.
func FoldName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
			return r
		case 'A' <= r && r <= 'Z':
			return r | 0x20
		default:
			return '-'
		}
	}, name)
}
