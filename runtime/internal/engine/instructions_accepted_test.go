//go:build !race

package engine

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// This file finds the instructions of which instructions_draw_test.go makes modules.

// acceptedInstruction is an instruction that validation accepts, and that computes, loads or stores.
type acceptedInstruction struct {
	opcode    int // 0xfd23 is 0x23 with the prefix 0xfd
	code      []byte
	limits    []byte // the largest value of each byte of its immediates
	addressed bool   // they begin with an alignment and an offset, whose first byte says that another follows
	operands  []byte // types
	result    []byte // its type, or none
}

var (
	allTypes = []byte{typeI32, typeI64, typeF32, typeF64, typeV128}
	zeroOf   = map[byte][]byte{typeI32: {0x41, 0}, typeI64: {0x42, 0}, typeF32: {0x43, 0, 0, 0, 0}, typeF64: join([]byte{0x44}, make([]byte, 8)),
		typeV128: join([]byte{0xfd, 12}, make([]byte, 16))}
)

// acceptedInstructions finds out from validation which instructions there are, and their types: after an instruction
// that never returns, the stack has operands of any type.
func acceptedInstructions(t *testing.T) (all []acceptedInstruction) {
	t.Helper()
	valid := func(code ...[]byte) bool {
		source := join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0}, section(1, 1, 0x60, 0, 0), section(3, 1, 0), section(5, 1, 0, 1),
			section(10, join([]byte{1}, function(nil, unreachable, join(code...), recurse, unreachable))...))
		description, err := wasm.Inspect(source)
		if err == nil {
			_, err = wasm.ValidateWithin(t.Context(), source, description, wasm.Bounds{}, wasm.Features{})
		}
		return err == nil
	}
	only := func(fits func(t byte) bool) []byte { // the type that fits, or none if all do
		return slices.DeleteFunc(slices.Clone(allTypes), func(t byte) bool { return !fits(t) || fits(typeI32) && fits(typeI64) })
	}
	// Immediates are these, or in their form. None can be taken for another: the call after them is not a lane or an
	// alignment, and 0xff is not an instruction.
	forms := [][]byte{nil, {0, 0xff, 0}, {0, 0xff, 0, 0}, {0}, make([]byte, 16)}
	for opcode := range 0xfe00 {
		in := acceptedInstruction{opcode: opcode, code: []byte{byte(opcode)}}
		switch prefix := opcode >> 8; {
		case prefix == 0xfc && opcode < 0xfc08, prefix == 0xfd: // conversions, vectors
			in.code = join([]byte{byte(prefix)}, leb(opcode&0xff))
		case opcode < 0x28 || opcode > 0xc4 || opcode > 0x3e && opcode < 0x45: // control, variables, references, constants
			continue
		}
		form := slices.IndexFunc(forms, func(form []byte) bool { return valid(in.code, form) })
		if form < 0 {
			continue
		}
		immediates := forms[form]
		in.addressed = len(immediates) > 1 && immediates[1] != 0
		for at := range immediates {
			try := slices.Clone(immediates)
			for try[at] < math.MaxUint8 && (!in.addressed || at != 2) {
				if try[at]++; !valid(in.code, try) {
					try[at]--
					break
				}
			}
			in.limits = append(in.limits, try[at])
		}
		for more := []byte{0}; len(more) > 0; in.operands = append(more, in.operands...) {
			var known []byte
			for _, t := range in.operands {
				known = append(known, zeroOf[t]...)
			}
			more = only(func(t byte) bool { return valid(zeroOf[t], known, in.code, immediates) })
		}
		in.result = only(func(t byte) bool { return valid([]byte{0x02, t, 0}, in.code, immediates, []byte{0x0b, 0x1a}) })
		all = append(all, in)
	}
	require.Len(t, all, 395)
	return all
}

// traps reports whether an instruction traps for many operands.
func (in acceptedInstruction) traps() bool {
	return in.opcode >= 0xa8 && in.opcode <= 0xb1 && in.opcode != 0xac && in.opcode != 0xad // trunc
}

// divides reports whether an instruction traps for the second operand 0.
func (in acceptedInstruction) divides() bool {
	return in.opcode >= 0x6d && in.opcode <= 0x70 || in.opcode >= 0x7f && in.opcode <= 0x82
}

// lane returns the bits of each number that the instruction computes, or 0 if none can be a NaN.
func (in acceptedInstruction) lane() int {
	switch op := in.opcode; {
	case op >= 0x8d && op <= 0x97, op == 0xb6, op == 0xfd5e, op >= 0xfd67 && op <= 0xfd6a, op >= 0xfde3 && op <= 0xfde9:
		return 32
	case op >= 0x9b && op <= 0xa5, op == 0xbb, op == 0xfd5f, op == 0xfd74, op == 0xfd75, op == 0xfd7a, op == 0xfd94, op >= 0xfdef && op <= 0xfdf5:
		return 64
	}
	return 0
}
