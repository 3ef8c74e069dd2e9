package executor_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// forged is a state in whose JSON something was replaced.
func forged(t *testing.T, state *executor.State, replacements ...string) executor.State {
	t.Helper()
	text := jsonOf(t, state)
	changed := strings.NewReplacer(replacements...).Replace(string(text))
	require.NotEqual(t, string(text), changed, "the attack is none otherwise")
	read := noerr.Decode[executor.State](t, []byte(changed))
	return read
}

// asksFor is a tool that waits for approval, and "open", which does the same and does not.
func asksFor(t *testing.T, identity *string, ran *[]string) []registry.Tool {
	note := func(_ context.Context, i tool.Invocation) (tool.Outcome, error) {
		text, err := i.Arguments.MarshalJSON()
		*ran = append(*ran, i.Tool+" "+string(text))
		return succeed(""), err
	}
	guard := newGuarded(t, "erase", "asks", fields{"context": []string{"project"}}, note)
	guard.identity = func(context.Context) (string, error) { return *identity, nil }
	return []registry.Tool{guard, newFake(t, "open", fields{"context": []string{"project"}}, note), newClient(t, "shell", nil)}
}

// TestAttackApprovalOfSomethingElse: an approved call is run as it was shown, or waits again.
// Control: a call that needs no approval is run as the changed state has it.
func TestAttackApprovalOfSomethingElse(t *testing.T) {
	const small, large = `{\"path\":\"/tmp/a\"}`, `{\"path\":\"/\"}` // as in the state's calls
	tests := map[string]struct {
		attack func(t *testing.T, state *executor.State, identity *string) executor.State
		ran    string // what the control runs
	}{
		"other arguments": {func(t *testing.T, state *executor.State, _ *string) executor.State {
			return forged(t, state, small, large)
		}, `open {"path":"/","project":"p1"}`},
		"other arguments than are shown": {func(t *testing.T, state *executor.State, _ *string) executor.State {
			return forged(t, state, `"tool":"erase","arguments":"`+small, `"tool":"erase","arguments":"{\"path\":\"/tmp/harmless\"}`)
		}, ""},
		"another reason than is shown": {func(t *testing.T, state *executor.State, _ *string) executor.State {
			return forged(t, state, `"reason":"asks"`, `"reason":"it only reads"`)
		}, ""},
		"another module": {func(_ *testing.T, state *executor.State, identity *string) executor.State {
			*identity = "digest of another module"
			return *state
		}, `open {"path":"/tmp/a","project":"p1"}`},
		"more permissions": {func(_ *testing.T, state *executor.State, identity *string) executor.State {
			*identity += " that may write"
			return *state
		}, `open {"path":"/tmp/a","project":"p1"}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var ran []string
			identity := "digest"
			e := newExecutor(t, executor.Options{}, asksFor(t, &identity, &ran)...)
			session := withContext(t, e, map[string]string{"project": "p1"})
			report := paused(t, e, session, newCall("1", "erase", `{"path":"/tmp/a"}`))
			approved := approve(report.Pending[0])
			approved.Scope = tool.ApproveSession
			state := test.attack(t, report.State, &identity)
			again := resume(t, e, executor.Resumption{State: state, Session: session, Approvals: []tool.Approval{approved}})
			assertPaused(t, again)
			assert.Empty(t, ran)
			assert.Empty(t, session.Approvals(), "nor is it kept for later calls")
			done := resume(t, e, answered(session, *again.State))
			assertCompleted(t, done)
			assert.Len(t, ran, 1, "the call shown the second time is the one that would run")

			if test.ran == "" {
				return
			}
			ran = nil
			control := paused(t, e, session, newCall("1", "shell", "{}"), newCall("2", "open", `{"path":"/tmp/a"}`))
			done = resume(t, e, answered(session, test.attack(t, control.State, &identity)))
			assertCompleted(t, done)
			assert.Equal(t, []string{test.ran}, ran)
		})
	}
}

// TestAttackApprovalElsewhere: an approval that a session keeps does not apply to other arguments,
// or to another context value, tenant or tool. Control: it applies to the same ones.
func TestAttackApprovalElsewhere(t *testing.T) {
	var ran []string
	identity := "digest"
	e := newExecutor(t, executor.Options{}, asksFor(t, &identity, &ran)...)
	p1 := map[string]string{"project": "p1"}
	first := newSession(t, e, executor.SessionOptions{Tenant: "t1", Context: p1})
	report := paused(t, e, first, newCall("1", "erase", `{"path":"a"}`))
	approval := approve(report.Pending[0])
	approval.Scope = tool.ApproveSession
	_ = resume(t, e, executor.Resumption{State: *report.State, Session: first, Approvals: []tool.Approval{approval}})
	for name, test := range map[string]struct {
		options   executor.SessionOptions
		arguments string
		identity  string
		waits     bool
	}{
		"the same":              {executor.SessionOptions{Tenant: "t1", Context: p1}, `{"path":"a"}`, "digest", false},
		"other arguments":       {executor.SessionOptions{Tenant: "t1", Context: p1}, `{"path":"b"}`, "digest", true},
		"one argument more":     {executor.SessionOptions{Tenant: "t1", Context: p1}, `{"path":"a","deep":true}`, "digest", true},
		"another context value": {executor.SessionOptions{Tenant: "t1", Context: map[string]string{"project": "p2"}}, `{"path":"a"}`, "digest", true},
		"a context value more":  {executor.SessionOptions{Tenant: "t1", Context: map[string]string{"project": "p1", "role": "admin"}}, `{"path":"a"}`, "digest", true},
		"another tenant":        {executor.SessionOptions{Tenant: "t2", Context: p1}, `{"path":"a"}`, "digest", true},
		"another module":        {executor.SessionOptions{Tenant: "t1", Context: p1}, `{"path":"a"}`, "digest2", true},
	} {
		identity = test.identity
		test.options.Approvals = first.Approvals()
		report := reportOf(t, e, executor.Batch{Session: newSession(t, e, test.options), Calls: []tool.Call{newCall("1", "erase", test.arguments)}})
		assert.Equal(t, test.waits, report.Status == executor.RequiresAction, name)
	}
}

// TestAttackIdentityChangesMeanwhile: a tool that is replaced after it was found approved, while
// calls before it run, waits again. Control: where it stays, it runs.
func TestAttackIdentityChangesMeanwhile(t *testing.T) {
	for _, attacked := range []bool{true, false} {
		var ran []string
		identity := "digest"
		tools := append(asksFor(t, &identity, &ran), newFake(t, "swap", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) {
			if attacked {
				identity = "another"
			}
			return succeed(""), nil
		}))
		e := newExecutor(t, executor.Options{}, tools...)
		session := withContext(t, e, map[string]string{"project": "p1"})
		report := paused(t, e, session, newCall("1", "shell", "{}"), newCall("2", "swap", "{}"), newCall("3", "erase", `{}`))
		watcher := watch(t, e, session)
		report = resume(t, e, answered(session, *report.State))
		life := lifeOf(watcher.rest(t))
		if !attacked {
			assertCompleted(t, report)
			assert.Len(t, ran, 1)
			assert.NotContains(t, life, "call_waiting erase")
			continue
		}
		assertPaused(t, report)
		assert.Empty(t, ran)
		assert.Contains(t, life, "call_waiting erase")
		report = resume(t, e, answered(session, *report.State))
		assertCompleted(t, report)
		assert.Len(t, ran, 1)
	}
}

// TestAttackForgedAuthority: a state gives nothing: tools that the session may not call stay denied,
// context values are the session's, a call that waits cannot be made one that does not, and results
// cannot be handed in for calls that are run here.
func TestAttackForgedAuthority(t *testing.T) {
	var ran []string
	identity := "digest"
	e := newExecutor(t, executor.Options{}, append(asksFor(t, &identity, &ran), newFake(t, "secret", nil, echo))...)
	open := func() *executor.Session {
		return newSession(t, e, executor.SessionOptions{Context: map[string]string{"project": "p1"}, Allowed: []string{"erase", "open", "shell"}})
	}
	t.Run("a tool that is not allowed", func(t *testing.T) {
		session := open()
		report := paused(t, e, session, newCall("1", "shell", "{}"), newCall("2", "open", "{}"))
		done := resume(t, e, answered(session, forged(t, report.State, `"name":"open"`, `"name":"secret"`)))
		assert.Equal(t, tool.Denied, done.Records[1].Result.Kind)
		wide := withContext(t, e, map[string]string{"project": "p1"})
		report = paused(t, e, wide, newCall("1", "shell", "{}"), newCall("2", "open", "{}"))
		done = resume(t, e, answered(wide, forged(t, report.State, `"name":"open"`, `"name":"secret"`)))
		assert.True(t, done.Records[1].Result.Success, "control: a session that may call it does")
	})
	t.Run("a context value in the arguments", func(t *testing.T) {
		session := open()
		report := paused(t, e, session, newCall("1", "shell", "{}"), newCall("2", "open", `{"a":1}`))
		done := resume(t, e, answered(session, forged(t, report.State, `{\"a\":1}`, `{\"project\":\"p2\"}`)))
		assert.Equal(t, tool.Denied, done.Records[1].Result.Kind)
	})
	t.Run("a call that waits made one that does not", func(t *testing.T) {
		session := open()
		ran = nil
		report := paused(t, e, session, newCall("1", "shell", "{}"), newCall("2", "erase", "{}"))
		text := jsonOf(t, report.State)
		document := noerr.Decode[map[string]any](t, text)
		delete(document["calls"].([]any)[1].(map[string]any), "waits")
		text = jsonOf(t, document)
		state := noerr.Decode[executor.State](t, text)
		require.Len(t, state.Pending(), 1)
		again := resume(t, e, answered(session, state))
		assertPaused(t, again)
		assert.Equal(t, "erase", again.Pending[0].Tool)
		assert.Empty(t, ran)
	})
	t.Run("a result for a call that is run here", func(t *testing.T) {
		session := open()
		ran = nil
		report := paused(t, e, session, newCall("1", "shell", "{}"))
		done := resume(t, e, answered(session, forged(t, report.State, `"name":"shell"`, `"name":"open"`)))
		assertCompleted(t, done)
		assert.Equal(t, tool.Cancelled, done.Records[0].Result.Kind)
		assert.Empty(t, done.Records[0].Result.Output)
		assert.Empty(t, ran, "nor is it run")
	})
	t.Run("an output in place of an approval", func(t *testing.T) {
		session := open()
		ran = nil
		report := paused(t, e, session, newCall("1", "erase", "{}"))
		fingerprint := report.Pending[0].Fingerprint
		done := resume(t, e, answered(session, forged(t, report.State, `"type":"approval"`, `"type":"tool_output"`, `,"fingerprint":"`+fingerprint+`"`, "")))
		assert.Equal(t, tool.Cancelled, done.Records[0].Result.Kind)
		assert.Empty(t, ran)
	})
}

// TestAttackTenantSwap: another tenant cannot resume a state, even with its own digest in it.
// Control: the same tenant can.
func TestAttackTenantSwap(t *testing.T) {
	var ran []string
	e := newExecutor(t, executor.Options{}, orderTools(t, &ran)...)
	mine, theirs := newSession(t, e, executor.SessionOptions{Tenant: "mine"}), newSession(t, e, executor.SessionOptions{Tenant: "theirs"})
	report := paused(t, e, mine, newCall("1", "d", "{}"))
	digest := func(state *executor.State) string {
		text := jsonOf(t, state)
		var document struct{ Session string }
		require.NoError(t, json.Unmarshal(text, &document))
		return document.Session
	}
	require.ErrorIs(t, noerr.Error(e.Resume(t.Context(), answered(theirs, *report.State))), executor.ErrWrongSession)
	other := paused(t, e, theirs, newCall("1", "d", "{}"))
	require.ErrorIs(t, noerr.Error(e.Resume(t.Context(), answered(theirs, forged(t, report.State, digest(report.State), digest(other.State))))), executor.ErrWrongSession, "a digest is of one batch's")
	// An attacker who can make up a whole state still needs approvals of its calls.
	made := forged(t, report.State, digest(report.State), digest(other.State), report.ID, other.ID)
	again := resume(t, e, answered(theirs, made))
	assertPaused(t, again)
	assert.Empty(t, ran)
	done := resume(t, e, answered(mine, *report.State))
	assertCompleted(t, done)
	assert.Equal(t, []string{"d"}, ran)
}

// TestAttackReplay: a state that was resumed is late, also with a later time to expire. Control:
// another batch is not.
func TestAttackReplay(t *testing.T) {
	var ran []string
	e := newExecutor(t, executor.Options{}, orderTools(t, &ran)...)
	session := newSession(t, e, executor.SessionOptions{})
	report := paused(t, e, session, newCall("1", "k", "{}"), newCall("2", "w", "{}"))
	resume := func(state executor.State) error {
		_, err := e.Resume(t.Context(), answered(session, state))
		return err
	}
	year := report.State.Expires().Format("2006")
	require.ErrorIs(t, resume(forged(t, report.State, `"expires":"`+year, `"expires":"9999`)), executor.ErrInvalidState, "a claim on a resumed state is not remembered for so long")
	require.NoError(t, resume(*report.State))
	require.ErrorIs(t, resume(*report.State), executor.ErrAlreadyResumed)
	require.ErrorIs(t, resume(stored(t, report.State)), executor.ErrAlreadyResumed)
	require.Len(t, ran, 1)
	other := noerr.Get(uuid.NewV7())(t)
	control := paused(t, e, session, newCall("1", "k", "{}"), newCall("2", "w", "{}"))
	require.NoError(t, resume(*control.State))
	assert.Len(t, ran, 2)
	// With only another id, it is another session's state.
	require.ErrorIs(t, resume(forged(t, report.State, report.ID, other.String())), executor.ErrWrongSession)
}
