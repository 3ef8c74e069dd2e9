// Package keypath writes the path of a value inside a document, such as limits.memory or items[2]["odd key"].
package keypath

import "strconv"

// Key returns the path of a member of the object at path.
func Key(path, key string) string {
	switch {
	case !plain(key):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
}

// Index returns the path of an element of the array at path.
func Index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// Join returns the path of the value at inner below the value at path.
func Join(path, inner string) string {
	if path == "" || inner == "" || inner[0] == '[' {
		return path + inner
	}
	return path + "." + inner
}

// plain reports whether a key reads well without quotes.
func plain(key string) bool {
	for _, c := range []byte(key) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-', c == '$':
		default:
			return false
		}
	}
	return key != ""
}
