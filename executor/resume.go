package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/caisson-run/caisson/executor/internal/pause"
	"github.com/caisson-run/caisson/tool"
)

// Resumption resumes a paused batch.
type Resumption struct {
	State State
	// Session must have the tenant and the context values of the session in which the batch started.
	// Nil means a new one with neither.
	Session *Session
	// Outputs and Approvals answer every action of the state.
	Outputs   []tool.Answer
	Approvals []tool.Approval
	// Timeout, Parallel, Files, Trace, Requests, Client and Stream are as in [Batch].
	Timeout  time.Duration
	Parallel int
	Files    []tool.File
	Trace    string
	Requests map[string]tool.Request
	Client   []tool.Definition
	Stream   *Stream
}

// Resume resumes a paused batch. Calls that have ended are not run again; the report has the records of
// all calls that have ended. The batch may pause again. A call that would now do something other than what
// was approved must be approved again.
//
// The error wraps [ErrInvalidBatch], one or more of the errors listed with [ErrExpired], the error of ctx,
// or that of [Pause.Claim]. Nothing has happened then, and the state can be tried again; a Stream cannot.
func (e *Executor) Resume(ctx context.Context, r Resumption) (report Report, err error) {
	defer wrapError("resume", &err)
	requested := Batch{Session: r.Session, Timeout: r.Timeout, Parallel: r.Parallel, Files: r.Files, Trace: r.Trace,
		Requests: r.Requests, Client: r.Client, Stream: r.Stream}
	stored := r.State.stored()
	ctx, b, err := e.begin(ctx, requested, len(stored.Calls))
	if err != nil {
		return Report{}, err
	}
	defer b.end()
	b.id, b.revision, b.totals = stored.ID, stored.Revision, stored.Totals
	if r.State.batch == nil {
		return Report{}, fmt.Errorf("%w: it is empty", ErrInvalidState)
	}
	given, err := stored.Match(pause.Submission{
		Session: b.session.digest(stored.ID), Longest: e.options.Pause.Expire, Outputs: r.Outputs, Approvals: r.Approvals,
	})
	if err != nil {
		return Report{}, err
	}
	calls := b.restore(stored, given)
	if err := b.planBrought(ctx, r.Client, calls); err != nil {
		return Report{}, err
	}
	if err := ctx.Err(); err != nil {
		return Report{}, err
	}
	if err := e.claim(ctx, b.session, r.State); err != nil {
		return Report{}, err
	}
	b.planInTurns(ctx, calls, func(i int, c *call) {
		b.order.add(c.record.CallID)
		if answer, answered := given[c.record.CallID]; answered && c.phase != phaseEnded {
			c.submit(&stored.Calls[i], answer)
		}
	})
	b.forgetPast(calls)
	return b.runCalls(ctx, tool.BatchResumed, calls), nil
}

// claim claims the state, so that it is resumed once. Neither the owner nor the duration of the claim is taken
// from the state, so that a forged one cannot claim another tenant's.
func (e *Executor) claim(ctx context.Context, session *Session, state State) error {
	stored := state.batch
	key := stored.ID + "." + strconv.Itoa(stored.Revision) + "." + stored.Session[:16] // the session's digest was checked
	until := time.Now().Add(e.options.Pause.Expire + pause.ClocksDiffer)
	if !e.claims.TakeAt(state.home, key, until) {
		return ErrAlreadyResumed
	}
	ours, err := true, error(nil)
	if session.inProgress(stored.Calls) {
		err = fmt.Errorf("%w: one of its calls has the call_id of one that is under way", ErrInvalidState)
	} else if claimer := e.options.Pause.Claim; claimer != nil { // among the other processes
		if ours, err = isolate(func() (bool, error) { return claimer.Claim(ctx, key, until) }); err != nil {
			err = fmt.Errorf("claim: %w", err)
		}
	}
	switch {
	case err != nil: // it can be tried again
		e.claims.ReleaseAt(state.home, key)
		return err
	case !ours:
		return ErrAlreadyResumed
	}
	return nil
}

