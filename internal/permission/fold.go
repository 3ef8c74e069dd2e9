package permission

import "strings"

// FoldName returns the form that the name of a parameter takes in servers that make variables of names, as PHP does, or
// that ignore case. ASCII letters become lower case and each character that is not an ASCII letter or a digit becomes
// "-". Names with equal forms are the same name to one of these servers.
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

// FoldHeader returns the ASCII letters and digits of the name of a header, in lower case. Names with equal forms may be
// the same name to a server that makes variables of names, as CGI and WSGI do, or that ignores punctuation.
func FoldHeader(name string) string { return strings.ReplaceAll(FoldName(name), "-", "") }
