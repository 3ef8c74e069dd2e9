package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// TestDestructiveToolsNeedApproval: a destructive tool, and one that the policy marks, runs when it has been
// approved, and is denied with a receipt where it was refused.
func TestDestructiveToolsNeedApproval(t *testing.T) {
	var kept ledger
	asking := newGuarded(t, "send_mail", "caisson.yaml:14 asks for approval of each call", nil, echo)
	allowed := newGuarded(t, "purge", "", destructive, echo)
	e := newExecutor(t, executor.Options{Recorder: &kept}, newFake(t, "file_delete", fields{
		"behavior": fields{"destructive": true, "idempotent": true}, "context": []string{"project"},
		"parameters": fields{"type": "object", "properties": fields{"path": fields{"type": "string"}, "deep": fields{"type": "boolean", "default": false}, "project": fields{"type": "string"}}},
	}, echo), asking, allowed)
	session := withContext(t, e, map[string]string{"project": "p1"})
	report := paused(t, e, session, newCall("1", "file_delete", `{"path":"/a"}`), newCall("2", "send_mail", `{"to":"x"}`), newCall("3", "purge", "{}"))
	require.Len(t, report.Pending, 2, "the operator has approved of purge")
	require.Empty(t, report.Records, "calls behind one that waits wait as well")
	remove, mail := report.Pending[0], report.Pending[1]
	assert.Equal(t, tool.NeedsApproval, remove.Type)
	assert.JSONEq(t, `{"path":"/a","deep":false}`, string(remove.Arguments), "as it was checked, without context values")
	assert.Equal(t, tool.Hints{Destructive: true, Idempotent: true}, remove.Hints)
	assert.Equal(t, "the tool says that it is destructive", remove.Reason)
	assert.Len(t, remove.Fingerprint, 64)
	assert.Equal(t, "caisson.yaml:14 asks for approval of each call", mail.Reason)
	assert.Zero(t, kept.all())

	done := resume(t, e, executor.Resumption{State: stored(t, report.State), Session: session, Approvals: []tool.Approval{
		approve(remove), {CallID: "2", Reason: "not to x\x1b[2J"},
	}})
	assertCompleted(t, done)
	assert.Equal(t, `{"path":"/a","deep":false,"project":"p1"}`, done.Records[0].Result.Output)
	refused := done.Records[1]
	assert.Equal(t, tool.Denied, refused.Result.Kind)
	assert.Equal(t, "the call was not approved: not to x�[2J", refused.Result.Error)
	assert.True(t, refused.Skipped)
	require.Len(t, refused.Denials, 1)
	assert.Equal(t, tool.Denial{Permission: "approval", Value: "send_mail", Rule: refused.Result.Error}, refused.Denials[0])
	assert.True(t, done.Records[2].Result.Success)
	assert.Empty(t, session.Approvals(), "once is once")
	assertPaused(t, paused(t, e, session, newCall("1", "file_delete", `{"path":"/a"}`)))
}

// TestApprovalScopes: an approval for the session or for a time holds for later calls that do the
// same, in this session and in one that it is handed to, and for no other.
func TestApprovalScopes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExecutor(t, executor.Options{}, newFake(t, "file_delete", destructive, echo))
		session := newSession(t, e, executor.SessionOptions{})
		give := func(arguments string, scope tool.ApprovalScope, lasts time.Duration) {
			report := paused(t, e, session, newCall("1", "file_delete", arguments))
			approval := approve(report.Pending[0])
			approval.Scope, approval.For, approval.Reason = scope, lasts, "it may be long"
			done := resume(t, e, executor.Resumption{State: *report.State, Session: session, Approvals: []tool.Approval{approval}})
			assertCompleted(t, done)
		}
		give(`{"path":"a"}`, tool.ApproveSession, 0)
		give(`{"path":"b"}`, tool.ApproveFor, time.Minute)
		give(`{"path":"c"}`, tool.ApproveOnce, 0)
		assert.Len(t, session.Approvals(), 2)
		for _, kept := range session.Approvals() {
			assert.Empty(t, kept.Reason, "it is not read again, and a session keeps a thousand approvals")
		}
		var list []tool.Approval
		text := jsonOf(t, session.Approvals())
		time.Sleep(20 * time.Second) // while they are stored
		require.NoError(t, json.Unmarshal(text, &list))
		later := newSession(t, e, executor.SessionOptions{Approvals: list})
		waits := func(session *executor.Session, path string) bool {
			report := reportOf(t, e, executor.Batch{Session: session, Calls: []tool.Call{newCall("1", "file_delete", fmt.Sprintf(`{ "path":%q}`, path))}})
			return report.Status == executor.RequiresAction
		}
		for name, s := range map[string]*executor.Session{"first": session, "later": later} {
			assert.False(t, waits(s, "a"), name)
			assert.False(t, waits(s, "b"), name)
			assert.True(t, waits(s, "c"), name)
		}
		assert.True(t, waits(nil, "a"), "another session has none")
		foreign := newSession(t, e, executor.SessionOptions{Tenant: "foreign", Approvals: list})
		assert.True(t, waits(foreign, "a"), "another tenant's is none")
		time.Sleep(40 * time.Second)
		assert.False(t, waits(session, "a"))
		assert.True(t, waits(session, "b"), "the time is up")
		assert.True(t, waits(later, "b"), "handing it over does not make it longer")
		assert.Len(t, session.Approvals(), 1)
	})
}

