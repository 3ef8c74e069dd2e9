package wasm

import (
	"fmt"
	"unicode/utf8"
)

// reader reads the bytes of one section, or of one part of it. It never reads past its
// end. The first failure sticks: later reads return zero values and move nothing, so
// that err has to be looked at only where what was read is used.
type reader struct {
	source  []byte // the module up to the end of the part; never past it
	at      int    // offset of the next byte
	section string // for errors
	err     *Error
}

func (r *reader) left() int { return len(r.source) - r.at }

// fail records a failure at an offset, unless there is one already.
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

// part returns a reader of the next n bytes, which what names, and moves behind them.
func (r *reader) part(n int, what string) reader {
	start := r.at
	r.skip(n, what)
	return reader{source: r.source[:r.at], at: start, section: r.section, err: r.err}
}

// skip moves over n bytes, which what names. As everywhere in the reader, what is put
// into words only on failure: a string made for each read would cost more than the read.
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

// end fails if bytes are left that nothing accounts for.
func (r *reader) end() {
	if r.left() > 0 {
		r.fail(ErrMalformed, r.at, "%d bytes are left over", r.left())
	}
}

func (r *reader) byte(what string) byte {
	if r.err != nil || r.at >= len(r.source) {
		r.skip(1, what) // fails, if nothing has before
		return 0
	}
	r.at++
	return r.source[r.at-1]
}

// u32 reads an unsigned integer in LEB128 (§5.2.2).
func (r *reader) u32(what string) uint32 { return uint32(r.leb(32, false, what)) }

// size reads a u32 that counts bytes of which all must still come.
func (r *reader) size(what string) int {
	at := r.at
	n := r.u32(what)
	if r.err == nil && uint64(n) > uint64(r.left()) {
		r.fail(ErrMalformed, at, "%s claims %d bytes, %d bytes are left", what, n, r.left())
		return 0
	}
	return int(n)
}

// leb reads an integer of so many bits in LEB128 (§5.2.2). It takes at most
// ceil(bits/7) bytes, and the bits of the last byte that the integer has no room for
// must be copies of its sign.
func (r *reader) leb(bits uint, signed bool, what string) uint64 {
	if r.err == nil && r.at < len(r.source) && r.source[r.at] < 0x80 { // one byte, as most are
		r.at++
		return uint64(r.source[r.at-1])
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
			return value
		}
	}
}

// lastByte reports whether b can be the last byte of an integer that has room for so
// many bits of it, 1 to 7.
func lastByte(b byte, room uint, signed bool) bool {
	unused := b >> room
	if signed && b>>(room-1)&1 == 1 {
		return unused == 0x7f>>room
	}
	return unused == 0
}

// count reads the length of a vector (§5.1.3) whose elements, which what names, take at
// least so many bytes each. A length that the bytes left cannot hold is a lie and never
// returned, so that it is safe to allocate by the result.
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

// text reads a name as a part of source.
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
