package engine

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// This file measures the time of units of fuel. The verifier bounds the units between two tests of the meter, so the
// time between two tests is bounded if no unit takes long.

var unitCases = flag.String("units", "", "a regular expression of the names of the cases that BenchmarkUnits measures")

// unitCost is the time of a case's units.
type unitCost struct {
	name        string
	units       int64
	took        time.Duration
	nanoseconds float64 // per unit
}

// unitMeasurer runs cases.
type unitMeasurer struct {
	engine *Engine
	enough time.Duration // of one run
	runs   int           // of which the shortest counts
}

func newUnitMeasurer(t testing.TB, enough time.Duration, runs int) unitMeasurer {
	return unitMeasurer{newEngine(t, Options{}, func(context.Context, hostfuncs.Memory, []uint64) error { return nil }), enough, runs}
}

// measure runs a case. It returns an error if the guest traps.
func (u unitMeasurer) measure(t testing.TB, c unitCase) (unitCost, error) {
	t.Helper()
	module, err := u.compile(t, c.source)
	if err != nil {
		return unitCost{}, err
	}
	i, err := module.instantiate(t.Context(), 256*mebibyte)
	require.NoError(t, err, c.name)
	defer i.close(context.WithoutCancel(t.Context()))
	if c.fill != nil {
		c.fill(i.memory.contents())
	}
	cost := unitCost{name: c.name}
	limit := int64(1 << 14)
	for run := 0; run < u.runs; {
		units, took, err := spend(t, i, limit)
		if err != nil {
			return unitCost{}, err
		}
		if took < u.enough && limit < 1<<40 {
			limit *= 2
			continue
		}
		if per := float64(took) / float64(units); run == 0 || per < cost.nanoseconds {
			cost.units, cost.took, cost.nanoseconds = units, took, per
		}
		run++
	}
	return cost, nil
}

// compile compiles a module in this process, within the bounds for a child process.
func (u unitMeasurer) compile(t testing.TB, source []byte) (*Module, error) {
	t.Helper()
	description, err := wasm.Inspect(source)
	if err != nil {
		return nil, err
	}
	rewritten, err := rewriteWithin(t.Context(), source, description, wasm.Bounds{}, role{}, nil)
	if err != nil {
		return nil, err
	}
	code, err := u.engine.runtime.CompileModule(t.Context(), rewritten.source)
	require.NoError(t, err)
	module := &Module{engine: u.engine, imaging: make(chan struct{}, 1), digest: DigestOf(source), description: description, rewritten: rewritten, data: rewritten.data, compiled: code}
	u.engine.modules[module.digest] = &Compilation{module: module} // for Close
	module.residence.module = module
	u.engine.settle(&module.residence)
	return module, nil
}

var errReturned = errors.New("the guest returned")

// spend runs a guest until it has used so many units, and returns the processor time that it took.
func spend(t testing.TB, i *instance, limit int64) (units int64, took time.Duration, err error) {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	i.fuel = meter{limit: limit}
	i.meter.Set(uint64(i.fuel.first()))
	ctx := i.context(t.Context())
	before, known := ThreadTime(currentThread())
	began := time.Now()
	err = i.call(ctx, "run", nil)
	took = time.Since(began)
	if after, still := ThreadTime(currentThread()); known && still {
		took = after - before
	}
	units = i.fuel.used(int64(i.meter.Get()))
	switch {
	case err == nil:
		return units, took, errReturned
	case !errors.Is(err, ErrFuel):
		return 0, 0, err
	}
	return units, took, nil
}

// TestAttackUnitsThatMove: code that executes few instructions, for which the compiler moves many values, is charged
// for them. The control is the time of a unit if only instructions were charged.
func TestAttackUnitsThatMove(t *testing.T) {
	const tolerated = 2_500 // times as long as a unit of additions; a microsecond is longer
	u := newUnitMeasurer(t, time.Millisecond, 5)
	measure := func(t *testing.T, c unitCase) float64 {
		cost, err := u.measure(t, c)
		require.NoError(t, err, c.name)
		return cost.nanoseconds
	}
	limit := tolerated * measure(t, additions())
	const locals = 8_000 // those of 20,000 take 10 s to compile
	type attack struct {
		unitCase
		charged, executed int // of one iteration: units, and instructions
	}
	for _, attack := range testsize.QuickSample([]attack{
		{assigned(locals), 4 + locals/128, 4},
		{nestedBlocks(0x02, 200, 127), 4 + 200*127/128, 4},
		{nestedBlocks(0x03, 100, 127), 4 + 100*(127+16)/128, 4},
		{loopsInARow(1000), 1 + 1000*16/128, 1},
		{joins(1000), 6 + 1000*32/128, 6},
		{unitCase: called(1000, false)},
		{unitCase: afterCall(2000, callTo(2), "call")},
	}, 2) {
		t.Run(attack.name, func(t *testing.T) {
			per := measure(t, attack.unitCase)
			t.Logf("%.2f ns per unit, at most %.2f", per, limit)
			assert.Less(t, per, limit)
			if attack.executed > 0 {
				assert.Greater(t, per*float64(attack.charged)/float64(attack.executed), limit, "control")
			}
		})
	}
}

