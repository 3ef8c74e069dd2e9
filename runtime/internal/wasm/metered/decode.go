package metered

import (
	"errors"
	"fmt"
	"math"
)

// ErrUnproved means that a module may run for long without a test of its meter.
var ErrUnproved = errors.New("metering not proved")

// Error describes where and why a proof fails.
type Error struct {
	Function int    // its index in the module, including imports; -1 outside of functions
	Offset   int    // from the start of the module, in bytes
	Reason   string // one line
}

func (e *Error) Error() string {
	if e.Function < 0 {
		return fmt.Sprintf("%v: at %#x: %s", ErrUnproved, e.Offset, e.Reason)
	}
	return fmt.Sprintf("%v: function %d, at %#x: %s", ErrUnproved, e.Function, e.Offset, e.Reason)
}

// Unwrap returns ErrUnproved.
func (e *Error) Unwrap() error { return ErrUnproved }

// none is an index that refers to nothing.
const none = -1

// reader reads the binary format. After a failure it returns zeros.
type reader struct {
	source []byte
	at     int
	labels []int // of every br_table read so far
	err    *Error
}

func (r *reader) fail(reason string) {
	if r.err == nil {
		r.err = &Error{Function: none, Offset: r.at, Reason: reason}
		r.at = len(r.source)
	}
}

func (r *reader) skip(n int) {
	if n < 0 || n > len(r.source)-r.at {
		r.fail("the module ends too early")
		return
	}
	r.at += n
}

func (r *reader) byte() byte {
	if r.skip(1); r.err != nil {
		return 0
	}
	return r.source[r.at-1]
}

func (r *reader) name() string {
	n := r.u32()
	if r.skip(n); r.err != nil {
		return ""
	}
	return string(r.source[r.at-n : r.at])
}

func (r *reader) limits() {
	if flags := r.byte(); flags&1 != 0 {
		r.u32()
	}
	r.u32()
}

// leb reads an integer in LEB128 (§5.2.2), with sign extension if signed.
func (r *reader) leb(signed bool) int64 {
	var n uint64
	for shift := 0; ; shift += 7 {
		b := r.byte()
		if shift > 63 {
			r.fail("an integer is too long")
		}
		n |= uint64(b&0x7f) << shift
		if b&0x80 == 0 || r.err != nil {
			if signed && b&0x40 != 0 && shift < 57 {
				n |= math.MaxUint64 << (shift + 7)
			}
			return int64(n)
		}
	}
}

func (r *reader) u32() int {
	if r.at < len(r.source) && r.source[r.at] < 0x80 { // the common case
		r.at++
		return int(r.source[r.at-1])
	}
	n := r.leb(false)
	if n < 0 || n > math.MaxUint32 {
		r.fail("a number is too large")
		return 0
	}
	return int(n)
}

// token is an instruction at an offset: its opcode, with the prefix in the high byte, and those of
// its immediates that matter. The labels of br_table are reader.labels[a:b].
type token struct {
	a  int64
	b  int32
	op int32
	at int32
}

// The opcodes that the proof needs (§5.4).
const (
	opUnreachable  = 0x00
	opNop          = 0x01
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opSelect       = 0x1b
	opSelectTyped  = 0x1c
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opI32LtS       = 0x48
	opI32LtU       = 0x49
	opI32GtU       = 0x4b
	opI32LeU       = 0x4d
	opI64GeS       = 0x59
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI64Sub       = 0x7d
	opI64ShrU      = 0x88
	opI64ExtendU   = 0xad
	opRefFunc      = 0xd2
	opMemoryInit   = 0xfc08
	opMemoryCopy   = 0xfc0a
	opMemoryFill   = 0xfc0b
	opTableInit    = 0xfc0c
	opTableCopy    = 0xfc0e
	opTableGrow    = 0xfc0f
	opTableFill    = 0xfc11
)

