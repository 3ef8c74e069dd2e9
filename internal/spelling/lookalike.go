package spelling

import "strings"

// LookAlike reports whether people may confuse two names of tools: names that differ only in case, in "-" and "_" and
// how many of them are repeated or at an end, or in characters that look the same in many typefaces: l, 1 and a capital
// I; o and 0; rn and m; vv and w. It is not transitive: "I" looks like both "i" and "l", which do not look alike.
func LookAlike(a, b string) bool {
	one, other := spelled(a), spelled(b)
	if len(one) != len(other) {
		return false
	}
	for i := range one {
		if folded(one[i]) != folded(other[i]) && drawn(one[i]) != drawn(other[i]) {
			return false
		}
	}
	return true
}

// Outline returns a key for a name. Names that look alike ([LookAlike]) have the same outline, and so
// do some other names.
func Outline(name string) string {
	outline := spelled(name)
	for i, c := range outline {
		if outline[i] = folded(c); outline[i] == 'i' {
			outline[i] = 'l'
		}
	}
	return string(outline)
}

// spelled normalizes differences of more than one character: separators, and characters that look
// like a pair of others.
func spelled(name string) []byte {
	s := make([]byte, 0, 2*len(name))
	for i := 0; i < len(name); i++ {
		switch {
		case name[i] == 'm' || name[i] == 'M':
			s = append(s, 'r', 'n')
		case name[i] == 'w' || name[i] == 'W':
			s = append(s, 'v', 'v')
		case name[i] != '-' && name[i] != '_':
			s = append(s, name[i])
		case len(s) > 0 && s[len(s)-1] != '_':
			s = append(s, '_')
		}
	}
	return []byte(strings.TrimSuffix(string(s), "_"))
}

// folded maps a character to lower case, and a digit to the letter that it looks like.
func folded(c byte) byte {
	switch {
	case 'A' <= c && c <= 'Z':
		return c + 'a' - 'A'
	case c == '1':
		return 'l'
	case c == '0':
		return 'o'
	}
	return c
}

// drawn is folded for a typeface in which a capital I looks like l.
func drawn(c byte) byte {
	if c == 'I' {
		return 'l'
	}
	return folded(c)
}
