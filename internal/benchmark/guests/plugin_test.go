package guests_test

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/internal/testsize"
)

func TestPluginsAnswer(t *testing.T) {
	for _, language := range []guests.Language{guests.C, guests.Rust, guests.Go, guests.AssemblyScript} {
		t.Run(string(language), func(t *testing.T) {
			source, err := guests.Plugin(t.Context(), language, t.TempDir())
			require.NoError(t, err)
			runtime := newRuntime(t, interpreter())
			module, err := runtime.CompileModule(t.Context(), source)
			require.NoError(t, err)
			host := &extismHost{}
			host.instantiate(t, runtime, module)
			for _, length := range []int{0, 100, testsize.Of(4<<10, 64<<10)} {
				call := guests.NewCall(length)
				code := host.call(t, runtime, module, call.Input)
				require.Zero(t, code, host.text(host.errorAt))
				require.NoError(t, call.Check(host.memory[host.outputAt:host.outputAt+host.outputLength]))
			}
			require.Equal(t, uint64(1), host.call(t, runtime, module, []byte(`{"text"`)))
			require.NotEmpty(t, host.text(host.errorAt))
		})
	}
}

func TestNoGuest(t *testing.T) {
	_, err := guests.Plugin(t.Context(), guests.GoWarm, t.TempDir())
	require.ErrorIs(t, err, guests.ErrNoGuest)
	_, err = guests.Kernels(t.Context(), guests.GoWarm, t.TempDir())
	require.ErrorIs(t, err, guests.ErrNoGuest)
	_, err = guests.Command(t.Context(), guests.AssemblyScript, t.TempDir())
	require.ErrorIs(t, err, guests.ErrNoGuest)
	_, err = guests.Command(t.Context(), "cobol", t.TempDir())
	require.ErrorIs(t, err, guests.ErrNoGuest)
}

// extismHost is as much of extism:host/env as the plug-ins use: one block of memory after
// another, the input being the first.
type extismHost struct {
	memory                 []byte
	ends                   map[uint64]uint64 // of blocks, by where they begin
	inputAt, inputLength   uint64
	outputAt, outputLength uint64
	errorAt                uint64
}

// call answers one call in a fresh instance.
func (h *extismHost) call(t *testing.T, runtime wazero.Runtime, module wazero.CompiledModule, input []byte) uint64 {
	t.Helper()
	// Address 0 means no block.
	*h = extismHost{memory: make([]byte, 8), ends: map[uint64]uint64{}, inputLength: uint64(len(input))}
	h.inputAt = h.allocate(uint64(len(input)))
	copy(h.memory[h.inputAt:], input)
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize")
	instance, err := runtime.InstantiateModule(t.Context(), module, config)
	require.NoError(t, err)
	answer, err := instance.ExportedFunction("call").Call(t.Context())
	require.NoError(t, err)
	require.NoError(t, instance.Close(t.Context()))
	return answer[0]
}

func (h *extismHost) allocate(length uint64) uint64 {
	at := uint64(len(h.memory))
	h.memory = append(h.memory, make([]byte, length)...)
	h.ends[at] = at + length
	return at
}

func (h *extismHost) text(at uint64) string { return string(h.memory[at:h.ends[at]]) }

func (h *extismHost) functions() map[string]func(stack []uint64) {
	return map[string]func(stack []uint64){
		"input_offset":   func(stack []uint64) { stack[0] = h.inputAt },
		"input_length":   func(stack []uint64) { stack[0] = h.inputLength },
		"input_load_u8":  func(stack []uint64) { stack[0] = uint64(h.memory[h.inputAt+stack[0]]) },
		"input_load_u64": func(stack []uint64) { stack[0] = binary.LittleEndian.Uint64(h.memory[h.inputAt+stack[0]:]) },
		"load_u8":        func(stack []uint64) { stack[0] = uint64(h.memory[stack[0]]) },
		"load_u64":       func(stack []uint64) { stack[0] = binary.LittleEndian.Uint64(h.memory[stack[0]:]) },
		"alloc":          func(stack []uint64) { stack[0] = h.allocate(stack[0]) },
		"free":           func(stack []uint64) { delete(h.ends, stack[0]) },
		"length":         func(stack []uint64) { stack[0] = h.ends[stack[0]] - stack[0] },
		"store_u8":       func(stack []uint64) { h.memory[stack[0]] = byte(stack[1]) },
		"store_u64":      func(stack []uint64) { binary.LittleEndian.PutUint64(h.memory[stack[0]:], stack[1]) },
		"output_set":     func(stack []uint64) { h.outputAt, h.outputLength = stack[0], stack[1] },
		"error_set":      func(stack []uint64) { h.errorAt = stack[0] },
	}
}

// instantiate gives the plug-in the functions that it imports, with the types that it
// imports them with.
func (h *extismHost) instantiate(t *testing.T, runtime wazero.Runtime, plugin wazero.CompiledModule) {
	t.Helper()
	builder := runtime.NewHostModuleBuilder("extism:host/env")
	functions := h.functions()
	for _, imported := range plugin.ImportedFunctions() {
		module, name, _ := imported.Import()
		if !strings.HasPrefix(module, "extism:") {
			continue
		}
		serve := functions[name]
		require.NotNil(t, serve, "the plug-in imports %s", name)
		builder.NewFunctionBuilder().
			WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) { serve(stack) }), imported.ParamTypes(), imported.ResultTypes()).
			Export(name)
	}
	_, err := builder.Instantiate(t.Context())
	require.NoError(t, err)
}
