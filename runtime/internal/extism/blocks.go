package extism

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/runtime/internal/engine"
)

// Blocks are the blocks of memory of a plug-in that has called a host function, for that function.
// They must be used in its goroutine, until it returns.
type Blocks struct {
	ctx    context.Context
	kernel engine.KernelMemory
}

// errNoKernel means that a function was not offered as [engine.Kernel.Beside].
var errNoKernel = errors.New("extism: the function's memory is not the kernel's")

// BlocksOf returns the blocks of the plug-in that called a function with this memory.
func BlocksOf(ctx context.Context, memory hostfuncs.Memory) (*Blocks, error) {
	kernel, ok := memory.(engine.KernelMemory)
	if !ok {
		return nil, errNoKernel
	}
	return &Blocks{ctx, kernel}, nil
}

// Length returns the length of the block at an offset, or 0 if there is none.
func (b *Blocks) Length(offset uint64) (uint64, error) {
	return b.kernel.Call(b.ctx, "length", offset)
}

// Free frees the block at an offset. If there is none, it does nothing.
func (b *Blocks) Free(offset uint64) error {
	_, err := b.kernel.Call(b.ctx, "free", offset)
	return err
}

// Read returns a copy of the bytes of a block. Offset 0 is an empty block. Any other offset that is not
// that of a block is the plug-in's fault, which the error says.
func (b *Blocks) Read(offset uint64) ([]byte, error) {
	if offset == 0 {
		return []byte{}, nil
	}
	length, err := b.Length(offset)
	if err != nil {
		return nil, err
	}
	if length == 0 || offset > math.MaxUint32 {
		return nil, noBlock(offset, "a function of the host")
	}
	bytes, ok := b.kernel.View(uint32(offset), uint32(length))
	if !ok {
		return nil, noBlock(offset, "a function of the host")
	}
	return append([]byte{}, bytes...), nil
}

// Write makes a block with these bytes, and returns its offset, which is 0 for no bytes.
func (b *Blocks) Write(bytes []byte) (uint64, error) {
	if len(bytes) == 0 {
		return 0, nil
	}
	offset, err := b.kernel.Call(b.ctx, "alloc", uint64(len(bytes)))
	if err != nil {
		return 0, err
	}
	to, ok := b.kernel.View(uint32(offset), uint32(len(bytes)))
	if offset == 0 || !ok {
		return 0, &Error{NoRoom: true, Message: fmt.Sprintf("its memory has no room for %d bytes of the host", len(bytes))}
	}
	copy(to, bytes)
	return offset, nil
}
