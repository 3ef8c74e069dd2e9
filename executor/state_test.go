package executor_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

var (
	_ driver.Valuer = executor.State{}
	_ sql.Scanner   = (*executor.State)(nil)
)

// fullState is a state with all that a state can have.
func fullState(t testing.TB) *executor.State {
	t.Helper()
	rich := func(context.Context, tool.Invocation) (tool.Outcome, error) {
		fuel := int64(7)
		return tool.Outcome{
			Result: tool.Result{
				Success: true, Output: strings.Repeat("long <é> ", 100), Data: json.RawMessage(`{"a": "<b>", "n": 1e3}`),
				Content: []tool.Content{{Type: "image", Data: []byte{0, 255}, MIMEType: "image/png"}, {Type: "link", URL: "https://example.com/?a&b", Name: "a"}},
			},
			Usage: tool.Usage{Fuel: &fuel, MemoryBytes: 1, Wall: time.Second, HostCalls: 2}, Log: "log",
			Denials:   []tool.Denial{{Permission: "files", Value: "/x", Rule: "no", Allow: tool.Allow{Grant: json.RawMessage(`{"b": "<é>", "aa": null}`)}}},
			HostCalls: []tool.HostCall{{Kind: "files.open", Target: "/x", Bytes: 1, Duration: 2, Allowed: true, Status: "ok"}},
		}, nil
	}
	e := newExecutor(t, executor.Options{Output: executor.Output{PerCall: 600}},
		newFake(t, "rich", fields{"behavior": fields{"read_only": true, "final": true}, "parameters": fields{"type": "object", "properties": fields{"n": fields{"type": "integer"}}}}, rich),
		newClient(t, "shell", readOnly), explained{newFake(t, "erase", destructive, echo), func() []tool.Decision {
			return []tool.Decision{{Permission: "files", Requested: "/", Reason: "because", Allow: tool.Allow{Manifest: json.RawMessage(`{"b": "<\xff>", "aa": null}`), Grant: json.RawMessage("{")}}}
		}})
	signed := newCall("call_2", "shell", `{"command":"<ls>"}`)
	signed.Signature = "c2lnbmF0dXJl"
	report := paused(t, e, newSession(t, e, executor.SessionOptions{Tenant: "t", Context: map[string]string{"k": "v"}}),
		newCall("call_1", "rich", `{"n":"5"}`), signed, newCall("", "erase", `{"path":"/é"}`), newCall("call_1", "rich", `{"n":5}`), newCall("4", "missing", "{"))
	require.Len(t, report.Records, 2)
	return report.State
}

// TestStateRoundTrip: a state is the same after it was stored in any way, however often.
func TestStateRoundTrip(t *testing.T) {
	state := fullState(t)
	text := jsonOf(t, state)
	column := noerr.Get(state.Value())(t)
	assert.Equal(t, string(text), column)
	var scanned, scannedBytes, indented executor.State
	require.NoError(t, scanned.Scan(column))
	require.NoError(t, scannedBytes.Scan(text))
	spaced := noerr.Get(json.MarshalIndent(state, "", "  "))(t)
	require.NoError(t, json.Unmarshal(spaced, &indented))
	for _, read := range []executor.State{stored(t, state), scanned, scannedBytes, indented} {
		again := jsonOf(t, read)
		assert.Equal(t, string(text), string(again))
		assert.Equal(t, state.ID(), read.ID())
		assert.Equal(t, state.Expires(), read.Expires())
		assert.Equal(t, state.Pending(), read.Pending())
	}
	assert.Equal(t, `"caisson-state/v2"`, string(memberOf(t, text, "version")))
}

func memberOf(t *testing.T, document []byte, name string) json.RawMessage {
	t.Helper()
	members := noerr.Decode[map[string]json.RawMessage](t, document)
	return members[name]
}

// TestZeroState: the zero state is null wherever it is stored.
func TestZeroState(t *testing.T) {
	var zero executor.State
	assert.Equal(t, []tool.Action{}, zero.Pending())
	assert.Empty(t, zero.ID())
	assert.Zero(t, zero.Expires())
	text := jsonOf(t, zero)
	assert.Equal(t, "null", string(text))
	column := noerr.Get(zero.Value())(t)
	assert.Nil(t, column)
	read := *fullState(t)
	require.NoError(t, read.Scan(nil))
	assert.Equal(t, zero, read)
}

