//go:build !race

package engine_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/caisson-run/caisson/tool"
)

const (
	mebibyte   = 1 << 20
	mostMemory = 2 << 30 // the largest limit that a manifest may have
	allMemory  = ", memory: 2GiB"
)

// attacks are those on a call's time and on the host's memory. Some of their controls have
// wazero end guests when their context is done, which does not help there.
func attacks() []attack {
	return slices.Concat(loopAttacks(), recursionAttacks(), growthAttacks(), bulkAttacks(), slowAttacks(), streamAttacks(), hostCallAttacks())
}

func loopAttacks() []attack {
	spin := endless()
	sqrt := slices.Concat([]byte{0x44, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, slices.Repeat([]byte{0x9f}, 60), []byte{0x1a}) // of 1, sixty times
	return []attack{
		{name: "infinite loop without calls", guest: guest{body: spin}, end: tool.Deadline, control: control{neverEnds: true}},
		{name: "infinite loop metered by fuel", guest: guest{body: spin}, limits: ", fuel: 1000000000000", end: tool.Deadline,
			control: control{neverEnds: true}},
		{name: "infinite loop in 4 calls at once", guest: guest{body: spin}, callers: 4, end: tool.Deadline, control: control{neverEnds: true}},
		{name: "looping start function", guest: guest{others: [][]byte{spin}, start: true}, end: tool.Deadline, control: control{neverEnds: true}},
		{name: "100,000 calls of leaves in one body", guest: guest{body: endless(slices.Repeat(call(1), 100_000)), others: [][]byte{sqrt}}, end: tool.Deadline,
			control: control{neverEnds: true}},
		{name: "looping _initialize", guest: guest{others: [][]byte{spin}, initialize: true},
			control: control{neverEnds: true, start: "_initialize"}},
	}
}

// recursionAttacks go deep, or return from there.
func recursionAttacks() []attack {
	wide := slices.Concat([]byte{1}, unsigned(1000), []byte{0x7e})                  // a thousand locals of type i64
	keep := slices.Concat([]byte{0x42, 1, 0x21, 0}, call(0), []byte{0x20, 0, 0x1a}) // local 0 outlives the call
	load := slices.Concat(number(0), []byte{0x28, 2, 0})
	count := slices.Concat(number(0), load, number(1), []byte{0x6a, 0x36, 2, 0})
	again := slices.Concat(load, number(50_000), []byte{0x49, 0x04, 0x40}, call(1), []byte{0x0b})
	long := slices.Repeat([]byte{0x20, 0, 0x21, 0}, 4000) // the work of each that returns
	return []attack{
		{name: "deep recursion that returns through long functions", guest: guest{memory: pages(1), locals: oneLocal, body: endless(store(0, 0), call(1)),
			others: [][]byte{slices.Concat(count, again, long)}}, end: tool.Deadline, control: control{neverEnds: true}},
		{name: "deep recursion", guest: guest{body: call(0)}, timeout: 5 * time.Second, end: tool.Trap, control: control{least: 64 * mebibyte}},
		{name: "deep recursion in 8 calls at once", guest: guest{body: call(0)}, callers: 8, timeout: 5 * time.Second, end: tool.Trap, control: control{least: promisedMemory}},
		{name: "deep recursion with a thousand locals", guest: guest{body: keep, locals: wide}, callers: 8, timeout: 5 * time.Second, end: tool.Trap,
			control: control{least: promisedMemory}},
	}
}

// wayBackAttacks do a little, slowly, in each of the functions that return from deep recursion.
func wayBackAttacks() []attack {
	const load = 0x28
	// Word 0 holds the address of a word that does too; all words do, in a random order. Word 1 is the
	// depth that remains.
	follow := func(loads int) []byte {
		return slices.Concat(number(0), number(0), slices.Repeat([]byte{load, 2, 0}, 1+loads), []byte{0x36, 2, 0})
	}
	descend := slices.Concat(number(4), []byte{load, 2, 0, 0x04, 0x40}, number(4), number(4), []byte{load, 2, 0}, number(1), []byte{0x6b, 0x36, 2, 0}, call(1), []byte{0x0b})
	wayBack := func(work []byte, others ...[]byte) guest {
		again := endless(store(4, 60_000), call(1))
		return guest{memory: pages(1024), locals: oneLocal, body: slices.Concat(linkWords(1<<24), again),
			others: append([][]byte{slices.Concat(descend, work)}, others...)}
	}
	back := func(name string, g guest) attack {
		return attack{name: name, guest: g, limits: ", memory: 64MiB", timeout: 1500 * time.Millisecond, end: tool.Deadline, control: control{neverEnds: true}}
	}
	return []attack{
		back("deep recursion with slow leaves on the way back", wayBack(slices.Repeat(call(2), 60), follow(59))),
		back("deep recursion with slow loads on the way back", wayBack(follow(59))),
	}
}

// linkWords stores to each of so many words the address of another, so that each leads to all of them. It counts in
// local 0.
func linkWords(words uint32) []byte {
	index := []byte{0x20, 0}
	next := slices.Concat(index, number(1664525), []byte{0x6c}, number(1013904223), []byte{0x6a}, number(words-1), []byte{0x71}, number(2), []byte{0x74})
	return times(words, index, number(2), []byte{0x74}, next, []byte{0x36, 2, 0}) // *(local 0 * 4) = (local 0 * a + c) % words * 4
}

func growthAttacks() []attack {
	grow := func(pages uint32) []byte { return slices.Concat(number(pages), []byte{0x40, 0, 0x1a}) }
	growTable := func(elements uint32) []byte { // by references to function 0
		return slices.Concat([]byte{0xd2, 0}, number(elements), []byte{0xfc, 0x0f, 0, 0x1a})
	}
	table := func(body []byte) guest {
		return guest{table: []byte{0x70, 0, 1}, elements: []byte{1, 3, 0, 1, 0}, body: body}
	}
	return []attack{
		{name: "memory.grow to the maximum", guest: guest{memory: pages(1), body: slices.Concat(grow(8191), fill(0, 512*mebibyte))},
			limits: ", memory: 16MiB", end: tool.Memory, control: control{least: promisedMemory}},
		{name: "memory.grow over and over", guest: guest{memory: pages(1), body: endless(grow(1))}, limits: ", memory: 16MiB", end: tool.Deadline,
			control: control{neverEnds: true}},
		{name: "65536 pages of memory from the start", guest: guest{memory: pages(65536)}, end: tool.Memory, control: control{}},
		{name: "table.grow", guest: table(growTable(64 << 20)), control: control{least: promisedMemory}},
		{name: "table.grow over and over", guest: table(endless(growTable(4096))), end: tool.Deadline, control: control{neverEnds: true}},
	}
}

func bulkAttacks() []attack {
	copyHalf := slices.Concat(number(1<<30), number(0), number(1<<30), []byte{0xfc, 0x0a, 0, 0})
	table := slices.Concat([]byte{0x70, 0}, unsigned(1_000_000))
	fillTable := slices.Concat(number(0), []byte{0xd0, 0x70}, number(1_000_000), []byte{0xfc, 0x11, 0})
	bulk := func(name string, g guest, shown control) attack {
		return attack{name: name, guest: g, limits: allMemory, granted: mostMemory, end: tool.Deadline, control: shown}
	}
	slow := control{neverEnds: true, closing: true}
	half := guest{memory: pages(16384), body: endless(number(1<<29), number(0), number(1<<29), []byte{0xfc, 0x0a, 0, 0})}
	return []attack{
		bulk("memory.fill of 2 GiB in a loop", guest{memory: pages(mostMemory >> 16), body: endless(fill(0, mostMemory-1))}, slow),
		bulk("memory.copy of 1 GiB in a loop", guest{memory: pages(mostMemory >> 16), body: endless(copyHalf)}, control{neverEnds: true, guest: &half}),
		bulk("20,000 times table.fill of a million elements", guest{table: table, body: slices.Repeat(fillTable, 20_000)}, slow),
	}
}

func streamAttacks() []attack {
	// Writes of 1 MiB, whose vector is at address 0.
	flood := func(fd, mebibytes uint32) guest {
		return guest{imports: []string{"fd_write"}, memory: pages(17), locals: oneLocal, body: slices.Concat(
			store(0, 16), store(4, mebibyte), times(mebibytes, invoke(0, fd, 0, 1, 8)))}
	}
	// Less is enough to show that nothing bounds it.
	less := func(fd uint32) control {
		g := flood(fd, 256)
		return control{least: promisedMemory, guest: &g}
	}
	cut := func(o tool.Outcome) error {
		if len(o.Log) > 65<<10 {
			return fmt.Errorf("the log has %d bytes", len(o.Log))
		}
		return nil
	}
	read := slices.Concat(store(0, 16), store(4, 16), invoke(0, 0, 0, 1, 8))
	// A quarter of a billion empty vectors.
	vectors := guest{imports: []string{"fd_write"}, memory: pages(mostMemory >> 16), body: endless(invoke(0, 1, 0, 1<<28-8193, 2_147_450_000))}
	slow := control{neverEnds: true, closing: true}
	return []attack{
		{name: "blocking stdin", guest: guest{imports: []string{"fd_read"}, memory: pages(1), body: slices.Concat(read, read)}, control: slow},
		{name: "2 GiB to stdout", guest: flood(1, 2048), end: tool.Output, control: less(1)},
		{name: "2 GiB to stderr", guest: flood(2, 2048), check: cut, control: less(2)},
		{name: "a quarter of a billion vectors to stdout", guest: vectors, limits: allMemory, end: tool.Deadline, control: slow},
	}
}

func hostCallAttacks() []attack {
	// A relative clock of 10 s, in nanoseconds.
	sleep := slices.Concat(store(16, 1), store(24, 10_000_000_000&0xffff_ffff), store(28, 10_000_000_000>>32), invoke(0, 0, 64, 1, 128))
	// Clocks that are zero all over: each is due at once.
	subscribe := invoke(0, 0, 1<<30, 20_000_000, 2_000_000_000)
	noEnvironment := slices.Concat(invoke(0, 0, 4), trapUnless(number(0), []byte{0x28, 2, 0, 0x45}))
	slow := control{neverEnds: true, closing: true}
	random := guest{imports: []string{"random_get"}, memory: pages(49152), body: endless(invoke(0, 0, 3<<30-1))}
	return []attack{
		{name: "poll_oneoff for 10 s", guest: guest{imports: []string{"poll_oneoff"}, memory: pages(1), body: sleep}, end: tool.Deadline, control: slow},
		{name: "poll_oneoff for 20 million subscriptions", guest: guest{imports: []string{"poll_oneoff"}, memory: pages(mostMemory >> 16), body: endless(subscribe)},
			limits: allMemory, granted: mostMemory, end: tool.Deadline, control: slow},
		{name: "random_get of 2 GiB", guest: guest{imports: []string{"random_get"}, memory: pages(mostMemory >> 16), body: endless(invoke(0, 0, mostMemory-1))},
			limits: allMemory, granted: mostMemory, end: tool.Deadline, control: control{neverEnds: true, closing: true, guest: &random}},
		{name: "environment", guest: guest{imports: []string{"environ_sizes_get"}, memory: pages(1), body: noEnvironment},
			control: control{problem: "unreachable"}},
	}
}

// slowAttacks try to work longer between two looks at the clock than their counted instructions should take.
func slowAttacks() []attack {
	small := guest{memory: pages(8192), locals: oneLocal, body: touch(8192 << 16)}
	return []attack{
		// A guest that never lets go of its processor would hold it until the scheduler takes
		// it away, after 10 ms.
		{name: "infinite loop in 16 calls at once", callers: 16, guest: guest{body: endless()}, end: tool.Deadline,
			control: control{neverEnds: true}},
		// A store to a page that was never touched counts as one instruction, and the system
		// takes thousands of times as long to find memory for it.
		{name: "a store to each page of 2 GiB", guest: guest{memory: pages(mostMemory >> 16), locals: oneLocal, body: touch(mostMemory)},
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
