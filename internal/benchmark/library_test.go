package benchmark

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
)

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