// TestPendingIsACopy: changes to the result of Pending do not change the state.
func TestPendingIsACopy(t *testing.T) {
	state := fullState(t)
	before := jsonOf(t, state)
	for _, action := range state.Pending() {
		action.Arguments[0] = 'x'
		for i := range action.Decisions {
			action.Decisions[i] = tool.Decision{}
		}
	}
	after := jsonOf(t, state)
	assert.Equal(t, string(before), string(after))
}

// TestHostileStates: a state that no executor writes is refused, and changes nothing.
func TestHostileStates(t *testing.T) {
	state := fullState(t)
	text := jsonOf(t, state)
	id := func() string {
		made := noerr.Get(uuid.NewV7())(t)
		return made.String()
	}
	// edit changes the document that it is given, and each of its calls.
	edit := func(change func(document map[string]any, calls []map[string]any)) string {
		document := noerr.Decode[map[string]any](t, text)
		var calls []map[string]any
		for _, c := range document["calls"].([]any) {
			calls = append(calls, c.(map[string]any))
		}
		change(document, calls)
		changed := jsonOf(t, document)
		return string(changed)
	}
	top := func(name string, value any) string {
		return edit(func(document map[string]any, _ []map[string]any) { document[name] = value })
	}
	in := func(call int, part, name string, value any) string {
		return edit(func(_ map[string]any, calls []map[string]any) { calls[call][part].(map[string]any)[name] = value })
	}
	require.NoError(t, new(executor.State).UnmarshalJSON([]byte(top("id", id()))), "control: a change that makes sense")
	documents := map[string]string{
		"nothing":                   "",
		"no JSON":                   "{",
		"a list":                    "[]",
		"an empty object":           "{}",
		"text behind it":            string(text) + "{}",
		"another version":           top("version", "caisson-state/v1"),
		"no version":                top("version", nil),
		"a member more":             top("allowed", []string{"everything"}),
		"approvals":                 top("approvals", []any{map[string]any{"approve": true}}),
		"no id":                     top("id", ""),
		"an id in another form":     top("id", "{"+state.ID()+"}"),
		"revision 0":                top("revision", 0),
		"a negative revision":       top("revision", -1),
		"a huge revision":           top("revision", 1e18),
		"no session":                top("session", ""),
		"a session that is none":    top("session", strings.Repeat("Z", 64)),
		"no time":                   top("expires", nil),
		"no calls":                  top("calls", []any{}),
		"null calls":                top("calls", nil),
		"calls that are none":       top("calls", []any{1, 2, 3}),
		"calls that are empty":      top("calls", []any{map[string]any{}, map[string]any{}}),
		"calls as an object":        top("calls", map[string]any{}),
		"negative totals":           edit(func(d map[string]any, _ []map[string]any) { d["totals"].(map[string]any)["fuel"] = -1 }),
		"totals of other calls":     edit(func(d map[string]any, _ []map[string]any) { d["totals"].(map[string]any)["calls"] = 5 }),
		"a call id twice":           edit(func(_ map[string]any, c []map[string]any) { c[1]["call_id"] = c[0]["call_id"] }),
		"a call without an id":      edit(func(_ map[string]any, c []map[string]any) { c[1]["call_id"] = "x" }),
		"ended and waits":           edit(func(_ map[string]any, c []map[string]any) { c[0]["waits"] = c[1]["waits"] }),
		"none waits":                edit(func(_ map[string]any, c []map[string]any) { delete(c[1], "waits"); delete(c[2], "waits") }),
		"a record of another call":  in(0, "ended", "call_id", id()),
		"waits for something else":  in(1, "waits", "type", "money"),
		"waits without a tool":      in(1, "waits", "tool", ""),
		"waits without arguments":   in(1, "waits", "arguments", nil),
		"arguments as a list":       in(1, "waits", "arguments", "[1]"),
		"arguments as an object":    in(1, "waits", "arguments", map[string]any{}),
		"arguments that are none":   in(1, "waits", "arguments", "{"),
		"an output's fingerprint":   in(1, "waits", "fingerprint", strings.Repeat("0", 64)),
		"an output's permissions":   in(1, "waits", "permissions", []any{map[string]any{"permission": "x"}}),
		"an output's callees":       in(1, "waits", "callees", []any{map[string]any{"tool": "x", "digest": "y"}}),
		"an empty callee":           in(2, "waits", "callees", []any{map[string]any{}}),
		"no fingerprint":            in(2, "waits", "fingerprint", ""),
		"a fingerprint in capitals": in(2, "waits", "fingerprint", strings.Repeat("A", 64)),
		"an empty permission":       in(2, "waits", "permissions", []any{map[string]any{}}),
		"an approval":               in(2, "waits", "approve", true),
		"a success with a kind": edit(func(_ map[string]any, c []map[string]any) {
			c[0]["ended"].(map[string]any)["result"].(map[string]any)["kind"] = "denied"
		}),
		"a kind that is none": edit(func(_ map[string]any, c []map[string]any) {
			r := c[0]["ended"].(map[string]any)["result"].(map[string]any)
			r["kind"], r["success"] = "odd", false
		}),
		"a final failure": edit(func(_ map[string]any, c []map[string]any) {
			r := c[0]["ended"].(map[string]any)["result"].(map[string]any)
			r["kind"], r["success"] = "trap", false
		}),
		"a source that is none": in(0, "ended", "source", "x"),
		"an empty repair":       in(0, "ended", "repairs", []any{map[string]any{}}),
		"deep":                  strings.Repeat(`{"calls":[`, 20_000),
		"deep arguments":        in(1, "waits", "arguments", `{"a":`+strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)+`}`),
	}
	for name, document := range documents {
		t.Run(name, func(t *testing.T) {
			require.NotEqual(t, string(text), document)
			read := *state
			err := read.UnmarshalJSON([]byte(document))
			require.ErrorIs(t, err, executor.ErrInvalidState)
			assert.Equal(t, *state, read)
			assert.Less(t, len(err.Error()), 1000)
			require.ErrorIs(t, read.Scan(document), executor.ErrInvalidState)
		})
	}
	require.ErrorIs(t, new(executor.State).Scan(5), executor.ErrInvalidState)
}

