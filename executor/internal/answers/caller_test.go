package answers_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/caisson-run/caisson/executor/internal/answers"
)

// outcome is the end of an ask.
type outcome struct {
	answer sized
	keep   bool
	how    string // "" returns, "panic" and "goexit"
}

// caller is a goroutine in Do, whose ask ends when the test says so. Its state may be read
// after synctest.Wait.
type caller struct {
	cancel context.CancelFunc
	finish chan outcome
	place  chan error // what Get returns; nil for a caller that needs no place
	state  state
}

type state struct {
	waits    bool // for a place
	places   int  // that it got, and did not give back
	asks     bool // its ask was called, and has not ended
	returned bool
	panicked any
	exited   bool // by runtime.Goexit
	answer   sized
	from     answers.Source
	err      error
}

func ask(t *testing.T, c *cache, q answers.Question[string]) *caller {
	return start(t, c, q, nil)
}

// askWhenReady is ask for a caller that first waits for a place.
func askWhenReady(t *testing.T, c *cache, q answers.Question[string]) *caller {
	return start(t, c, q, make(chan error))
}

func start(t *testing.T, c *cache, q answers.Question[string], place chan error) *caller {
	ctx, cancel := context.WithCancel(t.Context())
	caller := &caller{cancel: cancel, finish: make(chan outcome), place: place}
	go caller.run(ctx, c, q)
	return caller
}

func (c *caller) run(ctx context.Context, cache *cache, q answers.Question[string]) {
	defer func() {
		c.state.panicked = recover()
		c.state.exited = !c.state.returned && c.state.panicked == nil
		c.cancel()
	}()
	var ready answers.Ready
	if c.place != nil {
		ready = answers.Ready{Get: c.get, Drop: func() { c.state.places-- }}
	}
	answer, from, err := cache.Do(ctx, q, ready, c.ask)
	c.state.returned, c.state.answer, c.state.from, c.state.err = true, answer, from, err
}

func (c *caller) get(ctx context.Context) error {
	c.state.waits = true
	defer func() { c.state.waits = false }()
	select {
	case err := <-c.place:
		if err == nil {
			c.state.places++
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *caller) ask(context.Context) (sized, bool) {
	c.state.asks = true
	end := <-c.finish
	c.state.asks = false
	switch end.how {
	case "panic":
		panic("ask")
	case "goexit":
		runtime.Goexit()
	}
	return end.answer, end.keep
}
