package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// TestAttackHammer has 64 callers mix harmless calls with calls that spin, crash, exit, grow and flood, on one runtime.
// Each ends in its own way, and leaves nothing.
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
	outcome := mustInvoke(t, tools[0], kinds[0].arguments)
	assert.Equal(t, kinds[0].output, outcome.Result.Output)
}

// inside returns the number of running calls.
func inside(g *gate) int { return int(g.running.Load()) }

// TestBusy: one call more than may run is refused at once, and a later one runs.
func TestBusy(t *testing.T) {
	r := newRuntime(t, Options{Running: 1})
	guest := load(t, r, manifest(t, probe, "limits: {timeout: 1500ms}"), manifests.Grants{})
	require.NoError(t, guest.Prepare(t.Context()))
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		_, err := invoke(t, guest, `{"do":"spin"}`)
		assert.ErrorIs(t, err, tool.Deadline)
	})
	require.Eventually(t, func() bool { return inside(r.gate) == 1 }, 5*time.Second, time.Millisecond)
	start := time.Now()
	outcome, err := invoke(t, guest, `{"do":"echo"}`)
	assert.ErrorIs(t, err, tool.Busy)
	assert.Equal(t, "busy: 1 calls are running", outcome.Result.Error)
	assert.Less(t, time.Since(start), 200*time.Millisecond)
	group.Wait()
	mustInvoke(t, guest, `{"do":"echo"}`)
	_, err = New(t.Context(), Options{Running: -1})
	assert.ErrorIs(t, err, errNegativeLimit)
}

// TestGateHammer: never more than the limit inside.
func TestGateHammer(t *testing.T) {
	g := &gate{limit: 3}
	var within, entered atomic.Int64
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for range 500 {
				if g.enter() != nil {
					continue
				}
				assert.LessOrEqual(t, within.Add(1), int64(3))
				entered.Add(1)
				within.Add(-1)
				g.leave()
			}
		})
	}
	group.Wait()
	assert.Positive(t, entered.Load())
	assert.Zero(t, inside(g))
}
