package engine

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
)

// BenchmarkMetering shows what metering costs: the kernels in C, Rust and Go, on plain
// wazero, metered, and with wazero's own way to stop a guest. It reports how
// many times as long as on plain wazero each takes. "all" sums up the kernels that metering
// was tuned on, "untuned" the others.
//
//	go test -bench Metering -benchtime 20x ./runtime/internal/engine
func BenchmarkMetering(b *testing.B) {
	benchmarkMetering(b, "all", guests.AllKernels(), guests.Kernels)
	benchmarkMetering(b, "untuned", guests.UntunedKernels(), guests.Untuned)
}

func benchmarkMetering(b *testing.B, summary string, kernels []guests.Kernel, module func(context.Context, guests.Language, string) ([]byte, error)) {
	total := map[string]*ratios{}
	for _, form := range meteredForms {
		total[form] = &ratios{}
	}
	for _, language := range []guests.Language{guests.C, guests.Rust, guests.Go} {
		source, err := module(b.Context(), language, b.TempDir())
		require.NoError(b, err)
		instances := kernelInstances(b, source)
		for _, kernel := range kernels {
			b.Run(fmt.Sprintf("%s/%s", language, kernel.Name), func(b *testing.B) {
				best := timeKernel(b, instances, kernel)
				for _, form := range meteredForms {
					ratio := best[form].Seconds() / best["plain"].Seconds()
					b.ReportMetric(ratio, form)
					total[form].add(ratio)
				}
				b.ReportMetric(best["plain"].Seconds()*1000, "plain-ms")
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

// meteredForms are what is compared with plain wazero.
var meteredForms = []string{"metered", "close-on-context-done"}

// kernelInstances instantiates the kernels in each form.
func kernelInstances(b *testing.B, source []byte) map[string]api.Module {
	instances := map[string]api.Module{}
	for _, form := range append([]string{"plain"}, meteredForms...) {
		config, rewritten := wazero.NewRuntimeConfig(), source
		var err error
		switch form {
		case "metered":
			rewritten, err = rewriteAll(source)
		case "close-on-context-done":
			config = config.WithCloseOnContextDone(true)
		}
		require.NoError(b, err)
		runtime := wazero.NewRuntimeWithConfig(b.Context(), config)
		b.Cleanup(func() { require.NoError(b, runtime.Close(context.Background())) })
		wasi_snapshot_preview1.MustInstantiate(b.Context(), runtime)
		require.NoError(b, offerPasses(b.Context(), runtime))
		instances[form], err = runtime.InstantiateWithConfig(new(meter).with(b.Context()), rewritten, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
		require.NoError(b, err)
	}
	return instances
}

// timeKernel returns the shortest time of each form. They take turns, so that what else
// the machine does meets all of them.
func timeKernel(b *testing.B, instances map[string]api.Module, kernel guests.Kernel) map[string]time.Duration {
	ctx, cancel := context.WithCancel(b.Context()) // close-on-context-done does nothing without
	defer cancel()
	best := map[string]time.Duration{}
	for b.Loop() {
		for form, instance := range instances {
			function := instance.ExportedFunction(kernel.Name)
			start := time.Now()
			result, err := function.Call(new(meter).with(ctx), uint64(kernel.Size))
			took := time.Since(start)
			require.NoError(b, err)
			require.Equal(b, kernel.Checksum, result[0])
			if best[form] == 0 || took < best[form] {
				best[form] = took
			}
		}
	}
	return best
}

// ratios sums up what several kernels took.
type ratios struct {
	logarithms, worst float64
	n                 int
}

func (r *ratios) add(ratio float64) {
	r.logarithms += math.Log(ratio)
	r.worst = max(r.worst, ratio)
	r.n++
}
