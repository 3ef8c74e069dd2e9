package secrets

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// maxDepth is how deep escapes may stand inside escapes.
const maxDepth = 3

// chain is a set of escapes that is decoded up to so many times over.
type chain struct {
	escapes escapes
	depth   int
}

// every is all escapes that stand for more than a space.
const every = percent | backslash | entity | nul

// newChains returns the ways in which a text is decoded that holds some kinds of escapes.
// Each kind alone, since what looks like another one may be meant; and all together, since
// one text may hold several kinds, beside and inside each other.
func newChains(present escapes) []chain {
	if present == 0 {
		return nil
	}
	chains := []chain{{every, maxDepth}}
	if present&plus != 0 {
		chains = append(chains, chain{percent | plus, 1}, chain{every | plus, maxDepth})
	}
	if present&(present-1) == 0 {
		return chains // one kind: alone is together
	}
	for _, e := range []escapes{percent, backslash, entity} {
		if present&e != 0 {
			chains = append(chains, chain{e, 1})
		}
	}
	return chains
}

// variants returns a value, and what it decodes to where it holds escapes itself, since
// decoding a text decodes those as well. What is too short to be masked is left out.
func variants(value string, known escapes) [][]byte {
	variants := [][]byte{[]byte(value)}
	for _, chain := range newChains(known) {
		for _, decoded := range chain.decode([]byte(value), never) {
			if len(decoded) >= MinValue && !slices.ContainsFunc(variants, func(v []byte) bool { return bytes.Equal(v, decoded) }) {
				variants = append(variants, decoded)
			}
		}
	}
	return variants
}

// decode returns what a text stands for, decoded once, twice and so on, as long as that
// changes it and the time is not over.
func (c chain) decode(text []byte, over func() bool) [][]byte {
	var levels [][]byte
	for range c.depth {
		if over() {
			break
		}
		if text = c.escapes.decode(text); text == nil {
			break
		}
		levels = append(levels, text)
	}
	return levels
}

// find returns the spans of a text that are found in what it stands for, in order.
func (c chain) find(text []byte, s search) []span {
	levels := c.decode(text, s.over)
	var spans []span
	for depth := len(levels) - 1; depth >= 0 && !s.over(); depth-- {
		spans = merge(append(spans, s.findPlain(levels[depth])...))
		if depth > 0 {
			spans = c.escapes.trace(levels[depth-1], spans)
		}
	}
	if s.over() {
		return nil
	}
	return c.escapes.trace(text, spans)
}

// trace turns spans of what text decodes to, in order and without overlap, into spans of
// text. An escape belongs to a span as a whole.
func (e escapes) trace(text []byte, spans []span) []span {
	if len(spans) == 0 {
		return nil
	}
	c := cursor{escapes: e, text: text}
	traced := make([]span, 0, len(spans))
	for _, s := range spans {
		from, _ := c.seek(s.from)
		_, to := c.seek(s.to - 1)
		traced = append(traced, span{from, to, s.name})
	}
	return merge(traced)
}

// cursor walks over a text unit by unit: an escape, or bytes that stand for themselves.
type cursor struct {
	escapes escapes
	text    []byte
	// The unit at the cursor: where it begins, in the text and in what that decodes to, and
	// its lengths there.
	at, decoded  int
	width, count int
	literal      bool // the unit stands for itself
	scratch      [utf8.UTFMax]byte
}

// seek moves on to the unit that holds a byte of what the text decodes to, and returns
// where what stands for that byte begins and ends.
func (c *cursor) seek(offset int) (from, to int) {
	for c.decoded+c.count <= offset {
		c.at += c.width
		c.decoded += c.count
		c.read()
	}
	if c.literal {
		from = c.at + offset - c.decoded
		return from, from + 1
	}
	return c.at, c.at + c.width
}

// read measures the unit at the cursor.
func (c *cursor) read() {
	unit, width := c.escapes.unit(c.scratch[:0], c.text[c.at:])
	c.width, c.count, c.literal = width, len(unit), width == 0
	if c.literal {
		c.width = c.escapes.next(c.text, c.at+1) - c.at
		c.count = c.width
	}
}
