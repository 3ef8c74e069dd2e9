package executor

import (
	"fmt"
	"log/slog"
	goruntime "runtime"
	"sync/atomic"

	"github.com/caisson-run/caisson/executor/internal/answers"
	"github.com/caisson-run/caisson/manifests/schema"
)

// Executor runs batches of calls. Get one from [New]; it needs no closing and is safe for
// concurrent use.
type Executor struct {
	resolver    Resolver
	options     Options // complete
	log         *slog.Logger
	repairers   *repairers
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
		return nil, errNoResolver
	}
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	e := &Executor{resolver: resolver, options: options, log: options.Logger, admission: newAdmission(options), repairers: newRepairers(options), planning: make(chan struct{}, goruntime.GOMAXPROCS(0))}
	if e.answers, err = answers.New[key](options.Reuse.Bytes, answered.size); err != nil {
		return nil, err
	}
	return e, nil
}
