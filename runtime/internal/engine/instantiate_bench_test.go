package engine

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
)

// benchmarkedLimit is the memory limit of the benchmarks' instances.
const benchmarkedLimit = 64 * mebibyte

// BenchmarkInstantiate makes and closes an instance, as a run does where the pool is empty.
func BenchmarkInstantiate(b *testing.B) {
	for _, language := range []guests.Language{guests.C, guests.Go} {
		source, err := guests.Command(b.Context(), language, b.TempDir())
		require.NoError(b, err)
		module, err := newEngine(b, Options{Functions: wasi.Functions()}, nil).Compile(b.Context(), source)
		require.NoError(b, err)
		b.Run(string(language), func(b *testing.B) {
			for b.Loop() {
				i, _, err := module.instantiate(b.Context(), benchmarkedLimit)
				require.NoError(b, err)
				i.close(b.Context())
			}
		})
	}
}

// BenchmarkFirstRun is what the first run of a module takes that was compiled before, in another
// process: reading it from the cache, and the module's image, are a part of that.
func BenchmarkFirstRun(b *testing.B) {
	for _, language := range []guests.Language{guests.C, guests.Go} {
		source, err := guests.Command(b.Context(), language, b.TempDir())
		require.NoError(b, err)
		options := Options{Functions: wasi.Functions(), CacheDir: filepath.Join(b.TempDir(), "cache")}
		input := guests.NewCall(100).Input
		b.Run(string(language), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				e, err := New(b.Context(), options)
				require.NoError(b, err)
				b.StartTimer()
				module, err := e.Compile(b.Context(), source)
				require.NoError(b, err)
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

// BenchmarkReactor is what one more instance of a reactor takes: one that is started, and a copy
// of the image.
func BenchmarkReactor(b *testing.B) {
	p := goReactor(b)
	for name, another := range map[string]func() (*instance, error){"started": p.begin, "copied": p.copy} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				i, err := another()
				require.NoError(b, err)
				i.close(b.Context())
			}
		})
	}
}
