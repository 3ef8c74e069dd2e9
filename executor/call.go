package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-run/caisson/executor/internal/answers"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// call is one call on its way to its record.
type call struct {
	batch  *batch
	record tool.Record
	phase  phase
	// tool is the registered name, or what was asked for if there is no such tool.
	tool       string
	entry      registry.Entry // the zero value if there is no such tool
	invocation tool.Invocation
	readOnly   bool
	final      bool  // it succeeded, and its output may be shown to the user as it is
	wait       *wait // what it needs from outside before it can end; nil for nothing
	cause      error // what the operator should see besides the record; may be nil
	began      time.Time
	// question is what the call asks; nil where it is run in any case.
	question *answers.Question[key]
	source   *call // the call of the same batch whose result this one shares; nil for none

	submitted bool  // the client has run the call, and handed in its output
	parent    *call // the call that made this one; nil where a model did
	depth     int
	made      *atomic.Int64 // calls made by the outermost caller and all below it
	// unkept is set where a call that this one made failed for a reason that may be gone the
	// next time: the answer says nothing of it then.
	unkept atomic.Bool

	mu        sync.Mutex
	cancelled bool
	stop      context.CancelFunc // nil until the call is taken up

	nest    nest
	answers chan returned[*answer] // of the tool, or why nobody waits for it any more; nil until it is invoked
	// whole is the record's result before parts of it were cut. It goes as soon as no duplicate needs it.
	whole tool.Result
}

// phase is how far a call has got. One goroutine at a time changes it: the one that schedules the batch
// or the one that runs the call.
type phase int

const (
	phasePlanned   phase = iota // it can run when it is next
	phaseWaiting                // it needs an output or an approval
	phaseAnnounced              // so it does, and everybody was told
	phaseAnswered               // the client has run it
	phaseRefused                // it is not run, and its record is complete but for its events
	phaseEnded                  // its record is complete, and everybody was told
)

// waits reports whether the call needs an output or an approval before it can run or end.
func (c *call) waits() bool { return c.phase == phaseWaiting || c.phase == phaseAnnounced }

// refuse completes the record of a call that is not run.
func (c *call) refuse(kind tool.Kind, message string, denials ...tool.Denial) {
	c.phase = phaseRefused
	c.record.Skipped = true
	c.record.Denials = denials
	c.record.Result = tool.Result{Error: message, Kind: kind}
}

// fail completes the record of a call with a failure of the host. The reader gets the
// call's id and nothing else; the log has the cause under the same id.
func (c *call) fail(cause error) {
	c.cause = cause
	c.record.Result = tool.Result{Error: fmt.Sprintf("internal error (id %s)", c.record.CallID), Kind: tool.Internal}
}

// refuseFailed completes the record of a call that is not run for a failure of the host.
func (c *call) refuseFailed(cause error) {
	c.refuse(tool.Internal, "")
	c.fail(cause)
}

// cancel ends the call, or has it end as soon as it is taken up.
func (c *call) cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancelled = true
	if c.stop != nil {
		c.stop()
	}
}

// isCancelled reports whether the call is to end, though it has not been taken up.
func (c *call) isCancelled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cancelled
}

// take returns the context of a call that is taken up now.
func (c *call) take(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stop = stop
	if c.cancelled {
		stop()
	}
	return ctx, stop
}

var errNoJSON = errors.New("the data of the result is not JSON")

// answer is what a tool returned.
type answer struct {
	outcome tool.Outcome
	err     error
	kind    tool.Kind // of err
	message string
}

// invoke runs the tool and completes the record. It waits for the tool in any case: a tool
// that went on after its record would break the order of the calls. The exception is one that
// says of itself that it cannot be ended; see Abandon.
func (e *Executor) invoke(ctx context.Context, c *call) {
	start := time.Now()
	c.answers = make(chan returned[*answer], 1)
	runApart(c.answers, func() (*answer, error) { return answerOf(e.resolver.Invoke(ctx, c.invocation)), nil })
	r := <-c.answers
	if r.err != nil {
		r.value = &answer{err: r.err, kind: tool.Internal}
	}
	c.record.ExecutionTime = time.Since(start)
	c.settle(r.value)
}

// answerOf reads what a tool returned, where methods of the error are the tool's code as well.
func answerOf(outcome tool.Outcome, err error) *answer {
	outcome.Denials = each(outcome.Denials, func(d tool.Denial) tool.Denial {
		d.Allow = storableAllow(d.Allow)
		return d
	})
	a := &answer{outcome: outcome, err: err}
	if err != nil {
		a.kind, a.message = classify(err)
	} else if data := outcome.Result.Data; len(data) > 0 && !json.Valid(data) {
		a.err, a.kind = errNoJSON, tool.Internal
	}
	return a
}

// Abandon ends the call, while its tool still runs, with what is known of it: the tool has come to
// nothing in time, and cannot be ended. What it returns later is dropped, and what it asks of its
// host is refused. It does nothing where the tool has returned.
func (c *call) Abandon(outcome tool.Outcome, err error) {
	select {
	case c.answers <- returned[*answer]{value: answerOf(outcome, err)}:
	default:
	}
}

// settle completes the record with what the tool returned.
func (c *call) settle(a *answer) {
	c.record.Usage, c.record.Log, c.record.Denials, c.record.HostCalls = a.outcome.Usage, a.outcome.Log, a.outcome.Denials, a.outcome.HostCalls
	if a.err != nil {
		kind, message := a.kind, a.message
		if kind == tool.Internal {
			c.fail(a.err)
			return
		}
		c.cause = a.err
		c.record.Result = a.outcome.Result
		c.record.Result.Success, c.record.Result.Kind, c.record.Result.Error = false, kind, message
		return
	}
	c.record.Result = a.outcome.Result
	result := &c.record.Result
	if result.Success {
		result.Kind, result.Error = "", ""
		return
	}
	result.Kind = tool.ToolFailed
	if result.Error == "" {
		result.Error = "the tool failed and did not say why"
	}
}

// classify returns the kind of a tool's error and what its reader is told. Errors that
// no tool should return are internal.
func classify(err error) (tool.Kind, string) {
	var failure *tool.Error
	var kind tool.Kind
	switch {
	case errors.As(err, &failure) && failure != nil:
		kind = failure.Kind
	case errors.As(err, &kind):
	case errors.Is(err, context.DeadlineExceeded):
		kind = tool.Deadline
	case errors.Is(err, context.Canceled):
		kind = tool.Cancelled
	}
	if !slices.Contains(tool.Kinds(), kind) {
		return tool.Internal, ""
	}
	if failure != nil && failure.Message != "" {
		return kind, failure.Message
	}
	switch kind {
	case tool.Deadline:
		return kind, "the call ran out of time"
	case tool.Cancelled:
		return kind, "the call was cancelled"
	default:
		return kind, "the call failed: " + string(kind)
	}
}
