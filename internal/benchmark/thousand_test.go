package benchmark

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

const (
	thousandTools   = 1000
	thousandCallers = 64
	// warmCalls is how often each tool is called before anything is measured, at least.
	warmCalls = 4
	// turnTime is how long callers call before those take their turn whom they are compared with.
	turnTime = 500 * time.Millisecond
	// Bounds on what the runtime keeps, which are more than all tools take.
	thousandInstances, thousandModules = 256 << 20, 1 << 30
)

// BenchmarkThousandTools calls a thousand tools at random, and in turns with that one tool
// from as many callers. An operation is one turn of each. It checks every answer, and that the
// process grows by less than the runtime's bounds.
//
// Tools with code of their own have a module each of which all is compiled anew. Those that
// share code differ in what no code comes of: what is left of the difference to one tool is
// instances and bookkeeping.
func BenchmarkThousandTools(b *testing.B) {
	in, err := newInput(100)
	require.NoError(b, err)
	for _, code := range []struct {
		name string
		make func(module []byte, number int) ([]byte, error)
	}{{"own", variant}, {"shared", annotated}} {
		b.Run("code="+code.name, func(b *testing.B) {
			before, err := resident()
			require.NoError(b, err)
			tools := loadThousand(b, code.make)
			require.NoError(b, warm(b.Context(), tools, in))
			for _, callers := range []int{1, thousandCallers} {
				b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
					rotate(b, tools, in, callers)
					after, err := resident()
					require.NoError(b, err)
					b.ReportMetric(float64(after-before)/(1<<20), "grown-MiB")
					require.Less(b, after-before, int64(thousandInstances+thousandModules))
				})
			}
		})
	}
}

// rotate measures calls of one tool and of all in turns.
func rotate(b *testing.B, tools []*caissonSession, in input, callers int) {
	one := &crowd{in: in, callers: callers, tools: tools[:1]}
	all := &crowd{in: in, callers: callers, tools: tools}
	for _, c := range []*crowd{one, all} {
		require.NoError(b, c.turn(b.Context(), turnTime)) // instances for those who come at the same time
		c.took, c.duration = nil, 0
	}
	for b.Loop() {
		require.NoError(b, one.turn(b.Context(), turnTime))
		require.NoError(b, all.turn(b.Context(), turnTime))
	}
	b.ReportMetric(0, "ns/op")
	alone, among := one.report(b, "one"), all.report(b, "all")
	b.ReportMetric(among.P50/alone.P50, "p50-ratio")
	b.ReportMetric(alone.CallsPerSecond/among.CallsPerSecond, "calls-ratio")
}

// annotated returns a module that is another one to whoever reads it and has the same code: it
// ends with a custom section made of number.
func annotated(module []byte, number int) ([]byte, error) {
	name := "variant" + strconv.Itoa(number)
	section := append(binary.AppendUvarint(nil, uint64(len(name))), name...)
	head := binary.AppendUvarint([]byte{0}, uint64(len(section)))
	return slices.Concat(module, head, section), nil
}

// loadThousand loads tools that have a module each.
func loadThousand(b *testing.B, variantOf func([]byte, int) ([]byte, error)) []*caissonSession {
	source, err := guests.Command(b.Context(), guests.C, "")
	require.NoError(b, err)
	dir := b.TempDir()
	rt, err := runtime.New(b.Context(), runtime.Options{
		Running: 1 << 10, CacheDir: filepath.Join(dir, "cache"), Memory: runtime.Memory{Instances: thousandInstances, Modules: thousandModules},
	})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, rt.Close(context.WithoutCancel(b.Context()))) })
	var tools []*caissonSession
	for number := range thousandTools {
		module, err := variantOf(source, number)
		require.NoError(b, err)
		written, err := newCaissonTool(filepath.Join(dir, strconv.Itoa(number)), manifestOf(guests.C), module, runtime.Compiler{})
		require.NoError(b, err)
		loaded, err := written.load(b.Context(), rt)
		require.NoError(b, err)
		tools = append(tools, &caissonSession{runtime: rt, tool: loaded})
	}
	return tools
}

// errNotWarm means that a tool's program has not started after very many calls.
var errNotWarm = errors.New("benchmark: calls do not resume the program")

// warm calls each tool until its calls resume a program that was started before them.
func warm(ctx context.Context, tools []*caissonSession, in input) error {
	deadline := time.Now().Add(time.Minute)
	for number, s := range tools {
		anew, err := fuel(ctx, s, in)
		for calls := 1; err == nil; calls++ {
			var used int64
			if used, err = fuel(ctx, s, in); used < anew && calls >= warmCalls {
				break
			}
			if err == nil && time.Now().After(deadline) {
				err = errNotWarm
			}
		}
		if err != nil {
			return fmt.Errorf("tool %d: %w", number, err)
		}
	}
	return nil
}

// fuel returns how much work a call took. A call that resumes a program takes less than one
// that starts it.
func fuel(ctx context.Context, s *caissonSession, in input) (int64, error) {
	outcome, err := s.tool.Invoke(ctx, tool.Invocation{CallID: "benchmark", Tool: s.tool.Manifest().Name, Arguments: in.arguments})
	if err != nil {
		return 0, err
	}
	return *outcome.Usage.Fuel, in.expected.Check([]byte(outcome.Result.Output))
}

// crowd is callers that all call the same tools, at random.
type crowd struct {
	in       input
	callers  int
	tools    []*caissonSession
	turns    uint64
	took     []time.Duration // each call
	duration time.Duration   // in which the calls were made
}

// turn lets all callers call at the same time.
func (c *crowd) turn(ctx context.Context, duration time.Duration) error {
	callers := make([]*measured, c.callers)
	for n := range callers {
		random := rand.New(rand.NewPCG(c.turns, uint64(n)))
		callers[n] = &measured{caller: &anyTool{tools: c.tools, random: random}, check: checker{expected: c.in.expected}}
	}
	c.turns++
	start := time.Now()
	err := together(callers, func(m *measured) error { return m.callUntil(ctx, c.in, start.Add(duration)) })
	c.duration += time.Since(start)
	for _, m := range callers {
		c.took = append(c.took, m.took...)
	}
	return err
}

// report returns what the calls took, and reports it under a name.
func (c *crowd) report(b *testing.B, name string) Row {
	slices.Sort(c.took)
	row := Row{
		P50: microseconds(percentile(c.took, 50)), P99: microseconds(percentile(c.took, 99)),
		CallsPerSecond: float64(len(c.took)) / c.duration.Seconds(),
	}
	b.ReportMetric(row.P50, name+"-p50-µs")
	b.ReportMetric(row.P99, name+"-p99-µs")
	b.ReportMetric(row.CallsPerSecond, name+"-calls/s")
	return row
}

// anyTool calls a tool at random. It serves one goroutine.
type anyTool struct {
	stateless
	tools  []*caissonSession
	random *rand.Rand
}

func (a *anyTool) call(ctx context.Context, in input) ([]byte, error) {
	output, err := a.tools[a.random.IntN(len(a.tools))].invoke(ctx, in.arguments)
	return []byte(output), err
}
