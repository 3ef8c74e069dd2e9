package jsonpath

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/wasm-tools/json/internal/document"
)

// Limits of queries.
const (
	maxQuery   = 10_000 // bytes
	maxNesting = 50     // of filters, parentheses and functions
)

// maxIndex is the greatest index that the standard allows.
const maxIndex = 1<<53 - 1

// Parse reads a query. The error names the mistake, its character and the correction.
func Parse(text string) (*Query, error) {
	if len(text) > maxQuery {
		return nil, fmt.Errorf("the query has more than %d bytes", maxQuery)
	}
	p := &parser{text: text}
	if !p.eat("$") {
		return nil, p.fail("a query starts with $, which is the whole document, as in $.items[0]")
	}
	segments, err := p.segments()
	if err != nil {
		return nil, err
	}
	if p.at < len(text) {
		return nil, p.fail("unexpected " + p.next() + p.advice())
	}
	return &Query{path{segments: segments}}, nil
}

// parser reads a query from left to right.
type parser struct {
	text    string
	at      int
	nesting int
}

func (p *parser) rest() string { return p.text[p.at:] }

func (p *parser) fail(what string) error {
	return fmt.Errorf("the query at character %d: %s", 1+utf8.RuneCountInString(p.text[:p.at]), what)
}

// next shows the next character, for a message.
func (p *parser) next() string {
	if p.at == len(p.text) {
		return "end"
	}
	r, _ := utf8.DecodeRuneInString(p.rest())
	return strconv.Quote(string(r))
}

// advice says what to write instead of common syntax that is not in the standard.
func (p *parser) advice() string {
	switch rest := p.rest(); {
	case strings.HasPrefix(rest, "=~"):
		return "; write match(@.name, 'pattern'), or search(…) to find the pattern within the text"
	case strings.HasPrefix(rest, "=") && !strings.HasPrefix(rest, "=="):
		return "; write == to compare"
	case strings.HasPrefix(rest, "&") && !strings.HasPrefix(rest, "&&"):
		return "; write && for and"
	case strings.HasPrefix(rest, "|") && !strings.HasPrefix(rest, "||"):
		return "; write || for or"
	case strings.HasPrefix(rest, "-"):
		return "; write names with other characters than letters, digits and _ in brackets and quotes, as in ['a-b']"
	case strings.HasPrefix(rest, "("):
		return "; write functions around a path, as in [?length(@.name) > 3]"
	case strings.HasPrefix(strings.TrimLeft(rest, " "), "in "), strings.HasPrefix(rest, "and "),
		strings.HasPrefix(rest, "or "), strings.HasPrefix(rest, "not "):
		return "; the operators are == != < <= > >= && || !"
	}
	return ""
}

// eat skips a text if it comes next.
func (p *parser) eat(text string) bool {
	if !strings.HasPrefix(p.rest(), text) {
		return false
	}
	p.at += len(text)
	return true
}

func (p *parser) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\n\r", p.text[p.at]) >= 0 {
		p.at++
	}
}

func (p *parser) segments() (segments []segment, err error) {
	for {
		before := p.at
		p.space()
		var s segment
		switch {
		case p.eat(".."):
			s, err = p.descendants()
		case p.eat("."):
			s, err = p.dotted()
		case strings.HasPrefix(p.rest(), "["):
			s.selectors, err = p.brackets()
		default:
			p.at = before // white space at the end is not the query's
			return segments, nil
		}
		if err != nil {
			return nil, err
		}
		segments = append(segments, s)
	}
}

func (p *parser) descendants() (segment, error) {
	if strings.HasPrefix(p.rest(), "[") {
		selectors, err := p.brackets()
		return segment{true, selectors}, err
	}
	s, err := p.dotted()
	s.descends = true
	return s, err
}

// dotted reads the selector after a dot.
func (p *parser) dotted() (segment, error) {
	if p.eat("*") {
		return segment{selectors: []selector{wildcard{}}}, nil
	}
	start := p.at
	for p.at < len(p.text) {
		r, size := utf8.DecodeRuneInString(p.rest())
		isLetter := 'a' <= r|0x20 && r|0x20 <= 'z' || r == '_' || r >= 0x80 && (r != utf8.RuneError || size > 1)
		if !isLetter && (p.at == start || r < '0' || r > '9') {
			break
		}
		p.at += size
	}
	if p.at == start {
		return segment{}, p.fail("want a name or * after the dot, not " + p.next() +
			"; write other names in brackets and quotes, as in ['a-b'], and indexes in brackets")
	}
	return segment{selectors: []selector{name(p.text[start:p.at])}}, nil
}

func (p *parser) brackets() (selectors []selector, err error) {
	p.at++
	for {
		p.space()
		s, err := p.selector()
		if err != nil {
			return nil, err
		}
		selectors = append(selectors, s)
		p.space()
		switch {
		case p.eat("]"):
			return selectors, nil
		case !p.eat(","):
			return nil, p.fail("want a comma or ], not " + p.next() + p.advice())
		}
	}
}

