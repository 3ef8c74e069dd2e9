package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

func TestToolCallsTool(t *testing.T) {
	h := newHousehold(t, Options{})
	research := h.add(t, "research", "", "search", "broken")
	h.add(t, "search", "")
	h.load(t, named(t, "broken", crashing, ""), manifests.Grants{})

	require.Len(t, research.Decisions(), 2)
	assert.Equal(t, tool.Decision{Permission: "tools", Requested: "search", Granted: "search (caisson.yaml:7)", Effective: "search", Reason: "granted"}, research.Decisions()[0])

	outcome := h.mustCall(t, "research", steps(asks("search", echoes("found"), `{"do":"log","text":"for people"}`), asks("broken"), asks("search", `{"do":"fail"}`)))
	done := results(t, outcome)
	found := decode[callReply](t, done[0])
	assert.True(t, found.Success)
	assert.JSONEq(t, `"found"`, string(found.Data[0]))
	assert.Equal(t, "the-call.1", found.CallID)
	assert.Equal(t, tool.Trap, decode[callReply](t, done[1]).Kind)
	failed := decode[callReply](t, done[2])
	assert.Equal(t, tool.ToolFailed, failed.Kind)
	assert.Equal(t, "the tool exited with code 1: as asked", failed.Error)

	require.Len(t, outcome.HostCalls, 3)
	first := outcome.HostCalls[0]
	assert.Equal(t, "tools.call", first.Kind)
	assert.Equal(t, "search", first.Target)
	assert.Equal(t, "ok", first.Status)
	assert.True(t, first.Allowed)
	assert.Positive(t, first.Duration)
	assert.Greater(t, first.Bytes, int64(len(steps(echoes("found")))))
	assert.Equal(t, "trap", outcome.HostCalls[1].Status)
	assert.Equal(t, "tool_failed", outcome.HostCalls[2].Status)
	assert.EqualValues(t, 3, outcome.Usage.HostCalls)
	assert.Empty(t, outcome.Denials)
	assert.Empty(t, outcome.Log, "what the other tool says to people is in its own record")
	assert.Equal(t, "for people", h.records[0].Log)
}

// TestGuestGetsTheRecordItMayHave: the guest gets neither the members for people, nor the usage, nor data that only the
// host may know.
func TestGuestGetsTheRecordItMayHave(t *testing.T) {
	h := newHousehold(t, Options{})
	h.took = 123456789
	h.add(t, "outer", "", "inner")
	h.add(t, "inner", "", "deepest")
	h.add(t, "deepest", "")
	request := `{\"name\":\"inner\",\"arguments\":` + strings.ReplaceAll(steps(asks("deepest"), `{"do":"log","text":"for people"}`), `"`, `\"`) + `}`
	outcome := h.mustCall(t, "outer", steps(`{"do":"raw","text":"`+request+`"}`))
	answer := decode[[2]string](t, results(t, outcome)[0])
	require.Equal(t, "0", answer[0])
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(answer[1]), &members))
	for member, want := range map[string]string{
		"id": `""`, "log": `""`, "host_calls": `[]`, "repairs": `[]`, "denials": `[]`, "success": "true",
		"usage": `{"fuel":null,"memory_bytes":0,"wall_ns":0,"host_calls":0}`, "execution_time": "0", "call_id": `"the-call.1"`, "parent": `"the-call"`,
	} {
		assert.JSONEq(t, want, string(members[member]), member)
	}
	assert.NotContains(t, answer[1], "of the tenant")
	inner := h.records[1]
	assert.Equal(t, "for people", inner.Log, "control: there was something to leave out")
	assert.Len(t, inner.HostCalls, 1)
	assert.Positive(t, *inner.Usage.Fuel)
	assert.NotEmpty(t, inner.Repairs)
}

