package wasm

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// reader reads the bytes of a section or a part of it, and never reads past its end. The first
// failure sticks: later reads return zero values and do not advance. So err needs to be checked
// only where a value is used.
type reader struct {
	source  []byte // the module up to the end of the part
	at      int    // offset of the next byte
	section string // for errors
	err     *Error
}

func (r *reader) left() int { return len(r.source) - r.at }

// fail records a failure at an offset, unless one was recorded before.
func (r *reader) fail(kind error, offset int, format string, arguments ...any) {
	if r.err == nil {
		r.err = &Error{Kind: kind, Section: r.section, Offset: offset, Message: fmt.Sprintf(format, arguments...)}
	}
}

// failure returns the failure, if any, as an error that can be compared with nil.
func (r *reader) failure() error {
	if r.err == nil {
		return nil
	}
	return r.err
}

// part returns a reader of the next n bytes and skips them. In errors, what names them.
func (r *reader) part(n int, what string) reader {
	start := r.at
	r.skip(n, what)
	return reader{source: r.source[:r.at], at: start, section: r.section, err: r.err}
}

// skip skips n bytes. In errors, what names them. Throughout the reader, messages are formatted
// only on failure: formatting a string for each read would cost more than the read.
func (r *reader) skip(n int, what string) {
	if r.err != nil {
		return
	}
	if n > r.left() {
		r.fail(ErrMalformed, r.at, "ends within %s", what)
		return
	}
	r.at += n
}

func (r *reader) end() {
	if r.left() > 0 {
		r.fail(ErrMalformed, r.at, "%d bytes are left over", r.left())
	}
}

func (r *reader) byte(what string) byte {
	if r.err != nil || r.at >= len(r.source) {
		r.skip(1, what) // fails, unless there was a failure before
		return 0
	}
	r.at++
	return r.source[r.at-1]
}

// u32 reads an unsigned integer in LEB128 (§5.2.2).
func (r *reader) u32(what string) uint32 { return uint32(r.leb(32, false, what)) }

// size reads a u32 that is a number of bytes, which must not exceed the bytes left.
func (r *reader) size(what string) int {
	at := r.at
	n := r.u32(what)
	if r.err == nil && uint64(n) > uint64(r.left()) {
		r.fail(ErrMalformed, at, "%s claims %d bytes, %d bytes are left", what, n, r.left())
		return 0
	}
	return int(n)
}

// leb reads an integer of the given number of bits in LEB128 (§5.2.2), and extends its sign to 64 bits. It takes at
// most ceil(bits/7) bytes, and unused bits of the last byte must be copies of the sign.
func (r *reader) leb(bits uint, signed bool, what string) uint64 {
	if r.err == nil && r.at < len(r.source) && r.source[r.at] < 0x80 { // the common case: one byte
		r.at++
		return extended(uint64(r.source[r.at-1]), 7, signed)
	}
	start := r.at
	var value uint64
	for shift := uint(0); ; shift += 7 {
		b := r.byte(what)
		if r.err != nil {
			return 0
		}
		if room := bits - shift; room <= 7 && !lastByte(b, room, signed) {
			r.fail(ErrMalformed, start, "not a LEB128 integer of %d bits in %s", bits, what)
			return 0
		}
		value |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return extended(value, shift+7, signed)
		}
	}
}

// extended returns an integer that was encoded in so many bits.
func extended(value uint64, bits uint, signed bool) uint64 {
	if unused := 64 - min(bits, 64); signed {
		return uint64(int64(value<<unused) >> unused)
	}
	return value
}

// lastByte reports whether b can be the last byte of an integer that uses room bits of it, 1 to 7.
func lastByte(b byte, room uint, signed bool) bool {
	unused := b >> room
	if signed && b>>(room-1)&1 == 1 {
		return unused == 0x7f>>room
	}
	return unused == 0
}

// count reads the length of a vector (§5.1.3) whose elements take at least elementBytes each. In
// errors, what names the elements. It never returns a length that does not fit in the bytes left,
// so it is safe to allocate by the result.
func (r *reader) count(what string, elementBytes, limit int) int {
	at := r.at
	n := r.u32(what)
	switch {
	case r.err != nil:
		return 0
	case uint64(n)*uint64(elementBytes) > uint64(r.left()):
		r.fail(ErrMalformed, at, "claims %d %s, %d bytes are left", n, what, r.left())
		return 0
	case uint64(n) > uint64(limit):
		r.fail(ErrLimit, at, "has %d %s, the limit is %d", n, what, limit)
		return 0
	}
	return int(n)
}

