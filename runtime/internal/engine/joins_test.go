//go:build unix

package engine

import (
	goruntime "runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// localsAround is a function with the given body, whose locals all have a value before and after it.
func localsAround(n int, body ...[]byte) []byte {
	return shape{functions: []shapedFunction{{more: n, body: join(
		each(n, func(i int) []byte { return join(number(4*i), loadNumber, set(i)) }), join(body...), used(n))}}}.bytes()
}

// used reads locals.
func used(n int) []byte { return each(n, func(i int) []byte { return join(get(i), drop) }) }

// loopOfLocals is a loop that reads locals, with branches back.
func loopOfLocals(n, branches int) []byte {
	return localsAround(n, []byte{0x03, 0x40}, used(n), repeat(branches, get(0), []byte{0x0d, 0}), end)
}

// rotation is a loop in which each local takes the value of the next, so that one after the other turns out to be
// redundant.
func rotation(n int) []byte {
	return localsAround(n, each(n-1, func(i int) []byte { return join(get(0), set(i+1)) }), []byte{0x03, 0x40},
		each(n-1, func(i int) []byte { return join(get(i+1), set(i)) }), get(0), []byte{0x0d, 0}, end)
}

// nestedLoops are loops inside one another, around the uses of locals.
func nestedLoops(n, depth int) []byte {
	return localsAround(n, repeat(depth, []byte{0x03, 0x40}), used(n), repeat(depth, get(0), []byte{0x0d, 0, 0x0b}))
}

// assignedBehind is a block that assigns locals after branches to its end.
func assignedBehind(n, branches int) []byte {
	return localsAround(n, []byte{0x02, 0x40}, repeat(branches, get(0), []byte{0x0d, 0}), each(n, func(i int) []byte { return join(number(i), loadNumber, set(i)) }), end)
}

// manyAddresses loads from many addresses, followed by many ifs.
func manyAddresses(n, ifs int) []byte {
	return shape{functions: []shapedFunction{{more: 1, body: join(
		each(n, func(i int) []byte { return join(get(0), number(i), add, loadNumber, drop) }), repeat(ifs, get(0), []byte{0x04, 0x40, 0x05, 0x0b}))}}}.bytes()
}

// operandsAround keeps operands on the stack across ifs.
func operandsAround(n, ifs int) []byte {
	return shape{functions: []shapedFunction{{more: 1, body: join(number(0), repeat(n, get(0), loadNumber),
		repeat(ifs, get(0), []byte{0x04, 0x40, 0x05, 0x0b}), repeat(n-1, add), storeNumber)}}}.bytes()
}

// TestAttackSlowJoins: shapes of modules for which the compiler takes up to hours per 100 KB, or gigabytes, are refused
// in this process. The controls are less in the same shape, and the same where modules are trusted. How long it would
// take, TestCompilingJoinsGrowsFaster shows.
func TestAttackSlowJoins(t *testing.T) {
	for _, c := range []struct {
		name, want      string
		attack, control []byte
	}{
		{"a loop of locals", "the squares of the values that come to where a function's paths join", loopOfLocals(6_000, 25), loopOfLocals(500, 25)},
		{"branches back", "the squares of the values that come to where a function's paths join", loopOfLocals(1_000, 1_000), loopOfLocals(1_000, 20)},
		{"nested loops", "the squares of the values that come to where a function's paths join", nestedLoops(300, 100), nestedLoops(100, 10)},
		{"redundant values one after another", "the squares of the values that come to where a function's paths join", rotation(3_000), rotation(200)},
		{"a table of branches", "the squares of the values that come to where a function's paths join",
			localsAround(1_000, []byte{0x03, 0x40}, used(1_000), get(0), []byte{0x0e}, leb(1_000), make([]byte, 1_001), end),
			localsAround(300, []byte{0x03, 0x40}, used(300), get(0), []byte{0x0e}, leb(300), make([]byte, 301), end)},
		{"ifs in a row", "the squares of the values that come to where a function's paths join",
			localsAround(2_500, repeat(350, get(0), []byte{0x04, 0x40, 0x05, 0x0b})), localsAround(300, repeat(300, get(0), []byte{0x04, 0x40, 0x05, 0x0b}))},
		{"values for many branches", "a function moves more than", assignedBehind(150, 2_500), assignedBehind(150, 300)},
		{"operands", "pairs of a block and a local or an operand", operandsAround(9_000, 1_200), operandsAround(500, 100)},
		{"addresses", "pairs of a block and an address", manyAddresses(10_000, 450), manyAddresses(1_000, 80)},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, source := range [][]byte{c.attack, c.control} {
				description, err := wasm.Inspect(source)
				require.NoError(t, err)
				_, err = wasm.ValidateWithin(t.Context(), source, description, unbounded(), wasm.Features{})
				require.NoError(t, err, "where the module is trusted")
			}
			e := newEngine(t, Options{}, nil)
			_, err := e.Compile(t.Context(), c.attack)
			require.ErrorIs(t, err, wasm.ErrLimit)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "where a child process compiles it")
			_, err = e.Compile(t.Context(), c.control)
			require.NoError(t, err)
		})
	}
}

// TestCompilingJoinsGrowsFaster shows that those bounds are needed: the cost of a module grows faster than its size.
func TestCompilingJoinsGrowsFaster(t *testing.T) {
	const factor = 4
	cost := func(source []byte) (time.Duration, uint64) {
		least := time.Hour
		var allocated uint64
		for range 2 {
			e := newEngine(t, Options{Trusted: []Digest{DigestOf(source)}}, nil)
			var before, after goruntime.MemStats
			goruntime.ReadMemStats(&before)
			began := processorTime(t)
			_, err := e.Compile(t.Context(), source)
			require.NoError(t, err)
			least = min(least, processorTime(t)-began)
			goruntime.ReadMemStats(&after)
			allocated = after.TotalAlloc - before.TotalAlloc
		}
		return least, allocated
	}
	few, _ := cost(loopOfLocals(500, 25))
	many, _ := cost(loopOfLocals(500*factor, 25))
	t.Logf("locals: %s, with %d times as many %s", few, factor, many)
	assert.Greater(t, many, factor*3/2*few)

	_, less := cost(manyAddresses(1_000, 100))
	_, more := cost(manyAddresses(1_000*factor, 100*factor))
	t.Logf("addresses: %d KiB, with %d times as many %d KiB", less>>10, factor, more>>10)
	assert.Greater(t, more, factor*3/2*less)
}

// processorTime returns the CPU time that this process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
