package repair

import "strings"

// string reads a string in either kind of quotes and writes it in double ones. Escapes are
// those of JSON, and \' besides; what others mean, languages disagree on.
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
			if !t.control(c) {
				return false
			}
		default:
			t.out = append(t.out, c)
		}
	}
	return false
}

// escape reads what stands behind a backslash. The digits of \u are checked with the whole.
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

// control writes a line break or a tab as its escape.
func (t *tolerant) control(c byte) bool {
	switch c {
	case '\n':
		t.out = append(t.out, `\n`...)
	case '\r':
		t.out = append(t.out, `\r`...)
	case '\t':
		t.out = append(t.out, `\t`...)
	default:
		return false
	}
	return true
}
