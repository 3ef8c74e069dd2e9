//go:build !linux

package engine

import (
	"context"
	"math"
	"slices"
)

// imageFile is used on systems that map images.
type imageFile struct{}

func (i *image) copyFrom(_ context.Context, memory []byte, _ []pageSpan) error {
	i.memory, i.bytes = slices.Clone(memory), int64(len(memory))
	return nil
}

func (i *image) close() error { return nil }

// mappings returns 1, for the memory: nothing else is mapped.
func (i *image) mappings() int64 { return 1 }

// mostImageFiles limits nothing, since images have no files.
func mostImageFiles() int64 { return math.MaxInt64 }

// files is none.
func (i *image) files() int64 { return 0 }

// mapOnto copies the image. It returns its size.
func (i *image) mapOnto(reserved []byte, _ *image) (private int64, err error) {
	return int64(copy(reserved, i.memory)), nil
}
