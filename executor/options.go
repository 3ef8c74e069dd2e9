package executor

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	goruntime "runtime"
	"slices"
	"time"

	"github.com/caisson-run/caisson/tool"
)

// leastOutput is the least number of bytes to which a result is cut: the note that says how to read on
// must fit.
const leastOutput = 512

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
	// PerCall is bytes of one result, 512 or more, as [tool.Result.Size] counts them: JSON
	// takes up to six for a control character. Zero means 64 KiB.
	PerCall int64
	// PerBatch is bytes of all results of a batch, of which each call has an equal share, but
	// 512 at least. Zero means 256 KiB.
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

// maxPer keeps the arithmetic of durations from overflowing.
const maxPer = 100 * 365 * 24 * time.Hour

// complete checks the options and replaces zeros by their defaults.
func (o Options) complete() (Options, error) {
	if err := o.contradiction(); err != nil {
		return o, err
	}
	o.Reuse.Scope = cmp.Or(o.Reuse.Scope, ReuseTenant)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	err := cmp.Or(
		fill("Parallel", &o.Parallel, 8),
		fill("Reuse.TTL", &o.Reuse.TTL, 5*time.Minute),
		fill("Reuse.Bytes", &o.Reuse.Bytes, 64<<20),
		fill("Limits.Running", &o.Limits.Running, max(16, 4*goruntime.GOMAXPROCS(0))),
		fill("Limits.Waiting", &o.Limits.Waiting, 1024),
		fill("Limits.Wait", &o.Limits.Wait, 30*time.Second),
		fillRate("Rates.All", &o.Rates.All, 10_000),
		fillRate("Rates.PerTenant", &o.Rates.PerTenant, 2_000),
		fillRate("Rates.PerTool", &o.Rates.PerTool, 1_000),
		fill("Breaker.Failures", &o.Breaker.Failures, 5),
		fill("Breaker.Open", &o.Breaker.Open, 30*time.Second),
		fill("Nesting.Calls", &o.Nesting.Calls, 64),
		fill("Nesting.Depth", &o.Nesting.Depth, 4),
		fill("Output.PerCall", &o.Output.PerCall, 64<<10),
		fill("Output.PerBatch", &o.Output.PerBatch, 256<<10),
		fill("Output.Kept", &o.Output.Kept, 16<<20),
		fill("Pause.Expire", &o.Pause.Expire, 24*time.Hour),
	)
	running := o.Limits.Running
	return o, cmp.Or(err,
		fill("Limits.PerTenant", &o.Limits.PerTenant, max(1, running/4*3+running%4*3/4)), // no product that could overflow
		fill("Limits.PerTool", &o.Limits.PerTool, max(1, running/2)),
	)
}

// contradiction returns an error for options that exclude each other or do not exist.
func (o *Options) contradiction() error {
	scopes := []Scope{ReuseTenant, ReuseSession, ReuseBatch, ReuseNone}
	out := &o.Output
	switch {
	case o.NoRepair && o.TolerantJSON:
		return errors.New("NoRepair and TolerantJSON contradict each other")
	case o.Reuse.Scope != "" && !slices.Contains(scopes, o.Reuse.Scope):
		return fmt.Errorf("Reuse.Scope is %q; want one of %q", o.Reuse.Scope, scopes)
	case o.Breaker.Off && o.Breaker != Breaker{Off: true}:
		return errors.New("a breaker that is off has no Failures and no Open")
	case out.PerCall > 0 && out.PerCall < leastOutput:
		return fmt.Errorf("Output.PerCall is %d; want at least %d, which the note about the cut needs", out.PerCall, leastOutput)
	case out.Unlimited && (out.PerCall > 0 || out.PerBatch > 0 || out.Kept > 0 || out.Hint != nil):
		return errors.New("an output that is unlimited has no PerCall, PerBatch, Kept or Hint")
	}
	return nil
}

// fill replaces zero by its default. A negative number is an error.
func fill[N ~int | ~int64](name string, field *N, fallback N) error {
	if *field < 0 {
		return fmt.Errorf("%s is %v; want 0 for the default, or more", name, *field)
	}
	*field = cmp.Or(*field, fallback)
	return nil
}

// fillRate is fill for a rate, the default of which is so many calls in a second.
func fillRate(name string, field *Rate, calls int) error {
	switch given := *field; {
	case given == Rate{}:
		*field = Rate{Calls: calls, Per: time.Second}
	case given.Unlimited && given != Rate{Unlimited: true}:
		return fmt.Errorf("%s: a rate that is unlimited has no Calls and no Per", name)
	case !given.Unlimited && (given.Calls <= 0 || given.Per <= 0 || given.Per > maxPer):
		return fmt.Errorf("%s is %d calls in %s; want both above 0 and at most a century, or Unlimited", name, given.Calls, given.Per)
	}
	return nil
}

// share returns how many bytes of a result go to the model, where a batch has so many calls.
func (o *Output) share(calls int) int {
	if o.Unlimited {
		return math.MaxInt
	}
	return int(min(o.PerCall, max(o.PerBatch/int64(max(calls, 1)), leastOutput), math.MaxInt))
}
