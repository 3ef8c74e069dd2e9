package engine

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkWarmStart is what a process takes that finds a module in its cache: a large Go
// program, compiled here, and the file that CAISSON_BENCH_MODULE names, if any.
func BenchmarkWarmStart(b *testing.B) {
	modules := map[string]string{"go": goModule(b)}
	if file, ok := os.LookupEnv("CAISSON_BENCH_MODULE"); ok {
		modules[filepath.Base(file)] = file
	}
	for name, file := range modules {
		source, err := os.ReadFile(file)
		require.NoError(b, err)
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
