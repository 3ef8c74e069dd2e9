package secrets

import (
	"bytes"
	"encoding/json"
)

// setMember removes every top-level member of a name from a JSON object, however the name
// is escaped, and adds it with a text as its value, behind all others: those who ignore the case
// of names take the last one. All others stay as they are, byte for byte. It reports false for
// what is not one JSON object.
func setMember(object []byte, name, value string) ([]byte, bool) {
	trimmed := bytes.TrimLeft(object, " \t\r\n")
	if len(trimmed) == 0 || trimmed[0] != '{' || !json.Valid(object) {
		return nil, false
	}
	start := len(object) - len(trimmed) + 1
	out := make([]byte, start, len(object)+len(name)+len(value)+8)
	copy(out, object)
	at, kept := start, 0
	for {
		end := start + memberLength(object[start:])
		at = skipSpace(object, start)
		if object[at] == '"' && memberName(object[at:end]) != name {
			if kept++; kept > 1 {
				out = append(out, ',')
			}
			out = append(out, object[start:end]...)
		}
		if object[end] == '}' {
			at = end
			break
		}
		start = end + 1
	}
	if kept > 0 {
		out = append(out, ',')
	}
	out = appendText(out, name)
	out = append(out, ':')
	out = appendText(out, value)
	return append(out, object[at:]...), true
}

// memberLength returns how far it is to the comma or brace behind the next member of an
// object in valid JSON.
func memberLength(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i += textLength(text[i:]) - 1
		case '{', '[':
			depth++
		case ']':
			depth--
		case '}':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

// textLength returns the length of the JSON string at the beginning of valid JSON, with
// its quotes.
func textLength(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

func memberName(member []byte) string {
	var name string
	// Valid JSON text decodes into a string.
	_ = json.Unmarshal(member[:textLength(member)], &name)
	return name
}

func skipSpace(text []byte, at int) int {
	return len(text) - len(bytes.TrimLeft(text[at:], " \t\r\n"))
}

func appendText(out []byte, text string) []byte {
	// A string always has a JSON form.
	encoded, _ := json.Marshal(text)
	return append(out, encoded...)
}
