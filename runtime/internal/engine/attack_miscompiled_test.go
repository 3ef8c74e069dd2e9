package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/caisson-run/caisson/hostfuncs"
)

// The modules below store their results here.
const (
	resultsAt    = 16 << 10
	resultsBytes = 4 << 10
)

// computed runs a module that calls test.host, here and on plain wazero, and returns what either left in its memory.
// The host's function copies text, which goes through vector registers.
func computed(t *testing.T, source []byte) (here, plainly []byte) {
	t.Helper()
	secret := bytes.Repeat([]byte("SWORDFISH"), 100)
	host := func(memory hostfuncs.Memory) ([]byte, error) {
		view, ok := memory.View(resultsAt, resultsBytes)
		if !ok || len(bytes.Clone(secret)) != len(secret) {
			return nil, fmt.Errorf("no memory")
		}
		return bytes.Clone(view), nil
	}
	e := newEngine(t, Options{}, func(_ context.Context, memory hostfuncs.Memory, _ []uint64) (err error) {
		here, err = host(memory)
		return err
	})
	mustRun(t, compileSource(t, e, source), plain)

	r := wazero.NewRuntimeWithConfig(t.Context(), runtimeConfig())
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	_, err := r.NewHostModuleBuilder("test").NewFunctionBuilder().WithFunc(func(_ context.Context, module api.Module) {
		plainly, _ = host(memoryView{module.Memory()})
	}).Export("host").Instantiate(t.Context())
	require.NoError(t, err)
	module, err := r.Instantiate(t.Context(), source)
	require.NoError(t, err)
	_, err = module.ExportedFunction("run").Call(t.Context())
	require.NoError(t, err)
	return here, plainly
}

// miscompiledModule has functions without results after test.host, of types after () -> (). The last is run.
func miscompiledModule(types [][]byte, typed []byte, bodies ...[]byte) []byte {
	types = append([][]byte{typeOf(nil, nil)}, types...)
	return join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0}, section(1, join(leb(len(types)), join(types...))...),
		section(2, join([]byte{1}, name("test"), name("host"), []byte{0, 0})...), section(3, join(leb(len(typed)), typed)...),
		section(5, 1, 0, 1), section(7, join([]byte{2}, name("run"), []byte{0}, leb(len(bodies)), name("memory"), []byte{2, 0})...),
		section(10, join(leb(len(bodies)), join(bodies...))...))
}

// selects are functions that select 0 by the condition 0, each with more values in vector registers. The first of the
// two values was spilled by a call of the host.
func selects(kind byte, load, zero, store, typed []byte) []byte {
	const most = 6
	var types, bodies [][]byte
	var typedAs, run []byte
	for n := range most {
		types = append(types, typeOf(bytes.Repeat([]byte{kind}, n+1), nil))
		typedAs = append(typedAs, byte(n+1))
		bodies = append(bodies, function(nil))
	}
	for n := range most {
		code := join([]byte{0x41, 0}, load, leb(128), []byte{0x21, 0, 0x10, 0})
		for other := range n {
			code = join(code, []byte{0x41, 0}, load, leb(144+16*other), []byte{0x21, byte(1 + other)})
		}
		code = join(code, []byte{0x41, 0, 0x20, 0}, zero, []byte{0x41, 0}, typed, store, leb(resultsAt+16*n))
		for other := range n {
			code = join(code, []byte{0x20, byte(1 + other)})
		}
		code = join(code, []byte{0x20, 0, 0x10, byte(1 + n)})
		bodies = append(bodies, function([]byte{1, byte(n + 1), kind}, code))
		typedAs = append(typedAs, 0)
		run = append(run, 0x10, byte(1+most+n))
	}
	bodies = append(bodies, function(nil, run, []byte{0x10, 0}))
	return miscompiledModule(types, append(typedAs, 0), bodies...)
}

