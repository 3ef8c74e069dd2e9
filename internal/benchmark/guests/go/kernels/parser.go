package kernels

import "strconv"

const (
	sumDepth  = 6
	sumReads  = 8 // of each text
	operators = "+-*"
)

// Parser writes size arithmetic texts, and works each out several times as it reads it by recursive
// descent.
func Parser(size int32) uint64 {
	source := random(17)
	checksum := uint64(checksumSeed)
	var text []byte
	for range size {
		text = appendSum(text[:0], &source, sumDepth)
		for range sumReads {
			r := sumReader{text: text}
			checksum = mix(checksum, uint64(r.sum()))
		}
	}
	return checksum
}

// appendSum writes a random text.
func appendSum(text []byte, source *random, depth int) []byte {
	kind := source.next() >> 16 % 16
	switch {
	case depth == 0 || kind == 0:
		return strconv.AppendUint(text, uint64(source.next()>>8%1000), 10)
	case kind < 7:
		text = appendSum(append(text, '('), source, depth-1)
		text = append(text, operators[source.next()>>16%3])
		return append(appendSum(text, source, depth-1), ')')
	case kind < 14:
		text = appendSum(text, source, depth-1)
		text = append(text, operators[source.next()>>16%3])
		return appendSum(text, source, depth-1)
	}
	return appendSum(append(text, '-'), source, depth-1)
}

// sumReader reads a text that is known to be right. Numbers wrap around.
type sumReader struct {
	text []byte
	at   int
}

// peek returns the next byte, or zero at the end.
func (r *sumReader) peek() byte {
	if r.at == len(r.text) {
		return 0
	}
	return r.text[r.at]
}

func (r *sumReader) sum() int64 {
	value := r.product()
	for {
		switch r.peek() {
		case '+':
			r.at++
			value += r.product()
		case '-':
			r.at++
			value -= r.product()
		default:
			return value
		}
	}
}

func (r *sumReader) product() int64 {
	value := r.factor()
	for r.peek() == '*' {
		r.at++
		value *= r.factor()
	}
	return value
}

func (r *sumReader) factor() int64 {
	switch r.peek() {
	case '-':
		r.at++
		return -r.factor()
	case '(':
		r.at++
		value := r.sum()
		r.at++
		return value
	}
	var value int64
	for isDigit(r.peek()) {
		value = value*10 + int64(r.peek()-'0')
		r.at++
	}
	return value
}
