package executor

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/caisson-run/caisson/executor/internal/answers"
	"github.com/caisson-run/caisson/executor/internal/output"
	"github.com/caisson-run/caisson/executor/internal/pause"
	"github.com/caisson-run/caisson/executor/internal/queue"
	"github.com/caisson-run/caisson/executor/internal/repair"
	"github.com/caisson-run/caisson/internal/sampling"
	"github.com/caisson-run/caisson/internal/schema"
)

// Executor runs batches of calls. Get one from [New]; it needs no closing and is safe for
// concurrent use.
type Executor struct {
	resolver    Resolver
	options     Options // complete
	log         *slog.Logger
	failures    *slog.Logger // a sample of each: a caller may bring about any number
	repairers   toolCache[*repair.Repairer]
	shown       toolCache[*schema.Schema] // of the parameters that models see, for tools with context values
	answers     *answers.Cache[resultKey, answered]
	admission   *admission
	subscribers subscribers
	sessions    atomic.Uint64 // created so far
	kept        output.Tenants
	claims      pause.Claims // on states that were resumed
	planning    *queue.Queue // for planning calls with long arguments, and of tools that callers bring
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
	e := &Executor{
		resolver: resolver, options: options, log: options.Logger, failures: sampling.Logger(options.Logger),
		admission: newAdmission(options), planning: newPlanning(),
	}
	if e.answers, err = answers.New[resultKey](options.Reuse.Bytes, answered.size); err != nil {
		return nil, &Error{Op: "new", Err: err}
	}
	return e, nil
}
