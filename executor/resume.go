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

	"github.com/caisson-run/caisson/executor/internal/swept"
	"github.com/caisson-run/caisson/tool"
)

// Status says how far a batch has got.
type Status string

// The statuses.
const (
	Completed      Status = "completed"       // all of its calls have ended
	RequiresAction Status = "requires_action" // it is paused until [Executor.Resume] gets outputs or approvals
)

// Why a batch cannot be resumed, for errors.Is. The error says which call it is about; one error
// has all mistakes of a submission. Nothing has been run then, and the state can be tried again.
var (
	ErrInvalidState  = errors.New("invalid state")                   // it is damaged, or another version's
	ErrWrongSession  = errors.New("the batch belongs to another session")               // tenant or context values differ
	ErrUnknownCall   = errors.New("no waiting call has this id")     // or more than one has it
	ErrMissingAnswer = errors.New("a waiting call has no answer") // each needs one
	ErrDoubledAnswer = errors.New("a call has more than one answer")
	ErrWrongAnswer   = errors.New("the answer is of the wrong type") // as an output where an approval is needed
	ErrNotApproved   = errors.New("the approval is for something else")         // its fingerprint is missing or another
	ErrExpired       = errors.New("the paused batch has expired")
	// ErrAlreadyResumed may also mean that the batch is being resumed. Some of what waited may have run.
	ErrAlreadyResumed = errors.New("the batch was already resumed")
)

// Pause says for how long paused batches can be resumed. The zero value is the safe default.
type Pause struct {
	// Expire is for how long a state can be resumed. Zero means 24 hours. All processes that share
	// states should have the same.
	Expire time.Duration
	// Claim makes sure that a state is resumed once, among all processes that share it. Nil: each
	// executor makes sure of it for itself.
	Claim Claimer
}

// Claimer takes states for being resumed, as a table with a unique key does. It must be safe for
// concurrent use.
type Claimer interface {
	// Claim takes the state with this key, which is opaque and below 128 bytes, until this time,
	// after which no copy of it is taken. It returns false where it was taken before. An error, or a
	// panic, means that it was not taken.
	Claim(ctx context.Context, key string, expires time.Time) (bool, error)
}

// Resumption resumes a batch that required action.
type Resumption struct {
	State State
	// Session is whose batch it is: of the same tenant and with the same context values as the one
	// that it began in. Nil stands for one of the batch's own, with neither.
	Session *Session
	// Outputs and Approvals answer every action of the state.
	Outputs   []tool.Answer
	Approvals []tool.Approval
	// Timeout, Parallel, Files, Trace and Stream are as in [Batch].
	Timeout  time.Duration
	Parallel int
	Files    []tool.File
	Trace    string
	Stream   *Stream
}

// Resume resumes a batch that required action. What has ended is not run again; the report has
// the records of all calls that have ended. It may require action again, also for an approval: where
// a call would now do something else than was approved, it must be approved again.
//
// The error wraps [ErrInvalidBatch] or one or more of those that are listed with [ErrExpired], or is
// what ended ctx or failed in [Pause.Claim]. Nothing has happened then, and the state can be tried
// again; a Stream cannot.
func (e *Executor) Resume(ctx context.Context, r Resumption) (Report, error) {
	requested := Batch{Session: r.Session, Timeout: r.Timeout, Parallel: r.Parallel, Files: r.Files, Trace: r.Trace, Stream: r.Stream}
	return attend(ctx, "resume", requested, func(ctx context.Context) (Report, error) { return e.resume(ctx, requested, r) })
}

func (e *Executor) resume(ctx context.Context, requested Batch, r Resumption) (Report, error) {
	if r.State.batch == nil {
		return Report{}, fmt.Errorf("%w: it is empty", ErrInvalidState)
	}
	stored := r.State.batch
	b, err := e.newBatch(requested, len(stored.Calls))
	if err != nil {
		return Report{}, err
	}
	b.id, b.revision, b.totals = stored.ID, stored.Revision, stored.Totals
	given, err := e.admit(b, stored, r)
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
	return b.play(ctx, tool.BatchResumed, calls), nil
}

// admit checks that a batch can resume with what was submitted. All mistakes are in the error.
func (e *Executor) admit(b *batch, stored *storedBatch, r Resumption) (map[string]submitted, error) {
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

// clocksDiffer is how much later the clock of another process may be.
const clocksDiffer = 5 * time.Minute

// claim takes the state, so that nobody else can resume it. What a state says of itself decides
// neither whose it is, so that nobody takes another tenant's, nor for how long it is taken.
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

// claims are the states that were resumed, each remembered until nobody takes a copy of it any more. The
// zero value is none. It is safe for concurrent use.
type claims struct {
	mu    sync.Mutex
	taken swept.Map[string, time.Time] // until when each is remembered
}

// take reports whether a state was not taken before, and takes it.
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

// claimElsewhere checks what can be known of a state once nobody else resumes it here, and takes it
// from other processes.
func (e *Executor) claimElsewhere(ctx context.Context, session *Session, stored *storedBatch, key string, until time.Time) (ours bool, err error) {
	if session.underWay(stored.Calls) {
		return false, fmt.Errorf("%w: one of its calls has the call_id of one that is under way", ErrInvalidState)
	}
	claimer := e.options.Pause.Claim
	if claimer == nil {
		return true, nil
	}
	ours, err = apart(func() (bool, error) { return claimer.Claim(ctx, key, until) })
	if err != nil {
		return false, fmt.Errorf("claim: %w", err)
	}
	return ours, nil
}

// replan returns a state's calls: those that have ended as they are, and the others checked as if
// they were new. For nothing that decides what a call may do is taken from a state.
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

// forgetPast forgets what the calls that have ended may have made untrue: they may have run in
// another process, while answers were kept in this one.
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

// forgetAll forgets what any call may have made untrue.
func (b *batch) forgetAll() {
	b.executor.answers.Barrier(tenantDomain(b.session.tenant), writableFiles)()
}

// submit gives a call that was planned again what was submitted for it.
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

// submitOutput gives a call the result of the client's run. It stands for what the tool
// of this name does, and for no other's.
func (c *call) submitOutput(s *storedCall, output *tool.Result) {
	switch {
	case c.phase == phaseRefused:
		c.untaken(c.record.Result.Error)
	case !c.isClient() || s.Waits.Tool != c.tool:
		c.untaken("the tool was replaced in the meantime")
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

// untaken completes the record of such a call. To run it, or to have it called again, would be to do
// twice what the client has done.
func (c *call) untaken(why string) {
	c.batch.forgetAll()
	kind := tool.Cancelled
	if c.record.Result.Kind == tool.Internal {
		kind = tool.Internal
	}
	c.refuse(kind, "the client ran the call, but its output was rejected: "+why, c.record.Denials...)
	c.record.Skipped = false
}

// wasShown reports whether the state's action, which is what was looked at, is the call's own.
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

// maxReason is how many bytes a model is told of why a call was refused.
const maxReason = 2 << 10
