package expr

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// number scans a literal and returns it without separators, in lower case:
// 1_000, .5, 2.5e-3, 0xff, 0b101, 0o17.
func (s *scanner) number() (string, error) {
	start := s.next
	if s.peek(0) == '0' {
		if base, digits := radix(s.peek(1)); base != 0 {
			return s.prefixed(base, digits)
		}
	}
	whole, err := s.digits()
	if err != nil {
		return "", err
	}
	if len(whole) > 1 && whole[0] == '0' {
		return "", syntaxError(start+1, "a number cannot start with 0", "group digits with _, as in 1_000, and write 0o17 for octal")
	}
	text := whole
	if s.peek(0) == '.' {
		s.next++
		fraction, err := s.digits()
		if err != nil {
			return "", err
		}
		text += "." + fraction
		if s.peek(0) == '.' {
			return "", syntaxError(s.next+1, "a number has two points", "")
		}
	}
	exponent, err := s.exponent()
	return text + exponent, err
}

// digits scans decimal digits, of which there may be none, with single separators
// between them.
func (s *scanner) digits() (string, error) {
	var b strings.Builder
	for {
		switch r := s.peek(0); {
		case isDigit(r):
			b.WriteRune(r)
		case r == '_' && b.Len() > 0 && isDigit(s.peek(1)):
		case r == '_':
			return "", syntaxError(s.next+1, `misplaced "_"`, "it goes between two digits, as in 1_000")
		default:
			return b.String(), nil
		}
		s.next++
	}
}

// exponent scans e and a whole number. An e without digits is not an exponent but
// the constant, which the parser then refuses beside a number.
func (s *scanner) exponent() (string, error) {
	if s.peek(0) != 'e' && s.peek(0) != 'E' {
		return "", nil
	}
	skip, sign := 1, ""
	if r := s.peek(1); r == '+' || r == '-' {
		skip, sign = 2, string(r)
	}
	if !isDigit(s.peek(skip)) {
		return "", nil
	}
	s.next += skip
	digits, err := s.digits()
	return "e" + sign + digits, err
}

func radix(letter rune) (base int, digits string) {
	switch letter {
	case 'x', 'X':
		return 16, "0123456789abcdef"
	case 'o', 'O':
		return 8, "01234567"
	case 'b', 'B':
		return 2, "01"
	}
	return 0, ""
}

func (s *scanner) prefixed(base int, digits string) (string, error) {
	start := s.next
	text := strings.ToLower(string(s.text[start : start+2]))
	s.next += 2
	var b strings.Builder
	b.WriteString(text)
	for isLetter(s.peek(0)) || isDigit(s.peek(0)) {
		r := s.peek(0)
		if r != '_' && !strings.ContainsRune(digits, lower(r)) {
			return "", syntaxError(s.next+1, fmt.Sprintf("%q is not a digit of a base-%d number", r, base), "")
		}
		if r != '_' {
			b.WriteRune(lower(r))
		}
		s.next++
	}
	if b.Len() == len(text) || s.text[s.next-1] == '_' {
		return "", syntaxError(s.next+1, fmt.Sprintf("expected a digit after %q", string(s.text[start:s.next])), "")
	}
	if s.peek(0) == '.' {
		return "", syntaxError(s.next+1, fmt.Sprintf("a base-%d number cannot have a point", base), "")
	}
	return b.String(), nil
}

func lower(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + ('a' - 'A')
	}
	return r
}

// literal returns the exact value of what number scanned.
func (e *evaluator) literal(text string) (number, error) {
	if base, _ := radix(rune(text[min(1, len(text)-1)])); base != 0 {
		whole, ok := new(big.Int).SetString(text, 0)
		if !ok {
			return number{}, undefined(fmt.Sprintf("cannot read the number %q", text), "")
		}
		return e.whole(whole)
	}
	mantissa, exponentText, _ := strings.Cut(text, "e")
	wholeText, fraction, _ := strings.Cut(mantissa, ".")
	exponent := 0
	if exponentText != "" {
		var err error
		if exponent, err = strconv.Atoi(exponentText); err != nil || exponent > MaxBits || exponent < -MaxBits {
			return number{}, tooMuch(fmt.Sprintf("the exponent of %s is too large", shorten(text)), "")
		}
	}
	exponent -= len(fraction)
	digits, ok := new(big.Int).SetString(wholeText+fraction, 10)
	if !ok {
		return number{}, undefined(fmt.Sprintf("cannot read the number %q", text), "")
	}
	if digits.Sign() == 0 || exponent == 0 {
		return e.whole(digits)
	}
	power, err := e.powerOfTen(max(exponent, -exponent))
	if err != nil {
		return number{}, err
	}
	if exponent > 0 {
		return e.whole(digits.Mul(digits, power))
	}
	if err := e.spend(fractionCost(digits, power)); err != nil {
		return number{}, err
	}
	return e.fraction(new(big.Rat).SetFrac(digits, power))
}

func (e *evaluator) powerOfTen(exponent int) (*big.Int, error) {
	words := int64(exponent)/19 + 1
	if err := e.spend(words * words); err != nil {
		return nil, err
	}
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(exponent)), nil), nil
}

func shorten(text string) string {
	if len(text) > 24 {
		return text[:24] + "…"
	}
	return text
}
