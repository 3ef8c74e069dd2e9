package engine

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// image is the state that the instances of a module are reset to: linear memory, and the globals
// that the guest can change. It is immutable, and safe for concurrent use until it is closed.
type image struct {
	memory       []byte // read-only; its length is the size of linear memory
	globals      []uint64
	file         imageFile
	bytes        int64    // the memory that it takes of the host
	dependencies []*image // of the instance's dependencies, if the module has run; else nil
}

// newImage makes an image from copies of its arguments. Outside the spans, which are in ascending
// order, the memory is zero. Copying gigabytes takes seconds, so it fails if the context ends.
func newImage(ctx context.Context, memory []byte, spans []pageSpan, globals []uint64) (*image, error) {
	i := &image{globals: append([]uint64(nil), globals...)}
	if err := i.copyFrom(ctx, memory, spans); err != nil {
		return nil, fmt.Errorf("image: %w", errors.Join(err, i.close()))
	}
	return i, nil
}

// free closes the image and those of the dependencies.
func (i *image) free() error {
	failures := []error{i.close()}
	for _, d := range i.dependencies {
		failures = append(failures, d.free())
	}
	return errors.Join(failures...)
}

// packedHead is the size of the header of each packed segment: its offset in memory and its length,
// each 32 bits in little-endian order.
const packedHead = 8

// errData means that packed segments do not fit the memory they were made for.
var errData = errors.New("damaged data segments")

// packData concatenates segments in the order in which they are written. The result shares no
// memory with them.
func packData(segments []wasm.Segment) []byte {
	var packed []byte
	for _, segment := range segments {
		packed = binary.LittleEndian.AppendUint32(packed, segment.Offset)
		packed = binary.LittleEndian.AppendUint32(packed, uint32(len(segment.Bytes)))
		packed = append(packed, segment.Bytes...)
	}
	return packed
}

// writeData writes packed segments to a zeroed memory, as instantiation would. It returns the pages
// that it wrote to. It fails if the context ends: the first touch of each page takes a microsecond.
func writeData(ctx context.Context, memory, packed []byte) ([]pageSpan, error) {
	var spans []pageSpan
	unseen := 0 // since the last look at the context
	for len(packed) > 0 {
		if len(packed) < packedHead {
			return nil, errData
		}
		from, length := uint64(binary.LittleEndian.Uint32(packed)), uint64(binary.LittleEndian.Uint32(packed[4:]))
		packed = packed[packedHead:]
		if length > uint64(len(packed)) || from+length > uint64(len(memory)) {
			return nil, errData
		}
		for segment := range slices.Chunk(packed[:length], comparedBytes) {
			if unseen += len(segment) + imagePage; unseen > comparedBytes {
				if ctx.Err() != nil {
					return nil, context.Cause(ctx)
				}
				unseen = 0
			}
			from += uint64(copy(memory[from:], segment))
		}
		packed = packed[length:]
		if length > 0 {
			spans = extend(spans, pagesOf(int(from-length), int(from)))
		}
	}
	return mergeSpans(spans), nil
}

// pageSpan is a run of pages, as offsets.
type pageSpan struct{ from, to int }

// comparedBytes is the number of bytes of a memory that are compared or copied between two checks of the context.
const comparedBytes = 4 << 20

const (
	// imagePage is the granularity in which images are filled. It divides the size of every memory.
	imagePage  = 4096
	systemPage = imagePage // where images are mapped
)

// allOf returns a span that covers a whole memory.
func allOf(memory []byte) []pageSpan { return []pageSpan{{0, len(memory)}} }

// pagesOf returns the pages of a byte range, which must not be empty.
func pagesOf(from, to int) pageSpan {
	return pageSpan{from &^ (imagePage - 1), (to + imagePage - 1) &^ (imagePage - 1)}
}

// extend adds a span. It merges the span into the last one if it begins within it or right after
// it: linkers emit segments in order, tens of thousands of them.
func extend(spans []pageSpan, next pageSpan) []pageSpan {
	if len(spans) > 0 {
		if last := &spans[len(spans)-1]; last.from <= next.from && next.from <= last.to {
			last.to = max(last.to, next.to)
			return spans
		}
	}
	return append(spans, next)
}

// mergeSpans returns the same pages, each once, in ascending order.
func mergeSpans(spans []pageSpan) []pageSpan {
	slices.SortFunc(spans, func(a, b pageSpan) int { return cmp.Compare(a.from, b.from) })
	ordered := spans[:0]
	for _, span := range spans {
		ordered = extend(ordered, span)
	}
	return ordered
}
