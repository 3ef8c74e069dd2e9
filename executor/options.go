package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// DefaultParallel is how many read-only calls of a batch run at a time where
// [Options.Parallel] is zero.
const DefaultParallel = 8

var (
	// ErrInvalidOptions means that an executor cannot be made of what it was given.
	ErrInvalidOptions = errors.New("invalid options")
	// ErrInvalidBatch means that no call of a batch was looked at.
	ErrInvalidBatch = errors.New("invalid batch")
)

// Error is a failure of the executor itself. Failures of calls are in their records.
type Error struct {
	Op  string // "new" or "execute"
	Err error  // wraps ErrInvalidOptions or ErrInvalidBatch, or is what made an id fail
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

// Observer is told what happens to calls. An executor calls it from one goroutine at a
// time, over all its batches, so a slow observer slows the calls. It must not call the
// executor, and must not change the event's record.
type Observer interface {
	Observe(ctx context.Context, event tool.Event)
}

// Options says how an executor works. The zero value is the safe default.
type Options struct {
	// Parallel is how many read-only calls of one batch run at a time. Zero means
	// DefaultParallel; a negative number is an error.
	Parallel int
	// NoRepair switches off the repair of arguments: they are taken as the model wrote
	// them, and absent members get no defaults.
	NoRepair bool
	// TolerantJSON also reads arguments that are almost JSON: single quotes, names
	// without quotes, trailing commas, comments, True, False and None, a code fence
	// around it, closing brackets that are missing at the end. Together with NoRepair it
	// is an error.
	TolerantJSON bool
	// Logger gets the start and the end of each call and by which rules its arguments
	// were repaired, never arguments or results.
	// Nil discards them.
	Logger *slog.Logger
	// Observer gets two events for each call. Nil means none.
	Observer Observer
}

// Batch is the calls of one answer of a model, and what the host says about them.
type Batch struct {
	Calls []tool.Call
	// Context holds the values of parameters that the host fills in. They must come
	// from a flag, a token or a session, never from a request's body or arguments.
	Context map[string]string
	// Allowed names the tools that the agent may call, by name or alias. Nil allows
	// all; an empty list allows none.
	Allowed []string
}
