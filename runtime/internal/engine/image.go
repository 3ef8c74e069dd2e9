package engine

// image is what the instances of a module are set back to: linear memory, and the globals
// that the guest can change. It is immutable and safe for concurrent use, until it is
// closed.
type image struct {
	memory  []byte // read-only; its length is the size of linear memory
	globals []uint64
	file    imageFile
}

// newImage makes an image of copies. Outside of the spans, which are in ascending order, the
// memory is zero.
func newImage(memory []byte, spans []pageSpan, globals []uint64) (*image, error) {
	i := &image{globals: append([]uint64(nil), globals...)}
	if err := i.copyFrom(memory, spans); err != nil {
		return nil, err
	}
	return i, nil
}

// allOf is the whole of a memory.
func allOf(memory []byte) []pageSpan { return []pageSpan{{0, len(memory)}} }