// TestAttackStateMemory: a state that is read takes memory in proportion to its text. Control: the
// same text read as it would be without care takes a multiple.
func TestAttackStateMemory(t *testing.T) {
	text := jsonOf(t, fullState(t))
	// An empty element takes 3 bytes of text, and a hundred and more in memory.
	large := strings.Replace(string(text), `"repairs":[`, `"repairs":[`+strings.Repeat("{},", 1<<20), 1)
	require.Greater(t, len(large), 3<<20)
	allocated := func(do func()) uint64 {
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		do()
		goruntime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	careful := allocated(func() { assert.Error(t, new(executor.State).UnmarshalJSON([]byte(large))) })
	careless := allocated(func() {
		var read struct {
			Calls []struct {
				Ended struct{ Repairs []tool.Repair }
			}
		}
		assert.NoError(t, json.Unmarshal([]byte(large), &read))
	})
	assert.Less(t, careful, uint64(16*len(large)))
	assert.Greater(t, careless, uint64(40*len(large)))
}

// TestAttackLargeState: a state that is too long costs nothing, since its length is looked at before
// anything of it. Control: one that is read costs a multiple of its text.
func TestAttackLargeState(t *testing.T) {
	text := jsonOf(t, fullState(t))
	of := func(bytes int) []byte {
		long := strings.Repeat("x", bytes-len(text)-1)
		return []byte(strings.Replace(string(text), `"log":"`, `"log":"`+long, 1))
	}
	for name, test := range map[string]struct {
		document []byte
		reads    bool
	}{"attack": {of(executor.MaxStateBytes + 1<<20), false}, "control": {of(executor.MaxStateBytes), true}} {
		for way, read := range map[string]func() error{
			"json":   func() error { return new(executor.State).UnmarshalJSON(test.document) },
			"column": func() error { return new(executor.State).Scan(test.document) },
		} {
			var before, after goruntime.MemStats
			goruntime.ReadMemStats(&before)
			err := read()
			goruntime.ReadMemStats(&after)
			cost := after.TotalAlloc - before.TotalAlloc
			if test.reads {
				require.NoError(t, err, way)
				assert.Greater(t, cost, uint64(2*len(test.document)), name)
				continue
			}
			require.ErrorIs(t, err, executor.ErrInvalidState)
			assert.Less(t, cost, uint64(1<<20), way)
		}
	}
	column := string(of(executor.MaxStateBytes + 1<<20))
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	require.ErrorIs(t, new(executor.State).Scan(column), executor.ErrInvalidState)
	goruntime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20), "a text is not copied either")
}

