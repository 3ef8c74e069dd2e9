//go:build unix

package runtime

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
)

// inFunction returns the number of goroutines that have a call of a function on their stack.
func inFunction(name string) int {
	stacks := make([]byte, 4<<20)
	return strings.Count(string(stacks[:goruntime.Stack(stacks, true)]), name+"(")
}

// twins loads some tools of one module.
func twins(t *testing.T, r *Runtime, module string, count int) []*Tool {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "guest.wasm"), []byte(module), 0o600))
	var tools []*Tool
	for i := range count {
		tools = append(tools, load(t, r, manifestIn(t, dir, fmt.Sprint("guest", i), ""), manifests.Grants{}))
	}
	return tools
}

// TestAttackManyReaders: few modules are read at a time, by calls or for identities. A call whose context ends leaves the
// queue, and if no other waits for the module, it is not read.
func TestAttackManyReaders(t *testing.T) {
	r := newRuntime(t, Options{Running: 1})
	tools := twins(t, r, idle, 3)
	for range cap(r.modules) {
		require.NoError(t, r.enterReader(t.Context()))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	for _, guest := range tools {
		require.ErrorIs(t, guest.Prepare(ctx), context.DeadlineExceeded)
		_, err := guest.Identity(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	assert.Eventually(t, func() bool { return inFunction("runtime.(*Runtime).enterReader") == 0 }, 10*time.Second, time.Millisecond)

	prepared := make(chan error, len(tools))
	for _, guest := range tools {
		go func() { prepared <- guest.Prepare(t.Context()) }()
	}
	for range cap(r.modules) {
		r.leaveReader()
	}
	for range tools {
		require.NoError(t, <-prepared, "control: calls with time")
	}
	identity, err := tools[0].Identity(t.Context())
	require.NoError(t, err)
	assert.NotEmpty(t, identity)
}

// TestAttackManyToolsOfAModule: while a large module is compiled, the tools of it that wait do not hold its bytes. Each
// had a copy of them once. The control is one tool.
func TestAttackManyToolsOfAModule(t *testing.T) {
	const size, count = 16 << 20, 12
	large := idle + section(0, vector("filler")+strings.Repeat("x", size))
	dir := t.TempDir()
	compiler := filepath.Join(dir, "compiler") // never ends by itself
	require.NoError(t, os.WriteFile(compiler, []byte("#!/bin/sh\nexec sleep 600\n"), 0o700))
	live := func(count int) int64 {
		r, err := New(t.Context(), Options{CacheDir: filepath.Join(t.TempDir(), "cache"), Compiler: Compiler{child: engine.Compiler{Executable: compiler}}})
		require.NoError(t, err)
		tools := twins(t, r, large, count)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for _, guest := range tools {
			all.Go(func() { assert.ErrorIs(t, guest.Prepare(ctx), context.Canceled) })
		}
		require.Eventually(t, func() bool { return inFunction("engine.(*Compilation).Wait") == count }, time.Minute, 10*time.Millisecond)
		var stats goruntime.MemStats
		goruntime.GC()
		goruntime.ReadMemStats(&stats)
		cancel()
		all.Wait()
		require.NoError(t, r.Close(context.WithoutCancel(t.Context())))
		return int64(stats.HeapAlloc)
	}
	one, many := live(1), live(count)
	assert.Less(t, many-one, int64(size))
}

// TestHashesOfModules: a module that is hashed a piece at a time has the digest of the whole, and is not held.
func TestHashesOfModules(t *testing.T) {
	dir := t.TempDir()
	const size = 16 << 20
	require.NoError(t, os.WriteFile(filepath.Join(dir, "guest.wasm"), []byte(idle+section(0, vector("filler")+strings.Repeat("x", size))), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "other.wasm"), []byte(idle), 0o600))
	for _, module := range []string{"", "module: {path: guest.wasm, abi: extism, libraries: {one: other.wasm, two: guest.wasm}}\n"} {
		m := manifestIn(t, dir, "guest", module)
		source, err := readSource(m)
		require.NoError(t, err)
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		digest, err := hashSource(m)
		goruntime.ReadMemStats(&after)
		require.NoError(t, err)
		assert.Equal(t, source.Digest(), digest)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(size/4))
	}
	pinned := manifestIn(t, dir, "guest", "module: {path: guest.wasm, sha256: '"+strings.Repeat("0", 64)+"'}\n")
	_, err := hashSource(pinned)
	require.ErrorIs(t, err, ErrDigest)
}
