package executor_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// exchanged returns two states in which two waiting calls, one of each, have exchanged everything but
// their ids: the calls and the actions. The states may be the same.
func exchanged(t *testing.T, a, b *executor.State, at, with int) (executor.State, executor.State) {
	t.Helper()
	read := func(state *executor.State) (document map[string]any, calls []any) {
		text := jsonOf(t, state)
		require.NoError(t, json.Unmarshal(text, &document))
		return document, document["calls"].([]any)
	}
	write := func(document map[string]any) (state executor.State) {
		text := jsonOf(t, document)
		require.NoError(t, json.Unmarshal(text, &state))
		return state
	}
	one, inOne := read(a)
	two, inTwo := one, inOne
	if a != b {
		two, inTwo = read(b)
	}
	x, y := inOne[at].(map[string]any), inTwo[with].(map[string]any)
	for _, member := range []string{"call", "waits"} {
		x[member], y[member] = y[member], x[member]
	}
	return write(one), write(two)
}

// TestAttackExchangedCalls: an attacker who can write states exchanges two waiting calls, with their
// fingerprints. The fingerprint that was shown for the first approves neither; a careless approver who takes the
// fingerprint from the changed state is asked again, and nothing has run. Control: in a session in which the effect of
// the second is approved for all calls, the changed state runs it in the place of the first.
func TestAttackExchangedCalls(t *testing.T) {
	var ran []string
	identity := "digest"
	e := newExecutor(t, executor.Options{}, asksFor(t, &identity, &ran)...)
	project := executor.SessionOptions{Context: map[string]string{"project": "p1"}}
	f1, f2 := newCall("1", "erase", `{"path":"f1"}`), newCall("2", "erase", `{"path":"f2"}`)
	for name, together := range map[string]bool{"in one batch": true, "in two batches": false} {
		t.Run(name, func(t *testing.T) {
			attacked := func(session *executor.Session) (shown tool.Action, state executor.State) {
				ran = nil
				if together {
					report := paused(t, e, session, f1, f2)
					state, _ = exchanged(t, report.State, report.State, 0, 1)
					return report.Pending[0], state
				}
				first, second := paused(t, e, session, f1), paused(t, e, session, f2)
				state, _ = exchanged(t, first.State, second.State, 0, 0)
				return first.Pending[0], state
			}
			session := newSession(t, e, project)
			shown, state := attacked(session)
			r := answered(session, state)
			require.Equal(t, shown.CallID, r.Approvals[0].CallID)
			require.JSONEq(t, `{"path":"f2"}`, string(state.Pending()[0].Arguments), "the attack is none otherwise")
			r.Approvals[0].Fingerprint = shown.Fingerprint
			require.ErrorIs(t, noerr.Error(e.Resume(t.Context(), r)), executor.ErrNotApproved)

			report := resume(t, e, answered(session, state))
			assertPaused(t, report)
			assert.Empty(t, ran)

			options := project
			given := paused(t, e, session, f2)
			approval := approve(given.Pending[0])
			approval.Scope = tool.ApproveSession
			_ = resume(t, e, executor.Resumption{State: *given.State, Session: session, Approvals: []tool.Approval{approval}})
			options.Approvals = session.Approvals()
			_, state = attacked(newSession(t, e, project))
			_ = resume(t, e, answered(newSession(t, e, options), state))
			require.NotEmpty(t, ran)
			assert.Equal(t, `erase {"path":"f2","project":"p1"}`, ran[0])
		})
	}
}

