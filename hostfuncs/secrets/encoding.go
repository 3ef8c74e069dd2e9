package secrets

import "bytes"

// encoding is what to look for in texts that are encoded with an alphabet.
type encoding struct {
	alphabet
	needles []symbolNeedle
	least   int // the length of the shortest needle, in characters
}

// symbolNeedle is a value as it stands in an encoded text behind some other bytes: the
// values of the characters that it alone determines.
type symbolNeedle struct {
	name    string
	symbols []byte
	// head and tail are the value's bits in the characters before and behind, which other
	// bytes share; of so many bits, which may be 0.
	head, tail         byte
	headBits, tailBits int
}

// needle encodes a value that stands behind so many bytes.
func (a alphabet) needle(name, value string, behind int) symbolNeedle {
	start := 8 * behind
	first := (start + a.bits - 1) / a.bits
	last := (start + 8*len(value)) / a.bits
	n := symbolNeedle{name: name, headBits: first*a.bits - start, tailBits: start + 8*len(value) - last*a.bits}
	for c := first; c < last; c++ {
		n.symbols = append(n.symbols, take(value, c*a.bits-start, a.bits))
	}
	n.head = take(value, 0, n.headBits)
	n.tail = take(value, 8*len(value)-n.tailBits, n.tailBits)
	return n
}

// take returns some bits of a text, at most 8.
func take(text string, from, count int) byte {
	value := byte(0)
	for bit := from; bit < from+count; bit++ {
		value = value<<1 | text[bit/8]>>(7-bit%8)&1
	}
	return value
}

// add looks for a value from now on, whatever stands before it.
func (e *encoding) add(name, value string) {
	for behind := range e.period() {
		n := e.needle(name, value, behind)
		e.needles = append(e.needles, n)
		if e.least == 0 || len(n.symbols) < e.least {
			e.least = len(n.symbols)
		}
	}
}

// find returns what a text that begins at an offset of a larger one gives away there.
func (e *encoding) find(text []byte, offset int) []span {
	var found []span
	e.runs(text, e.least, func(from, to int) {
		run := text[from:to]
		read := e.read(run)
		for _, n := range e.needles {
			for _, s := range n.find(&walker{alphabet: e.alphabet, run: run}, read) {
				found = append(found, span{offset + from + s.from, offset + from + s.to, n.name})
			}
		}
	})
	return found
}

// find returns the spans of the walker's run, whose characters were read, that hold the value.
func (n symbolNeedle) find(w *walker, read []byte) []span {
	var found []span
	for start := 0; ; {
		i := bytes.Index(read[start:], n.symbols)
		if i < 0 {
			return found
		}
		first, last := n.extend(read, start+i, w.bits)
		start += i + len(n.symbols)
		from := w.seek(max(first, w.index)) // two matches may share a character
		found = append(found, span{from: from, to: w.seek(last-1) + 1})
	}
}

// extend widens a match by the characters that the value shares with other bytes.
func (n symbolNeedle) extend(read []byte, at, bits int) (first, last int) {
	first, last = at, at+len(n.symbols)
	if n.headBits > 0 && first > 0 && read[first-1]&(1<<n.headBits-1) == n.head {
		first--
	}
	if n.tailBits > 0 && last < len(read) && read[last]>>(bits-n.tailBits) == n.tail {
		last++
	}
	return first, last
}

// walker finds the characters of a run by number, over line breaks.
type walker struct {
	alphabet
	run       []byte
	at, index int // a place in the run, and how many characters stand before it
}

// seek moves on to a character, which must not lie behind, and returns where it is.
func (w *walker) seek(index int) int {
	for ; w.index < index || w.values[w.run[w.at]] == lineBreak; w.at++ {
		if w.values[w.run[w.at]] != lineBreak {
			w.index++
		}
	}
	return w.at
}
