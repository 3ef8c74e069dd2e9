package executor

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/caisson-run/caisson/tool"
)

// Batch is the calls of one answer of a model.
type Batch struct {
	Calls []tool.Call
	// Session is whose calls these are. Nil stands for one of the batch's own, as
	// [SessionOptions] makes it by default.
	Session *Session
	// Timeout is for how long the batch may take; calls that still run then are stopped, and
	// those that wait are not started. Zero leaves it to the context.
	Timeout time.Duration
	// Parallel takes the place of [Options.Parallel], if it is not zero.
	Parallel int
}

// Report is what became of a batch.
type Report struct {
	ID string // the batch's
	// Session is the batch's, also where it had none of its own: it keeps what was cut.
	Session *Session
	// Records holds one record for each call, in the order of the calls.
	Records []tool.Record
	Totals  tool.Totals
}

// Execute runs a batch. It returns when every call that it started has ended.
//
// What goes wrong with a call is in its record, and the error is then nil. That holds
// for a ctx that ends too: calls that were not started are recorded as skipped, with
// kind deadline or cancelled. The error is only for a batch that could not be taken up
// ([ErrInvalidBatch]); there is no record then, and nothing ran.
//
// A tool must not call it to call other tools, and might wait for itself: it has
// [tool.Invocation.Host] for that.
func (e *Executor) Execute(ctx context.Context, requested Batch) (Report, error) {
	b, err := e.newBatch(requested)
	if err != nil {
		return Report{}, &Error{Op: "execute", Err: err}
	}
	if requested.Timeout > 0 {
		timed, cancel := context.WithTimeout(ctx, requested.Timeout)
		defer cancel()
		ctx = timed
	}
	calls, err := b.accept(ctx, requested.Calls)
	if err != nil {
		return Report{}, &Error{Op: "execute", Err: err}
	}
	b.session.enter(calls...)
	b.started(calls)
	b.schedule(ctx, calls)
	report := Report{ID: b.id, Session: b.session, Records: make([]tool.Record, len(calls))}
	for i, c := range calls {
		report.Records[i] = c.record
	}
	report.Totals = b.ended(ctx)
	return report, nil
}

func (e *Executor) newBatch(requested Batch) (*batch, error) {
	if requested.Timeout < 0 || requested.Parallel < 0 {
		return nil, fmt.Errorf("%w: Timeout is %s and Parallel is %d; want 0 for the default, or more", ErrInvalidBatch, requested.Timeout, requested.Parallel)
	}
	session := requested.Session
	if session == nil {
		var err error
		if session, err = e.NewSession(SessionOptions{}); err != nil {
			return nil, err
		}
	}
	if session.executor != e {
		return nil, fmt.Errorf("%w: the session %s is another executor's", ErrInvalidBatch, session.id)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, fmt.Errorf("batch id: %w", err)
	}
	b := &batch{executor: e, session: session, id: id.String(), parallel: or(requested.Parallel, e.options.Parallel)}
	b.share = e.options.Output.share(len(requested.Calls))
	b.allowed = e.allowed(session.allowed)
	return b, nil
}

// accept makes calls ready to run, each with an id, or completes their records with why they
// are not run.
func (b *batch) accept(ctx context.Context, requested []tool.Call) ([]*call, error) {
	calls := make([]*call, len(requested))
	for i, r := range requested {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("call id: %w", err)
		}
		if err := ctx.Err(); err != nil { // a batch may be long, and planning is work
			calls[i] = b.late(r, id.String(), err)
			continue
		}
		calls[i] = b.plan(ctx, r, id.String(), false)
	}
	return calls, nil
}

// late completes the record of a call that there was no time to look at.
func (b *batch) late(requested tool.Call, id string, err error) *call {
	requested.Type = or(requested.Type, "function")
	c := &call{batch: b, tool: clip(requested.Function.Name), record: tool.Record{Call: requested, CallID: id}}
	c.refuse(notStarted(err))
	return c
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
