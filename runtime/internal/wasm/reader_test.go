package wasm

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLEB128(t *testing.T) {
	tests := []struct {
		title  string
		bits   uint
		signed bool
		bytes  []byte
		ok     bool
	}{
		{"zero", 32, false, raw(0), true},
		{"zero, padded to the most bytes", 32, false, raw(0x80, 0x80, 0x80, 0x80, 0), true},
		{"one byte too many", 32, false, raw(0x80, 0x80, 0x80, 0x80, 0x80, 0), false},
		{"the largest", 32, false, claim, true},
		{"one over the largest", 32, false, raw(0x80, 0x80, 0x80, 0x80, 0x10), false},
		{"unused bit 6", 32, false, raw(0xff, 0xff, 0xff, 0xff, 0x4f), false},
		{"cut off", 32, false, raw(0x80), false},
		{"empty", 32, false, nil, false},
		{"minus one", 32, true, raw(0x7f), true},
		{"minus one, padded", 32, true, raw(0xff, 0xff, 0xff, 0xff, 0x7f), true},
		{"sign not extended", 32, true, raw(0xff, 0xff, 0xff, 0xff, 0x0f), false},
		{"sign extended in part", 32, true, raw(0xff, 0xff, 0xff, 0xff, 0x4f), false},
		{"positive with a sign", 32, true, raw(0x80, 0x80, 0x80, 0x80, 0x70), false},
		{"the smallest", 32, true, raw(0x80, 0x80, 0x80, 0x80, 0x78), true},
		{"the largest", 32, true, raw(0xff, 0xff, 0xff, 0xff, 0x07), true},
		{"signed, one byte too many", 32, true, raw(0xff, 0xff, 0xff, 0xff, 0xff, 0x7f), false},
		{"minus one", 64, true, raw(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f), true},
		{"sign not extended", 64, true, raw(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01), false},
		{"the largest", 64, true, raw(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00), true},
		{"one byte too many", 64, true, raw(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0), false},
	}
	for _, test := range tests {
		t.Run(test.title, func(t *testing.T) {
			r := reader{source: test.bytes}
			r.leb(test.bits, test.signed, "a number")
			if !test.ok {
				require.ErrorIs(t, r.failure(), ErrMalformed)
				return
			}
			require.NoError(t, r.failure())
			assert.Zero(t, r.left())
		})
	}
}

func TestLEB128Value(t *testing.T) {
	r := reader{source: concat(leb(0), leb(127), leb(128), leb(624485), claim)}
	for _, want := range []uint32{0, 127, 128, 624485, 4294967295} {
		assert.Equal(t, want, r.u32("a number"))
	}
	require.NoError(t, r.failure())
}

func TestNames(t *testing.T) {
	tests := []struct {
		title, text string
		ok          bool
	}{
		{"empty", "", true},
		{"one to four bytes a character", "aé€😀", true},
		{"with a NUL", "a\x00b", true},
		{"the last code point", "\U0010ffff", true},
		{"over the last code point", "\xf4\x90\x80\x80", false},
		{"a surrogate", "\xed\xa0\x80", false},
		{"longer than need be", "\xc0\x80", false},
		{"a continuation alone", "\x80", false},
		{"cut off", "\xe2\x82", false},
	}
	for _, test := range tests {
		t.Run(test.title, func(t *testing.T) {
			r := reader{source: name(test.text)}
			got := r.name("a name", 100)
			if !test.ok {
				require.ErrorIs(t, r.failure(), ErrMalformed)
				assert.Equal(t, 1, r.err.Offset)
				return
			}
			require.NoError(t, r.failure())
			assert.Equal(t, test.text, got)
		})
	}
}

func TestFirstFailureSticks(t *testing.T) {
	r := reader{source: raw(1, 2, 3), section: "code"}
	r.skip(4, "a body")
	first := r.failure()
	require.EqualError(t, first, "code section at byte 0: ends within a body")
	assert.Zero(t, r.byte("a byte"))
	assert.Zero(t, r.count("things", 1, 10))
	assert.Empty(t, r.name("a name", 10))
	part := r.part(1, "a part")
	assert.Equal(t, first, part.failure())
	r.end()
	assert.Equal(t, first, r.failure())
	assert.Zero(t, r.at, "a failed reader does not move")
}
