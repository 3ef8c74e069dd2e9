package executor

import (
	"context"
	"time"

	"github.com/caisson-run/caisson/executor/internal/answers"
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
	perTool   *rates.Limiter[circuit]    // nil: unlimited, like the next two
	perTenant *rates.Limiter[string]
	all       *rates.Limiter[struct{}]
	wait      time.Duration // the longest for a rate, while holding a slot
}

// longestPause is the maximum time for which a call keeps its slot while it waits for a rate.
const longestPause = time.Second

// circuit identifies one tool as called by one tenant. Each has a separate circuit breaker and rate.
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

// admitted is a call that may run. The caller must call leave.
type admitted struct {
	attempt breaker.Attempt[circuit]             // zero if breakers are off
	place   *queue.Place                         // nil for a nested call
	flight  *answers.Flight[resultKey, answered] // nil if no other call may share the result
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
