package engine

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSelfTestNotices: what an engine relies on and wazero does not promise. Each flaw is one
// that another version of wazero could have.
func TestSelfTestNotices(t *testing.T) {
	e, err := open(t.Context(), Options{Functions: nil})
	require.NoError(t, err)
	require.NoError(t, e.selfTest(t.Context()))
	require.NoError(t, e.Close(t.Context()))

	for name, flaw := range map[string]func(i *instance){
		"memory does not shrink":   func(i *instance) { _, _ = i.wasm.Memory().Grow(1) },
		"memory is not restored":   func(i *instance) { i.memory.contents()[8] = 1 },
		"globals are not restored": func(i *instance) { i.globals[len(i.globals)-1].Set(1) },
	} {
		t.Run(name, func(t *testing.T) {
			e, err := open(t.Context(), Options{})
			require.NoError(t, err)
			defer func() { require.NoError(t, e.Close(t.Context())) }()
			err = e.trySelf(t.Context(), flaw)
			assert.ErrorIs(t, err, ErrTrap)
		})
	}
}

// TestUnreliableEnginesUseInstancesOnce: where the self-test fails, each run has an instance
// of its own, programs are started anew, and the log says why.
func TestUnreliableEnginesUseInstancesOnce(t *testing.T) {
	var log strings.Builder
	e, err := open(t.Context(), Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close(t.Context())) }()
	e.distrust(assert.AnError)
	assert.Contains(t, log.String(), assert.AnError.Error())
	module := compile(t, e, program{body: nothing, memory: 1})
	for range 3 {
		_, err := module.Run(t.Context(), plain)
		require.NoError(t, err)
		assert.Zero(t, e.idle.count())
	}
	assert.NotEmpty(t, module.NewInstances())
	_, err = module.Start(t.Context(), Start{Context: func(ctx context.Context) context.Context { return ctx }})
	assert.ErrorIs(t, err, ErrNotStarted)
}

// BenchmarkSelfTest is what an engine spends on it when it is made.
func BenchmarkSelfTest(b *testing.B) {
	e, err := open(b.Context(), Options{})
	require.NoError(b, err)
	defer func() { require.NoError(b, e.Close(b.Context())) }()
	for b.Loop() {
		require.NoError(b, e.selfTest(b.Context()))
	}
}