// TestCallsNeedBoth tests each combination of a request and a grant, and pastes the rules that each receipt suggests.
func TestCallsNeedBoth(t *testing.T) {
	deny := func(g manifests.Grants, origin string) manifests.Grants {
		g.Deny = []manifests.Deny{{Origin: origin, Call: "search"}}
		return g
	}
	asked := json.RawMessage(`{"tools":["search"]}`)
	given := json.RawMessage(`{"tools":["research"],"calls":["search"]}`)
	for _, test := range []struct {
		name, asks string
		grants     manifests.Grants
		rule       string
		allow      tool.Allow
	}{
		{"asked for and granted", "search", calling("search"), "", tool.Allow{}},
		{"granted to whoever asks", "other", calling("search"), "the manifest does not ask to call it", tool.Allow{Manifest: asked}},
		{"not granted", "search", manifests.Grants{}, "no grant lets it be called", tool.Allow{Grant: given}},
		{"neither", "other", calling("other"), "the manifest does not ask to call it, and no grant lets it be called",
			tool.Allow{Manifest: asked, Grant: given}},
		{"denied", "search", deny(calling("search"), "caisson.yaml:9"), "denied by caisson.yaml:9", tool.Allow{}},
		{"denied by nobody in particular", "search", deny(calling("search"), ""), "denied by the operator", tool.Allow{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHousehold(t, Options{})
			h.load(t, named(t, "research", callprobe, "permissions: {tools: ["+test.asks+"]}"), test.grants)
			h.add(t, "search", "")
			outcome := h.mustCall(t, "research", steps(asks("search", echoes("found"))))
			got := decode[callReply](t, results(t, outcome)[0])
			if test.rule == "" {
				assert.True(t, got.Success)
				return
			}
			want := tool.Denial{Permission: "tools", Value: "search", Rule: test.rule, Allow: test.allow}
			require.NotNil(t, got.Failure)
			assert.Equal(t, want, *got.Failure.Denial)
			assert.Equal(t, []tool.Denial{want}, outcome.Denials)
			require.Len(t, outcome.HostCalls, 1)
			assert.Equal(t, "denied", outcome.HostCalls[0].Status)
			assert.False(t, outcome.HostCalls[0].Allowed)
			assert.Empty(t, h.records, "no call was made")

			if decision := h.tools["research"].(*Tool).Decisions()[0]; test.asks == "search" {
				assert.Empty(t, decision.Effective)
				assert.Equal(t, test.rule, decision.Reason)
				assert.Equal(t, test.allow, decision.Allow)
			}
			if test.allow.Manifest == nil && test.allow.Grant == nil {
				return
			}
			h.load(t, pastedManifest(t, test.allow, test.asks), pastedGrants(t, test.grants, test.allow))
			outcome = h.mustCall(t, "research", steps(asks("search", echoes("found"))))
			assert.True(t, decode[callReply](t, results(t, outcome)[0]).Success)
		})
	}
}

func pastedManifest(t *testing.T, allow tool.Allow, asked string) *manifests.Manifest {
	t.Helper()
	if allow.Manifest != nil {
		return named(t, "research", callprobe, manifests.ManifestLine(allow.Manifest))
	}
	return named(t, "research", callprobe, "permissions: {tools: ["+asked+"]}")
}

// pastedGrants adds the grant that a receipt suggests for the operator's file to grants.
func pastedGrants(t *testing.T, grants manifests.Grants, allow tool.Allow) manifests.Grants {
	t.Helper()
	if allow.Grant != nil {
		policy, err := manifests.ParsePolicy("caisson.json", []byte(`{"schema":"caisson-config/v1","grants":[`+string(allow.Grant)+`]}`))
		require.NoError(t, err)
		grants.Calls = append(grants.Calls, policy.For("research", "").Calls...)
	}
	return grants
}

// TestDeniedCallIsTheReasonOfAFailure: a denied call is the reason of a failure if the tool says so.
func TestDeniedCallIsTheReasonOfAFailure(t *testing.T) {
	h := newHousehold(t, Options{})
	h.add(t, "research", "")
	outcome, err := h.call(t, "research", steps(asks("search"), `{"do":"fail","name":"of research"}`))
	require.NoError(t, err)
	assert.Equal(t, tool.Result{Kind: tool.ToolFailed, Error: "the tool exited with code 1: as asked of research"}, outcome.Result)
	assert.Len(t, outcome.Denials, 1)

	outcome, err = h.call(t, "research", steps(asks("search"), `{"do":"fail","name":"of the tool search"}`))
	require.ErrorIs(t, err, tool.Denied)
	assert.Equal(t, "denied: tools search: the manifest does not ask to call it, and no grant lets it be called; the tool exited with code 1: as asked of the tool search", outcome.Result.Error)
}