// restore returns a state's calls: ended ones with their records, and the remaining ones as new calls, since nothing
// that decides what a call may do is taken from a state.
func (b *batch) restore(stored *pause.Batch, given map[string]pause.Answer) []*call {
	calls := make([]*call, len(stored.Calls))
	for i := range stored.Calls {
		s := &stored.Calls[i]
		if s.Ended != nil {
			calls[i] = &call{batch: b, record: s.Record(), phase: phaseEnded, final: s.Ended.Final}
			continue
		}
		calls[i] = b.newCall(s.Call, s.CallID)
		calls[i].submitted = given[s.CallID].Output != nil
	}
	return calls
}

// forgetPast invalidates the cached results that the ended calls may have made stale: they may have run in
// another process while this one cached results.
func (b *batch) forgetPast(calls []*call) {
	for _, c := range calls {
		if c.phase != phaseEnded || c.record.Skipped || c.record.Cached {
			continue
		}
		c.find()
		switch m := c.entry.Manifest; {
		case m == nil || c.mayHaveLostOutput(): // the tool that ran may not be the one that has the name now
			b.forgetAll()
		case !m.Behavior.ReadOnly:
			b.barrier(c)()
		}
	}
}

// forgetAll invalidates the cached results that any call of the tenant may have made stale.
func (b *batch) forgetAll() {
	b.executor.answers.Barrier(tenantDomain(b.session.tenant), writableFiles)()
}

// submit applies the output or approval submitted for a call that was planned again.
func (c *call) submit(s *pause.Call, answer pause.Answer) {
	switch {
	case answer.Output != nil:
		c.submitOutput(s, answer.Output)
	case c.phase == phaseRefused:
	case !answer.Approval.Approve:
		rule := "the call was not approved"
		if answer.Approval.Reason != "" {
			rule += ": " + tool.Shown(answer.Approval.Reason, maxReason)
		}
		c.deny("approval", rule, tool.Allow{})
	case c.wait != nil && !c.isClient() && c.wait.action.Fingerprint == answer.Approval.Fingerprint && c.wasShown(s):
		approval := pause.FromNow(*answer.Approval)
		c.phase, c.wait.approved = phasePlanned, pause.Permit{Fingerprint: approval.Fingerprint, Until: approval.Until}
		if approval.Scope == tool.ApproveSession || approval.Scope == tool.ApproveFor { // for all calls that do the same
			approval.Fingerprint = c.wait.effect.digest
			c.batch.session.approved.Keep(approval)
		}
	}
}

// submitOutput gives a call the result of the client's run, if its tool is still the client's and has the same name.
func (c *call) submitOutput(s *pause.Call, output *tool.Result) {
	switch {
	case c.phase == phaseRefused:
		c.rejectOutput(c.record.Result.Error)
	case !c.isClient() || s.Waits.Tool != c.tool:
		c.rejectOutput("the tool was replaced in the meantime")
	default:
		c.phase, c.wait.answer = phaseAnswered, output
		if !s.Waits.Hints.ReadOnly { // when it was run
			c.readOnly = false
		}
	}
}

// mayHaveLostOutput reports whether the client may have run the call although its output was not accepted: the host
// gave up the call, or failed. The kind is not busy, which would ask for the call to be made again, nor denied, which
// would say that it was not run.
func (c *call) mayHaveLostOutput() bool {
	return c.record.Result.Kind == tool.Cancelled || c.record.Result.Kind == tool.Internal
}

// rejectOutput completes the record of such a call. Running it, or asking the model to repeat it, would do twice
// what the client has done.
func (c *call) rejectOutput(why string) {
	c.batch.forgetAll()
	kind := tool.Cancelled
	if c.record.Result.Kind == tool.Internal {
		kind = tool.Internal
	}
	c.refuse(kind, "the client ran the call, but its output was rejected: "+why, c.record.Denials...)
	c.record.Skipped = false
}

// wasShown reports whether the state's action, which the approver saw, is the call's own.
func (c *call) wasShown(s *pause.Call) bool {
	shown, err := json.Marshal(s.Action())
	if err != nil {
		return false
	}
	own, err := json.Marshal(c.wait.action)
	return err == nil && bytes.Equal(shown, own)
}

// maxReason bounds, in bytes, the reason for a rejection that a model is shown.
const maxReason = 2 << 10
