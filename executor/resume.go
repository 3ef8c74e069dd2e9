package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/caisson-run/caisson/internal/swept"
	"github.com/caisson-run/caisson/tool"
)

// Why a batch cannot be resumed, for errors.Is. The error names the call; one error reports all mistakes
// of a submission. Nothing has run, and the state can be tried again.
var (
	ErrInvalidState  = errors.New("invalid state")                        // it is damaged, or of another version
	ErrWrongSession  = errors.New("the batch belongs to another session") // tenant or context values differ
	ErrUnknownCall   = errors.New("no waiting call has this id")          // or more than one does
	ErrMissingAnswer = errors.New("a waiting call has no answer")         // each needs one
	ErrDoubledAnswer = errors.New("a call has more than one answer")
	ErrWrongAnswer   = errors.New("the answer is of the wrong type")    // as an output where an approval is needed
	ErrNotApproved   = errors.New("the approval is for something else") // its fingerprint is missing or another
	ErrExpired       = errors.New("the paused batch has expired")
	// ErrAlreadyResumed may also mean that the batch is being resumed now. Calls may have run.
	ErrAlreadyResumed = errors.New("the batch was already resumed")
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
	requested := Batch{Session: r.Session, Timeout: r.Timeout, Parallel: r.Parallel, Files: r.Files, Trace: r.Trace, Requests: r.Requests, Client: r.Client, Stream: r.Stream}
	stored := r.State.stored()
	ctx, b, err := e.begin(ctx, requested, len(stored.Calls))
	if err != nil {
		return Report{}, err
	}
	defer b.end()
	b.id, b.revision, b.totals = stored.ID, stored.Revision, stored.Totals
	given, err := e.checkSubmission(b, r)
	if err != nil {
		return Report{}, err
	}
	if err := ctx.Err(); err != nil {
		return Report{}, err
	}
	if err := e.claim(ctx, b.session, stored); err != nil {
		return Report{}, err
	}
	calls := b.replan(ctx, stored, given)
	b.forgetPast(calls)
	return b.runCalls(ctx, tool.BatchResumed, calls), nil
}

// checkSubmission checks that a batch can resume with what was submitted. All mistakes are in the error.
func (e *Executor) checkSubmission(b *batch, r Resumption) (map[string]submitted, error) {
	stored := r.State.batch
	if stored == nil {
		return nil, fmt.Errorf("%w: it is empty", ErrInvalidState)
	}
	var m mistakes
	now := time.Now()
	switch {
	case !now.Before(stored.Expires):
		m.add(ErrExpired, "%s", stored.Expires.Format(time.RFC3339))
	case stored.Expires.After(now.Add(e.options.Pause.Expire + clocksDiffer)):
		m.add(ErrInvalidState, "it expires at %s, later than batches may wait here", stored.Expires.Format(time.RFC3339))
	}
	if b.session.digest(stored.ID) != stored.Session {
		m.add(ErrWrongSession, "the batch began with another tenant or other context values")
	}
	given := m.match(stored.pending(), r.Outputs, r.Approvals)
	return given, m.err()
}

// clocksDiffer is how far the clock of another process may be ahead.
const clocksDiffer = 5 * time.Minute

// claim claims the state, so that it is resumed once. Neither the owner nor the duration of the claim is taken
// from the state, so that a forged one cannot claim another tenant's.
func (e *Executor) claim(ctx context.Context, session *Session, stored *storedBatch) error {
	key := stored.ID + "." + strconv.Itoa(stored.Revision) + "." + stored.Session[:16] // the session's digest was checked
	until := time.Now().Add(e.options.Pause.Expire + clocksDiffer)
	if !e.claims.take(key, until) {
		return ErrAlreadyResumed
	}
	ours, err := e.claimElsewhere(ctx, session, stored, key, until)
	switch {
	case err != nil: // it can be tried again
		e.claims.release(key)
		return err
	case !ours:
		return ErrAlreadyResumed
	}
	return nil
}

// claims are the states that were resumed, each remembered until no copy of it is accepted any more. The
// zero value is empty. It is safe for concurrent use.
type claims struct {
	mu    sync.Mutex
	taken swept.Map[string, time.Time] // when each is forgotten
}

