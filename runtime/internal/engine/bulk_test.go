package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/caisson-run/caisson/internal/testsize"
)

// tabled is a module with 3 pages of memory, two tables, segments longer than a piece and shorter ones, and an
// exported function for each instruction on them whose time depends on a length. Function n of 64 returns n.
func tabled(elements, bytes int) []byte {
	const functions = 64
	operations := [][]byte{
		{0xfc, 8, 0, 0}, {0xfc, 8, 1, 0}, {0xfc, 10, 0, 0}, {0xfc, 11, 0},
		{0xfc, 12, 0, 0}, {0xfc, 12, 1, 1}, {0xfc, 14, 0, 0}, {0xfc, 14, 0, 1}, {0xfc, 14, 1, 0},
	}
	types, code, exports := []byte{}, [][]byte{}, [][]byte{}
	export := func(text string) {
		exports = append(exports, join(name(text), []byte{0}, leb(len(code))))
	}
	for n := range functions {
		types, code = append(types, 0), append(code, function(nil, []byte{0x41}, leb(n&0x3f)))
	}
	for n, operation := range operations {
		export(fmt.Sprint("operation ", n))
		types, code = append(types, 1), append(code, function(nil, []byte{0x20, 0, 0x20, 1, 0x20, 2}, operation))
	}
	export(fmt.Sprint("operation ", len(operations))) // table.fill with an element of the other table
	types, code = append(types, 1), append(code, function(nil, []byte{0x20, 0, 0x20, 1, 0x25, 1, 0x20, 2, 0xfc, 17, 0}))
	for table := range byte(2) {
		export(fmt.Sprint("call ", table))
		types, code = append(types, 2), append(code, function(nil, []byte{0x20, 0, 0x11, 0, table}))
	}
	export("drop")
	types, code = append(types, 3), append(code, function(nil, []byte{0xfc, 9, 0, 0xfc, 13, 0}))
	exports = append(exports, join(name("memory"), []byte{2, 0}))

	segment := func(length int) []byte {
		s := append([]byte{1, 0}, leb(length)...) // passive, of functions
		for n := range length {
			s = append(s, byte(n*7%functions))
		}
		return s
	}
	data := func(length int) []byte {
		s := append([]byte{1}, leb(length)...)
		for n := range length {
			s = append(s, byte(n*13>>3))
		}
		return s
	}
	active := func(table byte) []byte {
		s := join([]byte{2, table, 0x41, 0, 0x0b, 0}, leb(elements-9))
		for n := range elements - 9 {
			s = append(s, byte(n*int(table+3)%functions))
		}
		return s
	}
	table := join([]byte{0x70, 0}, leb(elements))
	return join([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, 4, 0x60, 0, 1, 0x7f, 0x60, 3, 0x7f, 0x7f, 0x7f, 0, 0x60, 1, 0x7f, 1, 0x7f, 0x60, 0, 0),
		section(3, join(leb(len(types)), types)...), section(4, join([]byte{2}, table, table)...), section(5, 1, 0, 3),
		section(7, join(leb(len(exports)), join(exports...))...),
		section(9, join([]byte{4}, segment(elements-100), segment(77), active(0), active(1))...), section(12, 2),
		section(10, join(leb(len(code)), join(code...))...), section(11, join([]byte{2}, data(bytes), data(99))...))
}

// TestBulkOperationsBehaveTheSame: instructions on memory and tables do the same in pieces, including where they trap.
func TestBulkOperationsBehaveTheSame(t *testing.T) {
	const elements, bytes, memory = 2*4096 + 700, 2*pieceBytes + 500, 3 << 16
	source := tabled(elements, bytes)
	prepared, err := rewriteAll(source)
	require.NoError(t, err)
	sizes := [][2]int{{memory, bytes}, {memory, 99}, {memory, memory}, {memory, memory}, {elements, elements - 100}, {elements, 77}, {elements, elements}, {elements, elements}, {elements, elements}, {elements, elements}}
	for seed := range uint64(testsize.Of(8, 20)) {
		random := rand.New(rand.NewPCG(seed, 1))
		number := func(size int) uint32 {
			switch random.IntN(8) {
			case 0:
				return uint32(size)
			case 1:
				return uint32(size) + uint32(random.IntN(3)) - 1
			case 2:
				return random.Uint32()
			case 3:
				return ^uint32(0) - uint32(random.IntN(3))
			case 4:
				return uint32(min(size, []int{4095, 4096, 4097, 8192, pieceBytes - 1, pieceBytes, pieceBytes + 1}[random.IntN(7)]))
			default:
				return uint32(random.IntN(size + 1))
			}
		}
		original, rewritten := newBulkWorld(t, source), newBulkWorld(t, prepared)
		for step := range 60 {
			operation := random.IntN(len(sizes))
			to, from, n := number(sizes[operation][0]), number(sizes[operation][1]), number(sizes[operation][0])
			if random.IntN(2) == 0 { // in bounds
				n = min(n, uint32(slices.Min(sizes[operation][:])))
				to, from = uint32(random.IntN(sizes[operation][0]-int(n)+1)), uint32(random.IntN(sizes[operation][1]-int(n)+1))
			}
			name := fmt.Sprint("operation ", operation)
			if random.IntN(60) == 0 {
				require.Equal(t, original.do("drop"), rewritten.do("drop"))
			}
			require.Equal(t, original.do(name, to, from, n), rewritten.do(name, to, from, n), "seed %d, step %d: %s %d %d %d", seed, step, name, to, from, n)
			require.Equal(t, original.state(elements), rewritten.state(elements), "seed %d, step %d: %s %d %d %d", seed, step, name, to, from, n)
		}
	}
}

// bulkWorld is an instance of a module, original or rewritten.
type bulkWorld struct {
	ctx      context.Context
	instance api.Module
}

func newBulkWorld(t *testing.T, source []byte) bulkWorld {
	ctx := new(meter).with(t.Context())
	runtime := wazero.NewRuntime(ctx)
	t.Cleanup(func() { require.NoError(t, runtime.Close(ctx)) })
	require.NoError(t, offerPasses(ctx, runtime))
	instance, err := runtime.Instantiate(ctx, source)
	require.NoError(t, err)
	return bulkWorld{ctx, instance}
}

// do calls a function and returns how it trapped, or "".
func (s bulkWorld) do(name string, parameters ...uint32) string {
	var wide []uint64
	for _, p := range parameters {
		wide = append(wide, uint64(p))
	}
	if _, err := s.instance.ExportedFunction(name).Call(s.ctx, wide...); err != nil {
		return reasonOf(err)
	}
	return ""
}

// state is the memory, and the results of some elements of the tables.
func (s bulkWorld) state(elements int) string {
	text := memoryDigest(s.instance)
	for table := range 2 {
		function := s.instance.ExportedFunction(fmt.Sprint("call ", table))
		for n := 0; n < elements; n += 251 {
			if result, err := function.Call(s.ctx, uint64(n)); err == nil {
				text += fmt.Sprint(" ", result[0])
			} else {
				text += " -"
			}
		}
	}
	return text
}
