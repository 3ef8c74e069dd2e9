package repair

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/tool"
)

// Text reads the text of arguments that [tool.ParseArguments] has refused: a JSON string
// that holds the object and, if tolerant is set, an object that is almost JSON. It returns
// false for anything else.
func Text(text string, tolerant bool) (tool.Arguments, []tool.Repair, bool) {
	rule, from, object := ParseJSON, strings.TrimSpace(text), ""
	switch {
	case len(text) > tool.MaxArgumentsBytes || !utf8.ValidString(text):
	case json.Valid([]byte(text)):
		_ = json.Unmarshal([]byte(from), &object) // which stays empty unless the text is a string
	case tolerant:
		rule, from = TolerantJSON, jsontext.Quote(text)
		object, _ = readTolerant(text)
	}
	if strings.TrimSpace(object) == "" {
		return tool.Arguments{}, nil, false
	}
	arguments, err := tool.ParseArguments(object)
	if err != nil {
		return tool.Arguments{}, nil, false
	}
	to, err := arguments.MarshalJSON()
	return arguments, []tool.Repair{{Rule: string(rule), From: json.RawMessage(from), To: to}}, err == nil
}

// tolerant reads text that is almost JSON and writes it as JSON. It takes
//
//   - a code fence around the whole, comments (//, #, /* */), and commas before ] and };
//   - strings in single quotes, and line breaks and tabs inside strings;
//   - names without quotes that are identifiers;
//   - True, False and None;
//   - an end at which brackets are missing, if all before it is complete.
//
// It rejects whatever is ambiguous: a number at the very end may lack digits, and more may have followed a comma.
type tolerant struct {
	text   string
	offset int
	out    []byte
}

// readTolerant returns the JSON that a text was meant to be, or false.
func readTolerant(text string) (string, bool) {
	text, ok := unfence(text)
	if !ok {
		return "", false
	}
	t := &tolerant{text: text, out: make([]byte, 0, len(text))}
	if !t.space() || !t.value(0) || !t.space() || t.offset < len(t.text) {
		return "", false
	}
	if !json.Valid(t.out) {
		return "", false
	}
	return string(t.out), true
}

// unfence removes a code fence. It returns false if that is not closed.
func unfence(text string) (string, bool) {
	const fence = "```"
	inside, fenced := strings.CutPrefix(strings.TrimSpace(text), fence)
	if !fenced {
		return text, true
	}
	language, inside, _ := strings.Cut(inside, "\n")
	if strings.ContainsFunc(strings.TrimSpace(language), func(r rune) bool { return !isNameRune(r) }) {
		return "", false
	}
	inside, closed := strings.CutSuffix(inside, fence)
	return inside, closed
}

// space skips white space and comments. It returns false for an unclosed comment.
func (t *tolerant) space() bool {
	for t.offset < len(t.text) {
		rest := t.text[t.offset:]
		switch {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			t.offset++
		case rest[0] == '#', strings.HasPrefix(rest, "//"):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			t.offset += end
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return false
			}
			t.offset += end + len("/**/")
		default:
			return true
		}
	}
	return true
}

// at reports whether a byte comes next.
func (t *tolerant) at(c byte) bool { return t.offset < len(t.text) && t.text[t.offset] == c }

// value reads a value inside a container at the given depth.
func (t *tolerant) value(depth int) bool {
	if t.offset == len(t.text) || depth > tool.MaxArgumentsDepth {
		return false
	}
	switch c := t.text[t.offset]; {
	case c == '{':
		return t.container('}', depth+1, t.member)
	case c == '[':
		return t.container(']', depth+1, t.value)
	case c == '"' || c == '\'':
		return t.string()
	case c == '-' || '0' <= c && c <= '9':
		return t.number()
	default:
		return t.word()
	}
}

// container reads an object or an array. The closing bracket may be missing at the end of the text.
func (t *tolerant) container(closing byte, depth int, item func(depth int) bool) bool {
	t.out = append(t.out, t.text[t.offset])
	t.offset++
	for first := true; ; first = false {
		if !t.space() {
			return false
		}
		if t.at(closing) {
			break
		}
		if !first {
			t.out = append(t.out, ',')
		}
		if !item(depth) || !t.space() {
			return false
		}
		if !t.at(',') {
			break
		}
		t.offset++
	}
	t.out = append(t.out, closing)
	if t.offset == len(t.text) {
		return true
	}
	t.offset++
	return t.text[t.offset-1] == closing
}

func (t *tolerant) member(depth int) bool {
	if !t.name() || !t.space() || !t.at(':') {
		return false
	}
	t.offset++
	t.out = append(t.out, ':')
	return t.space() && t.value(depth)
}

func (t *tolerant) name() bool {
	if t.at('"') || t.at('\'') {
		return t.string()
	}
	name := t.identifier()
	if name == "" || '0' <= name[0] && name[0] <= '9' || name[0] == '-' {
		return false
	}
	t.out = append(append(append(t.out, '"'), name...), '"')
	return true
}

// identifier skips and returns what looks like one.
func (t *tolerant) identifier() string {
	rest := t.text[t.offset:]
	end := strings.IndexFunc(rest, func(r rune) bool { return !isNameRune(r) })
	if end < 0 {
		end = len(rest)
	}
	t.offset += end
	return rest[:end]
}

func isNameRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' || r == '$'
}

// words are true, false and null, as JSON and as Python write them.
var words = map[string]string{"true": "true", "false": "false", "null": "null", "True": "true", "False": "false",
	"None": "null"}

func (t *tolerant) word() bool {
	word, ok := words[t.identifier()]
	t.out = append(t.out, word...)
	return ok
}

// number reads a number that does not end with the text.
func (t *tolerant) number() bool {
	rest := t.text[t.offset:]
	end := strings.IndexFunc(rest, func(r rune) bool { return !strings.ContainsRune("+-.0123456789eE", r) })
	if end < 0 || !isNumber(rest[:end]) {
		return false
	}
	t.offset += end
	t.out = append(t.out, rest[:end]...)
	return true
}

// string reads a string in either kind of quotes and writes it in double ones. Escapes are
// those of JSON, and \' in addition; languages disagree on the meaning of further ones.
func (t *tolerant) string() bool {
	quote := t.text[t.offset]
	t.out = append(t.out, '"')
	for t.offset++; t.offset < len(t.text); t.offset++ {
		switch c := t.text[t.offset]; {
		case c == quote:
			t.offset++
			t.out = append(t.out, '"')
			return true
		case c == '\\':
			t.offset++
			if !t.escape() {
				return false
			}
		case c == '"':
			t.out = append(t.out, '\\', '"')
		case c < ' ':
			escape, ok := controls[c]
			if !ok {
				return false
			}
			t.out = append(t.out, escape...)
		default:
			t.out = append(t.out, c)
		}
	}
	return false
}

// escape reads what follows a backslash. The digits of \u are checked with the whole.
func (t *tolerant) escape() bool {
	switch {
	case t.at('\''):
		t.out = append(t.out, '\'')
	case t.offset < len(t.text) && strings.IndexByte(`"\/bfnrtu`, t.text[t.offset]) >= 0:
		t.out = append(t.out, '\\', t.text[t.offset])
	default:
		return false
	}
	return true
}

// controls maps the control characters that may occur in a string to their escapes.
var controls = map[byte]string{'\n': `\n`, '\r': `\r`, '\t': `\t`}
