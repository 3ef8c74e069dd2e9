package engine

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
)

// TestAttackReferences: a guest that makes references to a function without end takes no memory for them, in a run and
// in an instance that is kept. The control is plain wazero.
func TestAttackReferences(t *testing.T) {
	const references = 300_000
	// loop: ref.func 0, drop; local 0 += 1; if local 0 < references: again
	body := join([]byte{0x03, 0x40, 0xd2, 0, 0x1a, 0x20, 0, 0x41, 1, 0x6a, 0x22, 0, 0x41}, sleb(references), []byte{0x49, 0x0d, 0, 0x0b})
	attack := program{body: body, memory: 1, locals: 1}

	e := newEngine(t, Options{}, nil)
	module := compile(t, e, attack)
	mustRun(t, module, plain)
	before := heap()
	for range 3 {
		mustRun(t, module, plain)
	}
	require.Equal(t, 1, e.idle.count(), "the instance is kept")
	assert.Less(t, heap()-before, int64(mebibyte))

	r := wazero.NewRuntimeWithConfig(t.Context(), runtimeConfig())
	defer r.Close(context.Background())
	instance, err := r.Instantiate(t.Context(), attack.bytes())
	require.NoError(t, err)
	before = heap()
	_, err = instance.ExportedFunction("run").Call(t.Context())
	require.NoError(t, err)
	assert.Greater(t, heap()-before, int64(references*24), "control")
	require.NoError(t, instance.Close(t.Context()))
}