func TestGrantOfWhatIsNoName(t *testing.T) {
	for _, name := range []string{"", "*", "file_*", "a b"} {
		_, err := newRuntime(t, Options{}).Load(t.Context(), named(t, "research", callprobe, "permissions: {tools: [search]}"), calling(name))
		assert.ErrorContains(t, err, fmt.Sprintf("caisson.yaml:7: %q is not the name of a tool", name))
	}
}

func TestNobodyMakesCalls(t *testing.T) {
	h := newHousehold(t, Options{})
	research := h.add(t, "research", "", "search")
	outcome := mustInvoke(t, research, steps(asks("search"), asks("other")))
	done := results(t, outcome)
	assert.Equal(t, "unavailable: nothing here lets tools call tools", decode[callReply](t, done[0]).Failure.Text)
	assert.NotNil(t, decode[callReply](t, done[1]).Failure.Denial, "the permission comes first")
	assert.Equal(t, "unavailable", outcome.HostCalls[0].Status)
}

// searchThrough has a tool call another one through a host.
func searchThrough(t *testing.T, host tool.Host) (tool.Outcome, error) {
	t.Helper()
	research := load(t, newRuntime(t, Options{}), named(t, "research", callprobe, "permissions: {tools: [search]}"), calling("search"))
	made := invocation(t, steps(asks("search")), nil)
	made.Host = host
	return research.Invoke(t.Context(), made)
}

// TestWhatTheHostRefuses: a refusal by the host is a limit for the guest, or the end of its calls.
func TestWhatTheHostRefuses(t *testing.T) {
	for kind, want := range map[tool.Kind]struct {
		status int
		text   string
	}{
		tool.Busy:      {3, "limit: in words"},
		tool.Deadline:  {4, "deadline: in words"},
		tool.Cancelled: {7, "unavailable: in words"},
	} {
		outcome, err := searchThrough(t, refusing(&tool.Error{Op: "call", Kind: kind, Message: "in words"}))
		require.NoError(t, err)
		failure := decode[callReply](t, results(t, outcome)[0]).Failure
		require.NotNil(t, failure)
		assert.Equal(t, want.status, failure.Status)
		assert.Equal(t, want.text, failure.Text)
		assert.Equal(t, string(kind), outcome.HostCalls[0].Status)
		assert.True(t, outcome.HostCalls[0].Allowed)
	}
}

// TestHostFails: a bug in the host ends the guest, which does not get it as an answer.
func TestHostFails(t *testing.T) {
	for name, host := range map[string]tool.Host{
		"error": refusing(fmt.Errorf("at 10.0.0.1")), "internal": refusing(&tool.Error{Kind: tool.Internal, Message: "at 10.0.0.1"}),
		"panic": callsBy(func(context.Context, tool.Call) (tool.Record, error) { panic("a bug") }),
	} {
		outcome, err := searchThrough(t, host)
		require.ErrorIs(t, err, tool.Internal, name)
		assert.NotContains(t, outcome.Result.Error, "10.0.0.1")
		require.Len(t, outcome.HostCalls, 1)
		assert.Equal(t, "internal", outcome.HostCalls[0].Status)
	}
}

// callsBy is a host that makes calls as a test says, and does nothing else.
type callsBy func(ctx context.Context, call tool.Call) (tool.Record, error)

func (c callsBy) Call(ctx context.Context, call tool.Call) (tool.Record, error) { return c(ctx, call) }
func (callsBy) Page(string, int64, int64) (tool.Page, error)                    { return tool.Page{}, nil }
func (callsBy) Emit(tool.Emission) error                                        { return nil }

func refusing(err error) tool.Host {
	return callsBy(func(context.Context, tool.Call) (tool.Record, error) { return tool.Record{}, err })
}

