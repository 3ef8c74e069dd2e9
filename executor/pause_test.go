package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"

	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// newClient returns a tool that the client runs. Whoever runs it here fails the test.
func newClient(t testing.TB, name string, more fields) *fake {
	t.Helper()
	document := fields{"execution": "client", "module": nil}
	for key, value := range more {
		document[key] = value
	}
	return newFake(t, name, document, func(context.Context, tool.Invocation) (tool.Outcome, error) {
		t.Error(name + " was run, which is the client's")
		return tool.Outcome{}, nil
	})
}

// guarded is a tool with its own methods Asks and Identity.
type guarded struct {
	*fake
	asks     func() string
	identity func(context.Context) (string, error)
}

func (g *guarded) Asks() string                                 { return g.asks() }
func (g *guarded) Identity(ctx context.Context) (string, error) { return g.identity(ctx) }

func newGuarded(t testing.TB, name, asks string, more fields, do run) *guarded {
	t.Helper()
	return &guarded{
		fake: newFake(t, name, more, do), asks: func() string { return asks },
		identity: func(context.Context) (string, error) { return "v1 of " + name, nil },
	}
}

var destructive = behaves(fields{"destructive": true})

// paused runs a batch that is to wait, and returns its report.
func paused(t testing.TB, e *executor.Executor, session *executor.Session, calls ...tool.Call) executor.Report {
	t.Helper()
	report := reportOf(t, e, executor.Batch{Session: session, Calls: calls})
	assertPaused(t, report)
	return report
}

func assertPaused(t testing.TB, report executor.Report) {
	t.Helper()
	require.Equal(t, executor.RequiresAction, report.Status)
	require.NotEmpty(t, report.Pending)
	require.NotNil(t, report.State)
	assert.Equal(t, report.Pending, report.State.Pending())
	assert.Equal(t, report.ID, report.State.ID())
}

func assertCompleted(t testing.TB, report executor.Report) {
	t.Helper()
	require.Equal(t, executor.Completed, report.Status)
	assert.Equal(t, []tool.Action{}, report.Pending)
	assert.Nil(t, report.State)
}

// stored is a state as it comes back from where it was stored.
func stored(t testing.TB, state *executor.State) executor.State {
	t.Helper()
	text := jsonOf(t, state)
	read := noerr.Decode[executor.State](t, text)
	return read
}

// answered answers all that a batch waits for: outputs say "done" and the tool, approvals are for once.
func answered(session *executor.Session, state executor.State) executor.Resumption {
	r := executor.Resumption{State: state, Session: session}
	for _, action := range state.Pending() {
		if action.Type == tool.NeedsOutput {
			r.Outputs = append(r.Outputs, tool.Answer{CallID: action.CallID, Result: tool.Result{Success: true, Output: "done " + action.Tool}})
			continue
		}
		r.Approvals = append(r.Approvals, approve(action))
	}
	return r
}

func approve(action tool.Action) tool.Approval {
	return tool.Approval{CallID: action.CallID, Approve: true, Fingerprint: action.Fingerprint}
}

// TestClientToolsPauseTheBatch: a call that the client runs pauses the batch, which resumes with the client's result.
func TestClientToolsPauseTheBatch(t *testing.T) {
	var kept ledger
	e := newExecutor(t, executor.Options{Recorder: &kept}, newFake(t, "note", nil, echo), newFake(t, "look", readOnly, echo),
		newClient(t, "local_shell", fields{"type": "local_shell", "parameters": fields{
			"type": "object", "required": []string{"command"}, "properties": fields{"command": fields{"type": "array", "items": fields{"type": "string"}}},
		}, "behavior": fields{"destructive": true}}))
	session := newSession(t, e, executor.SessionOptions{Tenant: "acme"})
	watcher := watch(t, e, nil)
	shell := newCall("call_2", "local_shell", `{"command":["ls","-l"]}`)
	shell.Type = tool.LocalShellCall
	report := paused(t, e, session, newCall("call_1", "look", `{"at":1}`), shell, newCall("call_3", "note", "{}"), newCall("call_4", "missing", "{}"))
	require.Len(t, report.Pending, 1)
	action := report.Pending[0]
	assert.Equal(t, tool.NeedsOutput, action.Type)
	assert.Equal(t, shell, action.Call)
	assert.Equal(t, "local_shell", action.Tool)
	assert.JSONEq(t, `{"command":["ls","-l"]}`, string(action.Arguments))
	assert.Equal(t, tool.Hints{Destructive: true}, action.Hints)
	assert.Empty(t, action.Fingerprint, "it needs no approval besides")
	assert.NotEmpty(t, action.Reason)
	require.Len(t, report.Records, 2, "the first has run, and the last was refused")
	assert.Equal(t, []string{"call_1", "call_4"}, []string{report.Records[0].ID, report.Records[1].ID})
	assert.Equal(t, 2, report.Totals.Calls)
	assert.Len(t, kept.all(), 2)

	second := resume(t, e, executor.Resumption{State: stored(t, report.State), Session: session, Outputs: []tool.Answer{
		{CallID: "call_2", Result: tool.Result{Success: true, Output: "total 0", Data: json.RawMessage(`{"exit_code":0}`), Kind: tool.Denied, Error: "ignored"}},
	}})
	assertCompleted(t, second)
	assert.Equal(t, report.ID, second.ID)
	require.Len(t, second.Records, 4)
	assert.Equal(t, tool.Result{Success: true, Output: "total 0", Data: json.RawMessage(`{"exit_code":0}`)}, second.Records[1].Result)
	assert.Equal(t, action.CallID, second.Records[1].CallID)
	assert.False(t, second.Records[1].Skipped)
	assert.True(t, second.Records[2].Result.Success)
	assert.Equal(t, report.Records[0], second.Records[0])
	assert.Equal(t, tool.UnknownTool, second.Records[3].Result.Kind)
	assert.Equal(t, 4, second.Totals.Calls)
	assert.Len(t, kept.all(), 4, "each record is kept once")
	assert.Equal(t, []string{
		"batch_started", "call_started look", "call_finished look", "call_waiting local_shell", "call_started missing", "call_finished missing", "batch_paused",
		"batch_resumed", "call_started local_shell", "call_finished local_shell", "call_started note", "call_finished note", "batch_finished",
	}, lifeOf(watcher.rest(t)))
}

