package benchmark

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

const (
	thousandTools   = 1000
	thousandCallers = 64
	// warmCalls is the minimum number of calls of each tool before the measurement.
	warmCalls = 4
	// turnTime is the duration of a turn.
	turnTime = 500 * time.Millisecond
	// Limits on the runtime's caches, above what all tools take.
	thousandInstances, thousandModules = 256 << 20, 1 << 30
)

// BenchmarkThousandTools calls a thousand tools at random, taking turns with as many callers of a
// single tool. An operation is one turn of each. It checks every answer, and that the process grows
// by less than the runtime's limits.
//
// With code=own, each tool has a module that is compiled separately. With code=shared, the modules
// differ only in a custom section, so the remaining overhead is instances and bookkeeping.
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
		require.NoError(b, c.turn(b.Context(), turnTime)) // creates the instances
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

// annotated returns a different module with the same code: it ends with a custom section made from
// number.
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
		written, err := newCaissonTool(filepath.Join(dir, strconv.Itoa(number)), manifestOf(guests.C, modules.ABIWASI), module, runtime.Compiler{})
		require.NoError(b, err)
		loaded, err := written.load(b.Context(), rt)
		require.NoError(b, err)
		tools = append(tools, &caissonSession{runtime: rt, tool: loaded})
	}
	return tools
}

// errNotWarm means that calls of a tool never resumed a snapshot.
var errNotWarm = errors.New("benchmark: calls do not resume the program")

// warm calls each tool until its calls resume a snapshot.
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

// fuel returns the fuel that a call used. A call that resumes a snapshot uses less than one that
// starts the program.
func fuel(ctx context.Context, s *caissonSession, in input) (int64, error) {
	outcome, err := s.tool.Invoke(ctx, tool.Invocation{CallID: "benchmark", Tool: s.tool.Manifest().Name, Arguments: in.arguments})
	if err != nil {
		return 0, err
	}
	return *outcome.Usage.Fuel, in.expected.Check([]byte(outcome.Result.Output))
}

// crowd is callers that call the same tools at random.
type crowd struct {
	in       input
	callers  int
	tools    []*caissonSession
	turns    uint64
	took     []time.Duration // each call
	duration time.Duration   // of all turns
}

// turn runs all callers concurrently.
func (c *crowd) turn(ctx context.Context, duration time.Duration) error {
	callers := make([]*measured, c.callers)
	for n := range callers {
		random := rand.New(rand.NewPCG(c.turns, uint64(n)))
		callers[n] = &measured{caller: anyTool(c.tools, random), check: checker{expected: c.in.expected}}
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

// anyTool returns a caller, for one goroutine, that calls tools at random.
func anyTool(tools []*caissonSession, random *rand.Rand) caller {
	return callFunc(func(ctx context.Context, in input) ([]byte, error) {
		output, err := tools[random.IntN(len(tools))].invoke(ctx, in.arguments)
		return []byte(output), err
	})
}

// resident returns the resident size of this process in bytes, without garbage.
func resident() (int64, error) {
	goruntime.GC() // runs finalizers and cleanups, which create more garbage
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, fmt.Errorf("benchmark: memory: %w", err)
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, fmt.Errorf("benchmark: memory: /proc/self/statm says %q", text)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("benchmark: memory: %w", err)
	}
	return pages * int64(os.Getpagesize()), nil
}

var errNoExports = errors.New("benchmark: the module has no export section")

const (
	preambleBytes = 8 // magic number and version
	exportSection = 7
	exportMemory  = 2
)

// variant returns a module that does the same but is compiled separately: it exports its memory once
// more, under a name made from number. A custom section would not do, because runtimes may drop it
// and then consider two modules equal.
func variant(module []byte, number int) ([]byte, error) {
	for at := preambleBytes; at < len(module); {
		size, width := binary.Uvarint(module[at+1:])
		start := at + 1 + width
		if width <= 0 || size > uint64(len(module)-start) {
			return nil, errNoExports
		}
		end := start + int(size)
		if module[at] != exportSection {
			at = end
			continue
		}
		count, width := binary.Uvarint(module[start:end])
		if width <= 0 {
			return nil, errNoExports
		}
		section := binary.AppendUvarint(nil, count+1)
		section = append(section, module[start+width:end]...)
		name := "variant" + strconv.Itoa(number)
		section = append(binary.AppendUvarint(section, uint64(len(name))), name...)
		section = append(section, exportMemory, 0)
		head := binary.AppendUvarint(slices.Clone(module[:at+1]), uint64(len(section)))
		return slices.Concat(head, section, module[end:]), nil
	}
	return nil, errNoExports
}

func TestVariant(t *testing.T) {
	for _, language := range []guests.Language{guests.C, guests.Rust} {
		module, err := guests.Command(t.Context(), language, "")
		require.NoError(t, err)
		plugin, err := guests.Plugin(t.Context(), language, "")
		require.NoError(t, err)
		for _, source := range [][]byte{module, plugin} {
			seen := map[string]bool{string(source): true}
			for _, number := range []int{0, 1, 9, 10, 999, 1_000_000} {
				other, err := variant(source, number)
				require.NoError(t, err)
				require.False(t, seen[string(other)])
				seen[string(other)] = true
				runtime := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter())
				compiled, err := runtime.CompileModule(t.Context(), other)
				require.NoError(t, err)
				require.Len(t, compiled.ExportedMemories(), 2)
				require.NoError(t, runtime.Close(t.Context()))
			}
		}
	}
}

func TestVariantRefuses(t *testing.T) {
	preamble := "\x00asm\x01\x00\x00\x00"
	for _, module := range []string{"", preamble, preamble + "\x01", preamble + "\x07\x80", preamble + "\x07\x05\x00", preamble + "\x07\x00", preamble + "\x01\x01\x00"} {
		_, err := variant([]byte(module), 0)
		require.ErrorIs(t, err, errNoExports, "%q", module)
	}
}
