package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/caisson-run/caisson/executor/internal/answers"
	"github.com/caisson-run/caisson/executor/internal/breaker"
	"github.com/caisson-run/caisson/executor/internal/output"
	"github.com/caisson-run/caisson/executor/internal/queue"
	"github.com/caisson-run/caisson/internal/rates"
	"github.com/caisson-run/caisson/tool"
)

// admit admits a call, or completes its record: its time is up, its result is known, it finds no slot, or it is no
// longer allowed or approved. The caller must call leave for an admitted call.
func (b *batch) admit(ctx context.Context, c *call) (in admitted, ok bool) {
	err := ended(ctx)
	switch {
	case err != nil:
		b.abandonWait(c)
		c.refuse(notStarted(err))
		return admitted{}, false
	case c.waits(): // no schedule comes here; a call that waits is never run, whatever else is wrong
		c.fail(errWaits)
		return admitted{}, false
	case c.source != nil:
		c.copyResult(c.source)
		return admitted{}, false
	}
	in, known, from, err := b.enter(ctx, c)
	switch {
	case err != nil:
		c.refuse(notAdmitted(c.tool, err))
		c.record.Usage.Queue = c.queued
		return admitted{}, false
	case !c.isAllowed(ctx):
		c.uncacheable.Store(true)
		c.record.Usage.Queue = c.queued
		b.leave(ctx, c, in)
		return admitted{}, false
	case from != answers.Asked:
		c.record.Cached, c.record.Source, c.record.Result = true, known.source, output.Clone(known.result)
		return admitted{}, false
	case c.wait != nil && !c.isApproved(): // it has started, so that it cannot wait for another
		c.refuse(tool.Busy, "the approval expired while the call waited for a slot; call it again")
		c.record.Usage.Queue = c.queued
		b.leave(ctx, c, in)
		return admitted{}, false
	}
	return in, true
}

var errWaits = errors.New("a waiting call was about to run")

// enter looks for the call's result in the cache, and for a slot. Identical calls at the same time are run once. No
// call waits for one that itself waits for a slot: that may be one of many of another session.
func (b *batch) enter(ctx context.Context, c *call) (in admitted, known answered, from answers.Source, err error) {
	admission := b.executor.admission
	if c.question == nil || b.executor.options.Reuse.Scope == ReuseBatch {
		in, err = admission.enter(ctx, c)
		return in, answered{}, answers.Asked, err
	}
	ready := answers.Ready{
		Get:  func(ctx context.Context) (err error) { in, err = admission.enter(ctx, c); return err },
		Drop: func() { in.leave(breaker.Unknown) },
	}
	known, from, flight, err := b.executor.answers.Find(ctx, *c.question, ready)
	in.flight = flight
	return in, known, from, err
}

// leave releases the slot of an admitted call, and shares its result if that may be cached.
func (b *batch) leave(ctx context.Context, c *call, in admitted) {
	outcome := breaker.Unknown
	if c.phase != phaseRefused {
		outcome = outcomeOf(ctx, c.record.Result.Kind)
	}
	if state := in.leave(outcome); state != breaker.Unchanged {
		level := slog.LevelInfo
		if state == breaker.Opened {
			level = slog.LevelWarn
		}
		b.executor.log.Log(ctx, level, "circuit breaker "+string(state), "call_id", c.record.CallID, "tool", c.tool,
			"tenant", b.session.tenant)
	}
	switch {
	case in.flight == nil:
	case c.record.Result.Success && !c.uncacheable.Load():
		in.flight.Land(answered{source: c.record.CallID, result: output.Clone(c.record.Result)}, true)
	default:
		in.flight.Land(answered{}, false)
	}
}

// outcomeOf returns the outcome that the circuit breaker counts for a call that ended with this kind.
func outcomeOf(ctx context.Context, kind tool.Kind) breaker.Outcome {
	switch kind {
	case tool.Trap, tool.Internal:
		return breaker.Failed
	case tool.Deadline, tool.Cancelled:
		if ended(ctx) != nil {
			return breaker.Unknown
		}
		return breaker.Failed // the tool's own limit ended it
	case tool.Busy:
		return breaker.Unknown
	default:
		return breaker.Succeeded
	}
}

// notAdmitted explains to a model why a call was not run.
func notAdmitted(name string, err error) (tool.Kind, string) {
	if open, ok := errors.AsType[*breaker.OpenError](err); ok {
		return tool.Busy,
			fmt.Sprintf(
				"%s crashed or timed out %d times in a row, so it is disabled for now; try again in %s, or do without it",
				name, open.Failures, formatWait(time.Until(open.Until)))
	}
	if slow, ok := errors.AsType[*rates.Error](err); ok {
		return tool.Busy, fmt.Sprintf("too many %s in a short time; try again in %s", slow.Of, formatWait(slow.After))
	}
	if full, ok := errors.AsType[*queue.Error](err); ok {
		whose := map[queue.Limit]string{queue.Tool: "this tool", queue.Tenant: "this tenant", queue.All: "all tenants"}
		return tool.Busy, fmt.Sprintf("too many calls of %s are running or waiting; try again later", whose[full.Limit])
	}
	return notStarted(err)
}

// formatWait formats a time, rounded up so that a retry is not too early.
func formatWait(d time.Duration) string {
	unit := time.Second
	if d < time.Second {
		unit = 10 * time.Millisecond
	}
	return max(d.Truncate(unit)+unit, unit).String()
}
