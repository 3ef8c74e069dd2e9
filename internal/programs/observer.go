package programs

import (
	"encoding/binary"
	"hash/crc32"
)

// The functions that programs import, beside WASI's sched_yield.
const (
	HostModule = "test"
	Observe    = "observe" // (i64) -> (): what the program wants seen
	Finish     = "finish"  // (i32) -> (): its memory has so many pages
	Echo       = "echo"    // (i32) -> (i32): the same number
	WASIModule = "wasi_snapshot_preview1"
	Yield      = "sched_yield" // () -> (i32): 0
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Observer condenses what a program does that can be seen.
type Observer struct {
	Seen int // values
	sum  uint32
}

// Observe adds a value.
func (o *Observer) Observe(value uint64) {
	o.Seen++
	var bytes [8]byte
	binary.LittleEndian.PutUint64(bytes[:], value)
	o.sum = crc32.Update(o.sum, castagnoli, bytes[:])
}

// Finish adds the memory.
func (o *Observer) Finish(memory []byte) { o.sum = crc32.Update(o.sum, castagnoli, memory) }

// Sum returns what equal runs have in common.
func (o *Observer) Sum() uint32 { return o.sum }
