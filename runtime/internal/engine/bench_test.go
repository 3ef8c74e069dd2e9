package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// benchmarkedLimit is the memory limit of the benchmarks' instances.
const benchmarkedLimit = 64 * mebibyte

// BenchmarkInstantiate makes and closes an instance, as a run does where the pool is empty.
func BenchmarkInstantiate(b *testing.B) {
	for _, language := range []guests.Language{guests.C, guests.Go} {
		source := command(b, language)
		module := compileSource(b, newEngine(b, Options{Functions: wasi.Functions()}, nil), source)
		b.Run(string(language), func(b *testing.B) {
			for b.Loop() {
				i, err := module.instantiate(b.Context(), benchmarkedLimit)
				require.NoError(b, err)
				i.close(b.Context())
			}
		})
	}
}

// BenchmarkFirstRun measures the first run of a module that another process compiled before, including reading it from
// the cache and making the module's image.
func BenchmarkFirstRun(b *testing.B) {
	for _, language := range []guests.Language{guests.C, guests.Go} {
		source := command(b, language)
		options := Options{Functions: wasi.Functions(), CacheDir: filepath.Join(b.TempDir(), "cache")}
		input := guests.NewCall(100).Input
		b.Run(string(language), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				e, err := New(b.Context(), options)
				require.NoError(b, err)
				b.StartTimer()
				module := compileSource(b, e, source)
				system := &wasi.System{Args: []string{"tool"}, Stdin: input, Stdout: &wasi.Output{Limit: mebibyte}, Stderr: &wasi.Output{Limit: mebibyte},
					Random: bytes.NewReader(make([]byte, 1<<16)), Now: time.Now}
				_, err = module.Run(wasi.With(b.Context(), system), Run{Function: "_start", MemoryLimit: benchmarkedLimit})
				if exit := (*wasi.ExitError)(nil); errors.As(err, &exit) && exit.Code == 0 {
					err = nil
				}
				require.NoError(b, err)
				b.StopTimer()
				require.NoError(b, e.Close(context.WithoutCancel(b.Context())))
				b.StartTimer()
			}
		})
	}
}

// BenchmarkReactor measures making one more instance of a reactor: one that is started, and a copy of the image.
func BenchmarkReactor(b *testing.B) {
	p := goReactor(b)
	for name, another := range map[string]func() (*instance, error){"started": func() (*instance, error) { i, _, err := p.begin(b.Context(), p.start.Fuel, nil); return i, err }, "copied": func() (*instance, error) { return p.copy(b.Context()) }} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				i, err := another()
				require.NoError(b, err)
				i.close(b.Context())
			}
		})
	}
}

// BenchmarkWarmStart measures a new engine that finds a module in its cache: a large Go program, compiled here, and the
// file that CAISSON_BENCH_MODULE names, if any.
func BenchmarkWarmStart(b *testing.B) {
	modules := map[string]string{"go": goModule(b)}
	if file, ok := os.LookupEnv("CAISSON_BENCH_MODULE"); ok {
		modules[filepath.Base(file)] = file
	}
	for name, file := range modules {
		source := read(b, file)
		b.Run(name, func(b *testing.B) {
			options := Options{CacheDir: filepath.Join(b.TempDir(), "cache"), Compiler: child(b)}
			start := func() {
				e, err := New(b.Context(), options)
				require.NoError(b, err)
				_, err = e.Compile(b.Context(), source)
				require.NoError(b, err)
				require.NoError(b, e.Close(b.Context()))
			}
			start()
			for b.Loop() {
				start()
			}
		})
	}
}

// goModule compiles the tool of the files for WASI.
func goModule(b *testing.B) string {
	b.Helper()
	file := filepath.Join(b.TempDir(), "files.wasm")
	build := exec.CommandContext(b.Context(), "go", "build", "-o", file, "github.com/caisson-run/caisson/wasm-tools/files")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	said, err := build.CombinedOutput()
	require.NoError(b, err, strings.TrimSpace(string(said)))
	return file
}

