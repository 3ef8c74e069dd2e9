package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	goruntime "runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// replacedOperation is an instruction that is replaced, since its code may lose a temporary value when all registers are
// in use.
type replacedOperation struct {
	name     string
	code     []byte
	operands []byte // types
	result   byte
	lane     int // bits of its numbers, if it computes with numbers that may be no numbers
}

func vectorOperation(name string, number, operands, lane int) replacedOperation {
	return replacedOperation{name, join([]byte{0xfd}, leb(number)), slices.Repeat([]byte{typeV128}, operands), typeV128, lane}
}

var replacedOperations = []replacedOperation{
	{"f32.copysign", []byte{0x98}, []byte{typeF32, typeF32}, typeF32, 0},
	{"f64.copysign", []byte{0xa6}, []byte{typeF64, typeF64}, typeF64, 0},
	{"f32.convert_i64_u", []byte{0xb5}, []byte{typeI64}, typeF32, 0},
	{"f64.convert_i64_u", []byte{0xba}, []byte{typeI64}, typeF64, 0},
	{"f64x2.replace_lane 0", []byte{0xfd, 34, 0}, []byte{typeV128, typeF64}, typeV128, 0},
	{"v128 select", []byte{0x1b}, []byte{typeV128, typeV128, typeI32}, typeV128, 0},
	vectorOperation("v128.bitselect", 82, 3, 0),
	vectorOperation("i8x16.popcnt", 98, 1, 0),
	vectorOperation("i64x2.mul", 213, 2, 0),
	vectorOperation("f32x4.min", 232, 2, 32),
	vectorOperation("f32x4.max", 233, 2, 32),
	vectorOperation("f64x2.min", 244, 2, 64),
	vectorOperation("f64x2.max", 245, 2, 64),
	vectorOperation("f32x4.convert_i32x4_u", 251, 1, 0),
	vectorOperation("f64x2.convert_low_i32x4_u", 255, 1, 0),
}

// loads and stores are those of each type, with its natural alignment.
var loads = map[byte][]byte{typeI32: {0x28, 2}, typeI64: {0x29, 3}, typeF32: {0x2a, 2}, typeF64: {0x2b, 3}, typeV128: {0xfd, 0, 4}}
var stores = map[byte][]byte{typeI32: {0x36, 2}, typeI64: {0x37, 3}, typeF32: {0x38, 2}, typeF64: {0x39, 3}, typeV128: {0xfd, 11, 4}}

// loaded is code that loads a value from an address, and stored stores the value that code leaves.
func loaded(kind byte, at int) []byte { return join([]byte{0x41, 0}, loads[kind], leb(at)) }

func stored(kind byte, at int, code ...[]byte) []byte {
	return join([]byte{0x41, 0}, join(code...), stores[kind], leb(at))
}

// interpreted is computed on wazero's interpreter.
func interpreted(t *testing.T, source []byte) (results []byte) {
	t.Helper()
	r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter())
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	_, err := r.NewHostModuleBuilder("test").NewFunctionBuilder().WithFunc(func(_ context.Context, module api.Module) {
		view, _ := module.Memory().Read(resultsAt, resultsBytes)
		results = slices.Clone(view)
	}).Export("host").Instantiate(t.Context())
	require.NoError(t, err)
	module, err := r.Instantiate(t.Context(), source)
	require.NoError(t, err)
	_, err = module.ExportedFunction("run").Call(t.Context())
	require.NoError(t, err)
	return results
}

// withData adds data at the address 0.
func withData(module, data []byte) []byte {
	return join(module, section(11, join([]byte{1, 0, 0x41, 0, 0x0b}, leb(len(data)), data)...))
}