// lifeOf names events, those of calls with the tool.
func lifeOf(events []tool.Event) (life []string) {
	for _, event := range events {
		life = append(life, strings.TrimSpace(fmt.Sprint(event.Type, " ", event.Tool)))
	}
	return life
}

// newCustom returns a custom tool that takes its text in the parameter "patch".
func newCustom(t testing.TB, name string, more fields, do run) *fake {
	t.Helper()
	document := fields{"parameters": fields{
		"type": "object", "required": []string{"patch"}, "properties": fields{"patch": fields{"type": "string", "maxLength": 100}}, "additionalProperties": false,
	}}
	for key, value := range more {
		document[key] = value
	}
	made := newFake(t, name, document, do)
	made.Manifest().Type = tool.CustomCall
	return made
}

// TestClientGetsCustomTextUnchanged: a custom call of a client's tool is announced with its text as it was written.
func TestClientGetsCustomTextUnchanged(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newCustom(t, "apply_patch", fields{"execution": "client", "module": nil}, echo))
	session := newSession(t, e, executor.SessionOptions{})
	text := "*** <Begin>\n\"quoted\" \\ é"
	call := newCall("", "apply_patch", text)
	call.Type = tool.CustomCall
	report := paused(t, e, session, call)
	action := report.Pending[0]
	assert.Equal(t, text, action.Call.Function.Arguments)
	assert.Equal(t, action.CallID, action.Call.ID, "so that there is one to answer with")
	arguments := noerr.Decode[map[string]string](t, action.Arguments)
	assert.Equal(t, map[string]string{"patch": text}, arguments)
	done := resume(t, e, executor.Resumption{State: stored(t, report.State), Session: session, Outputs: []tool.Answer{{CallID: action.CallID, Result: tool.Result{Error: "it does not apply"}}}})
	assertCompleted(t, done)
	assert.Equal(t, tool.Result{Error: "it does not apply", Kind: tool.ToolFailed}, done.Records[0].Result)
	assert.Equal(t, call, done.Records[0].Call, "the record has the call as the model wrote it")
}

// TestCustomTextBecomesTheParameter: free text becomes the tool's only parameter, or an error that a model can act
// on; a function call of the same tool works as well.
func TestCustomTextBecomesTheParameter(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newCustom(t, "apply_patch", nil, echo), newFake(t, "plain", nil, echo))
	tests := []struct {
		name, tool, typ, text string
		kind                  tool.Kind
		says                  string // the output, or a part of the error
	}{
		{"text", "apply_patch", "custom", "a <b> & c", "", `{"patch":"a <b> & c"}`},
		{"empty", "apply_patch", "custom", "", "", `{"patch":""}`},
		{"JSON is text as well", "apply_patch", "custom", `{"patch":"x"}`, "", `{"patch":"{\"patch\":\"x\"}"}`},
		{"a function call", "apply_patch", "function", `{"patch":"x"}`, "", `{"patch":"x"}`},
		{"no type", "apply_patch", "", `{"patch":"x"}`, "", `{"patch":"x"}`},
		{"text in a function call", "apply_patch", "function", `x`, tool.InvalidArguments, "not JSON"},
		{"too long for the schema", "apply_patch", "custom", strings.Repeat("x", 101), tool.InvalidArguments, "patch"},
		{"too long", "apply_patch", "custom", strings.Repeat("x", tool.MaxArgumentsBytes+1), tool.InvalidArguments, "over the limit"},
		{"not UTF-8", "apply_patch", "custom", "\xff", tool.InvalidArguments, "UTF-8"},
		{"of another tool", "plain", "custom", "{}", tool.InvalidArguments, "plain takes a JSON object"},
		{"of nobody", "apply_path", "custom", "x", tool.UnknownTool, "did you mean apply_patch"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			call := newCall("1", test.tool, test.text)
			call.Type = test.typ
			record := execute(t, e, executor.Batch{Calls: []tool.Call{call}})
			assert.Equal(t, test.kind, record.Result.Kind)
			assert.Equal(t, test.text, record.Function.Arguments)
			if test.kind == "" {
				assert.Equal(t, test.says, record.Result.Output)
				return
			}
			assert.Contains(t, record.Result.Error, test.says)
		})
	}
}