func (p *parser) selector() (selector, error) {
	switch c := p.peek(); {
	case c == '\'' || c == '"':
		text, err := p.quoted()
		return name(text), err
	case c == '*':
		p.at++
		return wildcard{}, nil
	case c == '?':
		p.at++
		p.space()
		tested, err := p.or()
		return filter{tested}, err
	case c == ':' || c == '-' || '0' <= c && c <= '9':
		return p.numbers()
	case c == '(':
		return nil, p.fail("want a selector, not a script; write -1 for the last element, and [?…] to filter")
	}
	return nil, p.fail("want a name in quotes, an index, a slice such as 0:3, * or a filter such as ?@.price < 10, not " +
		p.next())
}

// peek returns the next byte, or 0.
func (p *parser) peek() byte {
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

// numbers reads an index or a slice.
func (p *parser) numbers() (selector, error) {
	var parts [3]*int
	count := 0
	for {
		if c := p.peek(); c == '-' || '0' <= c && c <= '9' {
			number, err := p.integer()
			if err != nil {
				return nil, err
			}
			parts[count] = &number
		}
		before := p.at
		p.space()
		if count == 2 || !p.eat(":") {
			p.at = before
			break
		}
		count++
		p.space()
	}
	if count == 0 {
		return index(*parts[0]), nil
	}
	s := slice{parts[0], parts[1], 1}
	if parts[2] != nil {
		s.step = *parts[2]
	}
	return s, nil
}

var integerText = regexp.MustCompile(`^(0|-?[1-9][0-9]*)`)

func (p *parser) integer() (int, error) {
	text := integerText.FindString(p.rest())
	number, err := strconv.ParseInt(text, 10, 64)
	after := p.text[p.at+len(text):]
	switch {
	case text == "" || after != "" && '0' <= after[0] && after[0] <= '9':
		return 0, p.fail("want a whole number without leading zeros")
	case err != nil || number > maxIndex || number < -maxIndex:
		return 0, p.fail("the number is too large")
	}
	p.at += len(text)
	// An index beyond every array is as good as another, where numbers have 32 bits.
	const most = 1<<30 - 1
	return int(min(max(number, -most), most)), nil
}

// quoted reads a string in quotes of either kind.
func (p *parser) quoted() (string, error) {
	quote := p.text[p.at]
	start := p.at
	p.at++
	var b strings.Builder
	for {
		if p.at == len(p.text) {
			p.at = start
			return "", p.fail("the string has no end; close it with " + string(quote))
		}
		switch c := p.text[p.at]; {
		case c == quote:
			p.at++
			return b.String(), nil
		case c < ' ':
			return "", p.fail(`want an escape such as \n in place of a control character`)
		case c == '\\':
			r, err := p.escape(quote)
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
		default:
			b.WriteByte(c)
			p.at++
		}
	}
}

func (p *parser) escape(quote byte) (rune, error) {
	p.at++
	c := p.peek()
	switch at := strings.IndexByte(`btnfr/\`, c); {
	case c != 0 && at >= 0:
		p.at++
		return rune("\b\t\n\f\r/\\"[at]), nil
	case c == quote && c != 0:
		p.at++
		return rune(c), nil
	case c != 'u':
		return 0, p.fail(`want one of \b \t \n \f \r \/ \\ \` + string(quote) + ` \uXXXX; write a backslash as \\`)
	}
	const invalid = `want four hexadecimal digits after \u, and both halves of a surrogate pair`
	high, ok := p.unit()
	if !ok || high >= 0xdc00 && high <= 0xdfff {
		return 0, p.fail(invalid)
	}
	if high < 0xd800 || high > 0xdfff {
		return high, nil
	}
	if p.peek() != '\\' {
		return 0, p.fail(invalid)
	}
	p.at++
	if low, ok := p.unit(); ok && low >= 0xdc00 && low <= 0xdfff {
		return 0x10000 + (high-0xd800)<<10 + (low - 0xdc00), nil
	}
	return 0, p.fail(invalid)
}

// unit reads u and four hexadecimal digits.
func (p *parser) unit() (rune, bool) {
	rest := p.rest()
	if len(rest) < 5 || rest[0] != 'u' {
		return 0, false
	}
	number, err := strconv.ParseUint(rest[1:5], 16, 16)
	if err != nil {
		return 0, false
	}
	p.at += 5
	return rune(number), true
}

// stringNode returns a string as a document has it.
func stringNode(s string) literal { return literal{document.NewString(s)} }

// wordNode returns true, false or null.
func wordNode(word string) literal {
	kind := jsontext.Bool
	if word == "null" {
		kind = jsontext.Null
	}
	return literal{&document.Node{Kind: kind, Text: word}}
}
