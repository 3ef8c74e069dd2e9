package schema

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// canonizer writes values so that two of them are equal, as JSON Schema has it, exactly
// when their texts are. It gives up on texts that are longer than a limit.
type canonizer struct {
	meter *meter // pays for the work; nil where nobody has to
	limit int
	out   []byte
}

// canonical returns the text of a value, or false where it is longer than limit bytes.
func canonical(m *meter, value any, limit int) ([]byte, bool) {
	c := canonizer{meter: m, limit: limit}
	complete := c.value(value)
	return c.out, complete
}

// fits makes sure that more bytes can be written, and pays for them.
func (c *canonizer) fits(more int) bool {
	if len(c.out)+more > c.limit {
		return false
	}
	if c.meter != nil {
		c.meter.charge(elementCost + more/bytesPerUnit)
	}
	return true
}

func (c *canonizer) value(value any) bool {
	switch value := value.(type) {
	case nil:
		return c.tag('z', 0)
	case bool:
		if value {
			return c.tag('t', 0)
		}
		return c.tag('f', 0)
	case json.Number:
		number := parseDecimal(string(value))
		if !c.fits(len(number.digits) + 8) {
			return false
		}
		c.out = number.appendKey(append(c.out, 'n'))
		return true
	case string:
		return c.text('s', value)
	case []any:
		if !c.tag('a', len(value)) {
			return false
		}
		for _, element := range value {
			if !c.value(element) {
				return false
			}
		}
		return true
	case map[string]any:
		return c.object(value)
	}
	return false
}

func (c *canonizer) object(object map[string]any) bool {
	// Every member takes at least two bytes, so a large object need not be sorted.
	if len(c.out)+2*len(object) > c.limit || !c.tag('o', len(object)) {
		return false
	}
	if c.meter != nil {
		c.meter.charge(len(object) * sortedCost)
	}
	for _, key := range c.keys(object) {
		if !c.text('k', key) || !c.value(object[key]) {
			return false
		}
	}
	return true
}

// keys returns the sorted keys of an object. To sort many takes a while.
func (c *canonizer) keys(object map[string]any) []string {
	if c.meter == nil || len(object) < lookEvery {
		return keys(object)
	}
	names := make([]string, 0, len(object))
	for name := range object {
		c.meter.lookAt(len(names))
		names = append(names, name)
	}
	compared := 0
	slices.SortFunc(names, func(a, b string) int {
		compared++
		c.meter.lookAt(compared)
		return strings.Compare(a, b)
	})
	return names
}

// tag writes what a value is and how many elements follow.
func (c *canonizer) tag(kind byte, count int) bool {
	if !c.fits(2) {
		return false
	}
	c.out = append(strconv.AppendInt(append(c.out, kind), int64(count), 10), ':')
	return true
}

// text writes a string after its length, so that no text reads as another one.
func (c *canonizer) text(kind byte, text string) bool {
	if !c.fits(len(text) + 2) {
		return false
	}
	c.out = append(strconv.AppendInt(append(c.out, kind), int64(len(text)), 10), ':')
	c.out = append(c.out, text...)
	return true
}
