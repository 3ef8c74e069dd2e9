package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-run/caisson/executor/internal/breaker"
	"github.com/caisson-run/caisson/executor/internal/queue"
	"github.com/caisson-run/caisson/internal/rates"
	"github.com/caisson-run/caisson/tool"
)

// admission decides when a call may run. Limits are counted per tenant, so that no tenant can keep a tool from
// another.
type admission struct {
	queue     *queue.Queue
	breakers  *breaker.Breakers[circuit] // nil: off
	perTool   *rates.Limiter[circuit]    // nil: unlimited; likewise the others
	perTenant *rates.Limiter[string]
	all       *rates.Limiter[struct{}]
	wait      time.Duration // the longest for a rate, while holding a slot
}

// longestPause is how long a call keeps its slot while it waits for a rate.
const longestPause = time.Second

// circuit is one tool as one tenant calls it, with a circuit breaker and a rate of its own.
type circuit struct {
	tenant string
	tool   tool.Registration
	name   string // resolvers need not know registrations
}

func newAdmission(o Options) *admission {
	a := &admission{queue: queue.New(queue.Limits(o.Limits)), wait: min(o.Limits.Wait, longestPause)}
	if !o.Breaker.Off {
		a.breakers = breaker.New[circuit](o.Breaker.Failures, o.Breaker.Open)
	}
	a.perTool = limiter[circuit]("calls of this tool", o.Rates.PerTool)
	a.perTenant = limiter[string]("calls", o.Rates.PerTenant)
	a.all = limiter[struct{}]("calls of all tenants", o.Rates.All)
	return a
}

func limiter[K comparable](of string, rate Rate) *rates.Limiter[K] {
	if rate.Unlimited {
		return nil
	}
	return rates.New[K](rates.Limit{Of: of, PerSecond: float64(rate.Calls) / rate.Per.Seconds(), Burst: rate.Calls})
}

// admitted is a call that may run. It must leave.
type admitted struct {
	attempt breaker.Attempt[circuit] // zero if breakers are off
	place   *queue.Place             // nil for a nested call
}

// enter waits until a call may run. Nested calls run in their caller's slot.
func (a *admission) enter(ctx context.Context, c *call) (in admitted, err error) {
	began := time.Now()
	defer func() { c.queued += time.Since(began) }()
	at := circuit{c.batch.session.tenant, c.entry.Registration, c.tool}
	if in.attempt, err = a.breakers.Allow(at); err != nil {
		return admitted{}, err
	}
	if c.parent == nil {
		in.place, err = a.queue.Enter(ctx, queue.Call{Tenant: at.tenant, Session: c.batch.session.key, Tool: c.tool})
	}
	if err == nil { // after the queue, which is fair; rates are not
		err = a.take(ctx, at)
	}
	in.attempt.Report(breaker.Unknown)
	if err == nil {
		// Calls before this one may have opened the circuit while it waited.
		in.attempt, err = a.breakers.Allow(at)
	}
	if err != nil {
		in.leave(breaker.Unknown)
		return admitted{}, err
	}
	return in, nil
}

// take counts the call in all rates, the narrowest first, so that a refused call does not use up the wider ones.
func (a *admission) take(ctx context.Context, at circuit) error {
	err := a.perTool.Take(ctx, at, a.wait)
	if err == nil {
		err = a.perTenant.Take(ctx, at.tenant, a.wait)
	}
	if err == nil {
		err = a.all.Take(ctx, struct{}{}, a.wait)
	}
	return err
}

// leave ends a call, and returns how that changed the circuit.
func (in admitted) leave(outcome breaker.Outcome) breaker.State {
	state := in.attempt.Report(outcome) // before the next call gets the slot
	if in.place != nil {
		in.place.Leave()
	}
	return state
}

// judge returns what the end of a call means for its circuit.
func judge(ctx context.Context, kind tool.Kind) breaker.Outcome {
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

// ended returns why a context has ended, or nil. A passed deadline counts even if the context's timer is late.
func ended(ctx context.Context) error {
	if at, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(at) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// notAdmitted completes the record of a call that was not let in.
func (c *call) notAdmitted(err error) {
	c.refuse(notAdmitted(c.tool, err))
	c.record.Usage.Queue = c.queued
}

// notAdmitted explains to a model why a call was not run.
func notAdmitted(name string, err error) (tool.Kind, string) {
	if open, ok := errors.AsType[*breaker.OpenError](err); ok {
		return tool.Busy, fmt.Sprintf("%s crashed or timed out %d times in a row, so it is disabled for now; try again in %s, or do without it",
			name, open.Failures, inWords(time.Until(open.Until)))
	}
	if slow, ok := errors.AsType[*rates.Error](err); ok {
		return tool.Busy, fmt.Sprintf("too many %s in a short time; try again in %s", slow.Of, inWords(slow.After))
	}
	if full, ok := errors.AsType[*queue.Error](err); ok {
		whose := map[queue.Limit]string{queue.Tool: "this tool", queue.Tenant: "this tenant", queue.All: "all tenants"}
		return tool.Busy, fmt.Sprintf("too many calls of %s are running or waiting; try again later", whose[full.Limit])
	}
	return notStarted(err)
}

// inWords formats a time, rounded up so that a retry is not too early.
func inWords(d time.Duration) string {
	unit := time.Second
	if d < time.Second {
		unit = 10 * time.Millisecond
	}
	return max(d.Truncate(unit)+unit, unit).String()
}
