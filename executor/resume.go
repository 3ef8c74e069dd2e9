package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/caisson-run/caisson/tool"
)

// Resume goes on with a batch that required action. What has ended is not run again; the report has
// the records of all calls that have ended. It may require action again, also for an approval: where
// a call has come to do something else than was approved, it waits anew.
//
// The error wraps [ErrInvalidBatch] or one or more of those that are listed with [ErrLate], or is
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
	if err := e.claim(ctx, stored); err != nil {
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
		m.add(ErrLate, "its time was up at %s", stored.expires.Format(time.RFC3339))
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

// claim takes the state, so that nobody else can resume it.
func (e *Executor) claim(ctx context.Context, stored *storedBatch) error {
	key := stored.id + "." + strconv.Itoa(stored.revision)
	taken := fmt.Errorf("%w: it was resumed", ErrLate)
	if !e.claims.Take(key, stored.expires) {
		return taken
	}
	if e.options.Pause.Claim == nil {
		return nil
	}
	kept := false
	defer func() {
		if !kept {
			e.claims.Release(key)
		}
	}()
	ok, err := e.options.Pause.Claim.Claim(ctx, key, stored.expires)
	if err != nil {
		return fmt.Errorf("claim: %w", err)
	}
	kept = true
	if !ok {
		return taken
	}
	return nil
}

// replan returns a state's calls: those that have ended as they are, and the others checked as if
// they were new. For nothing that decides what a call may do is taken from a state.
func (b *batch) replan(ctx context.Context, stored *storedBatch, given map[string]submitted) []*call {
	calls := make([]*call, len(stored.calls))
	for i := range stored.calls {
		s := &stored.calls[i]
		if s.record != nil {
			calls[i] = &call{batch: b, record: *s.record, ended: true, final: s.final}
			continue
		}
		answer, answered := given[s.callID]
		switch err := ctx.Err(); {
		case answered && answer.output != nil: // the client has run it, so that there is no hurry
			calls[i] = b.plan(context.WithoutCancel(ctx), s.call, s.callID, false)
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
		if !c.ended || c.record.Skipped || c.record.Cached {
			continue
		}
		c.find(b.executor.resolver)
		m := c.entry.Manifest
		tenant = tenant || m == nil || !m.Behavior.ReadOnly
		files = files || m == nil || !m.Behavior.ReadOnly && writesFiles(m)
	}
	if !tenant {
		return
	}
	domains := []string{tenantDomain(b.session.tenant)}
	if files {
		domains = append(domains, writableFiles)
	}
	b.executor.answers.Barrier(domains...)()
}

// submit gives a call that was planned anew what was submitted for it.
func (c *call) submit(s *storedCall, answer submitted) {
	switch {
	case c.refused:
	case answer.output != nil && !c.isClient():
		// To run it would be to run it twice.
		c.refuse(tool.Busy, "the tool was replaced after the call was announced; call it again")
	case answer.output != nil:
		c.wait.open, c.wait.announced, c.wait.answer = false, true, answer.output
	case !answer.approval.Approve:
		c.rejected(answer.approval.Reason)
	case c.wait != nil && !c.isClient() && c.wait.action.Fingerprint == answer.approval.Fingerprint && c.wasShown(s):
		c.wait.open, c.wait.approved = false, answer.approval.Fingerprint
		c.batch.session.keepApproval(*answer.approval)
	}
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