// TestAttackSelects: a guest does not read what the host or another call left in vector registers. On plain wazero it
// does (v1.12.0, amd64).
func TestAttackSelects(t *testing.T) {
	leaked := false
	for what, source := range map[string][]byte{
		"f32":        selects(typeF32, []byte{0x2a, 2}, []byte{0x43, 0, 0, 0, 0}, []byte{0x38, 2}, []byte{0x1b}),
		"f64":        selects(typeF64, []byte{0x2b, 3}, join([]byte{0x44}, make([]byte, 8)), []byte{0x39, 3}, []byte{0x1b}),
		"f64, named": selects(typeF64, []byte{0x2b, 3}, join([]byte{0x44}, make([]byte, 8)), []byte{0x39, 3}, []byte{0x1c, 1, typeF64}),
		"v128":       selects(typeV128, []byte{0xfd, 0, 4}, join([]byte{0xfd, 12}, make([]byte, 16)), []byte{0xfd, 11, 4}, []byte{0x1b}),
	} {
		here, plainly := computed(t, source)
		assert.Equal(t, make([]byte, resultsBytes), here, what)
		leaked = leaked || bytes.ContainsFunc(plainly, func(r rune) bool { return r != 0 })
	}
	assert.True(t, leaked || goruntime.GOARCH != "amd64", "control: plain wazero returns what registers held")
}

// TestSelectsChoose: whatever replaces a select returns the first of the values, bit for bit, unless the condition is 0.
func TestSelectsChoose(t *testing.T) {
	bits := []byte{1, 2, 3, 4, 5, 6, 0xf7, 0x7f, 8, 9, 10, 11, 12, 13, 0xf4, 0xff} // its end is a NaN, as f32 and as f64
	for what, c := range map[string]struct {
		constant, store []byte
		size            int
	}{
		"i32":  {nil, []byte{0x36, 2}, 4},
		"i64":  {nil, []byte{0x37, 3}, 8},
		"f32":  {[]byte{0x43}, []byte{0x38, 2}, 4},
		"f64":  {[]byte{0x44}, []byte{0x39, 3}, 8},
		"v128": {[]byte{0xfd, 12}, []byte{0xfd, 11, 4}, 16},
	} {
		first, second := bits[16-c.size:], make([]byte, c.size)
		code := func(value []byte) []byte {
			switch what {
			case "i32":
				return join([]byte{0x41}, signed(int(int32(binary.LittleEndian.Uint32(value)))))
			case "i64":
				return join([]byte{0x42}, signed(int(binary.LittleEndian.Uint64(value))))
			}
			return join(c.constant, value)
		}
		var body, want []byte
		for n, condition := range []int{0, 1, 2, -1, -1 << 31, 1 << 16} {
			body = join(body, []byte{0x41}, signed(resultsAt+16*n), code(first), code(second), []byte{0x41}, signed(condition), []byte{0x1b}, c.store, []byte{0})
			chosen := first
			if condition == 0 {
				chosen = second
			}
			want = append(append(want, chosen...), make([]byte, 16-c.size)...)
		}
		here, plainly := computed(t, miscompiledModule(nil, []byte{0}, function(nil, body, []byte{0x10, 0})))
		assert.Equal(t, want, here[:len(want)], what)
		assert.Equal(t, want, plainly[:len(want)], "%s: the control", what)
	}
}

// maskComparison compares the numbers in two locals, or one of them and the other's bits that a mask has, by a jump.
type maskComparison struct {
	code  byte
	first []byte // code, in which locals 0 and 1 are the number and the mask
	then  []byte
	holds func(number, mask int64) bool
}

