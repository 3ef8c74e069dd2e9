package native

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/caisson-run/caisson/tool"
)

// grace is the time that a function has to notice its deadline before its call ends without it.
const grace = 50 * time.Millisecond

type callKey struct{}

// call is the value in a function's context that describes its call.
type call struct {
	invocation tool.Invocation
	under      context.Context // done when the call has ended
}

// Invocation returns the call that a function was called for: who makes it, with which context values, files and
// services of the host. It returns false for a context that is not from a call, or whose call has ended.
func Invocation(ctx context.Context) (tool.Invocation, bool) {
	c, ok := ctx.Value(callKey{}).(call)
	return c.invocation, ok && c.under.Err() == nil
}

// returned holds a function's results, or an error if it did not return.
type returned struct {
	result tool.Result
	err    error
}

// Invoke runs the function for one call. It returns shortly after the tool's deadline or the end of ctx at the
// latest, and leaves a function that has not returned by then running.
func (t *function) Invoke(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	start := time.Now()
	if invocation.Replay != nil {
		return t.failed(start, tool.Internal, "", errNoReplay)
	}
	arguments, err := invocation.Arguments.MarshalJSON()
	if err != nil {
		return t.failed(start, tool.Internal, "", err)
	}
	inside, stop := context.WithTimeout(ctx, t.timeout)
	defer stop()
	done := make(chan returned, 1)
	go t.run(context.WithValue(inside, callKey{}, call{invocation, inside}), arguments, done)
	select {
	case r := <-done:
		return t.ended(ctx, inside, start, r)
	case <-inside.Done():
	}
	select {
	case r := <-done:
		return t.ended(ctx, inside, start, r)
	case <-time.After(grace):
	}
	t.overdue.add()
	go func() {
		<-done
		t.overdue.remove()
	}()
	return t.ended(ctx, inside, start, returned{err: inside.Err()})
}

// errNoReplay means that a call was to be replayed: the program's own functions can have any effect.
var errNoReplay = errors.New("a tool written in Go cannot be replayed")

// errExited means that the function called runtime.Goexit.
var errExited = errors.New("the function called runtime.Goexit")

// run runs the function. A panic or runtime.Goexit in it becomes an error. The methods of the function's error and of
// a panic's value are the function's code as well, which may block or exit, so they are only called here.
func (t *function) run(ctx context.Context, arguments []byte, done chan<- returned) {
	r := returned{err: t.internal(errExited)}
	defer func() { done <- r }()
	defer func() {
		if value := recover(); value != nil {
			r = returned{err: t.internal(fmt.Errorf("panic: %v\n%s", value, debug.Stack()))}
		}
	}()
	result, err := t.do(ctx, arguments)
	r = returned{result, detached(err)}
}

// detached returns an error with the text of the function's error, and without its methods.
func detached(err error) error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*tool.Error](err); ok {
		cause := known.Err
		if cause != nil {
			cause = errors.New(cause.Error())
		}
		return &tool.Error{Kind: known.Kind, Message: known.Message, Err: cause}
	}
	w := worded{text: err.Error()}
	for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, end) {
			w.ends = append(w.ends, end)
		}
	}
	return w
}

// worded is an error of a function.
type worded struct {
	text string
	ends []error // of a context, which the error wraps
}

func (w worded) Error() string   { return w.text }
func (w worded) Unwrap() []error { return w.ends }

func (t *function) internal(cause error) error {
	return &tool.Error{Op: "invoke", Tool: t.manifest.Name, Kind: tool.Internal, Err: cause}
}

// ended returns the outcome of a call whose function has returned, or has not returned in time.
func (t *function) ended(ctx, inside context.Context, start time.Time, r returned) (tool.Outcome, error) {
	known, isKnown := errors.AsType[*tool.Error](r.err)
	switch {
	case r.err == nil:
		return tool.Outcome{Result: r.result, Usage: tool.Usage{Wall: time.Since(start)}}, nil
	case isKnown:
		return t.failed(start, known.Kind, known.Message, known.Err)
	case inside.Err() == nil || !errors.Is(r.err, inside.Err()):
		return tool.Outcome{Result: tool.Result{Error: r.err.Error(), Kind: tool.ToolFailed},
			Usage: tool.Usage{Wall: time.Since(start)}}, nil
	case errors.Is(inside.Err(), context.Canceled):
		return t.failed(start, tool.Cancelled, "the call was cancelled", r.err)
	case ctx.Err() != nil:
		return t.failed(start, tool.Deadline, "the tool did not finish before the caller's deadline", r.err)
	}
	return t.failed(start, tool.Deadline, fmt.Sprintf("the tool did not finish before its deadline of %s", t.timeout),
		r.err)
}

// failed returns the outcome of a call without a result.
func (t *function) failed(start time.Time, kind tool.Kind, message string, cause error) (tool.Outcome, error) {
	return tool.Outcome{Result: tool.Result{Error: message, Kind: kind}, Usage: tool.Usage{Wall: time.Since(start)}},
		&tool.Error{Op: "invoke", Tool: t.manifest.Name, Kind: kind, Message: message, Err: cause}
}
