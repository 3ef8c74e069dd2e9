package guests_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	compiled "github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/internal/testsize"
)

// group is kernels and the modules that have them.
type group struct {
	name            string
	kernels         []guests.Kernel
	module, command func(ctx context.Context, language guests.Language, dir string) ([]byte, error)
}

func groups() []group {
	return []group{
		{"tuned", guests.AllKernels(), guests.Kernels, guests.KernelCommand},
		{"untuned", guests.UntunedKernels(), guests.Untuned, guests.UntunedCommand},
		{"recursive", guests.RecursiveKernels(), guests.Recursive, guests.RecursiveCommand},
	}
}

func TestKernelsAgree(t *testing.T) {
	for _, group := range groups() {
		for _, language := range []guests.Language{guests.C, guests.Rust, guests.Go} {
			t.Run(group.name+"/"+string(language), func(t *testing.T) {
				module := group.start(t, language)
				for _, kernel := range group.kernels {
					run := module.ExportedFunction(kernel.Name)
					require.NotNil(t, run, kernel.Name)
					for _, size := range []int32{-1, 0, 1, 2, 3, 7} {
						answer, err := run.Call(t.Context(), api.EncodeI32(size))
						require.NoError(t, err, "%s(%d)", kernel.Name, size)
						require.Equal(t, kernel.Native(size), answer[0], "%s(%d)", kernel.Name, size)
					}
					for range testsize.Of(1, 2) { // a kernel keeps nothing from its first run
						answer, err := run.Call(t.Context(), api.EncodeI32(kernel.Size))
						require.NoError(t, err, kernel.Name)
						require.Equal(t, kernel.Checksum, answer[0], kernel.Name)
					}
				}
			})
		}
	}
}

func TestKernelsNatively(t *testing.T) {
	for _, group := range groups() {
		for _, kernel := range group.kernels {
			require.Equal(t, kernel.Checksum, kernel.Native(kernel.Size), kernel.Name)
		}
	}
}

func TestCommittedKernelsImportNothing(t *testing.T) {
	runtime := newRuntime(t, interpreter())
	for _, group := range groups() {
		for _, language := range []guests.Language{guests.C, guests.Rust} {
			module, err := group.module(t.Context(), language, "")
			require.NoError(t, err)
			compiled, err := runtime.CompileModule(t.Context(), module)
			require.NoError(t, err)
			require.Empty(t, compiled.ImportedFunctions(), "%s %s", group.name, language)
		}
	}
}

// interpreter is for guests that run briefly: a test that compiles a Go module spends
// most of its time with the compiler, above all under the race detector.
func interpreter() wazero.RuntimeConfig { return wazero.NewRuntimeConfigInterpreter() }

func newRuntime(t *testing.T, config wazero.RuntimeConfig) wazero.Runtime {
	t.Helper()
	runtime := wazero.NewRuntimeWithConfig(t.Context(), config)
	t.Cleanup(func() { require.NoError(t, runtime.Close(t.Context())) })
	wasi_snapshot_preview1.MustInstantiate(t.Context(), runtime)
	return runtime
}

func (g group) start(t *testing.T, language guests.Language) api.Module {
	t.Helper()
	source, err := g.module(t.Context(), language, t.TempDir())
	require.NoError(t, err)
	config := wazero.NewModuleConfig().WithStartFunctions("_initialize")
	home, _, err := compiled.CompiledCode()
	require.NoError(t, err)
	cache, err := wazero.NewCompilationCacheWithDir(filepath.Join(home, "wazero")) // of machine code
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cache.Close(context.WithoutCancel(t.Context()))) })
	module, err := newRuntime(t, wazero.NewRuntimeConfig().WithCompilationCache(cache)).InstantiateWithConfig(t.Context(), source, config)
	require.NoError(t, err)
	return module
}

func BenchmarkKernels(b *testing.B) {
	for _, group := range groups() {
		group.benchmark(b)
	}
}

func (g group) benchmark(b *testing.B) {
	for _, language := range []guests.Language{guests.C, guests.Rust, guests.Go} {
		runtime := wazero.NewRuntime(b.Context())
		wasi_snapshot_preview1.MustInstantiate(b.Context(), runtime)
		source, err := g.module(b.Context(), language, b.TempDir())
		require.NoError(b, err)
		module, err := runtime.InstantiateWithConfig(b.Context(), source, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
		require.NoError(b, err)
		for _, kernel := range g.kernels {
			run := module.ExportedFunction(kernel.Name)
			b.Run(kernel.Name+"/"+string(language), func(b *testing.B) {
				for b.Loop() {
					_, err := run.Call(b.Context(), api.EncodeI32(kernel.Size))
					require.NoError(b, err)
				}
			})
		}
		require.NoError(b, runtime.Close(b.Context()))
	}
	for _, kernel := range g.kernels {
		b.Run(kernel.Name+"/native", func(b *testing.B) {
			for b.Loop() {
				kernel.Native(kernel.Size)
			}
		})
	}
}
