package document

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// Equal reports whether two values are the same: strings by their characters, numbers by their value, arrays in order
// and objects in any order.
func Equal(a, b *Node) bool {
	if a.Kind != b.Kind || len(a.Elements) != len(b.Elements) || len(a.Members) != len(b.Members) {
		return false
	}
	switch a.Kind {
	case jsontext.String:
		return a.Text == b.Text || sameString(a.Text, a.String(), b.Text, b.String())
	case jsontext.Number:
		return CompareNumbers(a.Text, b.Text) == 0
	}
	for i, element := range a.Elements {
		if !Equal(element, b.Elements[i]) {
			return false
		}
	}
	if len(a.Members) == 0 {
		return a.Text == b.Text
	}
	var others map[string]*Node
	for i, member := range a.Members {
		other := b.Members[i].Value // objects mostly have their members in the same order
		if b.Members[i].Name != member.Name {
			if others == nil {
				others = b.byName()
			}
			other = others[member.Name]
		}
		if other == nil || !Equal(member.Value, other) {
			return false
		}
	}
	return true
}

// sameString compares strings. Escapes that are half a character all read as U+FFFD, and are the same only if written
// the same.
func sameString(written, content, otherWritten, otherContent string) bool {
	return content == otherContent && (written == otherWritten || !strings.ContainsRune(content, '\uFFFD'))
}

// byName returns the members of an object.
func (n *Node) byName() map[string]*Node {
	members := make(map[string]*Node, len(n.Members))
	for _, member := range n.Members {
		members[member.Name] = member.Value
	}
	return members
}

// CompareNumbers compares two numbers of JSON by their value, however they are written, and exactly. Exponents beyond
// 64 bits count as the largest that has 64.
func CompareNumbers(a, b string) int {
	if a == b {
		return 0
	}
	x, y := decimalOf(a), decimalOf(b)
	if sign := cmp.Compare(x.sign, y.sign); sign != 0 || x.sign == 0 {
		return sign
	}
	magnitude := cmp.Compare(x.exponent, y.exponent)
	if magnitude == 0 {
		magnitude = strings.Compare(x.digits, y.digits)
	}
	return x.sign * magnitude
}

// decimal is sign × 0.digits × 10^exponent, with digits that neither start nor end with a zero.
type decimal struct {
	sign     int
	digits   string
	exponent int64
}

func decimalOf(text string) decimal {
	d := decimal{sign: 1}
	if rest, negative := strings.CutPrefix(text, "-"); negative {
		d.sign, text = -1, rest
	}
	mantissa := text
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		mantissa = text[:at]
		exponent, _ := strconv.ParseInt(strings.TrimPrefix(text[at+1:], "+"), 10, 64) // the nearest, if it is out of range
		d.exponent = max(min(exponent, math.MaxInt64/2), math.MinInt64/2)
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	d.exponent += int64(len(whole))
	trimmed := strings.TrimLeft(digits, "0")
	d.exponent -= int64(len(digits) - len(trimmed))
	if d.digits = strings.TrimRight(trimmed, "0"); d.digits == "" {
		return decimal{}
	}
	return d
}
