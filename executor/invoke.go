package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/caisson-run/caisson/tool"
)

// panicError is a panic of a tool, for the operator.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// errExited means that a tool ended its goroutine and returned nothing.
var errExited = errors.New("it called runtime.Goexit")

var errNoJSON = errors.New("the data of the result is not JSON")

// answer is what a tool returned.
type answer struct {
	outcome tool.Outcome
	err     error
	kind    tool.Kind // of err
	message string
}

// invoke runs the tool and completes the record.
func (e *Executor) invoke(ctx context.Context, c *call) {
	start := time.Now()
	a := e.isolated(ctx, c)
	c.record.ExecutionTime = time.Since(start)
	c.settle(a)
}

// isolated runs the tool on a goroutine of its own, so that neither a panic nor a
// runtime.Goexit in it can end anything else. It waits for the tool in any case: a tool
// that went on after its record would break the order of the calls. The exception is one that
// says of itself that it cannot be ended; see Abandon.
func (e *Executor) isolated(ctx context.Context, c *call) answer {
	c.answers = make(chan answer, 1)
	go func() {
		a := answer{err: errExited, kind: tool.Internal}
		defer func() { c.answers <- a }()
		defer func() {
			if value := recover(); value != nil {
				a = answer{err: &panicError{value: value, stack: debug.Stack()}, kind: tool.Internal}
			}
		}()
		a = answerOf(e.resolver.Invoke(ctx, c.invocation))
	}()
	return <-c.answers
}

// answerOf reads what a tool returned, where methods of the error are the tool's code as well.
func answerOf(outcome tool.Outcome, err error) answer {
	outcome.Denials = each(outcome.Denials, func(d tool.Denial) tool.Denial {
		d.Allow = storableAllow(d.Allow)
		return d
	})
	a := answer{outcome: outcome, err: err}
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
	case c.answers <- answerOf(outcome, err):
	default:
	}
}

// settle completes the record with what the tool returned.
func (c *call) settle(a answer) {
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
