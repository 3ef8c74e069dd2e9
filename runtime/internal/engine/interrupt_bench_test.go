package engine

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"

	"github.com/caisson-run/caisson/internal/guests"
)

// BenchmarkInterruptible shows what it costs that a guest can be stopped: a tight loop
// that nothing stops, the same metered as this engine does it, and with wazero's own way.
//
//	go test -bench Interruptible ./runtime/internal/engine
func BenchmarkInterruptible(b *testing.B) {
	// i32.const 10000000, local 0 = it; loop: local 0 -= 1; br_if local 0
	loop := []byte{0x41, 0x80, 0xad, 0xe2, 0x04, 0x21, 0, 0x03, 0x40, 0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b}
	source := program{body: loop, memory: -1, locals: 1}.bytes()
	run := func(b *testing.B, config wazero.RuntimeConfig, source []byte) {
		runtime := wazero.NewRuntimeWithConfig(b.Context(), config)
		defer runtime.Close(context.WithoutCancel(b.Context()))
		require.NoError(b, offerMeter(b.Context(), runtime))
		instance, err := runtime.Instantiate(b.Context(), source)
		require.NoError(b, err)
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		function := instance.ExportedFunction("run")
		for b.Loop() {
			_, err := function.Call(ctx)
			require.NoError(b, err)
		}
	}
	slices, err := rewriteAll(source, MeterSlices)
	require.NoError(b, err)
	fuel, err := rewriteAll(source, MeterFuel)
	require.NoError(b, err)
	b.Run("unstoppable", func(b *testing.B) { run(b, wazero.NewRuntimeConfig(), source) })
	b.Run("slices", func(b *testing.B) { run(b, wazero.NewRuntimeConfig(), slices) })
	b.Run("fuel", func(b *testing.B) { run(b, wazero.NewRuntimeConfig(), fuel) })
	b.Run("close-on-context-done", func(b *testing.B) {
		run(b, wazero.NewRuntimeConfig().WithCloseOnContextDone(true), source)
	})
}

// BenchmarkCompile compiles a Go program of 3 MB, in this process.
func BenchmarkCompile(b *testing.B) {
	root, err := guests.Compile(b.Context(), "wasm-tools/files")
	require.NoError(b, err)
	source, err := os.ReadFile(filepath.Join(root, "wasm-tools", "files", "files.wasm"))
	require.NoError(b, err)
	for b.Loop() {
		e, err := New(b.Context(), Options{})
		require.NoError(b, err)
		_, err = e.Compile(b.Context(), source, MeterSlices)
		require.NoError(b, err)
		require.NoError(b, e.Close(b.Context()))
	}
}
