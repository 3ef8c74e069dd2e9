package engine

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
)

// watchedStart returns a start of "run" whose starts are observed by w.
func watchedStart(timeout time.Duration, w *Watched) Start {
	return Start{Context: asItIs, MemoryLimit: mebibyte, Timeout: timeout, Fuel: 1 << 50, Initialize: []Initializer{{Function: "run"}},
		Watch: func() (*Watched, func()) { return w, func() {} }}
}

// TestStartsEndWhileAnInstanceIsMade: the time of a start in the background includes making its instance, which nothing
// else would end. The control has time.
func TestStartsEndWhileAnInstanceIsMade(t *testing.T) {
	module := compile(t, newEngine(t, Options{}, nil), program{memory: 1})
	module.imaging <- struct{}{} // as if another call made the image
	start := func(timeout time.Duration) <-chan error {
		ended := make(chan error, 1)
		require.NoError(t, module.StartInBackground(t.Context(), watchedStart(timeout, nil), func(p *Program, err error) {
			if err == nil {
				err = p.Drop()
			}
			ended <- err
		}))
		return ended
	}
	select {
	case err := <-start(10 * time.Millisecond):
		require.ErrorIs(t, err, ErrNotStarted)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	case <-time.After(10 * time.Second):
		assert.Fail(t, "it waits")
	}
	long := start(time.Minute)
	<-module.imaging
	require.NoError(t, <-long)
}

// TestStartsAreObserved: other goroutines can see where a start is, and can end it, like a run.
func TestStartsAreObserved(t *testing.T) {
	for _, abandoned := range []bool{true, false} {
		var w Watched
		calls := 0
		e := newEngine(t, Options{}, func(context.Context, hostfuncs.Memory, []uint64) error {
			calls++
			assert.Equal(t, "test.host", w.Function())
			assert.Zero(t, w.Thread())
			if abandoned {
				w.Abandon()
			}
			return nil
		})
		module := compile(t, e, program{memory: 1, importing: true, body: join(callImport, callImport)})
		_, err := module.Start(t.Context(), watchedStart(time.Minute, &w))
		assert.Empty(t, w.Function())
		assert.Zero(t, w.Thread())
		if abandoned {
			require.ErrorIs(t, err, errAbandoned)
			assert.Equal(t, 1, calls)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, 4, calls, "two instances")
	}
}

// TestThreadsOfStarts: while a start runs its own code, observers see its thread. So do they while a call starts its
// program.
func TestThreadsOfStarts(t *testing.T) {
	if !MeasuresThreads {
		return
	}
	e := newEngine(t, Options{}, nil)
	module := compile(t, e, program{memory: 1, body: forever})
	var w Watched
	ended := make(chan error, 1)
	go func() {
		_, err := module.Start(t.Context(), watchedStart(time.Second, &w))
		ended <- err
	}()
	assert.Eventually(t, func() bool { return w.Thread() != 0 }, 10*time.Second, time.Millisecond)
	require.ErrorIs(t, <-ended, context.DeadlineExceeded)
	assert.Zero(t, w.Thread())

	var call Watched
	p := &Program{module: module, reactor: true, start: watchedStart(time.Minute, nil), base: t.Context()}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	go func() {
		_, _, err := p.begin(ctx, 1<<50, &call)
		ended <- err
	}()
	assert.Eventually(t, func() bool { return call.Thread() != 0 }, 10*time.Second, time.Millisecond)
	require.ErrorIs(t, <-ended, context.DeadlineExceeded)
}