// TestLargeState: a batch of 10,000 calls that all wait is stored, and all its calls end.
func TestLargeState(t *testing.T) {
	e := newExecutor(t, executor.Options{Rates: unlimited}, newClient(t, "shell", nil))
	session := newSession(t, e, executor.SessionOptions{})
	report := paused(t, e, session, numbered(10_000, "shell")...)
	require.Len(t, report.Pending, 10_000)
	report = resume(t, e, answered(session, stored(t, report.State)))
	assertCompleted(t, report)
	assert.Len(t, report.Records, 10_000)
}

// numbered returns so many calls of tools in turns, with different arguments.
func numbered(many int, tools ...string) (calls []tool.Call) {
	for i := range many {
		calls = append(calls, newCall(fmt.Sprint(i), tools[i%len(tools)], fmt.Sprintf(`{"n":%d}`, i)))
	}
	return calls
}

// TestManyApprovals: more approvals than a session keeps of calls whose turn has not come are asked
// for again, and none is lost for the call that is next.
func TestManyApprovals(t *testing.T) {
	runs := 0
	e := newExecutor(t, executor.Options{Rates: unlimited}, newClient(t, "shell", nil), newFake(t, "erase", destructive, func(context.Context, tool.Invocation) (tool.Outcome, error) {
		runs++
		return succeed(""), nil
	}))
	session := newSession(t, e, executor.SessionOptions{})
	report := paused(t, e, session, numbered(3000, "shell", "erase")...)
	require.Len(t, report.Pending, 1501, "all approvals are requested; a client's call waits for earlier calls")
	for want := range 3 {
		report = resume(t, e, answered(session, *report.State))
		assertPaused(t, report)
		assert.Equal(t, want+1, runs)
	}
}

// FuzzState: a state read from any document can be written and read again unchanged, and only
// the state's calls are run.
func FuzzState(f *testing.F) {
	text := noerr.Get(json.Marshal(fullState(f)))(f)
	f.Add(text)
	f.Add([]byte("null"))
	f.Add([]byte(`{"version":"caisson-state/v2","calls":[{"call_id":"x"}]}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		var state executor.State
		if err := state.UnmarshalJSON(document); err != nil {
			require.ErrorIs(t, err, executor.ErrInvalidState)
			require.Equal(t, executor.State{}, state)
			return
		}
		text := noerr.Get(state.MarshalJSON())(t)
		var again executor.State
		require.NoError(t, again.UnmarshalJSON(text), "%s", text)
		second := noerr.Get(again.MarshalJSON())(t)
		require.Equal(t, string(text), string(second))
		ids := map[string]bool{}
		for _, action := range state.Pending() {
			require.False(t, ids[action.CallID])
			ids[action.CallID] = true
			require.NotEmpty(t, action.Call.ID)
			require.NotEmpty(t, action.Tool)
		}
		require.Equal(t, state.ID() != "", len(ids) > 0)
	})
}

// TestRulesOfAToolAreStorable: a tool that is written in Go may put anything into its receipts. Records
// can be written down all the same, and what the tool holds stays as it was.
func TestRulesOfAToolAreStorable(t *testing.T) {
	given := []tool.Denial{
		{Permission: "a", Allow: tool.Allow{Manifest: json.RawMessage(`{"b": 1, "a": "<\u00e9>"}`), Grant: json.RawMessage(`{`)}},
		{Permission: "b", Allow: tool.Allow{Manifest: json.RawMessage(``), Grant: json.RawMessage(` null `)}},
		{Permission: "c", Allow: tool.Allow{Grant: json.RawMessage("{\"a\":\"\xff\"}")}},
	}
	e := newExecutor(t, executor.Options{}, newFake(t, "odd", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) {
		return tool.Outcome{Result: tool.Result{Success: true}, Denials: given}, nil
	}))
	record := ask(t, e, nil, "odd", `{}`)
	assert.Equal(t, []tool.Denial{
		{Permission: "a", Allow: tool.Allow{Manifest: json.RawMessage(`{"b":1,"a":"\u003c\u00e9\u003e"}`)}},
		{Permission: "b"},
		{Permission: "c", Allow: tool.Allow{Grant: json.RawMessage("{\"a\":\"\ufffd\"}")}},
	}, record.Denials)
	assert.Equal(t, `{`, string(given[0].Allow.Grant))
	wire := jsonOf(t, record)
	back := noerr.Decode[tool.Record](t, wire)
	assert.Equal(t, record.Denials, back.Denials)
}