// TestAttackReorderedCalls: an attacker who can write states reverses the calls of a batch. Approved calls
// do not run in another order than the one shown. Control: if their effects are approved for the session,
// which does not depend on earlier calls, they do.
func TestAttackReorderedCalls(t *testing.T) {
	var ran []string
	identity := "digest"
	e := newExecutor(t, executor.Options{}, asksFor(t, &identity, &ran)...)
	project := executor.SessionOptions{Context: map[string]string{"project": "p1"}}
	attacked := func(session *executor.Session) (shown []tool.Action, state executor.State) {
		ran = nil
		report := paused(t, e, session, newCall("1", "erase", `{"path":"f1"}`), newCall("2", "erase", `{"path":"f2"}`))
		text := jsonOf(t, report.State)
		document := noerr.Decode[map[string]any](t, text)
		slices.Reverse(document["calls"].([]any))
		text = jsonOf(t, document)
		require.NoError(t, json.Unmarshal(text, &state))
		return report.Pending, state
	}
	session := newSession(t, e, project)
	shown, state := attacked(session)
	approvals := []tool.Approval{approve(shown[0]), approve(shown[1])}
	report := resume(t, e, executor.Resumption{State: state, Session: session, Approvals: approvals})
	assertPaused(t, report)
	assert.Empty(t, ran)
	require.Len(t, report.Pending, 2)
	assert.NotEqual(t, shown[0].Fingerprint, report.Pending[1].Fingerprint)

	given := paused(t, e, session, newCall("1", "erase", `{"path":"f1"}`), newCall("2", "erase", `{"path":"f2"}`))
	approvals = []tool.Approval{approve(given.Pending[0]), approve(given.Pending[1])}
	for i := range approvals {
		approvals[i].Scope = tool.ApproveSession
	}
	_ = resume(t, e, executor.Resumption{State: *given.State, Session: session, Approvals: approvals})
	options := project
	options.Approvals = session.Approvals()
	_, state = attacked(newSession(t, e, project))
	_ = resume(t, e, answered(newSession(t, e, options), state))
	assert.Equal(t, []string{`erase {"path":"f2","project":"p1"}`, `erase {"path":"f1","project":"p1"}`}, ran)
}

// TestFingerprintsAreOfOneCall: calls with the same effect have different fingerprints, and an approval
// of one of them for the session applies to all.
func TestFingerprintsAreOfOneCall(t *testing.T) {
	var ran []string
	identity := "digest"
	e := newExecutor(t, executor.Options{}, asksFor(t, &identity, &ran)...)
	session := withContext(t, e, map[string]string{"project": "p1"})
	first := paused(t, e, session, newCall("1", "erase", `{"path":"a"}`))
	second := paused(t, e, session, newCall("1", "erase", `{"path":"a"}`))
	assert.NotEqual(t, first.Pending[0].Fingerprint, second.Pending[0].Fingerprint)
	approval := approve(first.Pending[0])
	approval.Scope = tool.ApproveSession
	_ = resume(t, e, executor.Resumption{State: *first.State, Session: session, Approvals: []tool.Approval{approval}})
	require.Len(t, session.Approvals(), 1)
	assert.NotEqual(t, approval.Fingerprint, session.Approvals()[0].Fingerprint, "the kept approval names no call")
	report := reportOf(t, e, executor.Batch{Session: session, Calls: []tool.Call{newCall("9", "erase", `{"path":"a"}`)}})
	assertCompleted(t, report)
	kept := session.Approvals()[0]
	kept.Fingerprint = approval.Fingerprint
	other := newSession(t, e, executor.SessionOptions{Context: map[string]string{"project": "p1"}, Approvals: []tool.Approval{kept}})
	assertPaused(t, paused(t, e, other, newCall("1", "erase", `{"path":"a"}`)))
}

// calleeWorld is a tool "clean" that must be approved and may call "step", which may call the callee:
// "other", or "helper" by its alias.
type calleeWorld struct {
	executor *executor.Executor
	helper   string   // its identity
	ran      []string // the callers of helper
}

func newCalleeWorld(t *testing.T, asks, callee string) *calleeWorld {
	w := &calleeWorld{helper: "helper v1"}
	helper := newGuarded(t, "helper", "", fields{"aliases": []string{"help"}}, func(_ context.Context, i tool.Invocation) (tool.Outcome, error) {
		w.ran = append(w.ran, w.helper)
		if argument(i, "replaced") != "" { // while the call that leads here runs
			w.helper = "helper v2"
		}
		return succeed(""), nil
	})
	helper.identity = func(context.Context) (string, error) { return w.helper, nil }
	w.executor = newExecutor(t, executor.Options{}, helper, newFake(t, "other", nil, echo),
		newGuarded(t, "clean", asks, may(false, "step"), relay), newFake(t, "step", may(false, callee), relay))
	return w
}

