package executor

import (
	"cmp"
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

// call is a call in progress.
type call struct {
	batch  *batch
	record tool.Record
	phase  phase
	// tool is the registered name, or the requested one if there is no such tool.
	tool       string
	entry      registry.Entry // the zero value if there is no such tool
	brought    bool           // the tool is one that the caller has brought
	invocation tool.Invocation
	readOnly   bool
	final      bool  // it succeeded, and its output may be shown to the user as it is
	wait       *wait // nil if it needs nothing from outside
	cause      error // for the operator; may be nil
	began      time.Time
	// question is what the call asks the cache; nil if it is run in any case.
	question *answers.Question[key]
	source   *call // the identical call of the batch whose result this one shares; may be nil

	submitted bool  // the client has run the call and submitted its output
	parent    *call // the call that made this one; nil if a model did
	depth     int
	made      *atomic.Int64 // calls below the outermost caller
	// unkept is set if a nested call failed for a transient reason: the result is not cached then.
	unkept atomic.Bool

	mu        sync.Mutex
	cancelled bool
	stop      context.CancelFunc // nil until the call starts

	nest   nest
	answer chan returned[tool.Outcome] // from the tool, or from Abandon; nil until the tool is invoked
	queued time.Duration               // before it was let in
	// whole is the record's result before parts of it were cut. It is freed when no duplicate needs it.
	whole tool.Result
}

// phase is a call's progress. One goroutine at a time changes it: the one that schedules the batch, or the one
// that runs the call.
type phase int

const (
	phasePlanned   phase = iota // it can run when its turn comes
	phaseWaiting                // it needs an output or an approval
	phaseAnnounced              // likewise, and that was reported
	phaseAnswered               // the client has run it
	phaseRefused                // it is not run, and its record is complete but not reported
	phaseEnded                  // its record is complete and reported
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

// fail completes the record of a call with a failure of the host. The reader sees only the call's id, under
// which the log has the cause.
func (c *call) fail(cause error) {
	c.cause = cause
	c.record.Result = tool.Result{Error: fmt.Sprintf("internal error (id %s)", c.record.CallID), Kind: tool.Internal}
}

// refuseFailed completes the record of a call that is not run because the host failed.
func (c *call) refuseFailed(cause error) {
	c.refuse(tool.Internal, "")
	c.fail(cause)
}

// cancel stops the call, or has it stop as soon as it starts.
func (c *call) cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancelled = true
	if c.stop != nil {
		c.stop()
	}
}

// isCancelled reports whether the call was cancelled.
func (c *call) isCancelled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cancelled
}

// take returns the context of a call that starts.
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

var errNoJSON = errors.New("the result's data is not JSON")

// invoke runs the tool and completes the record. It always waits for the tool: one that outlived its record would
// break the order of the calls. The exception is a tool that reports that it cannot be stopped; see Abandon.
func (e *Executor) invoke(ctx context.Context, c *call) {
	start := time.Now()
	c.invocation.Request = c.batch.requests[c.tool].copied()
	c.answer = make(chan returned[tool.Outcome], 1)
	runApart(c.answer, func() (outcome tool.Outcome, err error) {
		outcome, err = e.resolver.Invoke(ctx, c.invocation)
		return outcome, normalize(&outcome, err)
	})
	r := <-c.answer
	c.record.ExecutionTime = time.Since(start)
	c.settle(r.value, r.err)
}

// normalize sets the kind and the message that the tool's error stands for, and returns the error, or its cause if its
// message says only that the host failed. It runs apart, since the error's methods are the tool's code as well.
func normalize(outcome *tool.Outcome, err error) error {
	outcome.Denials = each(outcome.Denials, func(d tool.Denial) tool.Denial {
		d.Allow = storableAllow(d.Allow)
		return d
	})
	result := &outcome.Result
	if err == nil && len(result.Data) > 0 && !json.Valid(result.Data) {
		err = errNoJSON
	}
	switch {
	case err != nil:
		result.Success = false
		result.Kind, result.Error = classify(err)
		if failure, ok := errors.AsType[*tool.Error](err); ok && failure != nil && failure.Err != nil && result.Kind == tool.Internal {
			err = failure.Err
		}
	case result.Success:
		result.Kind, result.Error = "", ""
	default:
		result.Kind, result.Error = tool.ToolFailed, cmp.Or(result.Error, "the tool failed and did not say why")
	}
	return err
}

// Abandon ends the call with the given outcome while its tool still runs, which did not return in time and cannot
// be stopped. What the tool returns later is dropped, and its requests to the host are refused. Abandon does
// nothing if the tool has returned.
func (c *call) Abandon(outcome tool.Outcome, err error) {
	err = normalize(&outcome, err)
	select {
	case c.answer <- returned[tool.Outcome]{outcome, err}:
	default:
	}
}

// settle completes the record with a normalized outcome. An error without a kind means that the tool did not return.
func (c *call) settle(outcome tool.Outcome, err error) {
	c.record.Usage, c.record.Log, c.record.Denials, c.record.HostCalls = outcome.Usage, outcome.Log, outcome.Denials, outcome.HostCalls
	c.record.Usage.Queue = c.queued
	c.record.Result, c.cause = outcome.Result, err
	if kind := outcome.Result.Kind; err != nil && (kind == "" || kind == tool.Internal) {
		c.fail(err)
	}
}

// classify returns the kind of a tool's error and the message for its reader. Errors that no tool should return
// are internal.
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
		return kind, "the call timed out"
	case tool.Cancelled:
		return kind, "the call was cancelled"
	default:
		return kind, "the call failed: " + string(kind)
	}
}
