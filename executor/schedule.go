package executor

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/caisson-run/caisson/tool"
)

// schedule runs calls: read-only neighbours together, any other alone. A call that was
// refused runs nothing, so it separates nothing.
func (e *Executor) schedule(ctx context.Context, calls []*call) {
	for len(calls) > 0 {
		n := 0
		for n < len(calls) && (calls[n].refused || calls[n].readOnly) {
			n++
		}
		if n == 0 {
			n = 1
		}
		e.together(ctx, calls[:n])
		calls = calls[n:]
	}
}

// together runs calls at the same time, as many as may, started in their order, and
// returns when all have ended.
func (e *Executor) together(ctx context.Context, calls []*call) {
	if len(calls) == 1 {
		e.run(ctx, calls[0])
		return
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(e.parallel, len(calls)) {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(calls) {
					return
				}
				e.run(ctx, calls[i])
			}
		})
	}
	workers.Wait()
}

// run takes one call to its end.
func (e *Executor) run(ctx context.Context, c *call) {
	e.started(ctx, c)
	if !c.refused {
		if err := ctx.Err(); err != nil {
			c.refuse(notStarted(err))
		} else {
			e.invoke(ctx, c)
		}
	}
	e.finished(ctx, c)
}

// notStarted explains why a call was not started, given how its context ended.
func notStarted(err error) (tool.Kind, string) {
	if errors.Is(err, context.DeadlineExceeded) {
		return tool.Deadline, "the time was up before the call was started"
	}
	return tool.Cancelled, "the calls were cancelled before this one was started"
}
