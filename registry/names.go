package registry

import "strings"

// maxName is the longest name that every vendor of language models accepts, in bytes.
const maxName = 64

// validName reports whether name matches ^[a-zA-Z0-9_-]{1,64}$.
func validName(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}
	for i := range len(name) {
		c := name[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		digit := '0' <= c && c <= '9'
		if !letter && !digit && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// skeleton returns what is left of a name without the differences that readers
// overlook: of case, of - and _ and how many stand together or at an end, and of l and 1,
// o and 0. Two names look alike if their skeletons are equal.
func skeleton(name string) string {
	s := make([]byte, 0, len(name))
	for _, c := range []byte(name) {
		switch {
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case c == '1':
			c = 'l'
		case c == '0':
			c = 'o'
		case c == '-' || c == '_':
			if len(s) == 0 || s[len(s)-1] == '_' {
				continue
			}
			c = '_'
		}
		s = append(s, c)
	}
	return strings.TrimSuffix(string(s), "_")
}
