package metered_test

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// Small modules, assembled by hand. Function 0 is WASI's fd_read, function 1 its sched_yield,
// function 2 is _start, which has a local of type i32, as all that follow. A table holds
// function 2.

func program(code ...[]byte) []byte { return module(slices.Concat(code...)) }

// starting makes of a module that program made one whose program is a start function.
func starting(source []byte) []byte {
	at := bytes.Index(source, exports)
	return slices.Concat(source[:at], exportsMemory, section(8, []byte{2}), source[at+len(exports):])
}

var (
	exports       = section(7, vector(slices.Concat(text("_start"), []byte{0, 2}), slices.Concat(text("memory"), []byte{2, 0})))
	exportsMemory = section(7, vector(slices.Concat(text("memory"), []byte{2, 0})))
)

func module(bodies ...[]byte) []byte {
	functions, code := make([][]byte, len(bodies)), make([][]byte, len(bodies))
	for n, instructions := range bodies {
		body := slices.Concat([]byte{1, 1, 0x7f}, instructions, []byte{0x0b})
		functions[n], code[n] = []byte{0}, append(unsigned(len(body)), body...)
	}
	wasi := text("wasi_snapshot_preview1")
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, vector([]byte{0x60, 0, 0}, []byte{0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f}, []byte{0x60, 0, 1, 0x7f})),
		section(2, vector(slices.Concat(wasi, text("fd_read"), []byte{0, 1}), slices.Concat(wasi, text("sched_yield"), []byte{0, 2}))),
		section(3, vector(functions...)), section(4, vector([]byte{0x70, 0, 1})), section(5, vector([]byte{0, 1})), exports,
		section(9, vector([]byte{0, 0x41, 0, 0x0b, 1, 2})), section(10, vector(code...)))
}

func unsigned(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

func text(s string) []byte { return append(unsigned(len(s)), s...) }

func section(id byte, content ...[]byte) []byte {
	joined := slices.Concat(content...)
	return slices.Concat([]byte{id}, unsigned(len(joined)), joined)
}

func vector(elements ...[]byte) []byte {
	return append(unsigned(len(elements)), slices.Concat(elements...)...)
}

func br(label byte) []byte   { return []byte{0x0c, label} }
func brIf(label byte) []byte { return []byte{0x0d, label} }

// call calls a function. sched_yield's result is dropped.
func call(function byte) []byte {
	if function == 1 {
		return []byte{0x10, 1, 0x1a}
	}
	return []byte{0x10, function}
}

// store is i32.store of small numbers.
func store(address, value byte) []byte { return []byte{0x41, address, 0x41, value & 0x3f, 0x36, 2, 0} }

// read reads standard input to where the vector at 0 says.
func read() []byte { return []byte{0x41, 0, 0x41, 0, 0x41, 1, 0x41, 8, 0x10, 0, 0x1a} }

func loop(code ...[]byte) []byte {
	return slices.Concat([]byte{0x03, 0x40}, slices.Concat(code...), []byte{0x0b})
}

func block(code ...[]byte) []byte {
	return slices.Concat([]byte{0x02, 0x40}, slices.Concat(code...), []byte{0x0b})
}
