package schema

import (
	"math"
	"math/big"
	"strings"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// check is one keyword that looks only at a value, not at the values inside it.
type check struct {
	keyword string
	want    jsontext.Value
	kinds   Types // of the values that are checked
	passes  func(m *meter, v jsontext.Value) bool
}

// amongCheck checks const and enum. among holds the canonical texts of the allowed values.
func amongCheck(keyword string, want jsontext.Value, among map[string]bool) check {
	longest := 0
	for text := range among {
		longest = max(longest, len(text)+8)
	}
	return check{keyword, want, AnyType, func(m *meter, v jsontext.Value) bool {
		text, complete := canonical(m, v, longest)
		return complete && among[string(text)]
	}}
}

// text returns the content of a string, and pays for it.
func (m *meter) text(v jsontext.Value) string {
	size := len(v.Text())
	if strings.IndexByte(v.Text(), '\\') >= 0 {
		size *= 2 // to resolve escapes takes that much longer
	}
	m.charge(size / bytesPerUnit)
	return v.String()
}

// bounds are the keywords that compare numbers: the field that has the bound, the order of a number and the bound as
// [cmp.Compare] returns it, and the order in words.
var bounds = map[string]struct {
	field func(n *Node) *string
	holds func(order int) bool
	words string
}{
	"minimum":          {func(n *Node) *string { return &n.Minimum }, func(o int) bool { return o >= 0 }, "at least"},
	"maximum":          {func(n *Node) *string { return &n.Maximum }, func(o int) bool { return o <= 0 }, "at most"},
	"exclusiveMinimum": {exclusiveMinimum, func(o int) bool { return o > 0 }, "more than"},
	"exclusiveMaximum": {exclusiveMaximum, func(o int) bool { return o < 0 }, "less than"},
}

func exclusiveMinimum(n *Node) *string { return &n.ExclusiveMinimum }
func exclusiveMaximum(n *Node) *string { return &n.ExclusiveMaximum }

// numberCheck returns the check of a bound, which it notes in the node, or of multipleOf.
func numberCheck(n *Node, keyword string, want jsontext.Value) check {
	b, isBound := bounds[keyword]
	if !isBound {
		return check{keyword, want, Number, multipleOf(want.Text())}
	}
	*b.field(n) = want.Text()
	bound := parseDecimal(want.Text())
	return check{keyword, want, Number, func(_ *meter, v jsontext.Value) bool {
		return b.holds(parseDecimal(v.Text()).compare(bound))
	}}
}

func multipleOf(literal string) func(m *meter, v jsontext.Value) bool {
	divisor, valid := new(big.Rat).SetString(literal)
	if !valid || divisor.Sign() == 0 {
		return func(*meter, jsontext.Value) bool { return true } // it is reported
	}
	cost := fractionCost(literal)
	return func(m *meter, v jsontext.Value) bool {
		m.charge(cost + fractionCost(v.Text()))
		dividend, _ := new(big.Rat).SetString(v.Text())
		return dividend.Quo(dividend, divisor).IsInt()
	}
}

// fractionCost is the cost of computing with a number as an exact fraction.
func fractionCost(literal string) int {
	number := parseDecimal(literal)
	size := len(number.digits) + max(number.exponent, -number.exponent)
	return 8 + size + size*size/256
}

func sizeCheck(keyword string, want jsontext.Value, bound int) check {
	kinds := map[string]Types{"Length": String, "Items": Array, "Properties": Object}[keyword[3:]]
	return check{keyword, want, kinds, func(m *meter, v jsontext.Value) bool {
		size := v.Len()
		if kinds == String {
			size = utf8.RuneCountInString(m.text(v))
		}
		return keyword[1] == 'i' && size >= bound || keyword[1] == 'a' && size <= bound
	}}
}

func (m *meter) duplicates(list jsontext.Value) (first, second int, found bool) {
	seen := make(map[string]int, min(list.Len(), 1<<10))
	for i, element := range list.Elements() {
		m.charge(8) // for its place in the map
		text, _ := canonical(m, element, math.MaxInt)
		if first, found = seen[string(text)]; found {
			return first, i, true
		}
		seen[string(text)] = i
	}
	return 0, 0, false
}
