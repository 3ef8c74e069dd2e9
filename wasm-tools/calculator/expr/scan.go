package expr

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind int

const (
	endToken tokenKind = iota
	numberToken
	nameToken
	operatorToken // operators, parentheses and commas
)

type token struct {
	kind   tokenKind
	text   string // names in lower case; operators in their canonical form
	column int    // in characters, from 1
}

func (t token) String() string {
	if t.kind == endToken {
		return "end of the expression"
	}
	return fmt.Sprintf("%q", t.text)
}

// scanner splits an expression into tokens. It works on characters, because columns
// count characters.
type scanner struct {
	text []rune
	next int
}

func scan(text string) ([]token, error) {
	if !utf8.ValidString(text) {
		return nil, syntaxError(0, "the expression is not valid UTF-8", "")
	}
	if n := utf8.RuneCountInString(text); n > MaxLength {
		return nil, &Error{Op: "parse", Kind: Limit, Message: fmt.Sprintf("the expression has %d characters; the limit is %d", n, MaxLength)}
	}
	s := &scanner{text: []rune(text)}
	var tokens []token
	for {
		t, err := s.token()
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, t)
		if t.kind == endToken {
			return tokens, nil
		}
	}
}

func (s *scanner) token() (token, error) {
	for unicode.IsSpace(s.peek(0)) {
		s.next++
	}
	start, r := s.next, s.peek(0)
	column := start + 1
	switch {
	case r == endOfText && start >= len(s.text):
		return token{endToken, "", column}, nil
	case isDigit(r) || r == '.' && isDigit(s.peek(1)):
		text, err := s.number()
		return token{numberToken, text, column}, err
	case isLetter(r):
		for isLetter(s.peek(0)) || isDigit(s.peek(0)) {
			s.next++
		}
		return token{nameToken, strings.ToLower(string(s.text[start:s.next])), column}, nil
	case r == 'π':
		s.next++
		return token{nameToken, "pi", column}, nil
	case r == 'τ':
		s.next++
		return token{nameToken, "tau", column}, nil
	}
	if text, length := operator(r, s.peek(1)); length > 0 {
		s.next += length
		return token{operatorToken, text, column}, nil
	}
	return token{}, syntaxError(column, fmt.Sprintf("unexpected character %q", r), hintFor(r, s.peek(-1)))
}

// operator returns the canonical form of the operator that starts with the two
// characters, and its length.
func operator(first, second rune) (string, int) {
	switch first {
	case '*':
		if second == '*' {
			return "^", 2
		}
		return "*", 1
	case '/':
		if second == '/' {
			return "//", 2
		}
		return "/", 1
	case '+', '-', '%', '^', '!', '(', ')', ',':
		return string(first), 1
	case '×', '·':
		return "*", 1
	case '÷':
		return "/", 1
	case '−':
		return "-", 1
	}
	return "", 0
}

// hintFor says what to write instead of a character, which follows previous.
func hintFor(r, previous rune) string {
	switch r {
	case '=', '<', '>':
		return "comparisons and assignments are not supported"
	case '[', '{', ']', '}':
		return "group with ( and )"
	case '$', '€', '£', '¥':
		return "write plain numbers without units"
	case '√':
		return "write sqrt(…)"
	case '.':
		if isLetter(previous) {
			return "write sqrt(2), not math.sqrt(2)"
		}
		return "a number needs a digit beside its point"
	}
	return ""
}

// endOfText is what peek returns outside the text. It may also stand in the text, where
// it is an unexpected character like any other.
const endOfText = rune(0)

func (s *scanner) peek(ahead int) rune {
	if at := s.next + ahead; 0 <= at && at < len(s.text) {
		return s.text[at]
	}
	return endOfText
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

func isLetter(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r == '_' }
