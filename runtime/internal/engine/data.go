package engine

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// packedHead is how many bytes of packed data come before those of each segment: its offset
// in memory and its length, 32 bits each in little-endian order.
const packedHead = 8

// errData means that packed segments do not fit the memory that they were made for.
var errData = errors.New("damaged data segments")

// packData puts segments one behind the other, in the order in which they are written. The
// result shares no memory with them.
func packData(segments []wasm.Segment) []byte {
	length := 0
	for _, segment := range segments {
		length += packedHead + len(segment.Bytes)
	}
	if length == 0 {
		return nil
	}
	packed := make([]byte, 0, length)
	for _, segment := range segments {
		packed = binary.LittleEndian.AppendUint32(packed, segment.Offset)
		packed = binary.LittleEndian.AppendUint32(packed, uint32(len(segment.Bytes)))
		packed = append(packed, segment.Bytes...)
	}
	return packed
}

// writeData writes packed segments to a memory of zeros, as instantiation would. It returns
// the pages that it wrote to.
func writeData(memory, packed []byte) ([]pageSpan, error) {
	var spans []pageSpan
	for len(packed) > 0 {
		if len(packed) < packedHead {
			return nil, errData
		}
		from, length := uint64(binary.LittleEndian.Uint32(packed)), uint64(binary.LittleEndian.Uint32(packed[4:]))
		packed = packed[packedHead:]
		if length > uint64(len(packed)) || from+length > uint64(len(memory)) {
			return nil, errData
		}
		copy(memory[from:], packed[:length])
		packed = packed[length:]
		if length > 0 {
			spans = extend(spans, pagesOf(int(from), int(from+length)))
		}
	}
	return merged(spans), nil
}

// pageSpan is a run of pages, as offsets.
type pageSpan struct{ from, to int }

// imagePage is the unit in which images are filled. It divides the size of every memory.
const imagePage = 4096

// pagesOf returns the pages of some bytes, of which there is one at least.
func pagesOf(from, to int) pageSpan {
	return pageSpan{from &^ (imagePage - 1), (to + imagePage - 1) &^ (imagePage - 1)}
}

// extend adds a span, which becomes a part of the last one if it begins there or right behind:
// linkers put segments in order, tens of thousands of them.
func extend(spans []pageSpan, next pageSpan) []pageSpan {
	if len(spans) > 0 {
		if last := &spans[len(spans)-1]; last.from <= next.from && next.from <= last.to {
			last.to = max(last.to, next.to)
			return spans
		}
	}
	return append(spans, next)
}

// merged returns the same pages, each once and in ascending order.
func merged(spans []pageSpan) []pageSpan {
	slices.SortFunc(spans, func(a, b pageSpan) int { return cmp.Compare(a.from, b.from) })
	ordered := spans[:0]
	for _, span := range spans {
		ordered = extend(ordered, span)
	}
	return ordered
}