// TestSessionApprovalsAreChecked: a session takes approvals that Approvals returns, and no other.
func TestSessionApprovalsAreChecked(t *testing.T) {
	e := newExecutor(t, executor.Options{})
	right := tool.Approval{Approve: true, Fingerprint: "f", Scope: tool.ApproveSession}
	for name, change := range map[string]func(*tool.Approval){
		"a refusal":        func(a *tool.Approval) { a.Approve = false },
		"no fingerprint":   func(a *tool.Approval) { a.Fingerprint = "" },
		"once":             func(a *tool.Approval) { a.Scope = tool.ApproveOnce },
		"no scope":         func(a *tool.Approval) { a.Scope = "" },
		"no time":          func(a *tool.Approval) { a.Scope = tool.ApproveFor },
		"a negative time":  func(a *tool.Approval) { a.Scope, a.For = tool.ApproveFor, -1 },
		"two times":        func(a *tool.Approval) { a.Scope, a.For, a.Until = tool.ApproveFor, 1, time.Now() },
		"an end too much":  func(a *tool.Approval) { a.Until = time.Now() },
		"a time too much":  func(a *tool.Approval) { a.For = 1 },
		"an unknown scope": func(a *tool.Approval) { a.Scope = "ever" },
	} {
		wrong := right
		change(&wrong)
		assert.ErrorIs(t, noerr.Error(e.NewSession(executor.SessionOptions{Approvals: []tool.Approval{right, wrong}})), executor.ErrInvalidOptions, name)
	}
	var many []tool.Approval
	for i := range 1500 {
		a := right
		a.Fingerprint = fmt.Sprint(i)
		many = append(many, a)
	}
	held := newSession(t, e, executor.SessionOptions{Approvals: many}).Approvals()
	assert.Equal(t, many[500:], held, "the oldest go")
}

// TestApprovedBeforeItsTurn: a call that was approved before it could run need not be approved again in the same
// session. In another session it must be, since the state could be forged.
func TestApprovedBeforeItsTurn(t *testing.T) {
	for _, same := range []bool{true, false} {
		var ran []string
		e := newExecutor(t, executor.Options{}, orderTools(t, &ran)...)
		session := newSession(t, e, executor.SessionOptions{})
		report := paused(t, e, session, newCall("1", "d", `{"n":"1"}`), newCall("2", "k", "{}"), newCall("3", "d", `{"n":"3"}`))
		require.Len(t, report.Pending, 2)
		report = resume(t, e, answered(session, *report.State))
		require.Len(t, report.Pending, 1)
		assert.Equal(t, []string{"d1"}, ran)
		if !same {
			session = newSession(t, e, executor.SessionOptions{})
		}
		report = resume(t, e, answered(session, *report.State))
		assert.Equal(t, same, report.Status == executor.Completed)
		if !same {
			require.Len(t, report.Pending, 1)
			report = resume(t, e, answered(session, *report.State))
			assertCompleted(t, report)
		}
		assert.Equal(t, []string{"d1", "d3"}, ran)
		assert.Empty(t, session.Approvals())
	}
}

// TestNestedApproval: a tool's call never waits. One that asks runs on an approval that the session
// has of the same.
func TestNestedApproval(t *testing.T) {
	relays := fields{"permissions": fields{"tools": []string{"erase", "shell"}}}
	e := newExecutor(t, executor.Options{}, newFake(t, "relay", relays, relay), newFake(t, "erase", destructive, echo), newClient(t, "shell", nil))
	session := newSession(t, e, executor.SessionOptions{})
	nested := func(name string) tool.Record {
		var kept []tool.Event
		watcher := watch(t, e, session)
		ask(t, e, session, "relay", calling(function(name, `{"n":1}`)))
		kept = watcher.rest(t)
		for _, event := range kept {
			if event.Type == tool.CallFinished && event.Parent != "" {
				return *event.Record
			}
		}
		require.Fail(t, "no nested call")
		return tool.Record{}
	}
	shell := nested("shell")
	assert.Equal(t, tool.Denied, shell.Result.Kind)
	assert.Equal(t, "execution", shell.Denials[0].Permission)
	erase := nested("erase")
	assert.Equal(t, tool.Denied, erase.Result.Kind)
	assert.Equal(t, "approval", erase.Denials[0].Permission)
	assert.Contains(t, erase.Result.Error, "destructive")
	assert.True(t, erase.Skipped)

	report := paused(t, e, session, newCall("1", "erase", `{"n":1}`))
	approval := approve(report.Pending[0])
	approval.Scope = tool.ApproveSession
	_ = resume(t, e, executor.Resumption{State: *report.State, Session: session, Approvals: []tool.Approval{approval}})
	assert.True(t, nested("erase").Result.Success)
}

