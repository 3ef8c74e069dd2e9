package registry

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
// overlook. Two names look alike if their skeletons are equal.
//
// Only the end of a name is searched for l and 1, o and 0: that is where a name and
// a numbered copy of it differ, and elsewhere they rarely pass for each other.
func skeleton(name string) string {
	s := []byte(name)
	for i, c := range s {
		switch {
		case 'A' <= c && c <= 'Z':
			s[i] = c - 'A' + 'a'
		case c == '-':
			s[i] = '_'
		}
	}
	for i := len(s) - 1; i >= 0; i-- {
		switch s[i] {
		case 'l', '1':
			s[i] = 'l'
		case 'o', '0':
			s[i] = 'o'
		default:
			return string(s)
		}
	}
	return string(s)
}