// maskComparisons are those of 0 and the result of and.
func maskComparisons(wide bool) (all []maskComparison) {
	first, constant, and, kind := byte(0x48), byte(0x41), byte(0x71), byte(typeI32)
	if wide {
		first, constant, and, kind = 0x53, 0x42, 0x83, typeI64
	}
	masked, zero := []byte{0x20, 0, 0x20, 1, and}, []byte{constant, 0}
	local := []byte{0x20, 0, 0x20, 1, and, 0x21, 2} // assigned before
	less := func(a, b int64, unsigned bool) bool {
		if unsigned {
			return uint64(a) < uint64(b)
		}
		return a < b
	}
	for n := range byte(8) {
		holds := func(a, b int64) bool {
			unsigned := n%2 == 1
			return [...]bool{less(a, b, unsigned), less(b, a, unsigned), !less(b, a, unsigned), !less(a, b, unsigned)}[n/2]
		}
		zeroFirst := func(number, mask int64) bool { return holds(0, number&mask) }
		zeroLast := func(number, mask int64) bool { return holds(number&mask, 0) }
		all = append(all,
			maskComparison{first + n, zero, masked, zeroFirst},
			maskComparison{first + n, masked, zero, zeroLast},
			maskComparison{first + n, join(local, zero), []byte{0x20, 2}, zeroFirst},
			maskComparison{first + n, join(local, []byte{0x20, 2}), zero, zeroLast},
			maskComparison{first + n, join(zero, []byte{0x21, 3}, local, []byte{0x20, 3}), []byte{0x20, 2}, zeroFirst},
			maskComparison{first + n, zero, join(local, []byte{0x20, 2}), zeroFirst},
			maskComparison{first + n, zero, join(masked, []byte{0x22, 2}), zeroFirst},
			maskComparison{first + n, []byte{0x20, 3}, masked, zeroFirst}, // the local's first value
			maskComparison{first + n, masked, []byte{0x20, 3}, zeroLast},
			maskComparison{first + n, zero, join(masked, zero, []byte{and + 3}), zeroFirst}, // shl by nothing
			maskComparison{first + n, zero, join(masked, zero, []byte{and + 5}), zeroFirst}, // shr_u
			maskComparison{first + n, zero, join([]byte{0x02, kind}, masked, []byte{0x0b}), zeroFirst},
		)
	}
	return all
}

// TestComparisonsOfMasks: what compares 0 with the result of and, as Go writes x&y > 0, jumps as it should. On plain
// wazero it jumps as if the order were the other one (v1.12.0, amd64 and arm64).
func TestComparisonsOfMasks(t *testing.T) {
	for _, wide := range []bool{false, true} {
		kind, constant := byte(typeI32), byte(0x41)
		if wide {
			kind, constant = typeI64, 0x42
		}
		var bodies [][]byte
		var want, run []byte
		for _, numbers := range [][2]int64{{3, 6}, {1, 6}, {-5, -9}} {
			for _, c := range maskComparisons(wide) {
				at := resultsAt + len(want)
				code := join([]byte{constant}, signed(int(numbers[0])), []byte{0x21, 0, constant}, signed(int(numbers[1])), []byte{0x21, 1, 0x10, 0},
					c.first, c.then, []byte{c.code, 0x04, 0x40, 0x41}, signed(at), []byte{0x41, 1, 0x3a, 0, 0, 0x05, 0x41}, signed(at), []byte{0x41, 2, 0x3a, 0, 0, 0x0b})
				bodies = append(bodies, function([]byte{1, 4, kind}, code))
				run = join(run, []byte{0x10}, leb(len(bodies)))
				if c.holds(numbers[0], numbers[1]) {
					want = append(want, 1)
				} else {
					want = append(want, 2)
				}
			}
		}
		bodies = append(bodies, function(nil, run, []byte{0x10, 0}))
		here, plainly := computed(t, miscompiledModule(nil, make([]byte, len(bodies)), bodies...))
		assert.Equal(t, want, here[:len(want)])
		assert.NotEqual(t, want, plainly[:len(want)], "control")
	}
}

