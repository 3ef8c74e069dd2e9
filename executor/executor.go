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
	"github.com/caisson-run/caisson/executor/internal/repair"
	"github.com/caisson-run/caisson/manifests/schema"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

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

// Recorder keeps the outcome of calls, as a ledger does. It must be safe for concurrent use.
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

// Executor runs batches of calls. Get one from [New]; it needs no closing and is safe for
// concurrent use.
type Executor struct {
	resolver    Resolver
	options     Options // complete
	log         *slog.Logger
	repairers   made[*repair.Repairer]
	shown       made[*schema.Schema] // of the parameters that models are shown, where the host fills in others
	answers     *answers.Cache[key, answered]
	admission   *admission
	subscribers subscribers
	sessions    atomic.Uint64 // so far
	claims      claims        // of states that were resumed
	planning    chan struct{} // holds an element for each long plan of a tool's call
}

// New returns an executor of the resolver's tools. It fails with [ErrInvalidOptions].
func New(resolver Resolver, options Options) (*Executor, error) {
	e, err := newExecutor(resolver, options)
	if err != nil {
		return nil, &Error{Op: "new", Err: fmt.Errorf("%w: %w", ErrInvalidOptions, err)}
	}
	return e, nil
}

func newExecutor(resolver Resolver, options Options) (*Executor, error) {
	if resolver == nil {
		return nil, errors.New("the resolver is nil")
	}
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	e := &Executor{resolver: resolver, options: options, log: options.Logger, admission: newAdmission(options), planning: make(chan struct{}, goruntime.GOMAXPROCS(0))}
	if e.answers, err = answers.New[key](options.Reuse.Bytes, answered.size); err != nil {
		return nil, err
	}
	return e, nil
}
