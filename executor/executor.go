package executor

import (
	"context"
	"fmt"
	"log/slog"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/caisson-run/caisson/tool"
)

// Executor runs batches of calls. Get one from [New]; it keeps nothing of a batch for the
// next and is safe for concurrent use.
type Executor struct {
	resolver  Resolver
	parallel  int
	log       *slog.Logger
	events    *events
	repairers *repairers
}

// New returns an executor of the resolver's tools. It fails with [ErrInvalidOptions].
func New(resolver Resolver, options Options) (*Executor, error) {
	if resolver == nil {
		return nil, &Error{Op: "new", Err: fmt.Errorf("%w: the resolver is nil", ErrInvalidOptions)}
	}
	if options.Parallel < 0 {
		return nil, &Error{Op: "new", Err: fmt.Errorf("%w: Parallel is %d; want 0 for the default, or more", ErrInvalidOptions, options.Parallel)}
	}
	if options.NoRepair && options.TolerantJSON {
		return nil, &Error{Op: "new", Err: fmt.Errorf("%w: NoRepair and TolerantJSON contradict each other", ErrInvalidOptions)}
	}
	e := &Executor{resolver: resolver, parallel: options.Parallel, log: options.Logger, repairers: newRepairers(options)}
	if e.parallel == 0 {
		e.parallel = DefaultParallel
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	e.events = &events{observer: options.Observer, log: e.log}
	return e, nil
}

// Execute runs a batch and returns one record for each call, in the order of the calls.
// It returns when every call that it started has ended.
//
// What goes wrong with a call is in its record, and the error is then nil. That holds
// for a ctx that ends too: calls that were not started are recorded as skipped, with
// kind deadline or cancelled. The error is only for a batch that could not be taken up
// ([ErrInvalidBatch]); there are no records then, and nothing ran.
func (e *Executor) Execute(ctx context.Context, batch Batch) ([]tool.Record, error) {
	for name, value := range batch.Context {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return nil, &Error{Op: "execute", Err: fmt.Errorf("%w: the context value %q is not valid UTF-8", ErrInvalidBatch, name)}
		}
	}
	plan := planner{resolver: e.resolver, log: e.log, repairers: e.repairers, context: batch.Context, allowed: e.allowed(batch.Allowed)}
	calls := make([]*call, len(batch.Calls))
	for i, requested := range batch.Calls {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, &Error{Op: "execute", Err: fmt.Errorf("call id: %w", err)}
		}
		calls[i] = plan.call(ctx, requested, id.String())
	}
	e.schedule(ctx, calls)
	records := make([]tool.Record, len(calls))
	for i, c := range calls {
		records[i] = c.record
	}
	return records, nil
}

// allowed returns the registered names of allowed tools, or nil if all are allowed.
func (e *Executor) allowed(names []string) map[string]bool {
	if names == nil {
		return nil
	}
	allowed := make(map[string]bool, len(names))
	for _, name := range names {
		if entry, ok := e.resolver.Get(name); ok {
			allowed[entry.Name] = true
		}
	}
	return allowed
}
