package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/caisson-run/caisson/executor/internal/output"
	"github.com/caisson-run/caisson/internal/planning"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// nestedCalls admits the calls that a running call makes. The zero value admits none.
type nestedCalls struct {
	mu      sync.Mutex
	caller  context.Context // nil while the call does not run
	ctx     context.Context // of all nested calls; nil before the first
	stop    context.CancelFunc
	turn    chan struct{} // a semaphore: one of them runs at a time
	running sync.WaitGroup
}

// open admits nested calls. ctx, the caller's own, ends them.
func (n *nestedCalls) open(ctx context.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.caller = ctx
}

// close admits no more calls, and ends those that are still running: one that outlived its caller's record would
// run concurrently with the batch's next calls.
func (n *nestedCalls) close() {
	n.mu.Lock()
	n.caller = nil
	if n.stop != nil {
		n.stop()
	}
	n.mu.Unlock()
	n.running.Wait()
}

// enter admits one call, after which leave must be called, or returns nil if the caller does not run.
func (n *nestedCalls) enter() context.Context {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.caller == nil {
		return nil
	}
	if n.ctx == nil {
		n.ctx, n.stop = context.WithCancel(n.caller)
		n.turn = make(chan struct{}, 1)
	}
	n.running.Add(1)
	return n.ctx
}

func (n *nestedCalls) leave() { n.running.Done() }

// Call implements [tool.Host].
func (c *call) Call(ctx context.Context, requested tool.Call) (tool.Record, error) {
	caller := c.nested.enter()
	if caller == nil {
		return tool.Record{}, c.refuseNested(requested, tool.Cancelled, "the call that makes this one has ended")
	}
	defer c.nested.leave()
	ctx, stop := within(ctx, caller)
	defer stop()
	select {
	case c.nested.turn <- struct{}{}: // one at a time: they share the caller's slot
		defer func() { <-c.nested.turn }()
	case <-ctx.Done():
		kind, message := notStarted(ctx.Err())
		return tool.Record{}, c.refuseNested(requested, kind, message)
	}
	nesting := c.batch.executor.options.Nesting
	if c.depth >= nesting.Depth {
		return tool.Record{}, c.refuseNested(requested, tool.Busy, fmt.Sprintf("calls may be nested %d deep", nesting.Depth))
	}
	outermost := c
	for outermost.parent != nil {
		outermost = outermost.parent
	}
	if outermost.made.Add(1) > int64(nesting.Calls) {
		return tool.Record{}, c.refuseNested(requested, tool.Busy, fmt.Sprintf("one call may make %d calls", nesting.Calls))
	}
	id, err := uuid.NewV7()
	if err != nil {
		return tool.Record{}, c.refuseNested(requested, tool.Internal, "no id for the call")
	}
	made := c.make(ctx, requested, id.String())
	c.batch.session.enter(made)
	c.batch.runCall(ctx, made)
	if made.wait != nil { // another session may have other approvals
		c.uncacheable.Store(true)
	}
	if m := made.entry.Manifest; made.failedTransiently() || made.uncacheable.Load() ||
		m != nil && m.Behavior.Cache == manifests.CacheOff {
		c.uncacheable.Store(true)
	}
	record := made.record
	record.Result = output.Clone(record.Result) // the tool may change it
	return record, nil
}

// within returns a context that also ends with the caller's, and then has the same error.
func within(ctx, caller context.Context) (context.Context, context.CancelFunc) {
	timed := func() {}
	own, has := ctx.Deadline()
	if deadline, ok := caller.Deadline(); ok && (!has || own.After(deadline)) {
		ctx, timed = context.WithDeadline(ctx, deadline)
	}
	ctx, stop := context.WithCancel(ctx)
	forget := context.AfterFunc(caller, func() {
		if !errors.Is(caller.Err(), context.DeadlineExceeded) {
			stop()
		}
	})
	return ctx, func() { forget(); stop(); timed() }
}

// refuseNested returns the error for a call that is not admitted. Another caller's might be, so nothing is cached.
func (c *call) refuseNested(requested tool.Call, kind tool.Kind, message string) error {
	c.uncacheable.Store(true)
	return &tool.Error{Op: "call", Tool: requested.Function.Name, Kind: kind, Message: message}
}

// make plans a nested call.
func (c *call) make(ctx context.Context, requested tool.Call, id string) *call {
	made := c.batch.newCall(requested, id)
	made.parent, made.depth = c, c.depth+1
	made.record.Parent = c.record.CallID
	ended := planning.Begin(ctx)
	made.batch.planInTurns(ctx, []*call{made}, func(int, *call) {})
	ended()
	if made.phase == phaseRefused {
		return made
	}
	// A runtime has checked the permission. For a tool written in Go this is the only check.
	switch manifest := c.entry.Manifest; {
	case !slices.Contains(manifest.Permissions.Tools, made.tool) &&
		!slices.Contains(manifest.Permissions.Tools, requested.Function.Name):
		made.deny("tools", fmt.Sprintf("%s may not call %s: its manifest does not ask for it", c.tool, made.tool),
			tool.Allow{Manifest: manifests.Permissions{Tools: []string{requested.Function.Name}}.Rule()})
	case c.readOnly && !made.readOnly:
		made.deny("read_only", fmt.Sprintf("%s is read_only, so it may not call %s, which is not", c.tool, made.tool),
			tool.Allow{})
	case made.waits() && made.isClient(): // as the next: the caller cannot wait
		made.deny("execution", fmt.Sprintf("the client runs %s, so no tool can call it", made.tool), tool.Allow{})
	case made.waits():
		made.deny("approval", fmt.Sprintf("calls of %s require approval (%s), and a tool cannot wait for one", made.tool,
			made.wait.action.Reason), tool.Allow{})
	default:
		made.checkApprovedCallees(ctx)
	}
	return made
}

// Page implements [tool.Host]. A page is never longer than the model's share of this call's result, so that it is not
// cut again.
func (c *call) Page(reference string, from, limit int64) (tool.Page, error) {
	if c.nested.enter() == nil {
		return tool.Page{}, &tool.Error{Op: "page", Kind: tool.Cancelled, Message: "the call has ended"}
	}
	defer c.nested.leave()
	c.uncacheable.Store(true) // another session has other pages
	if limit >= 0 {
		limit = min(cmp.Or(limit, output.DefaultPage), max(int64(c.batch.share)-pageOverhead, 1))
	}
	return c.batch.session.Page(reference, from, limit)
}

// pageOverhead is the number of bytes of a result that are not the page's text.
const pageOverhead = 256

// Emit implements [tool.Host].
func (c *call) Emit(emission tool.Emission) error {
	if c.nested.enter() == nil {
		return &tool.Error{Op: "emit", Tool: c.tool, Kind: tool.Cancelled, Message: "the call has ended"}
	}
	defer c.nested.leave()
	if err := emission.Check(); err != nil {
		return err
	}
	if c.batch.stream == nil || c.parent != nil || c.hidden() {
		return nil
	}
	event := c.batch.event(tool.CallOutput)
	c.describe(&event)
	event.Emission = &emission // of which the stream makes a copy
	c.batch.stream.offer(event)
	return nil
}

// failedTransiently reports whether a nested call failed for a transient reason.
func (c *call) failedTransiently() bool {
	switch c.record.Result.Kind {
	case "", tool.ToolFailed, tool.InvalidArguments, tool.Memory, tool.Output: // but not Fuel, which may be its caller's
		return false
	case tool.Denied:
		return !c.record.Skipped || slices.ContainsFunc(c.record.Denials,
			func(d tool.Denial) bool { return d.Permission == availabilityPermission })
	}
	return true
}
