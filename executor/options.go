package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// LeastOutput is the least number of bytes to which a result is cut: the sentence that says how to
// read on must have room.
const LeastOutput = 512

// DefaultParallel is how many read-only calls of a batch run at a time where
// [Options.Parallel] is zero.
const DefaultParallel = 8

var (
	// ErrInvalidOptions means that an executor, a session or a subscription cannot be made of
	// what it was given.
	ErrInvalidOptions = errors.New("invalid options")
	// ErrInvalidBatch means that no call of a batch was looked at.
	ErrInvalidBatch = errors.New("invalid batch")
)

// Error is a failure of the executor itself. Failures of calls are in their records.
type Error struct {
	Op  string // "new", "session", "subscribe", "stream", "execute", "resume" or "state"
	Err error  // wraps one of the package's errors, or is what made an id or a claim fail
}

// Error returns the operation and the cause.
func (e *Error) Error() string { return fmt.Sprintf("executor: %s: %v", e.Op, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Resolver finds tools and runs them. A [*registry.Registry] is one. It must be safe for
// concurrent use.
type Resolver interface {
	// Get returns the tool with exactly this name or alias.
	Get(name string) (registry.Entry, bool)
	// Nearest returns at most n names that name may have been meant for.
	Nearest(name string, n int) []string
	// Invoke runs one call of a tool by its registered name; see [registry.Tool].
	Invoke(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error)
}

// Recorder keeps what became of calls, as a ledger does. It must be safe for concurrent use.
type Recorder interface {
	// Record is told of each call once, when it has ended: of those that a model made and of
	// those that tools made, also of calls that were refused. The batch does not end before it
	// returns. ctx does not end with the batch. An error is logged under the call's id, and
	// changes nothing else. The entry's contents must not be changed.
	Record(ctx context.Context, entry Entry) error
}

// Entry is a call that has ended.
type Entry struct {
	Record tool.Record
	// Whole is the result before parts of it were cut; it is Record.Result where none was.
	Whole                  tool.Result
	Tool                   string // the registered name, or what was asked for if there is no such tool
	Batch, Session, Tenant string
	Began                  time.Time
}

// Options says how an executor works. The zero value is the safe default; negative numbers
// are errors.
type Options struct {
	// Parallel is how many read-only calls of one batch run at a time. Zero means
	// DefaultParallel.
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

// Reuse says when the answer of a read-only call is given to a later one that asks the same,
// instead of running it. Failures are never used again but within a batch.
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

// Breaker says when a tool that keeps crashing or running out of time is left alone for a
// while, for each tenant by itself. A zero field stands for the number after the colon.
type Breaker struct {
	Failures int           // in a row, until it is: 5
	Open     time.Duration // for how long, until one call may try again: 30 s
	Off      bool          // never; the others must then be zero
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