// isMiscompiled reports whether wazero v1.12.0 may compile an instruction wrongly: f32.copysign, f64.copysign,
// f32.convert_i64_u, f64.convert_i64_u, v128.bitselect, i8x16.popcnt, i64x2.mul, f32x4.min, f32x4.max, f64x2.min,
// f64x2.max, f32x4.convert_i32x4_u, f64x2.convert_low_i32x4_u, and f64x2.replace_lane 0.
func (t token) isMiscompiled() bool {
	switch t.op {
	case 0x98, 0xa6, 0xb5, 0xba, 0xfd52, 0xfd62, 0xfdd5, 0xfde8, 0xfde9, 0xfdf4, 0xfdf5, 0xfdfb, 0xfdff:
		return true
	case 0xfd22:
		return t.a == 0
	}
	return false
}

// The types that select may have (§5.3.1, §5.3.3).
const (
	typeI32       = 0x7f
	typeI64       = 0x7e
	typeFuncRef   = 0x70
	typeExternRef = 0x6f
)

// noType is the immediate of a block without parameters and results, the least that a block may have.
const noType = -0x40

// token reads an instruction. It fails on any that it does not know.
func (r *reader) token() token {
	t := token{at: int32(r.at), op: int32(r.byte())}
	switch op := t.op; {
	case op <= opNop, op == opElse, op == opEnd, op == opReturn, op == 0x1a, op == opSelect, op == 0xd1,
		op >= 0x45 && op <= 0xc4:
	case op >= opBlock && op <= opIf:
		if t.a = r.leb(true); t.a < noType {
			r.fail("a block with a negative number for its type")
		}
	case op == opI32Const, op == opI64Const:
		t.a = r.leb(true)
	case op == opBr, op == opBrIf, op == opCall, op >= opLocalGet && op <= 0x26, op == opRefFunc:
		t.a = int64(r.u32())
	case op == opBrTable:
		t.a = int64(len(r.labels))
		for n := r.u32(); n >= 0 && r.err == nil; n-- {
			r.labels = append(r.labels, r.u32())
		}
		t.b = int32(len(r.labels))
	case op == opCallIndirect:
		t.a = int64(r.u32())
		r.u32()
	case op >= 0x28 && op <= 0x3e:
		r.u32()
		r.u32()
	case op == opSelectTyped:
		if r.u32() != 1 {
			r.fail("a select without one type")
		}
		t.a = int64(r.byte())
	case op == opMemorySize, op == opMemoryGrow, op == 0xd0:
		r.skip(1)
	case op == 0x43:
		r.skip(4)
	case op == 0x44:
		r.skip(8)
	case op == 0xfc, op == 0xfd:
		r.prefixed(&t)
	default:
		r.fail("an instruction that is not known here")
	}
	return t
}

// prefixed reads the rest of an instruction after a prefix. The number of a vector instruction must
// have the shortest encoding: wazero v1.12.0 uses only its first byte.
func (r *reader) prefixed(t *token) {
	at := r.at
	number := r.u32()
	vector, length := t.op == 0xfd, r.at-at
	if vector && (length > 2 || length == 2 && number < 1<<7) || number > 0xff {
		r.fail("an instruction that is not known here")
		return
	}
	t.op = t.op<<8 | int32(number)
	switch {
	case vector && (number <= 11 || number == 92 || number == 93): // memory
		r.u32()
		r.u32()
	case vector && (number == 12 || number == 13): // a constant, a shuffle
		r.skip(16)
	case vector && number >= 21 && number <= 34: // a lane
		t.a = int64(r.byte())
	case vector && number >= 84 && number <= 91: // memory and a lane
		r.u32()
		r.u32()
		r.skip(1)
	case vector, number <= 7: // none
	case number == 8, number == 10, number == 12, number == 14:
		r.u32()
		r.u32()
	case number <= 17:
		r.u32()
	default:
		r.fail("an instruction that is not known here")
	}
}
