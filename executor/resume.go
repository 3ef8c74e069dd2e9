package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/caisson-run/caisson/executor/internal/swept"
	"github.com/caisson-run/caisson/tool"
)

// Resume goes on with a batch that required action. What has ended is not run again; the report has
// the records of all calls that have ended. It may require action again, also for an approval: where
// a call has come to do something else than was approved, it waits anew.
//
// The error wraps [ErrInvalidBatch] or one or more of those that are listed with [ErrExpired], or is
// what ended ctx or failed in [Pause.Claim]. Nothing has happened then, and the state can be tried
// again; a Stream cannot.
func (e *Executor) Resume(ctx context.Context, r Resumption) (Report, error) {
	if err := r.Stream.begin(); err != nil {
		return Report{}, &Error{Op: "resume", Err: err}
	}
	defer r.Stream.finish()
	report, err := e.resume(ctx, r)
	if err != nil {
		return Report{}, &Error{Op: "resume", Err: err}
	}
	return report, nil
}

func (e *Executor) resume(ctx context.Context, r Resumption) (Report, error) {
	if r.State.batch == nil {
		return Report{}, fmt.Errorf("%w: it is empty", ErrInvalidState)
	}
	stored := r.State.batch
	b, err := e.newBatch(Batch{Session: r.Session, Timeout: r.Timeout, Parallel: r.Parallel, Files: r.Files, Trace: r.Trace, Stream: r.Stream}, len(stored.calls))
	if err != nil {
		return Report{}, err
	}
	b.id, b.revision, b.totals = stored.id, stored.revision, stored.totals
	given, err := e.admit(b, stored, r)
	if err != nil {
		return Report{}, err
	}
	if r.Timeout > 0 {
		timed, cancel := context.WithTimeout(ctx, r.Timeout)
		defer cancel()
		ctx = timed
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

// admit checks that a batch can go on with what was submitted. All mistakes are in the error.
func (e *Executor) admit(b *batch, stored *storedBatch, r Resumption) (map[string]submitted, error) {
	var m mistakes
	now := time.Now()
	switch {
	case !now.Before(stored.expires):
		m.add(ErrExpired, "%s", stored.expires.Format(time.RFC3339))
	case stored.expires.After(now.Add(e.options.Pause.Expire + clocksDiffer)):
		m.add(ErrInvalidState, "it says that it waits until %s, which is longer than batches wait here", stored.expires.Format(time.RFC3339))
	}
	if b.session.digest(stored.id) != stored.session {
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
	key := stored.id + "." + strconv.Itoa(stored.revision) + "." + stored.session[:16] // the session's digest was checked
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
	if session.underWay(stored.calls) {
		return false, fmt.Errorf("%w: one of its calls has the call_id of one that is under way", ErrInvalidState)
	}
	claimer := e.options.Pause.Claim
	if claimer == nil {
		return true, nil
	}
	err = apart(func() (err error) {
		ours, err = claimer.Claim(ctx, key, until)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("claim: %w", err)
	}
	return ours, nil
}

// replan returns a state's calls: those that have ended as they are, and the others checked as if
// they were new. For nothing that decides what a call may do is taken from a state.
func (b *batch) replan(ctx context.Context, stored *storedBatch, given map[string]submitted) []*call {
	calls := make([]*call, len(stored.calls))
	for i := range stored.calls {
		s := &stored.calls[i]
		b.order.add(s.callID)
		if s.record != nil {
			calls[i] = &call{batch: b, record: ownRecord(s.record), phase: phaseEnded, final: s.final}
			continue
		}
		answer, answered := given[s.callID]
		switch err := ctx.Err(); {
		case answered && answer.output != nil: // the client has run it, so that there is no hurry
			p := b.planner()
			p.answered = true
			calls[i] = p.call(context.WithoutCancel(ctx), s.call, s.callID)
		case err != nil:
			calls[i] = b.late(s.call, s.callID, err)
		default:
			calls[i] = b.plan(ctx, s.call, s.callID, false)
		}
		if answered {
			calls[i].submit(s, answer)
		}
	}
	return calls
}

// forgetPast forgets what the calls that have ended may have made untrue: they may have run in
// another process, while answers were kept in this one.
func (b *batch) forgetPast(calls []*call) {
	tenant, files := false, false
	for _, c := range calls {
		if c.phase != phaseEnded || c.record.Skipped || c.record.Cached {
			continue
		}
		c.find(b.executor.resolver)
		m := c.entry.Manifest
		if m == nil || slices.Contains(untaken(), c.record.Result.Kind) { // the tool that ran may be another than has the name
			b.forgetAll()
			return
		}
		tenant = tenant || !m.Behavior.ReadOnly
		files = files || !m.Behavior.ReadOnly && writesFiles(m)
	}
	switch {
	case files:
		b.forgetAll()
	case tenant:
		b.executor.answers.Barrier(tenantDomain(b.session.tenant))()
	}
}

// forgetAll forgets what any call may have made untrue.
func (b *batch) forgetAll() {
	b.executor.answers.Barrier(tenantDomain(b.session.tenant), writableFiles)()
}

// submit gives a call that was planned anew what was submitted for it.
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
		c.batch.session.keepApproval(approval, c.wait.effect.digest)
	}
}

// submitOutput gives a call what came of it where the client has run it. It stands for what the tool
// of this name does, and for no other's.
func (c *call) submitOutput(s *storedCall, output *tool.Result) {
	switch {
	case c.phase == phaseRefused:
		c.untaken(c.record.Result.Error)
	case !c.isClient() || s.action.Tool != c.tool:
		c.untaken("the tool was replaced meanwhile")
	default:
		c.phase, c.wait.answer = phaseAnswered, output
		if !s.action.Hints.ReadOnly { // when it was run
			c.readOnly = false
		}
	}
}

// untaken are the kinds of calls that the client has run and the output of which is not taken: the
// host has given them up, or has failed. Busy would ask for the call to be made again, and denied say
// that it was not run.
func untaken() []tool.Kind { return []tool.Kind{tool.Cancelled, tool.Internal} }

// untaken completes the record of such a call. To run it, or to have it called again, would be to do
// twice what the client has done.
func (c *call) untaken(why string) {
	c.batch.forgetAll()
	kind := tool.Cancelled
	if c.record.Result.Kind == tool.Internal {
		kind = tool.Internal
	}
	c.refuse(kind, "the client has run the call, but what came of it was not taken: "+why, c.record.Denials...)
	c.record.Skipped = false
}

// wasShown reports whether the state's action, which is what was looked at, is the call's own.
func (c *call) wasShown(s *storedCall) bool {
	shown, err := json.Marshal(s.shown())
	if err != nil {
		return false
	}
	own, err := json.Marshal(c.wait.action)
	return err == nil && bytes.Equal(shown, own)
}

// rejected refuses a call that whoever was asked has refused.
func (c *call) rejected(reason string) {
	rule := "the call was not approved"
	if reason != "" {
		rule += ": " + tool.Shown(reason, maxReason)
	}
	c.deny("approval", rule, tool.Allow{})
}

// maxReason is how many bytes a model is told of why a call was refused.
const maxReason = 2 << 10
