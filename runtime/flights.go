package runtime

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"

	"github.com/caisson-run/caisson/runtime/internal/engine"
)

// flights runs a function once for all callers that ask for it meanwhile. Each caller waits until its own context ends,
// even if the function does not check the time. It is safe for concurrent use.
type flights[T any] struct {
	mu  sync.Mutex
	now *flight[T] // nil unless the function runs and a caller is waiting for it
}

// flight is one run of the function.
type flight[T any] struct {
	callers int // waiting; the lock of flights guards it
	abandon context.CancelFunc
	done    chan struct{}
	value   T // this and err are written before done is closed, and read only afterwards
	err     error
}

// do runs the function in another goroutine, or waits for a run that another caller began. The function's context
// derives from base, since the run may outlive the caller that began it, and ends when no caller is waiting. If the
// function panics, the error has its name.
func (s *flights[T]) do(ctx, base context.Context, name string, function func(context.Context) (T, error)) (T, error) {
	s.mu.Lock()
	run := s.now
	if run == nil {
		run = &flight[T]{done: make(chan struct{})}
		inside, abandon := context.WithCancel(base)
		run.abandon, s.now = abandon, run
		go s.run(inside, run, name, function)
	}
	run.callers++
	s.mu.Unlock()
	select {
	case <-run.done:
		return run.value, run.err
	case <-ctx.Done():
		s.leave(run)
		var none T
		return none, notRead(ctx)
	}
}

// leave takes away a caller. Without callers, the run may be ending, so the next caller begins another.
func (s *flights[T]) leave(run *flight[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if run.callers--; run.callers == 0 {
		run.abandon()
		s.forget(run)
	}
}

// forget makes the next caller begin another run. The caller must hold mu.
func (s *flights[T]) forget(run *flight[T]) {
	if s.now == run {
		s.now = nil
	}
}

func (s *flights[T]) run(ctx context.Context, run *flight[T], name string, function func(context.Context) (T, error)) {
	defer func() {
		if value := recover(); value != nil { // no caller could recover it
			run.err = &engine.PanicError{Function: name, Value: value, Stack: debug.Stack()}
		}
		run.abandon()
		s.mu.Lock()
		s.forget(run)
		s.mu.Unlock()
		close(run.done)
	}()
	run.err = errors.New(name + " ended its goroutine") // by runtime.Goexit
	run.value, run.err = function(ctx)
}
