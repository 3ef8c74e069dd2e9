package executor

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	goruntime "runtime"
	"slices"
	"time"
)

// What zero stands for in the options.
const (
	defaultTTL      = 5 * time.Minute
	defaultBytes    = 64 << 20
	defaultFailures = 5
	defaultOpen     = 30 * time.Second
	defaultWaiting  = 1024
	defaultWait     = 30 * time.Second
	defaultCalls    = 64
	defaultDepth    = 4
	defaultPerCall  = 64 << 10
	defaultPerBatch = 256 << 10
	defaultKept     = 16 << 20
	defaultExpire   = 24 * time.Hour
)

// maxPer keeps the arithmetic of durations from overflowing.
const maxPer = 100 * 365 * 24 * time.Hour

var errNoResolver = errors.New("the resolver is nil")

// complete checks the options and replaces zeros by what they stand for.
func (o Options) complete() (Options, error) {
	if o.Parallel < 0 {
		return o, fmt.Errorf("option Parallel is %d; want 0 for the default, or more", o.Parallel)
	}
	if o.NoRepair && o.TolerantJSON {
		return o, errors.New("NoRepair and TolerantJSON contradict each other")
	}
	o.Parallel = or(o.Parallel, DefaultParallel)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	for _, part := range []struct {
		name     string
		complete func() error
	}{
		{"Reuse", o.Reuse.complete}, {"Limits", o.Limits.complete}, {"Rates", o.Rates.complete},
		{"Breaker", o.Breaker.complete}, {"Nesting", o.Nesting.complete}, {"Output", o.Output.complete},
		{"Pause", o.Pause.complete},
	} {
		if err := part.complete(); err != nil {
			return o, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return o, nil
}

func (r *Reuse) complete() error {
	if err := notNegative("TTL", int64(r.TTL), "Bytes", r.Bytes); err != nil {
		return err
	}
	r.Scope, r.TTL, r.Bytes = or(r.Scope, ReuseTenant), or(r.TTL, defaultTTL), or(r.Bytes, defaultBytes)
	if scopes := []Scope{ReuseTenant, ReuseSession, ReuseBatch, ReuseNone}; !slices.Contains(scopes, r.Scope) {
		return fmt.Errorf("there is no scope %q; want one of %q", r.Scope, scopes)
	}
	return nil
}

func (l *Limits) complete() error {
	err := notNegative("Running", int64(l.Running), "PerTenant", int64(l.PerTenant), "PerTool", int64(l.PerTool),
		"Waiting", int64(l.Waiting), "Wait", int64(l.Wait))
	if err != nil {
		return err
	}
	l.Running = or(l.Running, max(16, 4*goruntime.GOMAXPROCS(0)))
	l.PerTenant = or(l.PerTenant, max(1, l.Running/4*3+l.Running%4*3/4)) // no product that could overflow
	l.PerTool = or(l.PerTool, max(1, l.Running/2))
	l.Waiting, l.Wait = or(l.Waiting, defaultWaiting), or(l.Wait, defaultWait)
	return nil
}

func (r *Rates) complete() error {
	for _, rate := range []struct {
		of    *Rate
		calls int
	}{{&r.All, 10_000}, {&r.PerTenant, 2_000}, {&r.PerTool, 1_000}} {
		switch given := *rate.of; {
		case given == Rate{}:
			*rate.of = Rate{Calls: rate.calls, Per: time.Second}
		case given.Unlimited && given != Rate{Unlimited: true}:
			return errors.New("a rate that is unlimited has no Calls and no Per")
		case !given.Unlimited && (given.Calls <= 0 || given.Per <= 0 || given.Per > maxPer):
			return fmt.Errorf("a rate of %d calls in %s; want both above 0 and no more than a century, or Unlimited", given.Calls, given.Per)
		}
	}
	return nil
}

func (b *Breaker) complete() error {
	err := notNegative("Failures", int64(b.Failures), "Open", int64(b.Open))
	switch {
	case err != nil:
		return err
	case b.Off && *b != Breaker{Off: true}:
		return errors.New("a breaker that is off has no Failures and no Open")
	}
	b.Failures, b.Open = or(b.Failures, defaultFailures), or(b.Open, defaultOpen)
	return nil
}

func (n *Nesting) complete() error {
	if err := notNegative("Calls", int64(n.Calls), "Depth", int64(n.Depth)); err != nil {
		return err
	}
	n.Calls, n.Depth = or(n.Calls, defaultCalls), or(n.Depth, defaultDepth)
	return nil
}

func (o *Output) complete() error {
	err := notNegative("PerCall", o.PerCall, "PerBatch", o.PerBatch, "Kept", o.Kept)
	switch {
	case err != nil:
		return err
	case o.PerCall > 0 && o.PerCall < LeastOutput:
		return fmt.Errorf("PerCall is %d; want %d at least, for less says nothing", o.PerCall, LeastOutput)
	case o.Unlimited && (o.PerCall > 0 || o.PerBatch > 0 || o.Kept > 0 || o.Hint != nil):
		return errors.New("an output that is unlimited has no PerCall, PerBatch, Kept or Hint")
	}
	o.PerCall, o.PerBatch, o.Kept = or(o.PerCall, defaultPerCall), or(o.PerBatch, defaultPerBatch), or(o.Kept, defaultKept)
	return nil
}

func (p *Pause) complete() error {
	if err := notNegative("Expire", int64(p.Expire)); err != nil {
		return err
	}
	p.Expire = or(p.Expire, defaultExpire)
	return nil
}

// share returns how many bytes of a result go to the model, where a batch has so many calls.
func (o *Output) share(calls int) int {
	if o.Unlimited {
		return math.MaxInt
	}
	return int(min(o.PerCall, max(o.PerBatch/int64(max(calls, 1)), LeastOutput), math.MaxInt))
}

// notNegative takes names and numbers in turns.
func notNegative(fields ...any) error {
	for i := 0; i < len(fields); i += 2 {
		if n, _ := fields[i+1].(int64); n < 0 {
			return fmt.Errorf("%s is %d; want 0 for the default, or more", fields[i], n)
		}
	}
	return nil
}

// or returns the value, or the fallback for zero.
func or[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}
