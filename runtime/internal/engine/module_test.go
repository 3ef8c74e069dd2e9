package engine

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/benchmark/guests"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
)

// loaded returns how many modules an engine holds.
func (e *Engine) loaded() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.residents.oldest.Len()
}

// TestModulesAreEvicted: the one that was used longest ago goes, with its instances, and comes
// back when it is compiled again.
func TestModulesAreEvicted(t *testing.T) {
	small := func(n int) []byte { return program{body: nothing, memory: n}.bytes() }
	e := newEngine(t, Options{ModuleBytes: 3 * codeGrowth * 200}, nil)
	var modules []*Module
	for n := range 4 {
		module, err := e.Compile(t.Context(), small(n))
		require.NoError(t, err)
		require.Greater(t, module.residence.bytes, int64(codeGrowth*150))
		require.Less(t, module.residence.bytes, int64(codeGrowth*200))
		modules = append(modules, module)
		_, err = module.Run(t.Context(), plain)
		require.NoError(t, err)
	}
	held := e.loaded()
	assert.Less(t, held, 4)
	assert.Equal(t, held, e.idle.count(), "their instances are gone too")
	_, err := modules[0].Run(t.Context(), plain)
	require.ErrorIs(t, err, ErrEvicted)
	_, err = modules[0].Start(t.Context(), Start{MemoryLimit: 1 << 16, Timeout: time.Minute, Fuel: 1})
	require.ErrorIs(t, err, ErrEvicted)
	_, err = modules[3].Run(t.Context(), plain)
	require.NoError(t, err, "the last one stays")
	again, err := e.Compile(t.Context(), small(0))
	require.NoError(t, err)
	_, err = again.Run(t.Context(), plain)
	require.NoError(t, err)
	_, err = New(t.Context(), Options{ModuleBytes: -1})
	assert.ErrorContains(t, err, "negative")
}

// TestModulesInUseAreNotEvicted: however little room there is.
func TestModulesInUseAreNotEvicted(t *testing.T) {
	e := newEngine(t, Options{ModuleBytes: 1}, nil)
	endless := compile(t, e, program{body: forever, memory: 1})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var group sync.WaitGroup
	group.Go(func() {
		_, err := endless.Run(ctx, plain)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	})
	require.Eventually(t, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return endless.residence.users == 1
	}, time.Minute, time.Millisecond)
	for n := range 5 {
		_, err := compile(t, e, program{body: nothing, memory: n}).Run(t.Context(), plain)
		require.NoError(t, err)
		assert.Equal(t, 2, e.loaded(), "the one that runs, and the last one")
	}
	group.Wait()
	assert.Equal(t, 1, e.loaded())
}

// TestEvictionHammer: callers of more programs than there is room for, which compile what was
// evicted and start it again, beside each other.
func TestEvictionHammer(t *testing.T) {
	e := newEngine(t, Options{ModuleBytes: 1 << 20, Functions: wasi.Functions()}, nil)
	tool, err := guests.Command(t.Context(), guests.C, t.TempDir())
	require.NoError(t, err)
	var sources [][]byte
	for n := range byte(8) { // a custom section makes another module of it
		sources = append(sources, append(append([]byte(nil), tool...), 0, 2, 1, 'a'+n))
	}
	start := Start{MemoryLimit: 4 * mebibyte, Timeout: time.Minute, Fuel: 1 << 40, Context: func(ctx context.Context) context.Context {
		return wasi.With(ctx, &wasi.System{Args: []string{"tool"}, Starting: &wasi.Starting{}})
	}}
	call := guests.NewCall(100)
	answer := func(source []byte) error {
		module, err := e.Compile(t.Context(), source)
		if err != nil {
			return err
		}
		p, err := module.Start(t.Context(), start)
		if err != nil {
			return err
		}
		for range 3 {
			out := &wasi.Output{Limit: 1 << 20}
			ctx := wasi.With(t.Context(), &wasi.System{Args: []string{"tool"}, Stdin: call.Input, Stdout: out})
			if _, err := p.Run(ctx, Run{}); err != nil {
				return err
			}
			if err := call.Check(out.Bytes); err != nil {
				return err
			}
		}
		return p.Drop()
	}
	evicted := 0
	var mu sync.Mutex
	var group sync.WaitGroup
	for caller := range 8 {
		group.Go(func() {
			for n := range 30 {
				err := answer(sources[(caller*7+n*3)%len(sources)])
				mu.Lock()
				if err != nil && assert.ErrorIs(t, err, ErrEvicted) {
					evicted++
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	assert.LessOrEqual(t, e.loaded(), 8)
	t.Logf("%d of 240 found their module evicted", evicted)
}
