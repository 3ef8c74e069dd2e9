package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"go.uber.org/goleak"

	"github.com/caisson-run/caisson/tool"
)

// TestAttackHammer has 64 callers mix calls that harm nobody with calls that spin, crash,
// exit, grow and flood, on one runtime. Each gets the end that is its own, and nothing of
// them is left.
func TestAttackHammer(t *testing.T) {
	const callers, rounds = 64, 5
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	// A command whose _start is unreachable.
	trap := []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x07\x0a\x01\x06_start\x00\x00\x0a\x05\x01\x03\x00\x00\x0b")
	kinds := []struct {
		arguments, limits string
		module            []byte // nil: the probe
		end               tool.Kind
		output            string
	}{
		{arguments: `{"do":"count"}`, output: "1"},
		{arguments: `{"do":"spin"}`, limits: "limits: {timeout: 50ms}", end: tool.Deadline},
		{arguments: `{}`, module: trap, end: tool.Trap},
		{arguments: `{"do":"exit","code":3}`, end: tool.ToolFailed},
		{arguments: `{"do":"allocate","mib":100}`, limits: "limits: {memory: 16MiB}", end: tool.Memory},
		{arguments: `{"do":"print","text":"0123456789abcdef","times":2000000000}`, limits: "limits: {output: 1KiB}", end: tool.Output},
		{arguments: `{"do":"log","text":"0123456789abcdef","times":4096}`, limits: "limits: {stderr: 1KiB}"},
	}
	r := newRuntime(t, Options{Running: callers})
	tools := make([]*Tool, len(kinds))
	for i, k := range kinds {
		m := manifest(t, probe, k.limits)
		if k.module != nil {
			require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(m.File), m.Module.Path), k.module, 0o600))
		}
		tools[i] = load(t, r, m, manifests.Grants{})
		require.NoError(t, tools[i].Prepare(t.Context()))
	}
	var ended atomic.Int64
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			for round := range rounds {
				i := (caller + round) % len(kinds)
				outcome, _ := tools[i].Invoke(t.Context(), invocation(t, kinds[i].arguments, nil))
				what := fmt.Sprintf("%s: %s", kinds[i].arguments, outcome.Result.Error)
				assert.Equal(t, kinds[i].end, outcome.Result.Kind, what)
				if kinds[i].output != "" {
					assert.Equal(t, kinds[i].output, outcome.Result.Output, "each call counts for itself")
				}
				ended.Add(1)
			}
		})
	}
	group.Wait()
	assert.EqualValues(t, callers*rounds, ended.Load())
	assert.Zero(t, inside(r.gate))
	outcome, err := invoke(t, tools[0], kinds[0].arguments)
	require.NoError(t, err)
	assert.Equal(t, kinds[0].output, outcome.Result.Output)
}
