package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	goruntime "runtime"
	"sync/atomic"
	"time"

	"github.com/caisson-run/caisson/executor/internal/answers"
	"github.com/caisson-run/caisson/executor/internal/pause"
	"github.com/caisson-run/caisson/executor/internal/repair"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

var (
	// ErrInvalidOptions means that the options of an executor, a session, a subscription or a stream
	// are invalid.
	ErrInvalidOptions = errors.New("invalid options")
	// ErrInvalidBatch means that a batch was refused before any of its calls was checked.
	ErrInvalidBatch = errors.New("invalid batch")
)

// Error is a failure of the executor itself. Failures of calls are in their records.
type Error struct {
	Op  string // "new", "session", "subscribe", "stream", "execute", "resume" or "state"
	Err error  // wraps one of the package's errors, or the failure to make an id or a claim
}

// Error returns the operation and the cause.
func (e *Error) Error() string { return fmt.Sprintf("executor: %s: %v", e.Op, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// wrapError wraps an operation's error, if there is one. Call it with defer.
func wrapError(op string, err *error) {
	if *err != nil {
		*err = &Error{Op: op, Err: *err}
	}
}

// Resolver finds tools and runs them. A [*registry.Registry] is one. It must be safe for
// concurrent use. One that wraps a registry should also be a [Successor] and a
// [registry.SessionCloser], as the registry is: without the first, calls of retired tools are not told
// what to call instead, and without the second, no tool hears of the end of a session.
type Resolver interface {
	// Get returns the tool with exactly this name or alias.
	Get(name string) (registry.Entry, bool)
	// Nearest returns at most n registered names that resemble name.
	Nearest(name string, n int) []string
	// Invoke runs one call of a tool by its registered name; see [registry.Tool].
	Invoke(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error)
}

// Successor is a [Resolver] that knows which tools replace former ones, as a [*registry.Registry] does.
type Successor interface {
	// Replacement returns the name of the tool that replaces a former tool with exactly this name, if
	// there is one.
	Replacement(retired string) (name string, ok bool)
}

// Recorder keeps the outcome of calls, as a ledger does. It must be safe for concurrent use.
type Recorder interface {
	// Record is called once for each call when it has ended, whether a model or a tool made it, and
	// also for refused calls. The batch does not end before Record returns. ctx outlives the batch. An
	// error is logged under the call's id and changes nothing else. The entry must not be modified.
	Record(ctx context.Context, entry Entry) error
}

// Entry is a call that has ended.
type Entry struct {
	Record tool.Record
	// Whole is the result before any part of it was cut.
	Whole                  tool.Result
	Tool                   string // the registered name, or the requested one if there is no such tool
	Brought                bool   // the caller's request brought the tool, and its name ([Batch].Client)
	Batch, Session, Tenant string
	Began                  time.Time
	// Cause is why the host failed, if the kind of the record's result is [tool.Internal], and else empty. It is for the
	// operator alone, since it may have paths and addresses; the record has only an id in its place.
	Cause string
}

// Executor runs batches of calls. Get one from [New]; it needs no closing and is safe for
// concurrent use.
type Executor struct {
	resolver    Resolver
	options     Options // complete
	log         *slog.Logger
	repairers   toolCache[*repair.Repairer]
	shown       toolCache[*schema.Schema] // of the parameters that models see, for tools with context values
	answers     *answers.Cache[key, answered]
	admission   *admission
	subscribers subscribers
	sessions    atomic.Uint64 // created so far
	kept        keptTexts
	claims      pause.Claims  // on states that were resumed
	planning    chan struct{} // a semaphore for planning nested calls with long arguments
}

// Load returns how many calls run now and how many wait for a slot, for a monitor. Calls made by tools
// run in the slot of the call that makes them, and are not counted.
func (e *Executor) Load() (running, waiting int) { return e.admission.queue.Load() }

// New returns an executor of the resolver's tools. It fails with [ErrInvalidOptions].
func New(resolver Resolver, options Options) (*Executor, error) {
	options, err := options.complete()
	if resolver == nil {
		err = errors.New("the resolver is nil")
	}
	if err != nil {
		return nil, &Error{Op: "new", Err: fmt.Errorf("%w: %w", ErrInvalidOptions, err)}
	}
	e := &Executor{resolver: resolver, options: options, log: options.Logger, admission: newAdmission(options), planning: make(chan struct{}, goruntime.GOMAXPROCS(0))}
	if e.answers, err = answers.New[key](options.Reuse.Bytes, answered.size); err != nil {
		return nil, &Error{Op: "new", Err: err}
	}
	return e, nil
}
