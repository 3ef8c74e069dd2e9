package engine

import (
	"errors"
	"fmt"

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
	reserved []byte
	size     uint64 // never shrinks, so also the peak
	refused  uint64 // what the guest asked for when it was last refused
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
	if size > uint64(len(m.reserved)) {
		m.refused = size
		return nil
	}
	m.size = size
	return m.reserved[:size:size]
}

// Free implements experimental.LinearMemory.
func (m *linearMemory) Free() {
	if m.reserved != nil {
		release(m.reserved)
		m.reserved = nil
	}
}