// name reads a name (§5.2.4).
func (r *reader) name(what string, limit int) string {
	at := r.at
	text := r.text(what)
	if r.err == nil && len(text) > limit {
		r.fail(ErrLimit, at, "%s has %d bytes, the limit is %d", what, len(text), limit)
		return ""
	}
	return string(text)
}

// text reads a name and returns it as a subslice of source.
func (r *reader) text(what string) []byte {
	n := r.size(what)
	start := r.at
	r.skip(n, what)
	if r.err != nil {
		return nil
	}
	text := r.source[start:r.at]
	if !utf8.Valid(text) {
		r.fail(ErrMalformed, start, "%s is not UTF-8", what)
		return nil
	}
	return text
}

// encoder writes the binary format. The zero value is empty and ready to use.
type encoder struct {
	bytes []byte
}

// u32 writes an unsigned integer in LEB128 (§5.2.2).
func (e *encoder) u32(n uint32) { e.bytes = binary.AppendUvarint(e.bytes, uint64(n)) }

// signed writes a signed integer in LEB128 (§5.2.2).
func (e *encoder) signed(n int64) {
	for {
		low := byte(n & 0x7f)
		n >>= 7
		if n == 0 && low&0x40 == 0 || n == -1 && low&0x40 != 0 {
			e.bytes = append(e.bytes, low)
			return
		}
		e.bytes = append(e.bytes, low|0x80)
	}
}

// name writes a name (§5.2.4).
func (e *encoder) name(text string) {
	e.u32(uint32(len(text)))
	e.bytes = append(e.bytes, text...)
}

// section writes a section (§5.5.2).
func (e *encoder) section(id SectionID, content []byte) {
	e.bytes = append(e.bytes, byte(id))
	e.u32(uint32(len(content)))
	e.bytes = append(e.bytes, content...)
}

// functionType writes a function type (§5.3.6).
func (e *encoder) functionType(t FuncType) {
	e.bytes = append(e.bytes, 0x60)
	for _, types := range [][]ValueType{t.Params, t.Results} {
		e.u32(uint32(len(types)))
		for _, one := range types {
			e.bytes = append(e.bytes, byte(one))
		}
	}
}

// Opcodes that added code needs besides those in instruction.go.
const (
	opMemoryGrow        opcode = 0x40
	opI32Eqz            opcode = 0x45
	opI32LtS            opcode = 0x48
	opI32LtU            opcode = 0x49
	opI32GtU            opcode = 0x4b
	opI32LeU            opcode = 0x4d
	opI32GeU            opcode = 0x4f
	opI64LtS            opcode = 0x53
	opI64GeS            opcode = 0x59
	opI64GeU            opcode = 0x5a
	opI32Add            opcode = 0x6a
	opI32Sub            opcode = 0x6b
	opI32And            opcode = 0x71
	opI32Or             opcode = 0x72
	opI64Add            opcode = 0x7c
	opI64Sub            opcode = 0x7d
	opI64Mul            opcode = 0x7e
	opI64And            opcode = 0x83
	opI64Or             opcode = 0x84
	opI64ExtendU        opcode = 0xad // i64.extend_i32_u
	opF32Mul            opcode = 0x94
	opF64Mul            opcode = 0xa2
	opF32ConvertI64S    opcode = 0xb4
	opF64ConvertI64S    opcode = 0xb9
	opI32ReinterpretF32 opcode = 0xbc
	opI64ReinterpretF64 opcode = 0xbd
	opF32ReinterpretI32 opcode = 0xbe
	opF64ReinterpretI64 opcode = 0xbf
)

// emptyBlock is the type of a block without parameters and results.
const emptyBlock = 0x40

// do writes instructions without immediates.
func (e *encoder) do(codes ...opcode) *encoder {
	for _, code := range codes {
		e.bytes = append(e.bytes, byte(code))
	}
	return e
}

// at writes an instruction with an index.
func (e *encoder) at(code opcode, index uint32) *encoder {
	e.do(code).u32(index)
	return e
}

// block writes a block, loop or if without parameters and results.
func (e *encoder) block(code opcode) *encoder {
	e.bytes = append(e.do(code).bytes, emptyBlock)
	return e
}

func (e *encoder) i32(n int32) *encoder {
	e.do(opI32Const).signed(int64(n))
	return e
}

func (e *encoder) i64(n int64) *encoder {
	e.do(opI64Const).signed(n)
	return e
}
