package schema

import (
	"cmp"
	"strconv"
	"strings"
)

// decimal is a JSON number without rounding: 0.digits times ten to the power of exponent. It needs no large fractions.
type decimal struct {
	negative bool
	digits   string // without zeros at either end; empty for zero
	exponent int
}

// parseDecimal reads a literal that checkNumber has accepted.
func parseDecimal(literal string) decimal {
	rest, negative := strings.CutPrefix(literal, "-")
	exponent := 0
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		exponent, _ = strconv.Atoi(rest[i+1:])
		rest = rest[:i]
	}
	whole, fraction, _ := strings.Cut(rest, ".")
	exponent += len(whole)
	digits := whole + fraction
	trimmed := strings.TrimLeft(digits, "0")
	exponent -= len(digits) - len(trimmed)
	trimmed = strings.TrimRight(trimmed, "0")
	if trimmed == "" {
		return decimal{}
	}
	return decimal{negative, trimmed, exponent}
}

// isWhole reports whether the number is an integer, which 1.0 and 1e3 are.
func (d decimal) isWhole() bool { return len(d.digits) <= d.exponent || d.digits == "" }

// text returns a whole number in digits. They are no more than its exponent, apart from a sign.
func (d decimal) text() string {
	if d.digits == "" {
		return "0"
	}
	digits := d.digits + strings.Repeat("0", d.exponent-len(d.digits))
	if d.negative {
		return "-" + digits
	}
	return digits
}

// compare returns -1, 0 or 1, as cmp.Compare does.
func (d decimal) compare(other decimal) int {
	size := cmp.Or(cmp.Compare(d.exponent, other.exponent), strings.Compare(d.digits, other.digits))
	if d.negative {
		size = -size
	}
	return cmp.Or(cmp.Compare(d.sign(), other.sign()), size)
}

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	default:
		return 1
	}
}

// appendKey appends a text that equal numbers share.
func (d decimal) appendKey(to []byte) []byte {
	if d.negative {
		to = append(to, '-')
	}
	to = append(to, d.digits...)
	return strconv.AppendInt(append(to, 'e'), int64(d.exponent), 10)
}