// BenchmarkProgram shows the cost of metering for ordinary programs, which execute much code a few times each: one call
// of the tool of 100 bytes in C, Rust and Go, resumed where the tool reads, with the meter and without. It reports
// medians, in microseconds, and how many times as long as without the meter a call takes.
//
//	go test -bench Program -benchtime 5000x ./runtime/internal/engine
func BenchmarkProgram(b *testing.B) {
	for _, language := range []guests.Language{guests.C, guests.Rust, guests.Go, guests.GoWarm} {
		source := command(b, language)
		with, without := resumable(b, source, true), resumable(b, source, false)
		b.Run(string(language), func(b *testing.B) {
			var times [2][]time.Duration
			for b.Loop() {
				for n, p := range []*Program{with, without} { // taking turns: noise meets both
					times[n] = append(times[n], resumeTool(b, p))
				}
			}
			metered, plain := median(times[0]), median(times[1])
			b.ReportMetric(metered, "metered-µs")
			b.ReportMetric(plain, "plain-µs")
			b.ReportMetric(metered/plain, "metered/plain")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// resumable starts a tool in a new engine.
func resumable(b *testing.B, source []byte, metered bool) *Program {
	e := newEngine(b, Options{Functions: wasi.Functions()}, nil)
	description := inspect(b, source)
	if !metered {
		source = withIdleMeter(source, description)
		description = inspect(b, source)
	}
	analysis, err := wasm.Validate(source, description)
	require.NoError(b, err)
	passes, err := wasm.Rewrite(b.Context(), source, analysis, wasm.Passes{Meter: metered, Depth: true, Globals: true, Fork: true})
	require.NoError(b, err)
	require.True(b, passes.Forks)
	r := rewritten{source: passes.Source, facts: facts{Meter: passes.MeterGlobal, Depth: passes.DepthGlobal, Shift: passes.FunctionShift, Forks: true, DataKept: true}}
	if !metered {
		r.Meter = idleMeter
	}
	for _, global := range passes.Globals {
		r.Globals = append(r.Globals, global.Name)
	}
	code, err := e.runtime.CompileModule(b.Context(), r.source)
	require.NoError(b, err)
	module := &Module{engine: e, imaging: make(chan struct{}, 1), digest: DigestOf(source), description: description, rewritten: r, compiled: code}
	e.modules[module.digest] = &Compilation{module: module} // for Close
	e.settle(&module.residence)
	program, err := module.Start(b.Context(), Start{MemoryLimit: 256 * mebibyte, Timeout: time.Minute, Fuel: 1 << 40,
		Context: func(ctx context.Context) context.Context {
			system := worldOfTool()
			system.Starting = true
			return wasi.With(ctx, system)
		}})
	require.NoError(b, err)
	return program
}

// idleMeter is a global that takes the place of the meter's in a module without one.
const idleMeter = "idle"

// withIdleMeter adds it to a module.
func withIdleMeter(source []byte, description *wasm.Module) []byte {
	export := join(name(idleMeter), []byte{3}, leb(len(description.Globals)))
	module := source[:8:8]
	for _, s := range description.Sections {
		content := source[s.Content:s.End]
		switch s.ID {
		case wasm.SectionGlobal:
			content = extended(content, [][]byte{{0x7e, 1, 0x42, 0, 0x0b}})
		case wasm.SectionExport:
			content = extended(content, [][]byte{export})
		}
		module = append(module, section(byte(s.ID), content...)...)
	}
	return module
}

// worldOfTool returns the same system each time: its clock counts its reads.
func worldOfTool() *wasi.System {
	began, reads := time.Unix(1_700_000_000, 0), 0
	return &wasi.System{Args: []string{"tool"}, Random: rand.NewChaCha8([32]byte{}), Started: began,
		Now: func() time.Time {
			reads++
			return began.Add(time.Duration(reads) * time.Microsecond)
		}}
}

// resumeTool makes a call and returns its duration.
func resumeTool(b *testing.B, p *Program) time.Duration {
	call := guests.NewCall(100)
	system := worldOfTool()
	system.Stdin, system.Stdout = call.Input, &wasi.Output{Limit: 1 << 20}
	ctx := wasi.With(b.Context(), system)
	start := time.Now()
	_, err := p.Run(ctx, Run{})
	took := time.Since(start)
	if exit := (*wasi.ExitError)(nil); err != nil {
		require.ErrorAs(b, err, &exit)
		require.Zero(b, exit.Code)
	}
	require.NoError(b, call.Check(system.Stdout.Bytes))
	return took
}

// median returns the median in microseconds.
func median(times []time.Duration) float64 {
	slices.Sort(times)
	return math.Round(float64(times[len(times)/2].Nanoseconds())/10) / 100
}

// BenchmarkMetering shows the cost of metering: the kernels in C, Rust and Go, on plain wazero, metered with their own
// counter, metered with another module's counter as libraries are, and, at one place in memory, with wazero's own way
// to stop a guest. Each run is at the next of nine places, all on one processor. It reports how many times as long as
// on plain wazero each takes, by the median at each place. "all" sums up the kernels that metering was tuned on,
// "untuned" those that it was not, and "recursive" those that recurse.
//
//	go test -bench Metering -benchtime 81x -run '^$' -timeout 1h ./runtime/internal/engine
func BenchmarkMetering(b *testing.B) {
	benchmarkMetering(b, "all", guests.AllKernels(), guests.Kernels)
	benchmarkMetering(b, "untuned", guests.UntunedKernels(), guests.Untuned)
	benchmarkMetering(b, "recursive", guests.RecursiveKernels(), guests.Recursive)
}

func benchmarkMetering(b *testing.B, summary string, kernels []guests.Kernel, module func(context.Context, guests.Language, string) ([]byte, error)) {
	total := map[string]*ratios{}
	for _, form := range meteredForms {
		total[form] = &ratios{}
	}
	for _, language := range []guests.Language{guests.C, guests.Rust, guests.Go} {
		source, err := module(b.Context(), language, b.TempDir())
		require.NoError(b, err)
		instances := make([]map[string]api.Module, placements)
		for n := range instances {
			forms := meteredForms
			if n > 0 {
				forms = forms[:2] // wazero's own way takes several times as long as all others together
			}
			instances[n] = kernelInstances(b, placed(b, source, n), forms)
		}
		for _, kernel := range kernels {
			b.Run(fmt.Sprintf("%s/%s", language, kernel.Name), func(b *testing.B) {
				took := timeKernel(b, instances, kernel)
				for _, form := range meteredForms {
					ratio := took[form].Seconds() / took["plain"].Seconds()
					b.ReportMetric(ratio, form)
					total[form].add(ratio)
				}
				b.ReportMetric(took["plain"].Seconds()*1000, "plain-ms")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
	b.Run(summary, func(b *testing.B) {
		for b.Loop() {
			continue // a summary, which runs nothing
		}
		for _, form := range meteredForms {
			if total[form].n == 0 {
				continue // -bench chose none of these kernels
			}
			b.ReportMetric(math.Exp(total[form].logarithms/float64(total[form].n)), form+"-mean")
			b.ReportMetric(total[form].worst, form+"-worst")
		}
		b.ReportMetric(0, "ns/op")
	})
}

// meteredForms are the forms of a module that are compared with plain wazero.
var meteredForms = []string{"metered", "linked", "close-on-context-done"}

// kernelInstances instantiates the kernels on plain wazero, and in these forms.
func kernelInstances(b *testing.B, source []byte, forms []string) map[string]api.Module {
	instances := map[string]api.Module{}
	for _, form := range slices.Concat([]string{"plain"}, forms) {
		config, rewritten := wazero.NewRuntimeConfig(), source
		var err error
		switch form {
		case "metered":
			rewritten, err = rewriteAll(source)
		case "linked":
			rewritten, err = rewriteLinked(source)
		case "close-on-context-done":
			config = config.WithCloseOnContextDone(true)
		}
		require.NoError(b, err)
		runtime := wazero.NewRuntimeWithConfig(b.Context(), config)
		b.Cleanup(func() { require.NoError(b, runtime.Close(context.Background())) })
		wasi_snapshot_preview1.MustInstantiate(b.Context(), runtime)
		require.NoError(b, offerPasses(b.Context(), runtime))
		require.NoError(b, offerCounter(b.Context(), runtime))
		instances[form], err = runtime.InstantiateWithConfig(new(meter).with(b.Context()), rewritten, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
		require.NoError(b, err)
	}
	return instances
}

// timeKernel returns the time of the kernel in each form, in processor time of the thread where that is known: the
// average over the places in memory of the median at each. The forms take turns, so that what else the machine does
// meets all of them.
func timeKernel(b *testing.B, instances []map[string]api.Module, kernel guests.Kernel) map[string]time.Duration {
	ctx, cancel := context.WithCancel(b.Context()) // close-on-context-done does nothing without
	defer cancel()
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	defer pinThread(b)()
	times := make([]map[string][]time.Duration, len(instances))
	for n := 0; b.Loop(); n = (n + 1) % len(instances) {
		if times[n] == nil {
			times[n] = map[string][]time.Duration{}
		}
		for form, instance := range instances[n] {
			function := instance.ExportedFunction(kernel.Name)
			start := threadTime()
			result, err := function.Call(new(meter).with(ctx), uint64(kernel.Size))
			took := threadTime() - start
			require.NoError(b, err)
			require.Equal(b, kernel.Checksum, result[0])
			times[n][form] = append(times[n][form], took)
		}
	}
	medians, averages := map[string][]time.Duration{}, map[string]time.Duration{}
	for _, byForm := range times {
		for form, all := range byForm {
			slices.Sort(all)
			medians[form] = append(medians[form], all[len(all)/2])
		}
	}
	for form, all := range medians {
		for _, took := range all {
			averages[form] += took / time.Duration(len(all))
		}
	}
	return averages
}

// ratios sums up the time ratios of several kernels.
type ratios struct {
	logarithms, worst float64
	n                 int
}

func (r *ratios) add(ratio float64) {
	r.logarithms += math.Log(ratio)
	r.worst = max(r.worst, ratio)
	r.n++
}
