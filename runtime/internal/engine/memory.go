package engine

import (
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// linearMemory backs the one memory of one instance and holds it to its limit. Growth
// never moves it: the whole limit is reserved at the start, as address space, and the
// system hands out pages when the guest first touches them. Those of the first few
// mebibytes are small, so that small guests stay small, and the others large where the
// system has such: a guest that touches much of its memory for the first time spends most
// of that time in the system, where nothing stops it.
//
// It serves one goroutine.
type linearMemory struct {
	limit    uint64
	image    *image // what reset sets it back to; nil until there is one
	reserved []byte
	size     uint64 // never shrinks in a run, so also the peak
	refused  uint64 // what the guest asked for when it was last refused
	kept     int64  // bytes that stay with the memory alone after a reset

	resizing bool // Reallocate makes it as large as the image, whatever it is asked for
	written  written
}

// errReserve is panicked out of wazero's instantiation, which has no other way for an
// allocator to fail, and recovered by [Module.Run].
var errReserve = errors.New("no address space for a guest's memory")

// Allocate implements experimental.MemoryAllocator.
func (m *linearMemory) Allocate(_, maximum uint64) experimental.LinearMemory {
	reserved, err := reserve(min(maximum, m.limit))
	if err != nil {
		panic(fmt.Errorf("%w: %w", errReserve, err))
	}
	m.reserved = reserved
	return m
}

// Reallocate implements experimental.LinearMemory: nil makes memory.grow return -1.
func (m *linearMemory) Reallocate(size uint64) []byte {
	if m.resizing {
		size = uint64(len(m.image.memory))
	}
	if size > uint64(len(m.reserved)) {
		m.refused = size
		return nil
	}
	m.size = size
	return m.reserved[:size:size]
}

// adopt makes the image what reset sets the memory back to. Their contents must be equal.
func (m *linearMemory) adopt(i *image) error {
	m.image = i
	return i.mapOnto(m.reserved)
}

// contents is what the guest sees.
func (m *linearMemory) contents() []byte { return m.reserved[:m.size] }

// View implements hostfuncs.Memory.
func (m *linearMemory) View(offset, length uint32) ([]byte, bool) {
	end := uint64(offset) + uint64(length)
	if m.reserved == nil || end > m.size {
		return nil, false
	}
	return m.reserved[offset:end:end], true
}

// leaveThread ends what binds the run to its thread. A nil memory has nothing that does.
func (m *linearMemory) leaveThread() {
	if m != nil {
		m.written.faults.stop()
	}
}

// errNotReset means that an instance cannot be used again.
var errNotReset = errors.New("the instance cannot be reset")

// reset sets the memory back to its image, for the instance that it belongs to.
func (m *linearMemory) reset(instance api.Module, scanner *pageScanner) error {
	if len(m.reserved) == 0 {
		m.leaveThread()
		return nil
	}
	var err error
	if m.kept, err = m.restore(scanner); err != nil {
		return err
	}
	m.refused = 0
	return m.resize(instance)
}

// resize makes the memory as large as its image.
func (m *linearMemory) resize(instance api.Module) error {
	if m.size == uint64(len(m.image.memory)) {
		return nil
	}
	// wazero publishes whatever slice a growth returns.
	m.resizing = true
	_, grown := instance.Memory().Grow(1)
	m.resizing = false
	if !grown || m.size != uint64(len(m.image.memory)) {
		return errNotReset // it is at its declared maximum
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
