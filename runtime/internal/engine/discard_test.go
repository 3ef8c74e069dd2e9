package engine

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// onMessage is a log that calls a function for one message.
type onMessage struct {
	slog.Handler
	message string
	do      func()
}

func (h onMessage) Enabled(context.Context, slog.Level) bool { return true }

func (h onMessage) Handle(_ context.Context, r slog.Record) error {
	if r.Message == h.message {
		h.do()
	}
	return nil
}

// waitsUntilFreed checks whether a call that evicts modules, which are being freed, waits for that.
func waitsUntilFreed(t *testing.T, done <-chan struct{}, waits bool) {
	t.Helper()
	if !waits {
		<-done
		return
	}
	select {
	case <-done:
		assert.Fail(t, "the control: it waits")
	case <-time.After(50 * time.Millisecond):
	}
}

// TestAttackLargeEvictions: a call that causes the eviction of other tenants' modules does not wait until the system
// has taken back their memory. Small modules are freed at once, which is the control.
func TestAttackLargeEvictions(t *testing.T) {
	for _, pages := range []int{1, muchWritten >> 16} {
		freeing, goOn := make(chan struct{}, 1), make(chan struct{})
		log := slog.New(onMessage{slog.DiscardHandler, "evicted", func() { freeing <- struct{}{}; <-goOn }})
		e, err := New(t.Context(), Options{Logger: log})
		require.NoError(t, err)
		fills := join([]byte{0x41, 0, 0x41, 1, 0x41}, signed(pages<<16), []byte{0xfc, 11, 0}) // memory.fill
		large := join([]byte{0, 'a', 's', 'm', 1, 0, 0, 0}, section(1, 1, 0x60, 0, 0), section(3, 2, 0, 0), section(5, join([]byte{1, 0}, leb(pages))...),
			section(7, join([]byte{2}, name("_initialize"), []byte{0, 0}, name("run"), []byte{0, 1})...),
			section(10, join([]byte{2}, function(nil, fills), function(nil))...))
		module, other := compileSource(t, e, large), (*Module)(nil)
		start := startOf(asItIs)
		start.MemoryLimit, start.Fuel = 64*mebibyte, 1<<40
		p, err := module.Start(t.Context(), start)
		require.NoError(t, err)
		e.residents.limits.bytes = 1
		done := make(chan struct{})
		go func() {
			defer close(done)
			other, err = e.Compile(context.WithoutCancel(t.Context()), program{body: nothing, memory: 1}.bytes())
			if assert.NoError(t, err) {
				_, err = other.Run(context.WithoutCancel(t.Context()), plain)
				assert.NoError(t, err)
			}
		}()
		<-freeing
		waitsUntilFreed(t, done, pages == 1)
		assert.True(t, p.Evicted())
		close(goOn)
		<-done
		_, err = p.Run(t.Context(), Run{Function: "run"})
		assert.ErrorIs(t, err, ErrEvicted)
		require.NoError(t, e.Close(t.Context()))
	}
}

// TestAttackManyEvictions: a call does not wait until thousands of small modules are freed either, whose eviction it
// brings about. Few are freed at once, which is the control.
func TestAttackManyEvictions(t *testing.T) {
	for _, modules := range []int{2, mostFreed + 2} {
		freeing, goOn := make(chan struct{}, modules), make(chan struct{})
		log := slog.New(onMessage{slog.DiscardHandler, "evicted", func() { freeing <- struct{}{}; <-goOn }})
		e, err := New(t.Context(), Options{Logger: log})
		require.NoError(t, err)
		for n := range modules {
			compile(t, e, program{body: nothing, memory: 1, filler: []byte{byte(n)}})
		}
		e.residents.limits.bytes = 1
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, err := e.Compile(context.WithoutCancel(t.Context()), program{body: nothing, memory: 1}.bytes())
			assert.NoError(t, err)
		}()
		<-freeing
		waitsUntilFreed(t, done, modules <= mostFreed)
		close(goOn)
		require.NoError(t, e.Close(t.Context()))
	}
}
