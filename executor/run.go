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
	files    []tool.File
	trace    string
	stream   *Stream // nil: nobody watches
	revision int     // how often the batch has paused before
	order    order   // of the calls that a model made

	mu     sync.Mutex
	totals tool.Totals
}

// run takes one call to its end.
func (b *batch) run(ctx context.Context, c *call) {
	c.began = time.Now()
	b.callStarted(ctx, c)
	switch {
	case c.refused:
	case c.wait != nil && c.wait.answer != nil: // the client ran it, whatever has ended since
		b.settleAnswer(ctx, c)
	default:
		b.take(ctx, c)
	}
	b.callFinished(ctx, c)
}

var errWaits = errors.New("a call that waits was to be run")

// take runs a call, if there is still time for it.
func (b *batch) take(ctx context.Context, c *call) {
	taken, stop := c.take(ctx)
	defer stop()
	switch err := taken.Err(); {
	case err != nil:
		c.refuse(notStarted(err))
		b.abandonWait(c)
	case isLate(taken):
		c.refuse(notStarted(context.DeadlineExceeded))
		b.abandonWait(c)
	case c.waits(): // no schedule comes here; a call that waits is never run, whatever else is wrong
		c.fail(errWaits)
	case c.source != nil:
		c.duplicates(c.source)
	default:
		b.answer(taken, c)
	}
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
	if c.wait != nil && !c.isApproved() { // it has started, so that it cannot wait for another
		in.abandon()
		c.refuse(tool.Busy, "the call waited for a place until its approval had run out; call it again")
		return
	}
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
