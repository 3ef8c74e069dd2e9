package tool

import "strings"

// LookAlike reports whether people take one name of a tool for the other: where they differ in case, in
// "-" and "_" and how many of these stand together or at an end, or in characters and pairs that look
// the same in many typefaces: l, 1 and a capital I; o and 0; rn and m; vv and w. It is no equivalence:
// "I" looks like both "i" and "l", which do not look alike.
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

// Outline returns what is left of a name without all that [LookAlike] passes over, so that names which
// look alike have the same outline. Some others do, too.
func Outline(name string) string {
	outline := spelled(name)
	for i, c := range outline {
		if outline[i] = folded(c); outline[i] == 'i' {
			outline[i] = 'l'
		}
	}
	return string(outline)
}

// spelled returns a name without the differences that concern more than one character: of those that
// look like a pair, the pair.
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

// folded returns a character for all that differ from it in case, or are digits that are drawn like it.
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

// drawn is folded for whoever sees a capital I as a stroke.
func drawn(c byte) byte {
	if c == 'I' {
		return 'l'
	}
	return folded(c)
}
