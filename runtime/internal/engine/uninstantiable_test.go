package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"

	"github.com/caisson-run/caisson/runtime/internal/wasm"
)

// TestElementsThatDoNotFit: a module whose active element segment does not fit its table is refused,
// as the specification has it trap (§4.5.4). The control: wazero alone instantiates it.
func TestElementsThatDoNotFit(t *testing.T) {
	const table = 3
	for name, c := range map[string]struct {
		offset []byte // an expression, without its end
		count  int
		fits   bool
	}{
		"that fits":             {[]byte{0x41, 1}, 2, true},
		"that is empty":         {[]byte{0x41, table}, 0, true},
		"beyond the end":        {[]byte{0x41, 1}, 3, false},
		"empty, beyond the end": {[]byte{0x41, table + 1}, 0, false},
		"at a negative offset":  {[]byte{0x41, 0x7f}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			source := join([]byte("\x00asm\x01\x00\x00\x00"), section(1, 1, 0x60, 0, 0), section(3, 1, 0), section(4, 1, 0x70, 0, table),
				section(9, join([]byte{1, 0}, c.offset, []byte{0x0b}, leb(c.count), make([]byte, c.count))...), section(10, 1, 2, 0, 0x0b))
			runtime := wazero.NewRuntime(t.Context())
			defer runtime.Close(t.Context())
			_, err := runtime.Instantiate(t.Context(), source)
			require.NoError(t, err)

			_, err = rewriteAll(source)
			if c.fits {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, wasm.ErrUninstantiable)
			assert.ErrorContains(t, err, "element section at byte")
		})
	}
}
