package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/caisson-run/caisson/executor/internal/breaker"
	"github.com/caisson-run/caisson/executor/internal/repair"
	"github.com/caisson-run/caisson/registry"
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
	// Requests is what the caller's request says to each tool, by name or alias. A tool reads its own,
	// and no other's. Names of no tool are ignored. Each may hold [tool.MaxArgumentsBytes].
	Requests map[string]tool.Request
	// Client are tools that the caller's request brings. The client runs them, like those with such a manifest, and
	// the session need not allow them. A name that the resolver has stands for the resolver's tool. No tool can call them.
	// There may be 128, with 256 KiB of schemas together.
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
	// Pending lists what a paused batch waits for, in the order of the calls. It is [] if the batch
	// is Completed.
	Pending []tool.Action
	// State resumes a paused batch. It is nil if the batch is Completed.
	State *State
	// Final lists the call ids of successful calls whose output may be shown to the user as it is
	// (behavior.final). It is [] if there are none.
	Final []string
}

// Execute runs a batch. It returns when all calls have ended, or when the remaining ones wait for an
// output or an approval ([RequiresAction]).
//
// A call's failure is in its record, and the error is nil. If ctx ends, calls that have not started are
// recorded as skipped, with the kind deadline or cancelled, and the batch does not pause. An error
// means that the batch was refused ([ErrInvalidBatch]): nothing ran, and there are no records.
//
// Tools must not use Execute to call other tools, since the batch could wait for itself. They have
// [tool.Invocation.Host].
func (e *Executor) Execute(ctx context.Context, requested Batch) (Report, error) {
	return attend(ctx, "execute", requested, func(ctx context.Context) (Report, error) { return e.execute(ctx, requested) })
}

// attend runs a batch within its timeout, and ends its stream.
func attend(ctx context.Context, op string, requested Batch, run func(context.Context) (Report, error)) (Report, error) {
	if err := requested.Stream.begin(); err != nil {
		return Report{}, &Error{Op: op, Err: err}
	}
	defer requested.Stream.finish()
	if requested.Timeout > 0 {
		timed, cancel := context.WithTimeout(ctx, requested.Timeout)
		defer cancel()
		ctx = timed
	}
	report, err := run(ctx)
	if err != nil {
		return Report{}, &Error{Op: op, Err: err}
	}
	return report, nil
}

func (e *Executor) execute(ctx context.Context, requested Batch) (Report, error) {
	b, err := e.newBatch(requested, len(requested.Calls))
	if err != nil {
		return Report{}, err
	}
	defer b.session.finish()
	id, err := uuid.NewV7()
	if err != nil {
		return Report{}, fmt.Errorf("batch id: %w", err)
	}
	b.id = id.String()
	calls, err := b.accept(ctx, requested.Calls)
	if err != nil {
		return Report{}, err
	}
	return b.play(ctx, tool.BatchStarted, calls), nil
}

// play runs the calls until they have ended or the batch pauses. Calls that have ended already stay as they are.
func (b *batch) play(ctx context.Context, began tool.EventType, calls []*call) Report {
	b.session.enter(calls...)
	b.begun(began, calls)
	status := b.schedule(ctx, calls)
	report := Report{ID: b.id, Session: b.session, Records: make([]tool.Record, 0, len(calls)), Status: status, Pending: []tool.Action{}, Final: []string{}}
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
	report.Totals = b.over(ctx, status, len(report.Pending))
	return report
}

// newBatch returns a batch for a number of calls, without an id. The session counts it until it finishes.
func (e *Executor) newBatch(requested Batch, calls int) (*batch, error) {
	if err := cmp.Or(fill("Timeout", &requested.Timeout, 0), fill("Parallel", &requested.Parallel, e.options.Parallel)); err != nil {
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
	requests, err := e.requests(requested.Requests)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidBatch, err)
	}
	own, err := brought(requested.Client)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidBatch, err)
	}
	if !session.begin() {
		return nil, fmt.Errorf("%w: the session %s is closed", ErrInvalidBatch, session.id)
	}
	return &batch{
		executor: e, session: session, parallel: requested.Parallel, share: e.options.Output.share(calls), details: e.options.Output.details(calls),
		allowed: e.allowed(session.allowedNames()), files: slices.Concat(session.files, requested.Files), trace: requested.Trace, requests: requests, stream: requested.Stream, brought: own,
	}, nil
}

