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
	c.phase = phaseEnded
	c.final = c.record.Result.Success && c.entry.Manifest != nil && c.entry.Manifest.Behavior.Final
	b.session.leave(c)
	b.mu.Lock()
	addTotals(&b.totals, &c.record)
	b.mu.Unlock()
	b.logFinished(ctx, c)
	b.recordCall(ctx, c)
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

// recordCall passes the call to the recorder, which must not be able to end the worker that other calls wait for.
func (b *batch) recordCall(ctx context.Context, c *call) {
	if b.executor.options.Recorder == nil {
		return
	}
	own := b.brought[c.tool].Manifest
	entry := Entry{
		Record: c.record, Whole: c.whole, Tool: c.tool, Brought: own != nil && own == c.entry.Manifest, Batch: b.id,
		Session: b.session.id, Tenant: b.session.tenant, User: b.session.user, Began: c.began,
	}
	if c.record.Result.Kind == tool.Internal && c.cause != nil {
		entry.Cause = textOf(c.cause)
	}
	_, failure := isolate(func() (struct{}, error) {
		return struct{}{}, b.executor.options.Recorder.Record(context.WithoutCancel(ctx), entry)
	})
	if failure != nil {
		attributes := append(causeOf(failure), slog.String("call_id", entry.Record.CallID))
		b.executor.failures.ErrorContext(ctx, "recorder failed", attributes...)
	}
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