// TestComparisonsOfGlobals: a comparison with a global before anything else in a function is made before the global
// changes. Plain wazero (v1.12.0, amd64) makes it at the branch. Here, the function first pays for itself, by which the
// compiler sees that the global may change.
func TestComparisonsOfGlobals(t *testing.T) {
	compares := function([]byte{1, 1, typeI32}, []byte{0x20, 0, 0x23, 0, 0x48, 0x21, 1}, []byte{0x41, 0, 0x24, 0}, []byte{0x20, 1, 0x0d, 0},
		[]byte{0x41, 0, 0x41, 1, 0x36, 2}, leb(resultsAt))
	source := join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0}, section(1, join([]byte{2}, typeOf(nil, nil), typeOf([]byte{typeI32}, nil))...),
		section(2, join([]byte{1}, name("test"), name("host"), []byte{0, 0})...), section(3, 2, 1, 0), section(5, 1, 0, 1),
		section(6, 1, typeI32, 1, 0x41, 10, 0x0b), section(7, join([]byte{2}, name("run"), []byte{0, 2}, name("memory"), []byte{2, 0})...),
		section(10, join([]byte{2}, compares, function(nil, []byte{0x41, 5, 0x10, 1, 0x10, 0}))...))
	here, plainly := computed(t, source)
	assert.Zero(t, here[0])
	if goruntime.GOARCH == "amd64" {
		assert.Equal(t, byte(1), plainly[0], "control")
	}
}

// TestProcessorsWithoutCounts: processors for which wazero (v1.12.0) compiles clz and ctz wrongly are refused.
func TestProcessorsWithoutCounts(t *testing.T) {
	require.NoError(t, checkProcessor("amd64", true, true, true))
	require.NoError(t, checkProcessor("arm64", false, false, false))
	for _, has := range [][3]bool{{false, true, true}, {true, false, true}, {true, true, false}} {
		assert.ErrorIs(t, checkProcessor("amd64", has[0], has[1], has[2]), errProcessor)
	}
}

// TestAttackWideResults: a guest gets 32 bits where a host function returns a number of 32 bits, whatever the upper
// half holds. Plain wazero (v1.12.0, amd64) may use all 64 as part of an address that was checked without the upper
// half; that ends the process, so there is no control but the numbers.
func TestAttackWideResults(t *testing.T) {
	stack := []uint64{math.MaxUint64, math.MaxUint64}
	narrow(stack, []hostfuncs.ValueType{hostfuncs.I64, hostfuncs.I32})
	require.Equal(t, []uint64{math.MaxUint64, math.MaxUint32}, stack)

	const secondLoad, at = 2 << 10, resultsAt + 8
	body := function([]byte{1, 1, typeI32}, []byte{0x10, 1, 0x22, 0, 0x28, 2, 0, 0x1a}, // loads from where the result says
		[]byte{0x23, 0, 0x04, 0x40, 0x41, 5, 0x24, 0, 0x05, 0x41, 6, 0x24, 0, 0x0b}, // and again after a join
		[]byte{0x41}, signed(at), []byte{0x20, 0, 0x28, 2, 0, 0x36, 2, 0, 0x10, 0})
	source := join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0}, section(1, join([]byte{2}, typeOf(nil, nil), typeOf(nil, []byte{typeI32}))...),
		section(2, join([]byte{2}, name("test"), name("host"), []byte{0, 0}, name("wide"), name("host"), []byte{0, 1})...), section(3, 1, 0),
		section(5, 1, 0, 1), section(6, 1, typeI32, 1, 0x41, 0, 0x0b), section(7, join([]byte{2}, name("run"), []byte{0, 2}, name("memory"), []byte{2, 0})...),
		section(10, join([]byte{1}, body)...), section(11, join([]byte{1, 0, 0x41}, signed(secondLoad), []byte{0x0b, 4, 1, 2, 3, 4})...))
	var loaded []byte
	wide := hostfuncs.Function{Module: "wide", Name: "host", Results: []hostfuncs.ValueType{hostfuncs.I32},
		Call: func(_ context.Context, _ hostfuncs.Memory, stack []uint64) error {
			stack[0] = 0x10<<32 | secondLoad
			return nil
		}}
	e := newEngine(t, Options{Functions: []hostfuncs.Function{wide}}, func(_ context.Context, memory hostfuncs.Memory, _ []uint64) error {
		view, _ := memory.View(at, 4)
		loaded = bytes.Clone(view)
		return nil
	})
	mustRun(t, compileSource(t, e, source), plain)
	assert.Equal(t, []byte{1, 2, 3, 4}, loaded)
}