// TestAttackApprovalThroughReuse: what a tool found out with a call that the session had approved is
// not given to a session that has not. Control: without a call that asks, it is.
func TestAttackApprovalThroughReuse(t *testing.T) {
	relays := fields{"permissions": fields{"tools": []string{"asking", "plain"}}, "behavior": fields{"read_only": true}}
	e := newExecutor(t, executor.Options{}, newFake(t, "relay", relays, relay), newGuarded(t, "asking", "asks", readOnly, echo), newFake(t, "plain", readOnly, echo))
	approved, other := newSession(t, e, executor.SessionOptions{}), newSession(t, e, executor.SessionOptions{})
	report := paused(t, e, approved, newCall("1", "asking", `{"n":1}`))
	approval := approve(report.Pending[0])
	approval.Scope = tool.ApproveSession
	_ = resume(t, e, executor.Resumption{State: *report.State, Session: approved, Approvals: []tool.Approval{approval}})
	for name, reused := range map[string]bool{"asking": false, "plain": true} {
		script := calling(function(name, `{"n":1}`))
		first, second := ask(t, e, approved, "relay", script), ask(t, e, other, "relay", script)
		assert.Equal(t, reused, second.Cached, name)
		assert.Equal(t, reused, first.Result.Output == second.Result.Output, name)
	}
	assertPaused(t, paused(t, e, other, newCall("1", "asking", `{"n":1}`)))
}

// TestBrokenGuards: a tool that fails when it is asked is not run without approval, and one that has
// no identity is not run at all.
func TestBrokenGuards(t *testing.T) {
	broken := func(name string, identity func(context.Context) (string, error)) *guarded {
		g := newGuarded(t, name, "asks", nil, echo)
		g.identity = identity
		return g
	}
	mute := newGuarded(t, "mute", "", nil, echo)
	mute.asks = func() string { panic("no") }
	e := newExecutor(t, executor.Options{}, mute,
		broken("panics", func(context.Context) (string, error) { panic("no") }),
		broken("exits", func(context.Context) (string, error) { runtime.Goexit(); return "", nil }),
		broken("fails", func(context.Context) (string, error) { return "", errors.New("/secret/path") }),
		broken("empty", func(context.Context) (string, error) { return "", nil }))
	report := paused(t, e, nil, newCall("1", "mute", ""))
	assert.Contains(t, report.Pending[0].Reason, "failed when it was asked")
	for _, name := range []string{"panics", "exits", "fails", "empty"} {
		record := ask(t, e, nil, name, "")
		assert.Equal(t, tool.Internal, record.Result.Kind, name)
		assert.True(t, record.Skipped, name)
		assert.NotContains(t, record.Result.Error, "secret")
	}
}

// explained is a tool that reports its permissions.
type explained struct {
	*fake
	decisions func() []tool.Decision
}

func (e explained) Decisions() []tool.Decision { return e.decisions() }

// TestActionShowsPermissions: an approver sees the tool's permissions.
func TestActionShowsPermissions(t *testing.T) {
	want := []tool.Decision{{Permission: "files", Requested: "/data (read-write)", Effective: "/data (read-write)"}}
	e := newExecutor(t, executor.Options{}, explained{newFake(t, "erase", destructive, echo), func() []tool.Decision { return want }},
		explained{newFake(t, "mute", destructive, echo), func() []tool.Decision { panic("no") }})
	report := paused(t, e, nil, newCall("1", "erase", ""), newCall("2", "mute", ""))
	assert.Equal(t, want, report.Pending[0].Decisions)
	assert.Equal(t, want, stored(t, report.State).Pending()[0].Decisions)
	require.Len(t, report.Pending[1].Decisions, 1)
	assert.Contains(t, report.Pending[1].Decisions[0].Reason, "failed")
	assert.Equal(t, report.Pending, stored(t, report.State).Pending())
}

var _ interface {
	Asks() string
	Identity(ctx context.Context) (string, error)
} = (*guarded)(nil) // see registry.Tool
