package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-run/caisson/executor/internal/breaker"
	"github.com/caisson-run/caisson/executor/internal/queue"
	"github.com/caisson-run/caisson/executor/internal/rates"
	"github.com/caisson-run/caisson/tool"
)

// admission decides when a call may run. Everything is counted for each tenant by itself, so
// that none can keep a tool from another.
type admission struct {
	queue     *queue.Queue
	breakers  *breaker.Breakers[circuit] // nil: none
	perTool   *rates.Limiter[circuit]    // nil: unlimited, as the others
	perTenant *rates.Limiter[string]
	all       *rates.Limiter[struct{}]
	wait      time.Duration // the longest for a rate, with a place in hand
}

// longestPause is how long a call keeps its place and waits for a rate.
const longestPause = time.Second

// circuit is one tool as one tenant calls it.
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
	a.perTool, a.perTenant, a.all = limiter[circuit](o.Rates.PerTool), limiter[string](o.Rates.PerTenant), limiter[struct{}](o.Rates.All)
	return a
}

func limiter[K comparable](rate Rate) *rates.Limiter[K] {
	if rate.Unlimited {
		return nil
	}
	return rates.New[K](rate.Calls, rate.Per)
}

// admitted is a call that may run. It must leave.
type admitted struct {
	attempt breaker.Attempt[circuit] // the zero value where there are no breakers
	place   *queue.Place             // nil for a call that has its caller's
}

// enter waits until a call may run. Calls of tools have their caller's turn.
func (a *admission) enter(ctx context.Context, c *call) (in admitted, err error) {
	at := circuit{c.batch.session.tenant, c.entry.Registration, c.tool}
	if in.attempt, err = a.allow(at); err != nil {
		return admitted{}, err
	}
	if c.parent == nil {
		in.place, err = a.queue.Enter(ctx, queue.Call{Tenant: at.tenant, Session: c.batch.session.key, Tool: c.tool})
	}
	if err == nil { // after the queue, which is fair, as the rates are not
		err = a.take(ctx, at)
	}
	in.attempt.Report(breaker.Unknown)
	if err == nil {
		// While the call waited, those before it may have opened the circuit.
		in.attempt, err = a.allow(at)
	}
	if err != nil {
		in.abandon()
		return admitted{}, err
	}
	return in, nil
}

func (a *admission) allow(at circuit) (breaker.Attempt[circuit], error) {
	if a.breakers == nil {
		return breaker.Attempt[circuit]{}, nil
	}
	return a.breakers.Allow(at)
}

// take counts the call in all rates, the narrowest first: a call that one of them refuses costs the
// wider ones nothing.
func (a *admission) take(ctx context.Context, at circuit) error {
	if err := take(ctx, a.perTool, at, a.wait, "calls of this tool"); err != nil {
		return err
	}
	if err := take(ctx, a.perTenant, at.tenant, a.wait, "calls"); err != nil {
		return err
	}
	return take(ctx, a.all, struct{}{}, a.wait, "calls of all tenants")
}

func take[K comparable](ctx context.Context, limiter *rates.Limiter[K], key K, most time.Duration, of string) error {
	if limiter == nil {
		return nil
	}
	err := limiter.Take(ctx, key, most)
	if exceeded, ok := errors.AsType[*rates.Error](err); ok {
		return &rateError{of, exceeded.After}
	}
	return err
}

// rateError is a rate that a call is above.
type rateError struct {
	of    string
	after time.Duration
}

func (e *rateError) Error() string {
	return fmt.Sprintf("rate of %s: the next is in %s", e.of, e.after)
}

// leave ends a call, and tells what its end changed. The context is the call's.
func (in admitted) leave(ctx context.Context, kind tool.Kind) breaker.State {
	state := in.attempt.Report(judge(ctx, kind)) // first: whoever has the place next must know
	if in.place != nil {
		in.place.Leave()
	}
	return state
}

// abandon ends a call that was let in and does not run.
func (in admitted) abandon() {
	in.attempt.Report(breaker.Unknown)
	if in.place != nil {
		in.place.Leave()
	}
}

// judge tells what the end of a call says of its tool.
func judge(ctx context.Context, kind tool.Kind) breaker.Outcome {
	switch kind {
	case tool.Trap, tool.Internal:
		return breaker.Failed
	case tool.Deadline, tool.Cancelled:
		if isOver(ctx) {
			return breaker.Unknown
		}
		return breaker.Failed // nobody else ended it
	case tool.Busy:
		return breaker.Unknown
	default:
		return breaker.Succeeded
	}
}

// isOver reports whether the time is up that the caller gave, rather than the tool's own.
func isOver(ctx context.Context) bool { return ctx.Err() != nil || isLate(ctx) }

// isLate reports whether a context's deadline has come, also where its timer is late.
func isLate(ctx context.Context) bool {
	at, ok := ctx.Deadline()
	return ok && !time.Now().Before(at)
}

// notAdmitted explains to a model why a call was not run.
func notAdmitted(name string, err error) (tool.Kind, string) {
	if open, ok := errors.AsType[*breaker.OpenError](err); ok {
		return tool.Busy, fmt.Sprintf("%s crashed or ran out of time %d times in a row, so it is not called for now; try again in %s, or do without it",
			name, open.Failures, inWords(time.Until(open.Until)))
	}
	if slow, ok := errors.AsType[*rateError](err); ok {
		return tool.Busy, fmt.Sprintf("too many %s in a short time; try again in %s", slow.of, inWords(slow.after))
	}
	if full, ok := errors.AsType[*queue.Error](err); ok {
		if full.Kind == queue.ErrWaited {
			return tool.Busy, fmt.Sprintf("no place became free in time among the calls of %s; try again later", whose(full.Limit))
		}
		return tool.Busy, fmt.Sprintf("too many calls of %s are running or waiting; try again later", whose(full.Limit))
	}
	return notStarted(err)
}

func whose(limit queue.Limit) string {
	switch limit {
	case queue.Tool:
		return "this tool"
	case queue.Tenant:
		return "this tenant"
	default:
		return "everybody"
	}
}

// inWords rounds a time up, so that it is not too early to come again.
func inWords(d time.Duration) string {
	unit := time.Second
	if d < time.Second {
		unit = 10 * time.Millisecond
	}
	return max(d.Truncate(unit)+unit, unit).String()
}
