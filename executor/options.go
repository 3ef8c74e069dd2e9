package executor

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	goruntime "runtime"
	"slices"
	"time"

	"github.com/caisson-run/caisson/tool"
)

// LeastOutput is the least number of bytes to which a result is cut: the sentence that says how to
// read on must have room.
const LeastOutput = 512

// Options says how an executor works. The zero value is the safe default; negative numbers
// are errors.
type Options struct {
	// Parallel is how many read-only calls of one batch run at a time. Zero means 8.
	Parallel int
	// NoRepair switches off the repair of arguments: they are taken as the model wrote
	// them, and absent members get no defaults.
	NoRepair bool
	// TolerantJSON also reads arguments that are almost JSON: single quotes, names
	// without quotes, trailing commas, comments, True, False and None, a code fence
	// around it, closing brackets that are missing at the end. Together with NoRepair it
	// is an error.
	TolerantJSON bool
	Reuse        Reuse
	Limits       Limits
	Rates        Rates
	Breaker      Breaker
	Nesting      Nesting
	Output       Output
	Pause        Pause
	// Logger gets the start and the end of each call and by which rules its arguments
	// were repaired, never arguments or results.
	// Nil discards them.
	Logger *slog.Logger
	// Recorder gets the record of each call. Nil means none.
	Recorder Recorder
}

// Reuse is the cache of read-only calls: when the result of one is given to a later one that asks the
// same, instead of running it. Failures are only shared within a batch.
type Reuse struct {
	Scope Scope
	// TTL is for how long answers are used again of tools whose manifest does not say
	// (behavior.cache). Zero means 5 minutes.
	TTL time.Duration
	// Bytes is the most that all answers may take together. Zero means 64 MiB.
	Bytes int64
}

// Scope is how far answers are used again. Each includes those below it.
type Scope string

// The scopes.
const (
	ReuseTenant  Scope = "tenant"  // in all sessions of a tenant; what "" stands for
	ReuseSession Scope = "session" // in later batches of the session
	ReuseBatch   Scope = "batch"   // for duplicates in one batch
	ReuseNone    Scope = "none"    // every call is run
)

// Limits bound how many calls run at a time. A call that a tool makes has its caller's place, and
// counts for none of them. A zero field stands for the number after the colon.
type Limits struct {
	Running   int           // in all: 4 for each processor that Go uses, at least 16
	PerTenant int           // of one tenant: three quarters of Running
	PerTool   int           // of one tool, for one tenant: half of Running
	Waiting   int           // calls of one tenant that may wait; one more is busy: 1,024
	Wait      time.Duration // the longest wait for a place: 30 s
}

// Rates bound how many calls begin in a time. A call that is above a rate waits until it no
// longer is, if that is within a second, and is busy otherwise. A zero field stands for the rate
// after the colon.
type Rates struct {
	All       Rate // 10,000 in a second
	PerTenant Rate // of one tenant: 2,000 in a second
	PerTool   Rate // of one tool, for one tenant: 1,000 in a second
}

// Rate is so many calls in a time, which may all come at once. The zero value stands for the
// one named where it is used.
type Rate struct {
	Calls     int
	Per       time.Duration
	Unlimited bool // no bound; the others must then be zero
}

// Breaker is the circuit breaker of a tool that keeps crashing or running out of time, for each tenant
// by itself. A zero field stands for the number after the colon.
type Breaker struct {
	Failures int           // in a row, until it opens: 5
	Open     time.Duration // until one call may try again: 30 s
	Off      bool          // no breaker; the others must then be zero
}

// Nesting bounds the calls that tools make. A zero field stands for the number after the colon.
// Package runtime has a bound of its own on the depth, 16.
type Nesting struct {
	Calls int // that one call and those below it may make: 64
	Depth int // of calls within calls: 4
}

// Output bounds how much of results goes to the model. What is cut stays readable for as long
// as the session keeps it: see [Session.Page] and [OutputTool].
type Output struct {
	// PerCall is bytes of one result, [LeastOutput] or more, as [tool.Result.Size] counts them: JSON
	// takes up to six for a control character. Zero means 64 KiB.
	PerCall int64
	// PerBatch is bytes of all results of a batch, of which each call has an equal share, but
	// [LeastOutput] at least. Zero means 256 KiB.
	PerBatch int64
	// Kept is how many bytes of results that were cut a session keeps. Those that were cut
	// longest ago go first. Zero means 16 MiB.
	Kept int64
	// Unlimited cuts nothing; the others must then be zero.
	Unlimited bool
	// Hint says, in the text that is left of a part, how the rest of it can be read. Nil stands for
	// a hint at [OutputTool], if the resolver has it and the session may call it.
	Hint func(tool.Cut) string
}

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

// complete checks the options and replaces zeros by what they stand for.
func (o Options) complete() (Options, error) {
	if o.Parallel < 0 {
		return o, fmt.Errorf("option Parallel is %d; want 0 for the default, or more", o.Parallel)
	}
	if o.NoRepair && o.TolerantJSON {
		return o, errors.New("NoRepair and TolerantJSON contradict each other")
	}
	o.Parallel = or(o.Parallel, 8)
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
