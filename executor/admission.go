package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caisson-run/caisson/executor/internal/breaker"
	"github.com/caisson-run/caisson/executor/internal/rates"
	"github.com/caisson-run/caisson/executor/internal/turns"
	"github.com/caisson-run/caisson/tool"
)

// admission decides when a call may run. Everything is counted for each tenant by itself, so
// that none can keep a tool from another.
type admission struct {
	queue     *turns.Queue
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

func newAdmission(o Options) (*admission, error) {
	queue, err := turns.New(turns.Limits{
		Running: o.Limits.Running, PerTenant: o.Limits.PerTenant, PerTool: o.Limits.PerTool, Waiting: o.Limits.Waiting, Wait: o.Limits.Wait,
	})
	if err != nil {
		return nil, fmt.Errorf("Limits: %w", err)
	}
	a := &admission{queue: queue, wait: min(o.Limits.Wait, longestPause)}
	if !o.Breaker.Off {
		if a.breakers, err = breaker.New[circuit](breaker.Options{Failures: o.Breaker.Failures, Open: o.Breaker.Open}); err != nil {
			return nil, fmt.Errorf("Breaker: %w", err)
		}
	}
	if a.perTool, err = limiter[circuit](o.Rates.PerTool); err != nil {
		return nil, err
	}
	if a.perTenant, err = limiter[string](o.Rates.PerTenant); err != nil {
		return nil, err
	}
	a.all, err = limiter[struct{}](o.Rates.All)
	return a, err
}

func limiter[K comparable](rate Rate) (*rates.Limiter[K], error) {
	if rate.Unlimited {
		return nil, nil
	}
	l, err := rates.New[K](rates.Rate{Calls: rate.Calls, Per: rate.Per})
	if err != nil {
		return nil, fmt.Errorf("Rates: %w", err)
	}
	return l, nil
}

// admitted is a call that may run. It must leave.
type admitted struct {
	attempt breaker.Attempt[circuit] // the zero value where there are no breakers
	turn    *turns.Turn              // nil for a call that has its caller's
}

// enter waits until a call may run. Calls of tools have their caller's turn.
func (a *admission) enter(ctx context.Context, c *call) (in admitted, err error) {
	at := circuit{c.batch.session.tenant, c.entry.Registration, c.tool}
	if in.attempt, err = a.allow(at); err != nil {
		return admitted{}, err
	}
	if c.parent == nil {
		in.turn, err = a.queue.Enter(ctx, turns.Call{Tenant: at.tenant, Session: c.batch.session.key, Tool: c.tool})
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
	if a.perTool != nil {
		if err := a.perTool.Take(ctx, at, a.wait); err != nil {
			return rated("calls of this tool", err)
		}
	}
	if a.perTenant != nil {
		if err := a.perTenant.Take(ctx, at.tenant, a.wait); err != nil {
			return rated("calls", err)
		}
	}
	if a.all != nil {
		if err := a.all.Take(ctx, struct{}{}, a.wait); err != nil {
			return rated("calls of all tenants", err)
		}
	}
	return nil
}

// rateError is a rate that a call is above.
type rateError struct {
	of  string
	err error
}

func rated(of string, err error) error { return &rateError{of, err} }

func (e *rateError) Error() string { return fmt.Sprintf("rate of %s: %v", e.of, e.err) }
func (e *rateError) Unwrap() error { return e.err }

// leave ends a call, and tells what its end changed. The context is the call's.
func (in admitted) leave(ctx context.Context, kind tool.Kind) breaker.State {
	state := in.attempt.Report(judge(ctx, kind)) // first: whoever has the place next must know
	if in.turn != nil {
		in.turn.Leave()
	}
	return state
}

// abandon ends a call that was let in and does not run.
func (in admitted) abandon() {
	in.attempt.Report(breaker.Unknown)
	if in.turn != nil {
		in.turn.Leave()
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
	var open *breaker.OpenError
	var full *turns.Error
	var slow *rateError
	var rate *rates.Error
	switch {
	case errors.As(err, &open):
		return tool.Busy, fmt.Sprintf("%s crashed or ran out of time %d times in a row, so it is not called for now; try again in %s, or do without it",
			name, open.Failures, inWords(time.Until(open.Until)))
	case errors.As(err, &slow) && errors.As(err, &rate):
		return tool.Busy, fmt.Sprintf("too many %s in a short time; try again in %s", slow.of, inWords(rate.After))
	case errors.As(err, &full) && errors.Is(full.Kind, turns.ErrWaited):
		return tool.Busy, fmt.Sprintf("no place became free in time among the calls of %s; try again later", whose(full.Limit))
	case errors.As(err, &full):
		return tool.Busy, fmt.Sprintf("too many calls of %s are running or waiting; try again later", whose(full.Limit))
	}
	return notStarted(err)
}

func whose(limit turns.Limit) string {
	switch limit {
	case turns.Tool:
		return "this tool"
	case turns.Tenant:
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