// orderTools are one tool of each kind: r and R read and w writes, c and k are the
// client's to read and to write, a and d must be approved. They note that they have run.
func orderTools(t *testing.T, ran *[]string) []registry.Tool {
	var mu sync.Mutex
	note := func(_ context.Context, i tool.Invocation) (tool.Outcome, error) {
		mu.Lock()
		defer mu.Unlock()
		*ran = append(*ran, i.Tool+argument(i, "n"))
		return succeed(i.Tool), nil
	}
	return []registry.Tool{
		newFake(t, "r", behaves(fields{"read_only": true, "cache": "off"}), note), newFake(t, "w", nil, note),
		newClient(t, "c", readOnly), newClient(t, "k", nil),
		newGuarded(t, "a", "policy", readOnly, note), newFake(t, "d", destructive, note),
	}
}

// TestPauseOrder: the calls that run and those that wait, at each pause. A call is its tool and its position.
func TestPauseOrder(t *testing.T) {
	tests := []struct{ calls, want string }{
		{"r", "r1"},
		{"c", "?c1 | "},
		{"r c r", "r1 r3 ?c2 | "},
		{"r k r", "r1 ?k2 | r3"},
		{"k k r c", "?k1 ?k2 ?c4 | r3"},
		{"c w r", "?c1 | w2 r3"},
		{"w c", "w1 ?c2 | "},
		{"r w k w r", "r1 w2 ?k3 | w4 r5"},
		{"d", "?d1 | d1"},
		{"r d r", "r1 ?d2 | d2 r3"},
		{"a r w", "r2 ?a1 | a1 w3"},
		{"d k r", "?d1 | d1 ?k2 | r3"},
		{"d w d", "?d1 ?d3 | d1 w2 d3"},
		{"k d r", "?k1 ?d2 | d2 r3"},
		{"d k d", "?d1 ?d3 | d1 ?k2 | d3"},
		{"k a r", "?k1 ?a2 | a2 r3"},
		{"w a k w a k", "w1 ?a2 ?a5 | a2 ?k3 | w4 a5 ?k6 | "},
		{"k r k", "?k1 | r2 ?k3 | "},
		{"a k c", "?a1 | a1 ?k2 ?c3 | "},
		{"a c k", "?a1 ?c2 | a1 ?k3 | "},
		{"k k r c k c", "?k1 ?k2 ?c4 | r3 ?k5 ?c6 | "},
		{"c c c", "?c1 ?c2 ?c3 | "},
		{"x k x w x", "?k2 | w4"},
	}
	for _, test := range tests {
		t.Run(test.calls, func(t *testing.T) {
			var ran []string
			e := newExecutor(t, executor.Options{}, orderTools(t, &ran)...)
			session := newSession(t, e, executor.SessionOptions{})
			var calls []tool.Call
			for i, name := range strings.Fields(test.calls) {
				calls = append(calls, newCall(fmt.Sprint(i+1), name, fmt.Sprintf(`{"n":"%d"}`, i+1)))
			}
			report := reportOf(t, e, executor.Batch{Session: session, Calls: calls})
			var steps []string
			for {
				slices.SortFunc(ran, func(a, b string) int { return strings.Compare(a[1:], b[1:]) }) // neighbours run in any order
				step := ran
				ran = nil
				for _, action := range report.Pending {
					step = append(step, "?"+action.Tool+action.Call.ID)
				}
				steps = append(steps, strings.Join(step, " "))
				if report.Status == executor.Completed {
					break
				}
				report = resume(t, e, answered(session, stored(t, report.State)))
			}
			assert.Equal(t, test.want, strings.Join(steps, " | "))
			assert.Len(t, report.Records, len(calls))
			assert.Equal(t, len(calls), report.Totals.Calls)
		})
	}
}
