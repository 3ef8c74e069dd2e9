package repair

import (
	"bytes"
	"encoding/json"
)

// The functions here take apart text that is known to be valid JSON, one level at a time,
// so that what is not changed keeps its letters.

type member struct {
	name string
	text json.RawMessage
}

// members returns the members of an object in order.
func members(object json.RawMessage) []member {
	var list []member
	for i := space(object, 1); object[i] != '}'; {
		end := skipString(object, i)
		name := unquote(object[i:end])
		start := space(object, space(object, end)+1) // behind the colon
		end = skip(object, start)
		list = append(list, member{name, object[start:end:end]})
		i = behindComma(object, end)
	}
	return list
}

// elements returns the elements of an array.
func elements(array json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	for i := space(array, 1); array[i] != ']'; {
		end := skip(array, i)
		list = append(list, array[i:end:end])
		i = behindComma(array, end)
	}
	return list
}

func behindComma(text []byte, i int) int {
	if i = space(text, i); text[i] == ',' {
		i = space(text, i+1)
	}
	return i
}

func space(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	return i
}

// skip returns where the value ends that starts at i.
func skip(text []byte, i int) int {
	switch text[i] {
	case '"':
		return skipString(text, i)
	case '{', '[':
		return skipContainer(text, i)
	}
	for i < len(text) && bytes.IndexByte([]byte(",]} \n\t\r"), text[i]) < 0 {
		i++
	}
	return i
}

func skipString(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

func skipContainer(text []byte, i int) int {
	for depth := 0; ; i++ {
		switch text[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"':
			i = skipString(text, i) - 1
		}
	}
}

// unquote returns what a string says.
func unquote(literal []byte) string {
	if bytes.IndexByte(literal, '\\') < 0 {
		return string(literal[1 : len(literal)-1])
	}
	var text string
	_ = json.Unmarshal(literal, &text) // it is valid
	return text
}

// quote returns a text as a JSON string; the text must be UTF-8.
func quote(text string) json.RawMessage {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string does not fail
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// object writes an object of its members.
func object(list []member) json.RawMessage {
	text := []byte{'{'}
	for i, m := range list {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(append(text, quote(m.name)...), ':'), m.text...)
	}
	return append(text, '}')
}

// array writes an array of its elements.
func array(list []json.RawMessage) json.RawMessage {
	return append(append([]byte{'['}, bytes.Join(rawTexts(list), []byte{','})...), ']')
}

func rawTexts(list []json.RawMessage) [][]byte {
	texts := make([][]byte, len(list))
	for i, text := range list {
		texts[i] = text
	}
	return texts
}
