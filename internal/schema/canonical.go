package schema

import (
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// canonizer writes values so that their texts are equal exactly when JSON Schema has them equal, up to a limit.
type canonizer struct {
	meter *meter // pays for the work
	limit int
	out   []byte
}

// canonical returns the text of a value, or false where it is longer than limit bytes.
func canonical(m *meter, v jsontext.Value, limit int) ([]byte, bool) {
	c := canonizer{meter: m, limit: limit}
	complete := c.value(v)
	return c.out, complete
}

func (c *canonizer) value(v jsontext.Value) bool {
	switch v.Kind() {
	case jsontext.Number:
		number := parseDecimal(v.Text())
		if !c.begin('n', 0, len(number.digits)) {
			return false
		}
		c.out = number.appendKey(c.out)
		return true
	case jsontext.String:
		return c.string(v)
	case jsontext.Array:
		if !c.begin('a', v.Len(), 0) {
			return false
		}
		for _, element := range v.Elements() {
			if !c.value(element) {
				return false
			}
		}
		return true
	case jsontext.Object:
		return c.object(v)
	default:
		return c.begin(v.Text()[0], 0, 0) // null, true or false
	}
}

func (c *canonizer) object(v jsontext.Value) bool {
	// Every member takes at least two bytes, so a large object need not be sorted.
	if len(c.out)+2*v.Len() > c.limit || !c.begin('o', v.Len(), 0) {
		return false
	}
	type member struct{ name, value jsontext.Value }
	members := make([]member, 0, v.Len())
	for name, value := range v.Members() {
		members = append(members, member{name, value})
	}
	slices.SortFunc(members, func(a, b member) int {
		c.meter.charge(1)
		return strings.Compare(a.name.String(), b.name.String())
	})
	for _, m := range members {
		if !c.string(m.name) || !c.value(m.value) {
			return false
		}
	}
	return true
}

// begin writes what a value is and a number, if there is room for that and more bytes.
func (c *canonizer) begin(kind byte, count, more int) bool {
	if len(c.out)+more+2 > c.limit {
		return false
	}
	c.meter.charge(1 + more/bytesPerUnit)
	c.out = append(strconv.AppendInt(append(c.out, kind), int64(count), 10), ':')
	return true
}

// string writes a string after its length, so that no text reads as another one.
func (c *canonizer) string(v jsontext.Value) bool {
	text := c.meter.text(v)
	if !c.begin('s', len(text), len(text)) {
		return false
	}
	c.out = append(c.out, text...)
	return true
}
