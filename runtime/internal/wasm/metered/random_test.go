package metered_test

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/runtime/internal/wasm/metered"
)

// bodies writes random code of all forms of control flow, with many locals and globals, and blocks and calls that
// pass many values.
type bodies struct {
	*rand.Rand
	code   []byte
	blocks []bool // of those that are open: whether a branch takes no values
	left   int    // the maximum number of further statements
}

// The types of the module, by index: of function n of the module and of blocks.
const (
	plainType = iota
	manyResults
	manyParams
)

const (
	manyValues = 300
	manyLocals = 400
)

func (b *bodies) write(code ...byte) { b.code = append(b.code, code...) }

func (b *bodies) number(n int) { b.code = binary.AppendUvarint(b.code, uint64(n)) }

func (b *bodies) sets(n int) {
	for range n {
		b.write(0x41, 0, 0x21)
		b.number(b.IntN(manyLocals))
	}
}

func (b *bodies) block(opcode byte, statements func()) {
	if opcode == 0x04 {
		b.write(0x20, 0)
	}
	if opcode != 0x03 && b.IntN(12) == 0 { // with results
		b.write(opcode, manyResults)
		b.blocks = append(b.blocks, false)
		statements()
		b.write(slices.Repeat([]byte{0x41, 0}, manyValues)...)
		if opcode == 0x04 {
			b.write(0x05)
			statements()
			b.write(slices.Repeat([]byte{0x41, 0}, manyValues)...)
		}
		b.write(0x0b)
		b.write(slices.Repeat([]byte{0x1a}, manyValues)...)
	} else {
		b.write(opcode, 0x40)
		b.blocks = append(b.blocks, true)
		statements()
		if opcode == 0x04 && b.IntN(2) == 0 {
			b.write(0x05)
			statements()
		}
		b.write(0x0b)
	}
	b.blocks = b.blocks[:len(b.blocks)-1]
}

// label returns a label that takes no values.
func (b *bodies) label() int {
	var labels []int
	for n, plain := range slices.Backward(b.blocks) {
		if plain {
			labels = append(labels, len(b.blocks)-1-n)
		}
	}
	return labels[b.IntN(len(labels))]
}

func (b *bodies) statements() {
	for range 1 + b.IntN(4) {
		if b.left--; b.left < 0 {
			return
		}
		b.statement()
	}
}

func (b *bodies) statement() {
	switch b.IntN(16) {
	case 0, 1:
		b.block(0x02, b.statements)
	case 2, 3:
		b.block(0x03, b.statements)
	case 4, 5:
		b.block(0x04, b.statements)
	case 6:
		b.sets(b.IntN(5))
	case 7:
		b.sets(128 + b.IntN(300))
	case 8:
		b.write(0x20, 0, 0x0d)
		b.number(b.label())
	case 9:
		b.write(0x20, 0, 0x0e)
		n := b.IntN(4)
		b.number(n)
		for range n + 1 {
			b.number(b.label())
		}
	case 10:
		b.write(0x0c)
		b.number(b.label())
	case 11:
		b.write(0x10, 2+byte(b.IntN(2))) // itself, or a leaf
	case 12:
		b.write(slices.Repeat([]byte{0x41, 0}, manyValues)...)
		b.write(0x10, 4)
	case 13:
		for range b.IntN(200) {
			b.write(0x23)
			b.number(b.IntN(manyValues))
			b.write(0x1a, 0xd2, 2, 0x1a)
		}
	case 14:
		b.write(0x41, 0, 0x41, 0, 0x20, 0, 0xfc, 10, 0, 0)
	default:
		b.write(0x41, 0, 0x11, 0, 0)
	}
}

// bodyOf makes a module of code: function 2, which function 3 and 4, a leaf and one with many parameters, follow.
func bodyOf(code []byte) []byte {
	many := slices.Repeat([]byte{0x7f}, manyValues)
	length := unsigned(manyValues)
	body := func(locals int, code ...byte) []byte {
		b := slices.Concat([]byte{1}, unsigned(locals), []byte{0x7f}, code, []byte{0x0b})
		return append(unsigned(len(b)), b...)
	}
	wasi := text("wasi_snapshot_preview1")
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, vector([]byte{0x60, 0, 0}, slices.Concat([]byte{0x60, 0}, length, many), slices.Concat([]byte{0x60}, length, many, []byte{0}),
			[]byte{0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f}, []byte{0x60, 0, 1, 0x7f})),
		section(2, vector(slices.Concat(wasi, text("fd_read"), []byte{0, 3}), slices.Concat(wasi, text("sched_yield"), []byte{0, 4}))),
		section(3, vector([]byte{plainType}, []byte{plainType}, []byte{manyParams})), section(4, vector([]byte{0x70, 0, 1})), section(5, vector([]byte{0, 1})),
		section(6, vector(slices.Repeat([][]byte{{0x7f, 1, 0x41, 0, 0x0b}}, manyValues)...)), exports,
		section(9, vector([]byte{0, 0x41, 0, 0x0b, 1, 2})), section(10, vector(body(manyLocals, code...), body(1, 0x20, 0, 0x1a), body(1))))
}

// TestRandomBodiesAreProved: the passes and the verifier agree on all costs.
func TestRandomBodiesAreProved(t *testing.T) {
	for seed := range uint64(1500) {
		b := &bodies{Rand: rand.New(rand.NewPCG(seed, 7)), blocks: []bool{true}, left: 40}
		b.statements()
		done, ok := rewritten(bodyOf(b.code))
		require.True(t, ok, "seed %d: the passes refuse it", seed)
		require.NoError(t, metered.Verify(t.Context(), done), "seed %d", seed)
	}
}