// pressed is a function in which an operation runs in a loop through which many vectors, its operands among them, pass
// in registers, and are used afterwards. Some of the vectors come before the operands.
func pressed(o replacedOperation, order []int, before, vectors, at int) []byte {
	var types []byte
	operands := make([]int, len(order))
	for range before {
		types = append(types, typeV128)
	}
	for _, n := range order {
		operands[n] = len(types)
		types = append(types, o.operands[n])
	}
	for range vectors - before {
		types = append(types, typeV128)
	}
	result, turns := len(types), len(types)+1
	var groups, code []byte
	for n, kind := range types {
		groups = append(groups, 1, kind)
		code = join(code, loaded(kind, 16*n), []byte{0x21}, leb(n))
	}
	groups = append(groups, 1, o.result, 1, typeI32)
	code = join(code, []byte{0x41, 2, 0x21}, leb(turns), []byte{0x02, 0x40, 0x03, 0x40, 0x20}, leb(turns), []byte{0x45, 0x0d, 1, 0x20}, leb(turns),
		[]byte{0x41, 1, 0x6b, 0x21}, leb(turns))
	for _, local := range operands {
		code = join(code, []byte{0x20}, leb(local))
	}
	code = join(code, o.code, []byte{0x21}, leb(result), stored(o.result, at, []byte{0x20}, leb(result)), []byte{0x0c, 0, 0x0b, 0x0b})
	for n, kind := range types {
		code = join(code, stored(kind, 8<<10+16*n, []byte{0x20}, leb(n)))
	}
	return function(join(leb(len(types)+2), groups), code)
}

// pressedNumber is a function in which an operation on a whole number runs while many other numbers are in registers.
// Its operand is passed to another function afterwards.
func pressedNumber(o replacedOperation, numbers, differences, at int, sink int) []byte {
	var code []byte
	local := func(n int) []byte { return join([]byte{0x20}, leb(n)) }
	for n := range 1 + numbers {
		code = join(code, loaded(typeI64, 128+8*n), []byte{0x21}, leb(n))
	}
	for n := range differences {
		code = join(code, local(1+n%numbers), local(1+(n+1)%numbers), []byte{0x7d, 0x21}, leb(1+numbers+n))
	}
	result := 1 + numbers + differences
	code = join(code, local(0), o.code, []byte{0x21}, leb(result))
	for n := range numbers + differences {
		code = join(code, stored(typeI64, 8<<10+8*n, local(1+n)))
	}
	code = join(code, stored(o.result, at, local(result)), local(0), []byte{0x10}, leb(sink))
	return function(join([]byte{2}, leb(result), []byte{typeI64, 1, o.result}), code)
}

// orders are all orders of the numbers below n, of at most three.
func orders(n int) [][]int {
	return map[int][][]int{1: {{0}}, 2: {{0, 1}, {1, 0}}, 3: {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}}[n]
}

// TestAttackManyRegisters: an instruction gives the correct result while all registers are in use. On plain wazero
// (v1.12.0, amd64) the result is the previous value of a temporary, or leftover stack contents.
func TestAttackManyRegisters(t *testing.T) {
	data := make([]byte, 1024)
	for n := range data {
		data[n] = byte(n*37+n/7*11+5) & 0x7f
		if n >= 128 && n < 512 && n%8 == 7 {
			data[n] |= 0x80 // whole numbers beyond the signed ones
		}
	}
	var wrong []string
	for _, o := range replacedOperations {
		bodies := [][]byte{function(nil, []byte{0x10, 0}), function(nil, stored(typeI64, 4096, []byte{0x20, 0}))}
		const sink = 2
		var run []byte
		add := func(body func(at int) []byte) {
			if at := 16 * (len(bodies) - 2); at < resultsBytes {
				bodies = append(bodies, body(resultsAt+at))
				run = join(run, []byte{0x10}, leb(len(bodies)))
			}
		}
		for _, order := range orders(len(o.operands)) {
			for before := range 5 {
				for vectors := 14 - len(o.operands); vectors <= 18-len(o.operands); vectors++ {
					add(func(at int) []byte { return pressed(o, order, before, vectors, at) })
				}
			}
		}
		for numbers := 5; numbers < 10 && o.operands[0] == typeI64; numbers++ {
			for differences := range 6 {
				add(func(at int) []byte { return pressedNumber(o, numbers, differences, at, sink) })
			}
		}
		bodies = append(bodies, function(nil, run, []byte{0x10, 0}))
		typed := make([]byte, len(bodies))
		typed[1] = 1
		source := withData(miscompiledModule([][]byte{typeOf([]byte{typeI64}, nil)}, typed, bodies...), data)
		here, plainly := computed(t, source)
		want := interpreted(t, source)
		assert.True(t, slices.Equal(want, here), o.name)
		if !slices.Equal(want, plainly) {
			wrong = append(wrong, o.name)
		}
	}
	t.Log("wrong without replacement:", wrong)
	assert.True(t, len(wrong) > 8 || goruntime.GOARCH != "amd64", "control: %d wrong", len(wrong))
}

