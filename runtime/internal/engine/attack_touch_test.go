//go:build !race

package engine_test

import (
	"slices"
	"time"

	"github.com/caisson-run/caisson/tool"
)

// slowAttacks try to make what they do between two looks at the clock take longer than the
// instructions that are counted for it.
func slowAttacks() []attack {
	small := guest{memory: pages(8192), locals: oneLocal, body: touch(8192 << 16)}
	return []attack{
		// A guest that never lets go of its processor would hold it until the scheduler takes
		// it away, after 10 ms.
		{name: "infinite loop in 16 calls at once", callers: 16, guest: guest{body: endless()}, end: tool.Deadline,
			control: control{neverEnds: true}},
		// A store to a page that was never touched counts as one instruction, and the system
		// takes thousands of times as long to find memory for it.
		{name: "a store to each page of 4 GiB", guest: guest{memory: pages(65535), locals: oneLocal, body: touch(65535 << 16)},
			limits: allMemory, granted: mostMemory, end: tool.Deadline, control: control{least: promisedMemory, guest: &small}},
		// Here most of the time is the system's, which finds 2 GiB on all processors.
		{name: "a store to each page of 128 MiB in 16 calls at once", callers: 16, late: time.Second,
			guest:  guest{memory: pages(2048), locals: oneLocal, body: slices.Concat(touch(2048<<16), endless())},
			limits: ", memory: 128MiB", granted: 16 * 128 * mebibyte, end: tool.Deadline, control: control{neverEnds: true}},
	}
}

// touch stores to each page of 4 KiB, 64 in a block.
func touch(bytes uint32) []byte {
	const page, stores = 4096, 64
	var block []byte
	for i := range uint64(stores) {
		block = slices.Concat(block, []byte{0x20, 0, 0x20, 0, 0x36, 0}, unsigned(i*page)) // local.get 0, local.get 0, i32.store
	}
	next := slices.Concat([]byte{0x20, 0}, number(stores*page), []byte{0x6a, 0x22, 0}) // local 0 + a block
	return slices.Concat([]byte{0x03, 0x40}, block, next, number(bytes-stores*page), []byte{0x49, 0x0d, 0, 0x0b})
}
