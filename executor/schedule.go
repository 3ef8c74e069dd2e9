package executor

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/caisson-run/caisson/tool"
)

// schedule runs calls as far as they go: read-only neighbours together, any other alone. A call that
// was refused runs nothing, so it separates nothing. It returns what the batch then is.
func (b *batch) schedule(ctx context.Context, calls []*call) Status {
	all := calls
	b.settleAnswers(ctx, calls)
	b.refuseLong(ctx, calls)
	b.requestApprovals(ctx, calls)
	for {
		calls = b.runReady(ctx, calls)
		switch {
		case len(calls) == 0:
			return Completed
		case ended(ctx) != nil:
			for _, c := range calls {
				if c.phase != phaseEnded {
					b.finish(ctx, c) // which refuses it
				}
			}
			return Completed
		}
		if b.runIdle(ctx, calls) || b.refuseUnstorable(ctx, all) {
			continue // which may have made others ready
		}
		if b.session.park(calls) {
			b.keepApprovals(calls)
			return RequiresAction
		}
	}
}

// runReady runs calls until none is ready, and returns those that remain behind the first that has
// not ended, with that one.
func (b *batch) runReady(ctx context.Context, calls []*call) []*call {
	ready := make([]*call, 0, len(calls))
	for {
		for len(calls) > 0 && calls[0].phase == phaseEnded {
			calls = calls[1:]
		}
		ready = b.ready(ctx, calls, ready[:0])
		if len(ready) == 0 {
			return calls
		}
		b.together(ctx, ready)
	}
}

// ready appends the calls that can run beside each other next, and announces those that the client
// can run meanwhile: calls of its own in any order, since it is handed them together and keeps it
// itself, and of those that are run here none that must not be passed. Behind a call that changes
// something and cannot run yet, nothing runs.
func (b *batch) ready(ctx context.Context, calls, ready []*call) []*call {
	here := false   // a call before is run here, and has not ended
	client := false // the client runs one before
	held := false   // and it changes something
	for _, c := range calls {
		switch {
		case c.phase == phaseEnded:
		case c.phase == phaseRefused || c.isCancelled():
			ready = append(ready, c)
		case c.isClient():
			if here && !c.readOnly || ended(ctx) != nil { // where it is over, nobody waits for an answer
				return ready
			}
			b.announce(ctx, c)
			client, held = true, held || !c.readOnly
		case !c.readOnly:
			if !here && !client && len(ready) == 0 && !c.waits() {
				ready = append(ready, c)
			}
			return ready
		default:
			here = true
			if !held && !c.waits() {
				ready = append(ready, c)
			}
		}
	}
	return ready
}

// runIdle ends the calls that run nothing, wherever they stand: nobody need wait to learn of them. It
// reports whether there were any.
func (b *batch) runIdle(ctx context.Context, calls []*call) (some bool) {
	for _, c := range calls {
		if c.phase == phaseRefused || c.phase != phaseEnded && c.isCancelled() {
			b.finish(ctx, c)
			some = true
		}
	}
	return some
}

// finish runs a call that has no duplicates.
func (b *batch) finish(ctx context.Context, c *call) {
	b.run(ctx, c)
	c.whole = tool.Result{}
}

// together runs calls at the same time, as many as may, started in their order, and
// returns when all have ended, but for those that have to wait again.
func (b *batch) together(ctx context.Context, calls []*call) {
	if len(calls) == 1 {
		b.runSame(ctx, calls)
		return
	}
	questions := group(calls)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(b.parallel, len(questions)) {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(questions) {
					return
				}
				b.runSame(ctx, questions[i])
			}
		})
	}
	workers.Wait()
}

// group puts calls that ask the same together, at the place of the first of them.
func group(calls []*call) [][]*call {
	groups := make([][]*call, 0, len(calls))
	first := make(map[key]int, len(calls))
	for i, c := range calls {
		if c.question != nil {
			if at, ok := first[c.question.Key]; ok {
				groups[at] = append(groups[at], c)
				continue
			}
			first[c.question.Key] = len(groups)
		}
		groups = append(groups, calls[i:i+1:i+1])
	}
	return groups
}

// runSame runs the first of calls that ask the same. The others have what it came to, unless
// that says nothing of what they would.
func (b *batch) runSame(ctx context.Context, calls []*call) {
	var source *call
	for _, c := range calls {
		if !b.clear(ctx, c) {
			continue
		}
		c.source = source
		b.run(ctx, c)
		if source == nil && c.tells() {
			source = c
			continue
		}
		c.whole = tool.Result{}
	}
	if source != nil {
		source.whole = tool.Result{}
	}
}
