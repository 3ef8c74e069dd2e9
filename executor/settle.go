package executor

import (
	"context"
	"log/slog"

	"github.com/caisson-run/caisson/executor/internal/output"
	"github.com/caisson-run/caisson/tool"
)

// settle cuts the result to its share for the model, and reports how the call ended.
func (b *batch) settle(ctx context.Context, c *call) {
	if c.source == nil || c.phase == phaseRefused { // duplicates have the result of their source
		b.shorten(c)
	}
	hasRun := c.phase != phaseRefused
	c.phase = phaseEnded
	b.keep(ctx, c, hasRun)
	c.final = c.record.Result.Success && c.entry.Manifest != nil && c.entry.Manifest.Behavior.Final
	b.session.leave(c)
	b.mu.Lock()
	addTotals(&b.totals, &c.record)
	b.mu.Unlock()
	b.logFinished(ctx, c)
	if recorder := b.executor.options.Recorder; recorder != nil {
		b.report(ctx, c, "recorder failed", func() error {
			return recorder.Record(context.WithoutCancel(ctx), b.entryOf(c))
		})
	}
	c.inputs = nil
	output.CutDetails(&c.record, b.details)
	b.send(tool.CallFinished, func(event *tool.Event) {
		c.describe(event)
		record := c.record
		if c.parent != nil { // which may be many and large
			record.Result, record.Cuts = output.Cut(record.Result, b.executor.options.Output.share(1), nil, b.mark)
		}
		event.Record = &record
	})
}

// intend has the ledger keep that a call is about to run. If it cannot, it refuses the call, and returns false.
func (b *batch) intend(ctx context.Context, c *call) bool {
	ledger := b.executor.options.Ledger
	if ledger == nil || c.readOnly {
		return true
	}
	c.intended = true
	_, failure := isolate(func() (struct{}, error) { return struct{}{}, ledger.Intend(ctx, b.entryOf(c)) })
	if failure == nil {
		return true
	}
	if !c.isTooLate(ctx) {
		b.logFailure(ctx, c, "ledger failed", failure)
		c.refuse(tool.Busy, "the call was not run, since it cannot be recorded now; try again later")
	}
	c.record.Usage.Queue = c.queued
	return false
}

// keep has the ledger keep a call that has ended.
func (b *batch) keep(ctx context.Context, c *call, hasRun bool) {
	ledger := b.executor.options.Ledger
	if ledger == nil || b.report(ctx, c, "ledger failed",
		func() error { return ledger.Record(context.WithoutCancel(ctx), b.entryOf(c)) }) {
		return
	}
	c.record.Unrecorded = true
	if c.intended && hasRun {
		c.record.Result = tool.Result{Kind: tool.UnknownOutcome, Error: unknownOutcome}
		c.record.Cuts = nil
	}
}

const unknownOutcome = "the call was run, but what came of it could not be recorded; " +
	"find out what it has done before it is made again"

func (b *batch) entryOf(c *call) Entry {
	own := b.brought[c.tool].Manifest
	entry := Entry{
		Record: c.record, Whole: c.whole, Tool: c.tool, Brought: own != nil && own == c.entry.Manifest, Batch: b.id,
		Session: b.session.id, Tenant: b.session.tenant, User: b.session.user, Began: c.began, Intended: c.intended,
		Inputs: c.inputs,
	}
	if c.record.Result.Kind == tool.Internal && c.cause != nil {
		entry.Cause = textOf(c.cause)
	}
	return entry
}

// report calls the ledger or the recorder, which must not be able to end the worker that other calls wait for. It
// returns false if that failed, and logs a sample of such failures.
func (b *batch) report(ctx context.Context, c *call, message string, work func() error) bool {
	_, failure := isolate(func() (struct{}, error) { return struct{}{}, work() })
	if failure != nil {
		b.logFailure(ctx, c, message, failure)
	}
	return failure == nil
}

func (b *batch) logFailure(ctx context.Context, c *call, message string, failure error) {
	b.executor.failures.ErrorContext(ctx, message, append(causeOf(failure), slog.String("call_id", c.record.CallID))...)
}

func addTotals(t *tool.Totals, r *tool.Record) {
	t.Calls++
	if r.Parent != "" {
		t.Nested++
	} else {
		t.OutputBytes += int64(r.Result.Size())
	}
	if r.Result.Success {
		t.Succeeded++
	} else {
		t.Failed++
	}
	if r.Skipped {
		t.Skipped++
	}
	if r.Cached {
		t.Cached++
	}
	if r.Skipped || r.Cached {
		return
	}
	if r.Usage.Fuel != nil {
		t.Fuel += *r.Usage.Fuel
	}
	t.MemoryBytes = max(t.MemoryBytes, r.Usage.MemoryBytes)
	if r.Parent == "" {
		t.Wall += r.Usage.Wall
	}
	t.HostCalls += r.Usage.HostCalls
}
