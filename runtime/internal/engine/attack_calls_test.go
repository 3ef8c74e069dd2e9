package engine

import (
	"bytes"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAttackManyCalls: a module that consists of calls and of blocks that move values takes little more memory to be
// rewritten and proved than one of as many bytes without. All of it is unreachable, so that the compiler has nothing to do.
func TestAttackManyCalls(t *testing.T) {
	const functions, size = 16, 120_000
	spent := func(code []byte) uint64 {
		s := shape{types: [][]byte{typeOf([]byte{typeI32}, nil)}, functions: []shapedFunction{{}, {kind: 1}}}
		for range functions {
			s.functions = append(s.functions, shapedFunction{more: 1, body: join([]byte{0x00}, bytes.Repeat(code, size/len(code)))})
		}
		source := s.bytes()
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		_, err := rewriteAll(source)
		require.NoError(t, err)
		goruntime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	control := spent([]byte{0x1a, 0x1a})
	for name, code := range map[string][]byte{
		"calls":  {0x10, 1, 0x1a, 0x1a},
		"blocks": {0x02, 0x7f, 0x41, 0, 0x21, 0, 0x41, 0, 0x0b, 0x1a, 0x1a, 0x1a},
	} {
		assert.Less(t, spent(code), 2*control, name)
		t.Logf("%s: %.2f times %d MiB", name, float64(spent(code))/float64(control), control>>20)
	}
}
