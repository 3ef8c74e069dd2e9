package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/caisson-run/caisson/internal/sampling"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// send emits an event, if there is a subscriber.
func (b *batch) send(kind tool.EventType, fill func(*tool.Event)) {
	subscribers := &b.executor.subscribers
	idle := subscribers.idle()
	if idle && b.stream == nil {
		return
	}
	event := b.event(kind)
	fill(&event)
	if !idle {
		subscribers.send(&event, b.session)
	}
	b.stream.offer(event)
}

func (b *batch) event(kind tool.EventType) tool.Event {
	return tool.Event{Type: kind, Time: time.Now(), Batch: b.id, Session: b.session.id, Tenant: b.session.tenant}
}

// describe sets the fields of an event that name the call.
func (c *call) describe(event *tool.Event) {
	event.CallID, event.Tool, event.Parent = c.record.CallID, c.tool, c.record.Parent
	event.Hidden = c.hidden()
}

func (c *call) hidden() bool { return c.entry.Manifest != nil && c.entry.Manifest.Behavior.Hidden }

// reportStart reports that the batch has started or was resumed, with the calls that have not ended.
func (b *batch) reportStart(kind tool.EventType, calls []*call) {
	b.send(kind, func(event *tool.Event) {
		event.Calls = make([]tool.Planned, 0, len(calls))
		for _, c := range calls {
			if c.phase != phaseEnded {
				event.Calls = append(event.Calls, c.planned())
			}
		}
	})
}

func (c *call) planned() tool.Planned {
	p := tool.Planned{ID: c.record.ID, CallID: c.record.CallID, Tool: c.tool, Type: c.record.Type,
		Arguments: c.record.Function.Arguments}
	if m := c.entry.Manifest; m != nil {
		p.Category, p.Hidden, p.Final, p.Client = m.Category, m.Behavior.Hidden, m.Behavior.Final,
			m.Execution == manifests.ExecutionClient
	}
	return p
}

// reportEnd reports that the batch ended or paused. It returns the totals.
func (b *batch) reportEnd(ctx context.Context, status Status, pending int) tool.Totals {
	b.mu.Lock()
	totals := b.totals
	b.mu.Unlock()
	kind, log := tool.BatchFinished, b.executor.log
	if status == RequiresAction {
		kind = tool.BatchPaused
		log.LogAttrs(ctx, slog.LevelInfo, "batch paused",
			slog.String("batch", b.id), slog.String("session", b.session.id), slog.Int("pending", pending))
	} else {
		log.LogAttrs(ctx, slog.LevelInfo, "batch finished",
			slog.String("batch", b.id), slog.String("session", b.session.id), slog.Int("calls", totals.Calls),
			slog.Int("failed", totals.Failed), slog.Int("skipped", totals.Skipped), slog.Int("cached", totals.Cached),
			slog.Int64("fuel", totals.Fuel), slog.Int64("output_bytes", totals.OutputBytes))
	}
	b.send(kind, func(event *tool.Event) {
		sent := totals
		event.Totals = &sent
	})
	return totals
}

func causeOf(err error) []any {
	attributes := []any{slog.String("error", textOf(err))}
	var panicked *panicError
	if errors.As(err, &panicked) {
		attributes = append(attributes, slog.String("stack", string(panicked.stack)))
	}
	return attributes
}

// logFinished logs how a call ended, without its arguments and results.
func (b *batch) logFinished(ctx context.Context, c *call) {
	level := slog.LevelWarn
	switch c.record.Result.Kind {
	case "":
		level = slog.LevelInfo
	case tool.Trap, tool.Internal:
		level = slog.LevelError
	}
	if !b.executor.log.Enabled(ctx, level) {
		return
	}
	attributes := []any{
		slog.String("call_id", c.record.CallID),
		slog.String("tool", c.tool),
		slog.String("kind", string(c.record.Result.Kind)),
		slog.Float64("ms", milliseconds(c.record.ExecutionTime)),
		slog.Float64("tool_ms", milliseconds(c.record.Usage.Wall)),
		slog.Float64("queue_ms", milliseconds(c.record.Usage.Queue)),
		slog.Float64("compile_ms", milliseconds(c.record.Usage.Compile)),
	}
	if c.record.Parent != "" {
		attributes = append(attributes, slog.String("parent", c.record.Parent))
	}
	if c.record.Source != "" {
		attributes = append(attributes, slog.String("source", c.record.Source))
	}
	if level == slog.LevelError && c.cause != nil {
		attributes = append(attributes, causeOf(c.cause)...)
	}
	b.executor.log.Log(ctx, level, "call finished", attributes...)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// textOf returns an error's text, bounded for the log. Error methods are the tool's code.
func textOf(err error) string {
	text, failure := isolate(func() (string, error) { return err.Error(), nil })
	if failure != nil {
		return fmt.Sprintf("a %T, whose Error method panicked", err)
	}
	return sampling.Cut(text)
}
