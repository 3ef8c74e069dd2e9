package engine

import (
	"errors"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// linearMemory backs the one memory of an instance and enforces its limit. Growing never moves it:
// address space for the whole limit is reserved at the start, and the system provides pages when
// the guest first touches them.
//
// It serves one goroutine.
type linearMemory struct {
	limit    uint64
	most     uint64          // the maximum that the guest declares
	siblings []*linearMemory // the other memories under the same limit
	image    *image          // the contents that reset restores; nil until there is one
	reserved []byte
	size     uint64 // never shrinks in a run, so also the peak
	refused  uint64 // the size the guest asked for when it was last refused
	kept     int64  // bytes private to this memory after a reset

	resizing bool // Reallocate uses the image's size, whatever size is asked for
	written  written
}

// muchWritten is the number of bytes from which memory is given back to the system in the background. The system takes
// 0.1 to 0.45 ms for a MiB, so a call waits for 15 ms at most.
const muchWritten = 32 << 20

// maxMemory is the size that no memory exceeds, whatever its limit. On amd64, wazero v1.12.0 takes a constant address
// from 0x80000000 on for a negative number where it knows the address to be within the memory, so that a guest would
// read and write the 2 GiB before its memory. Within 2 GiB such an address is never within the memory.
const maxMemory = 2 << 30

// reserveError is the panic with which Allocate fails: wazero gives an allocator no other way to fail
// during instantiation. instantiateWith recovers it.
type reserveError struct{ cause error }

const cannotReserve = "cannot reserve address space for the guest's memory"

func (e *reserveError) Error() string { return cannotReserve + ": " + e.cause.Error() }

// Allocate implements experimental.MemoryAllocator. The maximum is that of wasm.RaiseMemory.
func (m *linearMemory) Allocate(_, _ uint64) experimental.LinearMemory {
	reserved, err := reserve(min(m.most, m.limit))
	if err != nil {
		panic(&reserveError{err})
	}
	m.reserved = reserved
	return m
}

// Reallocate implements experimental.LinearMemory. Returning nil makes memory.grow return -1.
func (m *linearMemory) Reallocate(size uint64) []byte {
	switch {
	case m.resizing:
		size = uint64(len(m.image.memory))
	case size > m.most:
		return nil
	case size+m.siblingBytes() > m.limit:
		m.refused = size + m.siblingBytes()
		return nil
	}
	m.size = size
	return m.reserved[:size:size]
}

// siblingBytes returns the total size of the other memories under the limit.
func (m *linearMemory) siblingBytes() (size uint64) {
	for _, other := range m.siblings {
		size += other.size
	}
	return size
}

// adopt sets the image that reset restores. The memory must have the same contents as the image.
func (m *linearMemory) adopt(i *image) (err error) {
	m.kept, err = i.mapOnto(m.reserved, m.image)
	m.image = i
	return err
}

// contents returns the memory that the guest sees.
func (m *linearMemory) contents() []byte { return m.reserved[:m.size] }

// View implements hostfuncs.Memory.
func (m *linearMemory) View(offset, length uint32) ([]byte, bool) {
	end := uint64(offset) + uint64(length)
	if m.reserved == nil || end > m.size {
		return nil, false
	}
	return m.reserved[offset:end:end], true
}

// errNotReset means that an instance cannot be reused.
var errNotReset = errors.New("the instance cannot be reset")

// reset restores the memory of the instance from its image, after a survey.
func (m *linearMemory) reset(owner api.Module) error {
	if len(m.reserved) == 0 {
		return nil
	}
	var err error
	if m.kept, err = m.restore(); err != nil {
		return err
	}
	m.refused = 0
	return m.resize(owner)
}

// resize makes the memory as large as its image.
func (m *linearMemory) resize(owner api.Module) error {
	if m.size == uint64(len(m.image.memory)) {
		return nil
	}
	// wazero publishes whatever slice a growth returns.
	m.resizing = true
	_, grown := owner.Memory().Grow(1)
	m.resizing = false
	if !grown || m.size != uint64(len(m.image.memory)) {
		return errNotReset
	}
	return nil
}

// Free implements experimental.LinearMemory.
func (m *linearMemory) Free() {
	if m.reserved != nil {
		release(m.reserved)
		m.reserved = nil
	}
}
