package kernels

import (
	"math"
	"strconv"
)

// JSON writes a text of size records, parses it into a tree and walks the tree.
func JSON(size int32) uint64 {
	p := parser{text: writeJSON(size)}
	root, ok := p.document()
	if !ok {
		return 0
	}
	return p.walk(checksumSeed, root)
}

// writeJSON makes a text that holds every kind of value.
func writeJSON(size int32) []byte {
	source := random(6)
	text := []byte("[")
	for i := range size {
		if i > 0 {
			text = append(text, ",\n "...)
		}
		text = append(text, `{"id": `...)
		text = strconv.AppendUint(text, uint64(i), 10)
		text = append(text, `, "name": "user \"`...)
		text = strconv.AppendUint(text, uint64(source.next()%100000), 10)
		text = append(text, `\" caf\u00e9\n", "tags": ["red", "", "green"], "score": -`...)
		text = strconv.AppendUint(text, uint64(source.next()%1000), 10)
		text = append(text, '.')
		text = strconv.AppendUint(text, uint64(source.next()%1000), 10)
		text = append(text, `, "active": true, "parent": null, "place": {"x": `...)
		text = strconv.AppendUint(text, uint64(source.next()), 10)
		text = append(text, `, "y": [0, [], {}], "open": false}}`...)
	}
	return append(text, ']')
}

// walk folds the value and everything below it into a checksum.
func (p *parser) walk(checksum uint64, at uint32) uint64 {
	v := &p.values[at]
	checksum = mix(checksum, uint64(v.kind))
	switch v.kind {
	case kindNumber:
		checksum = mix(checksum, math.Float64bits(v.number))
	case kindString:
		for _, b := range p.strings[v.start:v.end] {
			checksum = mix(checksum, uint64(b))
		}
	}
	for child := v.child; child != none; child = p.values[child].next {
		checksum = p.walk(checksum, child)
	}
	return checksum
}
