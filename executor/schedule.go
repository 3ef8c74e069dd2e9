package executor

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/caisson-run/caisson/tool"
)

// schedule runs calls as far as possible: adjacent read-only calls in parallel, any other call by itself. Refused calls
// run nothing, so they are not barriers. It returns the status of the batch.
func (b *batch) schedule(ctx context.Context, calls []*call) Status {
	for _, c := range calls { // first, since their effects precede those of any call that runs from now on
		if c.phase == phaseAnswered {
			b.finish(ctx, c)
		}
	}
	b.refuseTooLong(ctx, calls, maxWaitingBytes, false) // before they are announced
	for _, c := range calls {                           // all approvals at once, so that the approver is asked once
		if c.waits() && !c.isClient() {
			b.announce(ctx, c)
		}
	}
	left, ready := calls, make([]*call, 0, len(calls))
	for {
		for len(left) > 0 && left[0].phase == phaseEnded {
			left = left[1:]
		}
		ready = b.ready(ctx, left, ready[:0])
		switch {
		case len(ready) > 0:
			b.runParallel(ctx, ready)
		case len(left) == 0:
			return Completed
		case ended(ctx) != nil:
			for _, c := range left {
				if c.phase != phaseEnded {
					b.finish(ctx, c) // which refuses it
				}
			}
			return Completed
		case b.runIdle(ctx, left) || b.refuseTooLong(ctx, calls, maxCallsBytes, true): // other calls may be ready now
		case b.session.park(left):
			b.keepApprovals(left)
			return RequiresAction
		}
	}
}

// ready appends the calls that can run in parallel next, and announces those that the client can run meanwhile.
// The client gets its calls together and keeps their order itself, so they do not wait for each other; they
// do wait for the calls that run here and must not be overtaken. No call runs before an earlier one that
// is not read-only and cannot run yet.
func (b *batch) ready(ctx context.Context, calls, ready []*call) []*call {
	here := false   // an earlier call runs here, and has not ended
	client := false // the client runs an earlier call
	held := false   // which is not read-only
	for _, c := range calls {
		switch {
		case c.phase == phaseEnded:
		case c.phase == phaseRefused || c.isCancelled():
			ready = append(ready, c)
		case c.isClient():
			if here && !c.readOnly || ended(ctx) != nil { // a batch that is over does not pause
				return ready
			}
			if c.phase == phaseWaiting && !c.isAllowed(ctx) { // the client would start it now
				ready = append(ready, c)
				continue
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

// runIdle ends refused and cancelled calls at once, at any position. It reports whether there were any.
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
	b.runCall(ctx, c)
	c.whole = tool.Result{}
}

// runParallel runs calls within the limit, started in order, and returns when all have ended or wait again.
func (b *batch) runParallel(ctx context.Context, calls []*call) {
	if len(calls) == 1 {
		b.runGroup(ctx, calls)
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
				b.runGroup(ctx, questions[i])
			}
		})
	}
	workers.Wait()
}

// group groups identical calls, at the position of the first.
func group(calls []*call) [][]*call {
	groups := make([][]*call, 0, len(calls))
	first := make(map[resultKey]int, len(calls))
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

// runGroup runs the first of identical calls, and the next one where its result does not apply to the later ones.
func (b *batch) runGroup(ctx context.Context, calls []*call) {
	var source *call
	for _, c := range calls {
		if !b.clear(ctx, c) {
			continue
		}
		c.source = source
		b.runCall(ctx, c)
		if source == nil && c.isShareable() {
			source = c
			continue
		}
		c.whole = tool.Result{}
	}
	if source != nil {
		source.whole = tool.Result{}
	}
}
