package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/caisson-run/caisson/executor/internal/output"
	"github.com/caisson-run/caisson/tool"
)

// runCall completes one planned call: it is admitted, runs and is settled.
func (b *batch) runCall(ctx context.Context, c *call) {
	c.began = time.Now()
	b.executor.log.LogAttrs(ctx, slog.LevelInfo, "call started", slog.String("call_id", c.record.CallID),
		slog.String("tool", c.tool))
	b.send(tool.CallStarted, c.describe)
	switch c.phase {
	case phaseRefused:
	case phaseAnswered: // the client ran it, whatever has ended since
		b.acceptAnswer(ctx, c)
	default:
		running, stop := c.start(ctx)
		if in, ok := b.admit(running, c); ok {
			if b.intend(running, c) {
				b.invoke(running, c)
			}
			b.leave(running, c, in)
		}
		stop()
	}
	b.settle(ctx, c)
}

// invoke runs the tool of an admitted call and completes the record. It always waits for the tool: one that outlived
// its record would break the order of the calls. The exception is a tool that reports that it cannot be stopped; see
// Abandon.
func (b *batch) invoke(ctx context.Context, c *call) {
	if !c.readOnly {
		defer b.barrier(c)()
	}
	c.nested.open(ctx)
	defer c.nested.close()
	start := time.Now()
	c.invocation.Request = b.requests[c.tool].copied()
	c.answer = make(chan returned[tool.Outcome], 1)
	startIsolated(c.answer, func() (outcome tool.Outcome, err error) {
		outcome, err = b.executor.resolver.Invoke(ctx, c.invocation)
		return outcome, normalize(&outcome, err)
	})
	r := <-c.answer
	c.record.ExecutionTime = time.Since(start)
	c.complete(r.value, r.err)
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

var errNoJSON = errors.New("the result's data is not JSON")

// normalize sets the kind and the message of the tool's error, and returns the error, or its cause if its message says
// only that the host failed. Run it isolated, since the error's methods are the tool's code as well.
func normalize(outcome *tool.Outcome, err error) error {
	outcome.Denials = slices.Clone(outcome.Denials)
	for i := range outcome.Denials {
		outcome.Denials[i].Allow = storableAllow(outcome.Denials[i].Allow)
	}
	result := &outcome.Result
	if err == nil && len(result.Data) > 0 && !json.Valid(result.Data) {
		err = errNoJSON
	}
	switch {
	case err != nil:
		result.Success = false
		result.Kind, result.Error = classify(err)
		if failure, ok := errors.AsType[*tool.Error](err); ok && failure != nil && failure.Err != nil &&
			result.Kind == tool.Internal {
			err = failure.Err
		}
	case result.Success:
		result.Kind, result.Error = "", ""
	default:
		result.Kind, result.Error = tool.ToolFailed, cmp.Or(result.Error, "the tool failed and did not say why")
	}
	return err
}

// classify returns the kind of a tool's error and the message for its reader. What no tool should return is internal.
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

// complete completes the record with a normalized outcome. An error without a kind means that the tool did not return.
func (c *call) complete(outcome tool.Outcome, err error) {
	c.record.Usage, c.record.Log, c.record.Denials, c.record.HostCalls = outcome.Usage, outcome.Log, outcome.Denials,
		outcome.HostCalls
	c.record.Usage.Queue = c.queued
	c.record.Result, c.cause, c.inputs = outcome.Result, err, outcome.Inputs
	if kind := outcome.Result.Kind; err != nil && (kind == "" || kind == tool.Internal) {
		c.fail(err)
	}
}

// acceptAnswer completes the record of a call that the client has run. A failure has the kind tool_failed: a
// client's word is not proof of any other kind. ctx may have ended, since the client has already run the call.
func (b *batch) acceptAnswer(ctx context.Context, c *call) {
	if !c.readOnly {
		defer b.barrier(c)()
	}
	result := output.Clone(*c.wait.answer)
	if schema := c.entry.Manifest.Result; result.Success && schema != nil {
		data := result.Data
		if data == nil {
			data = json.RawMessage("null")
		}
		if err := schema.Validate(context.WithoutCancel(ctx), data); err != nil {
			result = tool.Result{Error: "the tool's data does not fit its result schema: " + err.Error()}
		}
	}
	outcome := tool.Outcome{Result: result}
	err := normalize(&outcome, nil)
	c.complete(outcome, err)
}