// take claims a state. It returns false if that was claimed before.
func (c *claims) take(key string, until time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if ends, ok := c.taken.Get(key); ok && now.Before(ends) {
		return false
	}
	c.taken.Put(key, until, func(ends time.Time) bool { return !now.Before(ends) })
	return true
}

func (c *claims) release(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken.Delete(key)
}

// claimElsewhere claims a state that is claimed in this process among the other processes.
func (e *Executor) claimElsewhere(ctx context.Context, session *Session, stored *storedBatch, key string, until time.Time) (ours bool, err error) {
	if session.underWay(stored.Calls) {
		return false, fmt.Errorf("%w: one of its calls has the call_id of one that is under way", ErrInvalidState)
	}
	claimer := e.options.Pause.Claim
	if claimer == nil {
		return true, nil
	}
	ours, err = isolate(func() (bool, error) { return claimer.Claim(ctx, key, until) })
	if err != nil {
		return false, fmt.Errorf("claim: %w", err)
	}
	return ours, nil
}

// replan returns a state's calls: ended ones as they are, and the others planned as if they were new, since
// nothing that decides what a call may do is taken from a state.
func (b *batch) replan(ctx context.Context, stored *storedBatch, given map[string]submitted) []*call {
	calls := make([]*call, len(stored.Calls))
	for i := range stored.Calls {
		s := &stored.Calls[i]
		b.order.add(s.CallID)
		if s.Ended != nil {
			calls[i] = &call{batch: b, record: s.record(), phase: phaseEnded, final: s.Ended.Final}
			continue
		}
		c := b.newCall(s.Call, s.CallID)
		calls[i] = c
		answer, answered := given[s.CallID]
		if c.submitted = answer.output != nil; c.submitted { // the client has run it, so there is no hurry
			c.plan(context.WithoutCancel(ctx))
		} else {
			c.plan(ctx)
		}
		if answered {
			c.submit(s, answer)
		}
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
		case m == nil || c.isUntaken(): // the tool that ran may not be the one that has the name now
			b.forgetAll()
		case !m.Behavior.ReadOnly:
			b.barrier(c)()
		}
	}
}

// forgetAll invalidates what any call of the tenant may have made stale.
func (b *batch) forgetAll() {
	b.executor.answers.Barrier(tenantDomain(b.session.tenant), writableFiles)()
}

// submit applies what was submitted for a call that was planned again.
func (c *call) submit(s *storedCall, answer submitted) {
	switch {
	case answer.output != nil:
		c.submitOutput(s, answer.output)
	case c.phase == phaseRefused:
	case !answer.approval.Approve:
		c.rejected(answer.approval.Reason)
	case c.wait != nil && !c.isClient() && c.wait.action.Fingerprint == answer.approval.Fingerprint && c.wasShown(s):
		approval := fromNow(*answer.approval)
		c.phase, c.wait.approved = phasePlanned, permit{approval.Fingerprint, approval.Until}
		if approval.Scope == tool.ApproveSession || approval.Scope == tool.ApproveFor { // for all calls that do the same
			approval.Fingerprint = c.wait.effect.digest
			keepApproval(c.batch.session.approved, approval)
		}
	}
}

// submitOutput gives a call the result of the client's run, if its tool is still the client's and has the same name.
func (c *call) submitOutput(s *storedCall, output *tool.Result) {
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

// isUntaken reports whether the client may have run the call without its output being taken: the host has given
// it up, or has failed. Busy would ask for the call to be made again, and denied say that it was not run.
func (c *call) isUntaken() bool {
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
func (c *call) wasShown(s *storedCall) bool {
	shown, err := json.Marshal(s.action())
	if err != nil {
		return false
	}
	own, err := json.Marshal(c.wait.action)
	return err == nil && bytes.Equal(shown, own)
}

// rejected refuses a call that was not approved.
func (c *call) rejected(reason string) {
	rule := "the call was not approved"
	if reason != "" {
		rule += ": " + tool.Shown(reason, maxReason)
	}
	c.deny("approval", rule, tool.Allow{})
}

// maxReason bounds, in bytes, the reason for a rejection that a model is shown.
const maxReason = 2 << 10
