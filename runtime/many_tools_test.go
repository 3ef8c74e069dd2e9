package runtime

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/manifests"
)

// TestManyToolsInLittleMemory: 64 callers of more tools than there is memory for get the right
// answers, whatever is evicted beside them.
func TestManyToolsInLittleMemory(t *testing.T) {
	const tools = 24
	r := newRuntime(t, Options{Running: 64, CacheDir: filepath.Join(t.TempDir(), "cache"), Memory: Memory{Instances: 1 << 20, Modules: 1 << 20}})
	source, err := guests.Command(t.Context(), guests.C, t.TempDir())
	require.NoError(t, err)
	var loaded []*Tool
	for n := range byte(tools) {
		dir := t.TempDir()
		variant := append(append([]byte(nil), source...), 0, 2, 1, 'a'+n) // a custom section
		require.NoError(t, os.WriteFile(filepath.Join(dir, "tool.wasm"), variant, 0o600))
		m, err := manifests.Parse(filepath.Join(dir, "tool.yaml"), fmt.Appendf(nil,
			"schema: caisson/v1\nname: tool%d\ndescription: Upper case and a sum.\nmodule: {path: tool.wasm}\nparameters: {type: object}\nlimits: {memory: 1MiB}\n", n))
		require.NoError(t, err)
		loaded = append(loaded, load(t, r, m, manifests.Grants{}))
	}
	var group sync.WaitGroup
	for caller := range uint64(64) {
		group.Go(func() {
			random := rand.New(rand.NewPCG(caller, 0))
			for range 20 {
				assert.NoError(t, answered(t.Context(), loaded[random.IntN(tools)], guests.NewCall(20+random.IntN(200))))
			}
		})
	}
	group.Wait()
	evicted := 0
	for _, tool := range loaded {
		if tool.module.Evicted() {
			evicted++
		}
	}
	assert.Positive(t, evicted, "control: there is not memory for all")
}

// TestChangedModuleIsNotRunAfterEviction: a tool is what it was when it was first used.
func TestChangedModuleIsNotRunAfterEviction(t *testing.T) {
	r := newRuntime(t, Options{Memory: Memory{Modules: 1}})
	first, second := jsonTool(t, r, guests.C, ""), jsonTool(t, r, guests.Rust, "")
	call := guests.NewCall(100)
	require.NoError(t, answered(t.Context(), first, call))
	require.NoError(t, answered(t.Context(), second, call))
	assert.True(t, first.module.Evicted())
	require.NoError(t, first.Prepare(t.Context()))
	assert.False(t, first.module.Evicted(), "it is compiled again, before the time of a call begins")
	require.NoError(t, answered(t.Context(), first, call))
	require.NoError(t, answered(t.Context(), second, call))
	require.Eventually(t, first.module.Evicted, 5*time.Second, time.Millisecond, "once its instance is back in its pool")
	file := filepath.Join(filepath.Dir(first.Manifest().File), "tool.wasm")
	source, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, append(source, 0, 2, 1, 'x'), 0o600))
	assert.ErrorIs(t, answered(t.Context(), first, call), ErrDigest)
	require.NoError(t, os.WriteFile(file, source, 0o600))
	assert.NoError(t, answered(t.Context(), first, call))
}
