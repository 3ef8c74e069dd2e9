package executor

import (
	"cmp"
	"context"
	"fmt"
	"math"
	goruntime "runtime"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/caisson-run/caisson/executor/internal/queue"
	"github.com/caisson-run/caisson/tool"
)

// Batch is the calls of one model response.
type Batch struct {
	Calls []tool.Call
	// Session is the session that makes the calls. Nil means a new one with the zero [SessionOptions].
	Session *Session
	// Timeout bounds the batch. When it expires, running calls are stopped and waiting ones are not
	// started. Zero leaves it to the context.
	Timeout time.Duration
	// Parallel overrides [Options.Parallel] if it is not zero.
	Parallel int
	// Files are the host's files for these calls, in addition to the session's.
	Files []tool.File
	// Trace is the request's W3C traceparent, which tools may propagate; empty for none.
	Trace string
	// Requests holds the part of the caller's request for each tool, by name or alias. A tool reads only its own
	// part. Unknown names are ignored. Each part may hold [tool.MaxArgumentsBytes].
	Requests map[string]tool.Request
	// Client are tools that the caller's request brings. The client runs them, like those with such a manifest, and the
	// session need not allow them. A name that the resolver knows means the resolver's tool. No tool can call them.
	// There may be 128, with 256 KiB of schemas together, and patterns as large as those of one schema may be. Their
	// calls share the work of two of the longest checks of arguments; those that it does not suffice for are refused.
	Client []tool.Definition
	// Stream shows progress as it happens. Nil shows none.
	Stream *Stream
}

// Report is the outcome of a batch.
type Report struct {
	ID string // of the batch
	// Session is the batch's session, which keeps results that were cut. It is never nil.
	Session *Session
	// Records holds one record for each call that has ended, in the order of the calls: for all calls
	// if the batch is Completed.
	Records []tool.Record
	Totals  tool.Totals
	Status  Status
	// Pending lists the actions that a paused batch waits for, in the order of the calls. It is [] if the batch
	// is Completed.
	Pending []tool.Action
	// State resumes a paused batch. It is nil if the batch is Completed.
	State *State
	// Final lists the call ids of successful calls whose output may be shown to the user unchanged (behavior.final).
	// It is [] if there are none.
	Final []string
}

// Status is the state of a batch.
type Status string

// The statuses.
const (
	Completed      Status = "completed"       // all of its calls have ended
	RequiresAction Status = "requires_action" // it is paused until [Executor.Resume] gets outputs or approvals
)

// Execute runs a batch. It returns when all calls have ended, or when the remaining ones wait for an
// output or an approval ([RequiresAction]).
//
// A call's failure is in its record, and the error is nil. If ctx ends, calls that have not started are
// recorded as skipped, with the kind deadline or cancelled, and the batch does not pause. An error
// means that the batch was refused: nothing ran, and there are no records. It is [ErrInvalidBatch], or that of
// [SessionOptions.AllowedNow].
//
// Tools must not use Execute to call other tools, since the batch could wait for itself. They have
// [tool.Invocation.Host].
func (e *Executor) Execute(ctx context.Context, requested Batch) (report Report, err error) {
	defer wrapError("execute", &err)
	ctx, b, err := e.begin(ctx, requested, len(requested.Calls))
	if err != nil {
		return Report{}, err
	}
	defer b.end()
	id, err := uuid.NewV7()
	if err != nil {
		return Report{}, fmt.Errorf("batch id: %w", err)
	}
	b.id = id.String()
	calls := make([]*call, len(requested.Calls))
	for i, r := range requested.Calls {
		id, err := uuid.NewV7()
		if err != nil {
			return Report{}, fmt.Errorf("call id: %w", err)
		}
		calls[i] = b.newCall(r, id.String())
	}
	if err := b.planBrought(ctx, requested.Client, calls); err != nil {
		return Report{}, err
	}
	b.planInTurns(ctx, calls, func(_ int, c *call) { b.order.add(c.record.CallID) })
	return b.runCalls(ctx, tool.BatchStarted, calls), nil
}

// begin returns a batch for a number of calls, without an id, and its context. The batch must end.
func (e *Executor) begin(ctx context.Context, requested Batch, calls int) (context.Context, *batch, error) {
	if err := requested.Stream.begin(); err != nil {
		return nil, nil, err
	}
	b, err := e.newBatch(requested, calls)
	if err != nil {
		requested.Stream.finish()
		return nil, nil, err
	}
	if requested.Timeout > 0 {
		ctx, b.stop = context.WithTimeout(ctx, requested.Timeout)
	}
	if b.allowed, err = newAllowed(ctx, b.session); err != nil {
		b.end()
		return nil, nil, err
	}
	return ctx, b, nil
}

// newBatch checks a requested batch and creates it. The session counts the batch until it ends.
func (e *Executor) newBatch(requested Batch, calls int) (*batch, error) {
	if err := cmp.Or(fill("Timeout", &requested.Timeout, 0),
		fill("Parallel", &requested.Parallel, e.options.Parallel)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidBatch, err)
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
	requests, err := newRequests(e.resolver, requested.Requests)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidBatch, err)
	}
	if !session.begin() {
		return nil, fmt.Errorf("%w: the session %s is closed", ErrInvalidBatch, session.id)
	}
	return &batch{
		executor: e, session: session, parallel: requested.Parallel, share: e.options.Output.share(calls),
		details: e.options.Output.details(calls),
		files:   slices.Concat(session.files, requested.Files), trace: requested.Trace, requests: requests,
		stream: requested.Stream, stop: func() {},
	}, nil
}

// newPlanning returns the queue for planning that takes long. A tenant has at most half of the places, so that no
// amount of its planning delays other tenants much.
func newPlanning() *queue.Queue {
	places := goruntime.GOMAXPROCS(0)
	own := max(1, places/2)
	return queue.New(queue.Limits{Running: places, PerTenant: own, PerTool: own, Waiting: math.MaxInt, Wait: maxPer})
}

// takeTurn waits until the batch may plan something that takes long. Its only error is that of ctx: neither the number
// of waiting batches nor their wait is bounded.
func (b *batch) takeTurn(ctx context.Context) (*queue.Place, error) {
	return b.executor.planning.Enter(ctx, queue.Call{Tenant: b.session.tenant, Session: b.session.key})
}

// runCalls runs the calls until they have ended or the batch pauses. It does not change calls that have ended already.
func (b *batch) runCalls(ctx context.Context, began tool.EventType, calls []*call) Report {
	b.session.enter(calls...)
	b.reportStart(began, calls)
	status := b.schedule(ctx, calls)
	report := Report{ID: b.id, Session: b.session, Records: make([]tool.Record, 0, len(calls)), Status: status,
		Pending: []tool.Action{}, Final: []string{}}
	for _, c := range calls {
		if c.phase != phaseEnded {
			continue
		}
		report.Records = append(report.Records, c.record)
		if c.final {
			report.Final = append(report.Final, c.record.CallID)
		}
	}
	if status == RequiresAction {
		state := b.state(calls)
		report.State, report.Pending = &state, state.Pending()
	}
	report.Totals = b.reportEnd(ctx, status, len(report.Pending))
	return report
}

// end ends the batch's time, its part of the session and its stream.
func (b *batch) end() {
	b.stop()
	b.session.finish()
	b.stream.finish()
}