// accept plans the calls, each with a new id.
func (b *batch) accept(ctx context.Context, requested []tool.Call) ([]*call, error) {
	calls := make([]*call, len(requested))
	for i, r := range requested {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("call id: %w", err)
		}
		callID := id.String()
		b.order.add(callID)
		calls[i] = b.newCall(r, callID)
		calls[i].plan(ctx)
	}
	return calls, nil
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

// allows reports whether the agent may call the tool with this registered name.
func (b *batch) allows(name string) bool { return b.allowed == nil || b.allowed[name] }

// batch is one batch under way.
type batch struct {
	executor *Executor
	session  *Session
	id       string
	allowed  map[string]bool // by registered name; nil allows all
	parallel int
	share    int // bytes of each result that go to the model
	details  int // bytes of what else each record has
	files    []tool.File
	trace    string
	requests map[string]request        // by registered name
	stream   *Stream                   // nil: nobody watches
	brought  map[string]registry.Entry // the caller's own tools, by name
	// repairers are those of the caller's own tools, which end with the batch.
	repairers made[*repair.Repairer]
	revision  int   // how often the batch has paused before
	order     order // of the calls that a model made

	mu     sync.Mutex
	totals tool.Totals
}

// run completes one call.
func (b *batch) run(ctx context.Context, c *call) {
	c.began = time.Now()
	b.callStarted(ctx, c)
	switch c.phase {
	case phaseRefused:
	case phaseAnswered: // the client ran it, whatever has ended since
		b.settleAnswer(ctx, c)
	default:
		b.take(ctx, c)
	}
	b.callFinished(ctx, c)
}

var errWaits = errors.New("a waiting call was about to run")

// take runs a call, if there is still time for it.
func (b *batch) take(ctx context.Context, c *call) {
	taken, stop := c.take(ctx)
	defer stop()
	switch err := ended(taken); {
	case err != nil:
		b.abandonWait(c)
		c.refuse(notStarted(err))
	case c.waits(): // no schedule comes here; a call that waits is never run, whatever else is wrong
		c.fail(errWaits)
	case c.source != nil:
		c.duplicates(c.source)
	default:
		b.answer(taken, c)
	}
}

// attempt runs a call if it is admitted, and completes its record.
func (b *batch) attempt(ctx context.Context, c *call) {
	in, err := b.executor.admission.enter(ctx, c)
	if err != nil {
		c.notAdmitted(err)
		return
	}
	b.perform(ctx, c, in)
}

// perform runs an admitted call, and completes its record.
func (b *batch) perform(ctx context.Context, c *call, in admitted) {
	if c.wait != nil && !c.isApproved() { // it has started, so that it cannot wait for another
		in.leave(breaker.Unknown)
		c.refuse(tool.Busy, "the approval expired while the call waited for a slot; call it again")
		return
	}
	if !c.readOnly {
		defer b.barrier(c)()
	}
	c.nest.open(ctx)
	b.executor.invoke(ctx, c)
	c.nest.close()
	if state := in.leave(judge(ctx, c.record.Result.Kind)); state != breaker.Unchanged {
		b.breakerChanged(ctx, c, state)
	}
}

// notStarted explains why a call was not started, given how its context ended.
func notStarted(err error) (tool.Kind, string) {
	if errors.Is(err, context.DeadlineExceeded) {
		return tool.Deadline, "the deadline passed before the call started"
	}
	return tool.Cancelled, "the call was cancelled before it started"
}
