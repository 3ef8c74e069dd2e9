package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	goruntime "runtime"
	"slices"
	"time"

	"github.com/caisson-run/caisson/tool"
)

// minOutput is the smallest size in bytes to which a result is cut. The note that says how to read on must fit.
const minOutput = 512

// Options configure an executor. The zero value is a safe default; negative numbers are errors.
type Options struct {
	// Parallel is the maximum number of read-only calls of one batch that run in parallel. Zero means 8.
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
	// Logger gets the start and the end of each call and the rules that repaired its arguments, never
	// arguments or results. It gets a sample of the failures of the Recorder. Nil discards them.
	Logger *slog.Logger
	// Ledger keeps each call. Nil keeps none.
	Ledger Ledger
	// Recorder gets the record of each call, once the Ledger has kept it.
	Recorder Recorder
}

// Reuse configures the cache for read-only calls: the result of one serves later identical calls, which are
// then not run. Failures are shared within a batch only.
type Reuse struct {
	Scope Scope
	// TTL is the time for which results are cached if the tool's manifest sets none (behavior.cache). Zero means
	// 5 minutes.
	TTL time.Duration
	// Bytes bounds the memory of all cached results. Zero means 64 MiB.
	Bytes int64
}

// Scope limits where cached results are shared. Each scope includes those below it.
type Scope string

// The scopes.
const (
	ReuseTenant  Scope = "tenant"  // in all sessions of a tenant; the default
	ReuseSession Scope = "session" // in later batches of the session
	ReuseBatch   Scope = "batch"   // for duplicates in one batch
	ReuseNone    Scope = "none"    // every call is run
)

// Limits bound how many calls run at a time. A call that a tool makes runs in its caller's slot and counts
// toward none of them. A zero field means the default after the colon.
type Limits struct {
	Running   int           // in total: 4 per processor that Go uses, at least 16
	PerTenant int           // per tenant: three quarters of Running
	PerTool   int           // per tool and tenant: half of Running
	Waiting   int           // waiting calls per tenant; further ones are busy: 1,024
	Wait      time.Duration // the longest wait for a slot: 30 s
}

// Rates bound how many calls start per period. A call that exceeds a rate waits if it can start within a
// second, and is busy otherwise. A zero field means the default after the colon.
type Rates struct {
	All       Rate // in total: 10,000 per second
	PerTenant Rate // per tenant: 2,000 per second
	PerTool   Rate // per tool and tenant: 1,000 per second
}

// Rate is a number of calls per period, which may all come at once. The zero value means the default.
type Rate struct {
	Calls     int
	Per       time.Duration
	Unlimited bool // no bound; the other fields must be zero
}

// Breaker configures the circuit breakers, one per tool and tenant, for tools that keep crashing or timing
// out. A zero field means the default after the colon.
type Breaker struct {
	Failures int           // consecutive failures that open it: 5
	Open     time.Duration // how long until one call may try again: 30 s
	Off      bool          // no breakers; the other fields must be zero
}

// Nesting bounds the calls that tools make. A zero field means the default after the colon. Package runtime
// always bounds the depth to 16.
type Nesting struct {
	Calls int // calls below one call, at any depth: 64
	Depth int // of nested calls: 4
}

// Output bounds how much of results goes to the model. A part that is cut stays readable for as long
// as the session keeps it: see [Session.Page] and [OutputTool].
//
// A model reads the error, the output and the content, and the data only if there is no output
// ([tool.Result.ModelReadsData]). Other data, which is for programs, counts toward no bound. It is left
// out of the record if it is longer than the whole bound on its call.
//
// Logs, denials and host calls, which no model reads, take about 1 MiB in all records of a batch together. Each call
// has an equal share, at least 1 KiB. The [Recorder] gets them whole.
type Output struct {
	// PerCall bounds one result in bytes, 512 or more, as [tool.Result.Size] counts them. As JSON, a
	// control character takes up to six. Zero means 64 KiB.
	PerCall int64
	// PerBatch bounds all results of a batch in bytes. Each call has an equal share, at least 512.
	// Zero means 256 KiB.
	PerBatch int64
	// Kept bounds the bytes of cut results that a session keeps; the oldest are evicted first. Zero
	// means 16 MiB.
	Kept int64
	// KeptPerTenant bounds the bytes that all sessions of a tenant keep. Those of the session that keeps the most are
	// evicted first. Zero means 64 MiB, or Kept if that is more.
	KeptPerTenant int64
	// Unlimited cuts nothing; the other fields must be zero.
	Unlimited bool
	// Hint returns the words in a cut part that tell the model how to read the rest. Nil refers to [OutputTool], if the
	// resolver has it and the session may call it.
	Hint func(tool.Cut) string
}

// Pause configures paused batches. The zero value is a safe default.
type Pause struct {
	// Expire is the time for which a state can be resumed. Zero means 24 hours. All processes that share states
	// should use the same value.
	Expire time.Duration
	// Claim ensures that a state is resumed once among all processes that share it. If it is nil, each
	// executor ensures that only for itself.
	Claim Claimer
}

// Claimer claims states before they are resumed, like a table with a unique key. It must be safe for
// concurrent use.
type Claimer interface {
	// Claim claims the state with this key, which is opaque and shorter than 128 bytes. The claim must
	// last until expires, after which no copy of the state is accepted. Claim returns false if the
	// state was claimed before. An error or a panic means that it was not claimed.
	Claim(ctx context.Context, key string, expires time.Time) (bool, error)
}

// maxPer keeps durations from overflowing.
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
		fill("Output.KeptPerTenant", &o.Output.KeptPerTenant, max(64<<20, o.Output.Kept)),
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
	case out.PerCall > 0 && out.PerCall < minOutput:
		return fmt.Errorf("Output.PerCall is %d; want at least %d, which the note about the cut needs", out.PerCall,
			minOutput)
	case out.Unlimited &&
		(out.PerCall > 0 || out.PerBatch > 0 || out.Kept > 0 || out.KeptPerTenant > 0 || out.Hint != nil):
		return errors.New("an output that is unlimited has no PerCall, PerBatch, Kept, KeptPerTenant or Hint")
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

// fillRate is fill for a rate. The default is a number of calls per second.
func fillRate(name string, field *Rate, calls int) error {
	switch given := *field; {
	case given == Rate{}:
		*field = Rate{Calls: calls, Per: time.Second}
	case given.Unlimited && given != Rate{Unlimited: true}:
		return fmt.Errorf("%s: a rate that is unlimited has no Calls and no Per", name)
	case !given.Unlimited && (given.Calls <= 0 || given.Per <= 0 || given.Per > maxPer):
		return fmt.Errorf("%s is %d calls in %s; want both above 0 and at most a century, or Unlimited", name, given.Calls,
			given.Per)
	}
	return nil
}

// share returns how many bytes of each result go to the model in a batch of so many calls.
func (o *Output) share(calls int) int {
	if o.Unlimited {
		return math.MaxInt
	}
	return int(min(o.PerCall, max(o.PerBatch/int64(max(calls, 1)), minOutput), math.MaxInt))
}

// Bounds in bytes on the logs, denials and host calls in the records of a batch: for all records together, and the
// minimum share of one record.
const (
	maxDetails = 1 << 20
	minDetails = 1 << 10
)

// details returns the bytes that the log, denials and host calls of each record may take in a batch of so many calls.
func (o *Output) details(calls int) int {
	if o.Unlimited {
		return math.MaxInt
	}
	return max(maxDetails/max(calls, 1), minDetails)
}