// mostPerUnit is the maximum time of a unit, in nanoseconds, besides the first access to a page of memory.
const mostPerUnit = 1000

// BenchmarkUnits measures all instructions and shapes, and writes the times of their units.
//
//	go test -bench BenchmarkUnits -benchtime 1x -run '^$' -timeout 1h ./runtime/internal/engine
func BenchmarkUnits(b *testing.B) {
	u, wanted := newUnitMeasurer(b, 2*time.Millisecond, 5), regexp.MustCompile(*unitCases)
	for b.Loop() {
		var costs []unitCost
		accepted, trapped := map[string]bool{}, map[string]error{}
		for _, c := range corpus(b) {
			if !wanted.MatchString(c.name) {
				continue
			}
			instruction, _, _ := strings.Cut(c.name, ",")
			cost, err := u.measure(b, c)
			if errors.Is(err, wasm.ErrLimit) {
				fmt.Printf("%s: refused: %s\n", c.name, err)
				continue
			}
			if err != nil {
				trapped[instruction] = fmt.Errorf("%s: %w", c.name, err)
				continue
			}
			accepted[instruction] = true
			costs = append(costs, cost)
		}
		slices.SortFunc(costs, func(x, y unitCost) int { return cmp.Compare(y.nanoseconds, x.nanoseconds) })
		for _, cost := range costs {
			fmt.Printf("%10.2f ns  %s\n", cost.nanoseconds, cost.name)
		}
		for instruction, err := range trapped {
			require.True(b, accepted[instruction], "%s", err)
		}
		assert.Less(b, costs[0].nanoseconds, float64(mostPerUnit), costs[0].name)
		b.ReportMetric(costs[0].nanoseconds, "worst-ns/unit")
		b.ReportMetric(float64(len(costs)), "cases")
	}
}

// BenchmarkFirstTouch measures the time of the first touch of a page of memory, when the kernel provides the page. That
// costs no fuel. The memory limit bounds the number of first touches.
//
//	go test -bench FirstTouch -run '^$' ./runtime/internal/engine
func BenchmarkFirstTouch(b *testing.B) {
	const bytes = 64 * mebibyte
	u := newUnitMeasurer(b, 0, 1)
	for name, touch := range map[string]func(offset int) []byte{
		"write": func(offset int) []byte { return join(get(0), get(0), []byte{0x36, 0}, leb(offset)) },
		"read, then write": func(offset int) []byte {
			return join(get(0), get(0), []byte{0x28, 0}, leb(offset), []byte{0x36, 0}, leb(offset+8))
		},
		"write across pages": func(offset int) []byte { return join(get(0), get(0), []byte{0x36, 0}, leb(max(0, offset-2))) },
	} {
		b.Run(name, func(b *testing.B) {
			code := join(each(16, func(n int) []byte { return touch(n * os.Getpagesize()) }), get(0), number(16*os.Getpagesize()), add, []byte{0x22, 0}, number(bytes), []byte{0x49, 0x0d, 0})
			module, err := u.compile(b, shape{pages: bytes>>16 + 1, functions: []shapedFunction{{more: 1, body: join([]byte{0x03, 0x40}, code, end)}}}.bytes())
			require.NoError(b, err)
			least := time.Hour
			for b.Loop() {
				i, err := module.instantiate(b.Context(), 256*mebibyte)
				require.NoError(b, err)
				_, took, err := spend(b, i, 1<<40)
				require.ErrorIs(b, err, errReturned)
				least = min(least, took)
				i.close(b.Context())
			}
			b.ReportMetric(float64(least)/float64(bytes/os.Getpagesize()), "ns/page")
			b.ReportMetric(0, "ns/op")
		})
	}
}