// TestOnePlaceIsEnough: nested calls run in their caller's place, so that one place is enough
// however deep they nest.
func TestOnePlaceIsEnough(t *testing.T) {
	h := newHousehold(t, Options{Running: 1})
	h.add(t, "same", "", "same")
	step := echoes("deepest")
	for range maxDepth {
		step = asksOften("same", 1, step)
	}
	for range 3 {
		outcome := h.mustCall(t, "same", steps(step))
		assert.JSONEq(t, `[{"success":1}]`, string(outcome.Result.Data))
	}
	assert.Len(t, h.records, 3*maxDepth)
	h.mustCall(t, "same", steps(asksOften("same", 1, step)))
	deepest := h.records[3*maxDepth]
	assert.Equal(t, tool.Busy, deepest.Result.Kind, "and not any deeper")
	assert.Equal(t, "busy: calls are nested deeper than 16 levels", deepest.Result.Error)
	assert.Zero(t, inside(h.runtime.gate), "every place was given back")
}

// TestGoToolMakesCallsAtOnce: they share the place of the guest that waits for the tool, one
// after another, and each other runtime's place is its own.
func TestGoToolMakesCallsAtOnce(t *testing.T) {
	h := newHousehold(t, Options{Running: 1})
	h.add(t, "outer", "", "fan")
	h.add(t, "leaf", "", "witness")
	elsewhere := newHousehold(t, Options{Running: 1})
	h.tools["remote"] = elsewhere.add(t, "remote", "", "leaf", "witness")
	var here, most atomic.Int32
	h.tools["witness"] = goTool(func(context.Context, tool.Invocation) (tool.Outcome, error) {
		most.Store(max(most.Load(), here.Add(1)))
		defer here.Add(-1)
		time.Sleep(time.Millisecond)
		return tool.Outcome{Result: tool.Result{Success: true}}, nil
	})
	h.tools["fan"] = goTool(func(ctx context.Context, made tool.Invocation) (tool.Outcome, error) {
		var group sync.WaitGroup
		for i := range 6 {
			group.Go(func() {
				callee, arguments := "leaf", steps(asks("witness"))
				if i%2 == 0 {
					callee, arguments = "remote", steps(asks("leaf", asks("witness")), asks("witness"))
				}
				record, err := made.Host.Call(ctx, tool.Call{Function: tool.Function{Name: callee, Arguments: arguments}})
				assert.NoError(t, err)
				assert.True(t, record.Result.Success, record.Result.Error)
			})
		}
		group.Wait()
		return tool.Outcome{Result: tool.Result{Success: true, Output: "all"}}, nil
	})
	outcome := h.mustCall(t, "outer", steps(asks("fan")))
	assert.Equal(t, "all", decode[callReply](t, results(t, outcome)[0]).Output)
	assert.EqualValues(t, 1, most.Load(), "one guest at a time")
	assert.Zero(t, inside(h.runtime.gate)+inside(elsewhere.runtime.gate))
}

// TestStaleContext: once the guest has continued, no other call runs in its place, whatever a Go tool has kept.
func TestStaleContext(t *testing.T) {
	h := newHousehold(t, Options{})
	h.add(t, "outer", "", "keeper")
	h.add(t, "leaf", "")
	h.load(t, named(t, "spinner", spinning, "limits: {timeout: 5s}"), manifests.Grants{})
	var kept context.Context
	var host tool.Host
	spun := make(chan tool.Record, 1)
	h.tools["keeper"] = goTool(func(ctx context.Context, made tool.Invocation) (tool.Outcome, error) {
		kept, host = context.WithoutCancel(ctx), made.Host
		go func() {
			record, _ := host.Call(kept, tool.Call{Function: tool.Function{Name: "spinner", Arguments: "{}"}})
			spun <- record
		}()
		time.Sleep(20 * time.Millisecond) // it may run by now
		return tool.Outcome{Result: tool.Result{Success: true}}, nil
	})
	began := time.Now()
	h.mustCall(t, "outer", steps(asks("keeper"), `{"do":"burn","count":1000}`))
	assert.Equal(t, tool.Cancelled, (<-spun).Result.Kind, "what still ran was ended")
	assert.Less(t, time.Since(began), 4*time.Second)
	record, err := host.Call(kept, tool.Call{Function: tool.Function{Name: "leaf", Arguments: "{}"}})
	require.NoError(t, err)
	assert.Equal(t, tool.Cancelled, record.Result.Kind)
}

