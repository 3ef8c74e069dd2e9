package kernels

import "unicode/utf8"

// The kinds of values, numbered alike in every language.
const (
	kindNull = iota + 1
	kindFalse
	kindTrue
	kindNumber
	kindString
	kindArray
	kindObject
)

// none means no value: index 0 of the arena is not used.
const none = 0

// value is a node of the tree. An object's members are its children, in pairs.
type value struct {
	number      float64
	start, end  uint32 // of a string, in parser.strings
	child, next uint32 // indices in parser.values
	kind        uint8
}

// parser reads one text into an arena of values. It takes JSON but for surrogate pairs
// and exponents.
type parser struct {
	text    []byte
	at      int
	values  []value
	strings []byte
}

func (p *parser) document() (root uint32, ok bool) {
	p.values = append(p.values, value{})
	if root, ok = p.value(); !ok {
		return none, false
	}
	p.space()
	return root, p.at == len(p.text)
}

func (p *parser) add(v value) (at uint32, ok bool) {
	p.values = append(p.values, v)
	return uint32(len(p.values) - 1), true
}

func (p *parser) space() {
	for p.at < len(p.text) &&
		(p.text[p.at] == ' ' || p.text[p.at] == '\n' || p.text[p.at] == '\t' || p.text[p.at] == '\r') {
		p.at++
	}
}

// take skips white space and consumes one wanted byte.
func (p *parser) take(wanted byte) bool {
	p.space()
	if p.at == len(p.text) || p.text[p.at] != wanted {
		return false
	}
	p.at++
	return true
}

func (p *parser) value() (at uint32, ok bool) {
	p.space()
	if p.at == len(p.text) {
		return none, false
	}
	switch p.text[p.at] {
	case '{':
		return p.list(kindObject, '}')
	case '[':
		return p.list(kindArray, ']')
	case '"':
		return p.string()
	case 'n':
		return p.word("null", kindNull)
	case 'f':
		return p.word("false", kindFalse)
	case 't':
		return p.word("true", kindTrue)
	}
	return p.number()
}

func (p *parser) word(word string, kind uint8) (at uint32, ok bool) {
	if len(p.text)-p.at < len(word) || string(p.text[p.at:p.at+len(word)]) != word {
		return none, false
	}
	p.at += len(word)
	return p.add(value{kind: kind})
}

// list reads an array, or an object as an array of names and values in turn.
func (p *parser) list(kind uint8, closing byte) (at uint32, ok bool) {
	p.at++
	at, _ = p.add(value{kind: kind})
	if p.take(closing) {
		return at, true
	}
	last := uint32(none)
	for {
		if kind == kindObject {
			if p.space(); p.at == len(p.text) || p.text[p.at] != '"' {
				return none, false
			}
			name, ok := p.string()
			if !ok || !p.take(':') {
				return none, false
			}
			last = p.link(at, last, name)
		}
		item, ok := p.value()
		if !ok {
			return none, false
		}
		last = p.link(at, last, item)
		if p.take(closing) {
			return at, true
		}
		if !p.take(',') {
			return none, false
		}
	}
}

// link puts an item after the last of its list and returns the item, the new last.
func (p *parser) link(list, last, item uint32) uint32 {
	if last == none {
		p.values[list].child = item
	} else {
		p.values[last].next = item
	}
	return item
}

func (p *parser) number() (at uint32, ok bool) {
	negative := p.text[p.at] == '-'
	if negative {
		p.at++
	}
	mantissa, scale, digits := 0.0, 1.0, 0
	for fraction := false; p.at < len(p.text); p.at++ {
		c := p.text[p.at]
		if c == '.' && !fraction && digits > 0 {
			fraction = true
			continue
		}
		if c < '0' || c > '9' {
			break
		}
		mantissa = float64(mantissa*10) + float64(c-'0')
		if fraction {
			scale *= 10
		}
		digits++
	}
	if negative {
		mantissa = -mantissa
	}
	if digits == 0 {
		return none, false
	}
	return p.add(value{kind: kindNumber, number: mantissa / scale})
}

func (p *parser) string() (at uint32, ok bool) {
	p.at++
	start := uint32(len(p.strings))
	for p.at < len(p.text) {
		c := p.text[p.at]
		p.at++
		switch {
		case c == '"':
			return p.add(value{kind: kindString, start: start, end: uint32(len(p.strings))})
		case c < ' ':
			return none, false
		case c != '\\':
			p.strings = append(p.strings, c)
		case !p.escape():
			return none, false
		}
	}
	return none, false
}

// escape reads what follows a backslash.
func (p *parser) escape() bool {
	if p.at == len(p.text) {
		return false
	}
	c := p.text[p.at]
	p.at++
	switch c {
	case '"', '\\', '/':
		p.strings = append(p.strings, c)
	case 'b':
		p.strings = append(p.strings, '\b')
	case 'f':
		p.strings = append(p.strings, '\f')
	case 'n':
		p.strings = append(p.strings, '\n')
	case 'r':
		p.strings = append(p.strings, '\r')
	case 't':
		p.strings = append(p.strings, '\t')
	case 'u':
		return p.codePoint()
	default:
		return false
	}
	return true
}

func (p *parser) codePoint() bool {
	if len(p.text)-p.at < 4 {
		return false
	}
	var point rune
	for _, c := range p.text[p.at : p.at+4] {
		switch {
		case '0' <= c && c <= '9':
			point = point<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			point = point<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			point = point<<4 | rune(c-'A'+10)
		default:
			return false
		}
	}
	p.at += 4
	if !utf8.ValidRune(point) {
		return false
	}
	p.strings = utf8.AppendRune(p.strings, point)
	return true
}
