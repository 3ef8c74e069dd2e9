package executor_test

import (
	"context"
	"encoding/json"
	"regexp"
	goruntime "runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// claiming is a Claimer that is a function.
type claiming func() (bool, error)

func (c claiming) Claim(context.Context, string, time.Time) (bool, error) { return c() }

// sessionIn returns the digest of the session that a state's JSON has.
func sessionIn(t *testing.T, state *executor.State) string {
	t.Helper()
	text := jsonOf(t, state)
	var document struct{ Session string }
	require.NoError(t, json.Unmarshal(text, &document))
	return document.Session
}

// TestAttackClaimOfAnotherTenant: keys of claims differ where sessions do, so that a state that was
// made up with another's id takes nothing from it.
func TestAttackClaimOfAnotherTenant(t *testing.T) {
	claims := &claimer{taken: map[string]bool{}}
	e := newExecutor(t, executor.Options{Pause: executor.Pause{Claim: claims}}, newClient(t, "c", nil))
	session := newSession(t, e, executor.SessionOptions{Tenant: "a"})
	report := paused(t, e, session, newCall("1", "c", "{}"))
	_ = resume(t, e, answered(session, *report.State))
	require.Len(t, claims.taken, 1)
	for key := range claims.taken {
		assert.Equal(t, report.ID+".1."+sessionIn(t, report.State)[:16], key)
	}
}

// TestAttackEarlyExpiry: a copy that says that it expires early is claimed no shorter than any.
func TestAttackEarlyExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExecutor(t, executor.Options{}, newClient(t, "c", nil))
		session := newSession(t, e, executor.SessionOptions{})
		report := paused(t, e, session, newCall("1", "c", "{}"))
		early := forged(t, report.State, report.State.Expires().Format(time.RFC3339Nano), time.Now().Add(time.Minute).UTC().Format(time.RFC3339Nano))
		_ = resume(t, e, answered(session, early))
		time.Sleep(time.Hour)
		require.ErrorIs(t, noerr.Error(e.Resume(t.Context(), answered(session, *report.State))), executor.ErrAlreadyResumed)
	})
}

// TestBrokenClaim: a Claimer that panics or exits is an error, and the state can be tried again.
func TestBrokenClaim(t *testing.T) {
	claim := func() (bool, error) { return true, nil }
	e := newExecutor(t, executor.Options{Pause: executor.Pause{Claim: claiming(func() (bool, error) { return claim() })}}, newClient(t, "c", nil))
	session := newSession(t, e, executor.SessionOptions{})
	report := paused(t, e, session, newCall("1", "c", "{}"))
	right := claim
	for _, claim = range []func() (bool, error){func() (bool, error) { panic("no") }, func() (bool, error) { goruntime.Goexit(); return true, nil }} {
		require.ErrorContains(t, noerr.Error(e.Resume(t.Context(), answered(session, *report.State))), "claim:")
	}
	claim = right
	_ = resume(t, e, answered(session, *report.State))
}

// TestAttackCancelShadowed: a state with the id of a call that runs does not keep that from being
// cancelled.
func TestAttackCancelShadowed(t *testing.T) {
	started := make(chan string)
	e := newExecutor(t, executor.Options{}, newClient(t, "c", nil), newFake(t, "slow", nil, func(ctx context.Context, i tool.Invocation) (tool.Outcome, error) {
		started <- i.CallID
		<-ctx.Done()
		return tool.Outcome{}, ctx.Err()
	}))
	session := newSession(t, e, executor.SessionOptions{})
	report := paused(t, e, session, newCall("1", "c", "{}"))
	done := make(chan executor.Report)
	go func() {
		running, err := e.Execute(t.Context(), executor.Batch{Session: session, Calls: []tool.Call{newCall("2", "slow", "{}")}})
		assert.NoError(t, err)
		done <- running
	}()
	id := <-started
	require.ErrorIs(t, noerr.Error(e.Resume(t.Context(), answered(session, forged(t, report.State, report.Pending[0].CallID, id)))), executor.ErrInvalidState)
	assert.True(t, session.Cancel(id))
	assert.Equal(t, tool.Cancelled, (<-done).Records[0].Result.Kind)
	require.NoError(t, noerr.Error(e.Resume(t.Context(), answered(session, *report.State))), "control: the state as it was")
}

// TestAttackTotals: totals that would overflow are no state's.
func TestAttackTotals(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newClient(t, "c", nil))
	text := jsonOf(t, paused(t, e, nil, newCall("1", "c", "{}")).State)
	huge := regexp.MustCompile(`"fuel":0`).ReplaceAll(text, []byte(`"fuel":9223372036854775807`))
	require.NoError(t, new(executor.State).UnmarshalJSON(text), "control")
	require.ErrorIs(t, new(executor.State).UnmarshalJSON(huge), executor.ErrInvalidState)
}

// TestErrorKeepsFingerprint: an error does not reveal the fingerprint of a waiting call.
func TestErrorKeepsFingerprint(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newFake(t, "pay", destructive, echo))
	report := paused(t, e, nil, newCall("1", "pay", "{}"))
	_, err := e.Resume(t.Context(), executor.Resumption{State: *report.State, Session: report.Session, Approvals: []tool.Approval{{CallID: "1", Approve: true}}})
	require.ErrorIs(t, err, executor.ErrNotApproved)
	assert.NotContains(t, err.Error(), report.Pending[0].Fingerprint)
}
