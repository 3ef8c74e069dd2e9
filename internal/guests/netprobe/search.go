//go:build wasip1

package main

import (
	"encoding/hex"
	"errors"
	"sort"
	"unsafe"
)

// mask is XORed with the bytes to search for.
const mask = 0x5a

const page = 64 << 10

//go:wasmimport wasi_snapshot_preview1 fd_read
func fdRead(fd int32, vectors unsafe.Pointer, count uint32, n unsafe.Pointer) uint32

// search counts the occurrences of the hidden bytes in the memory of this module.
func search(hidden string) (int, error) {
	pattern, err := hex.DecodeString(hidden)
	switch {
	case err != nil:
		return 0, err
	case len(pattern) == 0:
		return 0, errors.New("nothing to search for")
	}
	count := 0
	memory := all()
	for len(memory) >= len(pattern) {
		if hides(memory, pattern) {
			count++
		}
		memory = memory[1:]
	}
	return count, nil
}

// hides reports whether memory begins with the bytes that the pattern hides.
func hides(memory, pattern []byte) bool {
	for i, b := range pattern {
		if memory[i] != b^mask {
			return false
		}
	}
	return true
}

// anchor has a known address.
var anchor byte

// all returns the memory of the module without its first byte, whose address Go takes for nil.
func all() []byte {
	from := unsafe.Add(unsafe.Pointer(&anchor), 1-int(uintptr(unsafe.Pointer(&anchor))))
	return unsafe.Slice((*byte)(from), pages()*page-1)
}

// pages returns the size of the memory. The host refuses to read into memory that does not exist,
// and the input is at its end already.
func pages() int {
	return sort.Search(1<<16, func(i int) bool {
		vector, n := [2]uint32{uint32(i) * page, 1}, uint32(0)
		return fdRead(0, unsafe.Pointer(&vector), 1, unsafe.Pointer(&n)) != 0
	})
}