// TestReplacementsCompute: a replacement gives, bit for bit, the result that the interpreter gives for the original
// instruction. If that is a NaN, it gives the canonical NaN, except for its sign, so that the NaN reveals nothing.
func TestReplacementsCompute(t *testing.T) {
	patterns := [][2]uint64{
		{0, 0}, {1, math.MaxUint64}, {1 << 63, 1 << 63}, {0x7ff0_0000_0000_0000, 0xfff0_0000_0000_0000},
		{0x7ff8_0000_0000_0000, 0x7fc0_0000_7fc0_0000}, {0x3ff0_0000_0000_0000, 0xbf80_0000_3f80_0000}, {0x8000_0000_0000_0000, 0x0000_0000_8000_0000},
		{0xffff_ffff_0000_0001, 0x7fff_ffff_ffff_ffff}, {0x8000_0000_0000_0401, 0x8000_0080_0000_0001}, {0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210},
		{0x00ff_ffff_01ff_ffff, 0x0100_0001_0100_0003}, {0xffff_ff7f_ffff_ff80, 0x7f80_0000_ff80_0000}, {1<<53 + 1, 1<<54 + 2 + 1},
		{0xffff_ffff_ffff_fbff, 0xffff_ff7f_ffff_ffff}, {0xffff_ffff_ffff_fc00, 0xffff_ff80_0000_0000}, {0x7ff0_0000_0000_0001, 0x7f80_0001_ff80_0001},
	}
	data := make([]byte, 0, 1024)
	for _, p := range patterns {
		data = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(data, p[0]), p[1])
	}
	for _, o := range replacedOperations {
		t.Run(o.name, func(t *testing.T) {
			var bodies [][]byte
			var run []byte
			for n := range resultsBytes / 16 { // two operands take all pairs
				code, operand := []byte(nil), n
				for _, kind := range o.operands {
					at := 16 * (operand % len(patterns))
					if kind != typeV128 {
						at += n / len(patterns) % 4 / 2 * 8 // some numbers to round are in the second half
					}
					if kind == typeF32 || kind == typeI32 {
						at += n / len(patterns) % 2 * 4
					}
					code = join(code, loaded(kind, at))
					operand = operand/len(patterns) + 3*n
				}
				bodies = append(bodies, function(nil, stored(o.result, resultsAt+16*n, code, o.code)))
				run = join(run, []byte{0x10}, leb(len(bodies)))
			}
			bodies = append(bodies, function(nil, run, []byte{0x10, 0}))
			source := withData(miscompiledModule(nil, make([]byte, len(bodies)), bodies...), data)
			here, _ := computed(t, source)
			assert.Equal(t, fmt.Sprintf("%x", canonical(interpreted(t, source), o.lane, true)), fmt.Sprintf("%x", canonical(here, o.lane, false)))
		})
	}
}

// canonical clears the signs of NaNs. If hides is set, it also replaces each by the canonical one.
func canonical(results []byte, lane int, hides bool) []byte {
	switch lane {
	case 32:
		for at := 0; at < len(results); at += 4 {
			if bits := binary.LittleEndian.Uint32(results[at:]); math.IsNaN(float64(math.Float32frombits(bits))) {
				if bits &^= 1 << 31; hides {
					bits = 0x7fc0_0000
				}
				binary.LittleEndian.PutUint32(results[at:], bits)
			}
		}
	case 64:
		for at := 0; at < len(results); at += 8 {
			if bits := binary.LittleEndian.Uint64(results[at:]); math.IsNaN(math.Float64frombits(bits)) {
				if bits &^= 1 << 63; hides {
					bits = 0x7ff8_0000_0000_0000
				}
				binary.LittleEndian.PutUint64(results[at:], bits)
			}
		}
	}
	return results
}
