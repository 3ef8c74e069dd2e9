package executor

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/caisson-run/caisson/executor/internal/breaker"
	"github.com/caisson-run/caisson/tool"
)

// batch is one batch under way.
type batch struct {
	executor *Executor
	session  *Session
	id       string
	allowed  map[string]bool // by registered name; nil allows all
	parallel int
	share    int // bytes of each result that go to the model

	mu     sync.Mutex
	totals tool.Totals
}

// run takes one call to its end.
func (b *batch) run(ctx context.Context, c *call) {
	c.began = time.Now()
	b.callStarted(ctx, c)
	if !c.refused {
		taken, stop := c.take(ctx)
		switch err := taken.Err(); {
		case err != nil:
			c.refuse(notStarted(err))
		case isLate(taken):
			c.refuse(notStarted(context.DeadlineExceeded))
		case c.source != nil:
			c.duplicates(c.source)
		default:
			b.answer(taken, c)
		}
		stop()
	}
	b.callFinished(ctx, c)
}

// attempt runs a call if it is let in, and completes its record.
func (b *batch) attempt(ctx context.Context, c *call) {
	in, err := b.executor.admission.enter(ctx, c)
	if err != nil {
		c.refuse(notAdmitted(c.tool, err))
		return
	}
	b.perform(ctx, c, in)
}

// perform runs a call that was let in, and completes its record.
func (b *batch) perform(ctx context.Context, c *call, in admitted) {
	if !c.readOnly {
		defer b.barrier(c)()
	}
	c.nest.open(ctx)
	b.executor.invoke(ctx, c)
	c.nest.close()
	if state := in.leave(ctx, c.record.Result.Kind); state != breaker.Unchanged {
		b.breakerChanged(ctx, c, state)
	}
}

// notStarted explains why a call was not started, given how its context ended.
func notStarted(err error) (tool.Kind, string) {
	if errors.Is(err, context.DeadlineExceeded) {
		return tool.Deadline, "the time was up before the call was started"
	}
	return tool.Cancelled, "the call was cancelled before it was started"
}