// through calls helper, so often, by way of the tools that may.
func through(arguments ...string) tool.Call {
	var calls []tool.Function
	for _, each := range arguments {
		calls = append(calls, function("step", calling(function("help", each))))
	}
	return newCall("1", "clean", calling(calls...))
}

// TestAttackReplacedCallee: an approval of a tool does not apply after one of its callees was replaced, even if
// that happens while the approved call runs. Controls: the call runs without a replacement, and if a
// tool was replaced that it may not call; a call that needs no approval calls the replacement.
func TestAttackReplacedCallee(t *testing.T) {
	t.Run("before it runs", func(t *testing.T) {
		for name, attacked := range map[string]bool{"attack": true, "control": false} {
			w := newCalleeWorld(t, "asks", "help")
			report := paused(t, w.executor, nil, through("{}"))
			if attacked {
				w.helper = "helper v2"
			}
			asked := report.Pending[0].Callees
			require.Len(t, asked, 2)
			assert.Equal(t, []string{"helper", "step"}, []string{asked[0].Tool, asked[1].Tool})
			report = resume(t, w.executor, answered(report.Session, stored(t, report.State)))
			if !attacked {
				assertCompleted(t, report)
				assert.Equal(t, []string{"helper v1"}, w.ran, name)
				continue
			}
			assertPaused(t, report)
			assert.Empty(t, w.ran)
			assert.NotEqual(t, asked[0], report.Pending[0].Callees[0], "it says which tool is another")
			assert.Equal(t, asked[1], report.Pending[0].Callees[1])
			report = resume(t, w.executor, answered(report.Session, *report.State))
			assertCompleted(t, report)
			assert.Equal(t, []string{"helper v2"}, w.ran, "once that was approved")
		}
	})
	t.Run("after it was approved for the session", func(t *testing.T) {
		for name, attacked := range map[string]bool{"attack": true, "control": false} {
			w := newCalleeWorld(t, "asks", "help")
			report := paused(t, w.executor, nil, through("{}"))
			approval := approve(report.Pending[0])
			approval.Scope = tool.ApproveSession
			session := report.Session
			_ = resume(t, w.executor, executor.Resumption{State: *report.State, Session: session, Approvals: []tool.Approval{approval}})
			require.Equal(t, []string{"helper v1"}, w.ran)
			if attacked {
				w.helper = "helper v2"
			}
			report = reportOf(t, w.executor, executor.Batch{Session: session, Calls: []tool.Call{through("{}")}})
			if attacked {
				assertPaused(t, report)
				assert.Equal(t, []string{"helper v1"}, w.ran, name)
				continue
			}
			assertCompleted(t, report)
			assert.Equal(t, []string{"helper v1", "helper v1"}, w.ran, name)
		}
	})
	t.Run("while it runs", func(t *testing.T) {
		attack := through(`{"replaced":"yes"}`, `{"n":2}`)
		w := newCalleeWorld(t, "asks", "help")
		watcher := watch(t, w.executor, nil)
		report := paused(t, w.executor, nil, attack)
		report = resume(t, w.executor, answered(report.Session, *report.State))
		assertCompleted(t, report)
		assert.Equal(t, []string{"helper v1"}, w.ran)
		var denied []string
		for _, event := range watcher.rest(t) {
			if event.Type == tool.CallFinished && event.Record.Result.Kind == tool.Denied {
				denied = append(denied, event.Record.Result.Error)
			}
		}
		assert.Equal(t, []string{"helper was replaced after the call of clean that leads to it was approved"}, denied)

		control := newCalleeWorld(t, "", "help")
		report = reportOf(t, control.executor, executor.Batch{Calls: []tool.Call{attack}})
		assertCompleted(t, report)
		assert.Equal(t, []string{"helper v1", "helper v2"}, control.ran)
	})
	t.Run("one that it may not call", func(t *testing.T) {
		w := newCalleeWorld(t, "asks", "other")
		report := paused(t, w.executor, nil, newCall("1", "clean", calling(function("step", calling(function("other", "{}"))))))
		w.helper = "helper v2"
		report = resume(t, w.executor, answered(report.Session, *report.State))
		assertCompleted(t, report)
	})
}