// TestNestedCallsShareTheDeadline: the caller's time passes while other tools run for it.
func TestNestedCallsShareTheDeadline(t *testing.T) {
	h := newHousehold(t, Options{})
	h.add(t, "outer", "limits: {timeout: 2s}", "spinner", "brief")
	h.load(t, named(t, "spinner", spinning, "limits: {timeout: 10s}"), manifests.Grants{})
	h.load(t, named(t, "brief", spinning, "limits: {timeout: 50ms}"), manifests.Grants{})
	outcome, err := h.call(t, "outer", steps(asks("brief"), asks("brief"), asks("spinner")))
	require.ErrorIs(t, err, tool.Deadline)
	assert.Equal(t, "the tool did not finish before its deadline of 2s", outcome.Result.Error)
	require.Len(t, h.records, 3)
	assert.Equal(t, "the tool did not finish before its deadline of 50ms", h.records[0].Result.Error)
	assert.Equal(t, "the tool did not finish before the caller's deadline", h.records[2].Result.Error)
	assert.GreaterOrEqual(t, outcome.Usage.Wall, 2*time.Second)
	require.Len(t, outcome.HostCalls, 3)
	assert.Equal(t, "deadline", outcome.HostCalls[2].Status)
}

// TestCancellationReachesNestedCalls, however deep.
func TestCancellationReachesNestedCalls(t *testing.T) {
	h := newHousehold(t, Options{})
	h.add(t, "outer", "", "middle")
	h.add(t, "middle", "", "spinner")
	spinner := load(t, h.runtime, named(t, "spinner", spinning, ""), manifests.Grants{})
	ctx, cancel := context.WithCancel(t.Context())
	h.tools["spinner"] = goTool(func(ctx context.Context, made tool.Invocation) (tool.Outcome, error) {
		time.AfterFunc(20*time.Millisecond, cancel)
		return spinner.Invoke(ctx, made)
	})
	_, err := h.callIn(t, ctx, "outer", steps(asks("middle", asks("spinner"))))
	require.ErrorIs(t, err, tool.Cancelled)
	require.NotEmpty(t, h.records)
	assert.Equal(t, tool.Cancelled, h.records[0].Result.Kind)
}

// TestCallBeforeInputIsNotSnapshotted: a call belongs to a call.
func TestCallBeforeInputIsNotSnapshotted(t *testing.T) {
	h := newHousehold(t, Options{})
	m := named(t, "early", callprobe, "module: {path: guest.wasm, args: [search]}\nbehavior: {snapshot: start}\npermissions: {tools: [search]}")
	early := h.load(t, m, calling("search"))
	h.add(t, "search", "")
	found := isolationOf(t, early)
	assert.False(t, found.Resumed)
	assert.Equal(t, tooEarly("caisson:tools@1.call"), found.Reason)
	for range 3 {
		outcome := h.mustCall(t, "early", `{}`)
		assert.True(t, decode[callReply](t, results(t, outcome)[0]).Success)
	}
	assert.Len(t, h.records, 3)
	// One that reads first is resumed, and calls as it does otherwise.
	m = named(t, "late", callprobe, "behavior: {snapshot: start}\npermissions: {tools: [search]}")
	late := h.load(t, m, calling("search"))
	found = isolationOf(t, late)
	assert.True(t, found.Resumed, found.Reason)
	for range 5 {
		outcome := h.mustCall(t, "late", steps(asks("search", echoes("found"))))
		assert.True(t, decode[callReply](t, results(t, outcome)[0]).Success)
	}
}

func BenchmarkNestedCall(b *testing.B) {
	h := newHousehold(b, Options{})
	h.add(b, "outer", "behavior: {snapshot: start}", "leaf")
	h.load(b, named(b, "leaf", idle, ""), manifests.Grants{})
	h.load(b, named(b, "bare", requesting(`{"name":"leaf","arguments":{}}`, 100, 1), "permissions: {tools: [leaf]}"), calling("leaf"))
	for name, call := range map[string][2]string{
		"leaf alone": {"leaf", "{}"}, "hundred, of a guest that does nothing else": {"bare", "{}"},
		"none": {"outer", steps()}, "one": {"outer", steps(asks("leaf"))}, "hundred": {"outer", steps(`{"do":"flood","name":"leaf","count":100}`)},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if outcome, err := h.call(b, call[0], call[1]); err != nil {
					b.Fatal(outcome.Result.Error)
				}
				h.records = h.records[:0]
			}
		})
	}
}
