package executor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// TestEndedBatchDoesNotWait: where the batch's time is up or it was given up, calls that wait are
// refused as not started, and there is nothing to resume.
func TestEndedBatchDoesNotWait(t *testing.T) {
	for _, test := range []struct {
		kind    tool.Kind
		timeout time.Duration
	}{{tool.Deadline, time.Second}, {tool.Cancelled, 0}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			e := newExecutor(t, executor.Options{}, newFake(t, "slow", readOnly, func(ctx context.Context, _ tool.Invocation) (tool.Outcome, error) {
				if test.timeout == 0 {
					cancel()
				}
				<-ctx.Done()
				return tool.Outcome{}, ctx.Err()
			}), newFake(t, "erase", destructive, echo), newClient(t, "shell", nil))
			session := newSession(t, e, executor.SessionOptions{})
			watcher := watch(t, e, session)
			report := noerr.Get(e.Execute(ctx, executor.Batch{Session: session, Timeout: test.timeout, Calls: []tool.Call{
				newCall("1", "slow", ""), newCall("2", "shell", ""), newCall("3", "erase", ""), newCall("4", "slow", ""),
			}}))(t)
			assertCompleted(t, report)
			require.Len(t, report.Records, 4)
			for i, record := range report.Records {
				assert.Equal(t, test.kind, record.Result.Kind)
				assert.Equal(t, i > 0, record.Skipped)
			}
			life := lifeOf(watcher.rest(t))
			assert.Equal(t, []string{"batch_started", "call_waiting erase", "call_started slow"}, life[:3])
			assert.Equal(t, "batch_finished", life[len(life)-1])
			assert.NotContains(t, life, "call_waiting shell", "it would change something before its turn")
			assert.False(t, session.Cancel(report.Records[1].CallID))
		})
	}
}

// TestResumeInTime: a submission that comes with a context that has ended changes nothing. Outputs
// that were taken are recorded, whatever ends meanwhile.
func TestResumeInTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	e := newExecutor(t, executor.Options{}, newClient(t, "shell", nil), newFake(t, "stop", readOnly, func(context.Context, tool.Invocation) (tool.Outcome, error) {
		cancel()
		return succeed("stopped"), nil
	}), newFake(t, "erase", destructive, echo), newFake(t, "write", nil, echo))
	session := newSession(t, e, executor.SessionOptions{})
	report := paused(t, e, session, newCall("1", "shell", ""), newCall("2", "stop", ""), newCall("3", "erase", ""), newCall("4", "shell", ""))
	require.Len(t, report.Pending, 2)
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, noerr.Error(e.Resume(ended, answered(session, *report.State))), context.Canceled)
	done := noerr.Get(e.Resume(ctx, answered(session, *report.State)))(t)
	assertCompleted(t, done)
	assert.Equal(t, "done shell", done.Records[0].Result.Output)
	assert.Equal(t, "stopped", done.Records[1].Result.Output)
	assert.Equal(t, tool.Cancelled, done.Records[2].Result.Kind)
	assert.Equal(t, tool.Cancelled, done.Records[3].Result.Kind)
}

// TestTimeoutDoesNotRunWhilePaused: a batch's time is of Execute or of Resume, each for itself.
func TestTimeoutDoesNotRunWhilePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExecutor(t, executor.Options{}, newClient(t, "shell", nil), newFake(t, "write", nil, echo))
		session := newSession(t, e, executor.SessionOptions{})
		report := reportOf(t, e, executor.Batch{Session: session, Timeout: time.Second, Calls: []tool.Call{newCall("1", "shell", ""), newCall("2", "write", "")}})
		assertPaused(t, report)
		time.Sleep(time.Hour)
		r := answered(session, *report.State)
		r.Timeout = time.Second
		report = resume(t, e, r)
		assert.True(t, report.Records[1].Result.Success)
	})
}

// TestCancelWaiting: a waiting call can be cancelled as long as its batch is in progress, and later
// calls then continue.
func TestCancelWaiting(t *testing.T) {
	for _, name := range []string{"shell", "erase"} {
		var session *executor.Session
		waits := make(chan string, 2)
		e := newExecutor(t, executor.Options{}, newClient(t, "shell", readOnly), newFake(t, "erase", destructive, echo), newFake(t, "write", nil, echo),
			newFake(t, "look", readOnly, func(context.Context, tool.Invocation) (tool.Outcome, error) {
				id := <-waits
				assert.True(t, session.Cancel(id))
				return succeed(id), nil
			}))
		session = newSession(t, e, executor.SessionOptions{})
		subscription := subscribe(t, e, executor.SubscribeOptions{})
		done := make(chan executor.Report)
		go func() {
			report, err := e.Execute(t.Context(), executor.Batch{Session: session, Calls: []tool.Call{newCall("1", "look", ""), newCall("2", name, ""), newCall("3", "write", ""), newCall("4", "shell", "")}})
			assert.NoError(t, err)
			done <- report
		}()
		waits <- watcher{subscription}.until(t, func(event tool.Event) bool { return event.Type == tool.CallWaiting }).CallID
		report := <-done
		subscription.Close()
		assertPaused(t, report)
		require.Len(t, report.Records, 3)
		assert.Equal(t, tool.Cancelled, report.Records[1].Result.Kind)
		assert.True(t, report.Records[2].Result.Success)
		require.Len(t, report.Pending, 1)
		assert.False(t, session.Cancel(report.Pending[0].CallID), "a batch that has paused is not in progress")
	}
}

// TestAnsweredBarrier: a client's call may make cached results stale, so they are dropped when its output
// arrives. Control: a client's read-only call leaves them.
func TestAnsweredBarrier(t *testing.T) {
	for name, forgets := range map[string]bool{"changes": true, "reads": false} {
		var count counted
		e := newExecutor(t, executor.Options{}, newFake(t, "look", readOnly, count.answer), newClient(t, "changes", nil), newClient(t, "reads", readOnly))
		session := newSession(t, e, executor.SessionOptions{})
		report := paused(t, e, session, newCall("1", "look", ""), newCall("2", name, ""), newCall("3", "look", ""))
		require.Len(t, report.Records, map[bool]int{true: 1, false: 2}[forgets])
		other := newSession(t, e, executor.SessionOptions{})
		assert.True(t, ask(t, e, other, "look", "").Cached, "before the answer")
		done := resume(t, e, answered(session, *report.State))
		assertCompleted(t, done)
		if !forgets {
			assert.True(t, done.Records[2].Skipped, "it is a duplicate")
			assert.True(t, ask(t, e, other, "look", "").Cached)
			continue
		}
		assert.Equal(t, "2", done.Records[2].Result.Output, "it was asked again")
		assert.False(t, done.Records[2].Skipped || done.Records[2].Cached)
	}
}

// TestResumeForgets: an executor that resumes a batch drops cached results that the batch's calls in another
// process may have made stale.
func TestResumeForgets(t *testing.T) {
	var count counted
	tools := []registry.Tool{newGuarded(t, "look", "asks", readOnly, count.answer), newClient(t, "shell", nil)}
	here, elsewhere := newExecutor(t, executor.Options{}, tools...), newExecutor(t, executor.Options{}, tools...)
	report := paused(t, here, nil, newCall("1", "look", ""), newCall("2", "shell", ""), newCall("3", "look", ""))
	for _, e := range []*executor.Executor{here, elsewhere} {
		report = resume(t, e, answered(newSession(t, e, executor.SessionOptions{}), stored(t, report.State)))
		assertPaused(t, report)
	}
	done := resume(t, here, answered(newSession(t, here, executor.SessionOptions{}), stored(t, report.State)))
	assertCompleted(t, done)
	assert.Equal(t, "1", done.Records[0].Result.Output)
	assert.Equal(t, "2", done.Records[2].Result.Output)
}

// TestDuplicatesThatWait: calls that ask the same and must be approved are run once, where both are.
func TestDuplicatesThatWait(t *testing.T) {
	var count counted
	e := newExecutor(t, executor.Options{Reuse: executor.Reuse{Scope: executor.ReuseBatch}}, newGuarded(t, "look", "asks", readOnly, count.answer))
	session := newSession(t, e, executor.SessionOptions{})
	resume := func(approveSecond bool) executor.Report {
		report := paused(t, e, session, newCall("1", "look", ""), newCall("2", "look", ""))
		require.Len(t, report.Pending, 2)
		r := answered(session, *report.State)
		r.Approvals[1].Approve = approveSecond
		done := resume(t, e, r)
		assertCompleted(t, done)
		return done
	}
	both := resume(true)
	assert.Equal(t, both.Records[0].CallID, both.Records[1].Source)
	assert.Equal(t, "1", both.Records[1].Result.Output)
	one := resume(false)
	assert.Equal(t, "2", one.Records[0].Result.Output)
	assert.Equal(t, tool.Denied, one.Records[1].Result.Kind, "a refused call has no answer, not even another call's")
}

// TestWaitingCostsNothing: calls that wait take no place and count for no rate.
func TestWaitingCostsNothing(t *testing.T) {
	e := newExecutor(t, executor.Options{
		Limits: executor.Limits{Running: 1, PerTenant: 1, PerTool: 1}, Rates: executor.Rates{All: executor.Rate{Calls: 1, Per: time.Hour}},
	}, newFake(t, "erase", destructive, echo), newClient(t, "shell", nil))
	session := newSession(t, e, executor.SessionOptions{})
	var states []executor.State
	for range 20 {
		states = append(states, *paused(t, e, session, newCall("1", "erase", ""), newCall("2", "shell", "")).State)
	}
	report := resume(t, e, answered(session, states[0]))
	assert.True(t, report.Records[0].Result.Success)
	report = resume(t, e, answered(session, states[1]))
	assert.Equal(t, tool.Busy, report.Records[0].Result.Kind, "control: the rate is in force")
}

// TestLongAnswer: a client's output is cut like any result, and the rest can be read.
func TestLongAnswer(t *testing.T) {
	e := newExecutor(t, executor.Options{Output: executor.Output{PerCall: 600}}, newClient(t, "shell", nil))
	session := newSession(t, e, executor.SessionOptions{})
	report := paused(t, e, session, newCall("1", "shell", ""))
	r := answered(session, *report.State)
	r.Outputs[0].Result.Output = strings.Repeat("é", 5000)
	done := resume(t, e, r)
	record := done.Records[0]
	assert.LessOrEqual(t, record.Result.Size(), 600)
	require.Len(t, record.Cuts, 1)
	page := noerr.Get(session.Page(record.Cuts[0].Reference, 0, 1<<20))(t)
	assert.Equal(t, r.Outputs[0].Result.Output, page.Text)
}

// TestAnswerFitsSchema: a client's data that does not fit the result schema is a failure of the tool.
func TestAnswerFitsSchema(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newClient(t, "shell", fields{"result": fields{"type": "object", "required": []string{"code"}}}))
	for data, fits := range map[string]bool{`{"code":0}`: true, `{}`: false, "": false} {
		report := paused(t, e, nil, newCall("1", "shell", ""))
		r := answered(report.Session, *report.State)
		r.Outputs[0].Result.Data = json.RawMessage(data)
		done := resume(t, e, r)
		assert.Equal(t, fits, done.Records[0].Result.Success, data)
		if !fits {
			assert.Equal(t, tool.ToolFailed, done.Records[0].Result.Kind)
			assert.Contains(t, done.Records[0].Result.Error, "result schema")
		}
	}
}

// TestFinal: the report names calls whose output may be the answer, also those of before a pause.
func TestFinal(t *testing.T) {
	final := behaves(fields{"final": true, "read_only": true})
	e := newExecutor(t, executor.Options{}, newFake(t, "answer", final, echo), newFake(t, "fails", final, func(context.Context, tool.Invocation) (tool.Outcome, error) {
		return tool.Outcome{Result: tool.Result{Error: "no"}}, nil
	}), newClient(t, "ask_user", final), newFake(t, "plain", readOnly, echo))
	watcher := watch(t, e, nil)
	report := paused(t, e, nil, newCall("1", "answer", `{"n":1}`), newCall("2", "fails", ""), newCall("3", "ask_user", ""), newCall("4", "plain", ""), newCall("5", "answer", `{"n":1}`))
	assert.Equal(t, []string{report.Records[0].CallID, report.Records[3].CallID}, report.Final, "a duplicate as well")
	done := resume(t, e, answered(report.Session, stored(t, report.State)))
	assert.Equal(t, []string{done.Records[0].CallID, done.Records[2].CallID, done.Records[4].CallID}, done.Final)
	events := watcher.rest(t)
	assert.True(t, events[0].Calls[0].Final)
	assert.False(t, events[0].Calls[3].Final)
	none := execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "plain", "")}})
	assert.True(t, none.Result.Success)
}

// TestPlannedCalls: the first event describes the tool of each call, also of refused ones.
func TestPlannedCalls(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newFake(t, "search", fields{"category": "web_search", "aliases": []string{"find"}, "behavior": fields{"final": true, "hidden": true}}, echo), newClient(t, "shell", nil))
	watcher := watch(t, e, nil)
	calls := []tool.Call{newCall("1", "find", "{"), newCall("2", "shell", "{"), newCall("3", "missing", ""), newCall("4", "shell", `{"a":1}`)}
	calls[3].Type = ""
	report := paused(t, e, nil, calls...)
	events := watcher.rest(t)
	planned := events[0].Calls
	for i := range planned {
		assert.NotEmpty(t, planned[i].CallID)
		planned[i].CallID = ""
	}
	assert.Equal(t, []tool.Planned{
		{ID: "1", Tool: "search", Type: "function", Arguments: "{", Category: "web_search", Hidden: true, Final: true},
		{ID: "2", Tool: "shell", Type: "function", Arguments: "{", Client: true},
		{ID: "3", Tool: "missing", Type: "function"},
		{ID: "4", Tool: "shell", Type: "function", Arguments: `{"a":1}`, Client: true},
	}, planned)
	watcher = watch(t, e, nil)
	_ = resume(t, e, answered(report.Session, *report.State))
	resumed := watcher.rest(t)[0]
	assert.Equal(t, tool.BatchResumed, resumed.Type)
	require.Len(t, resumed.Calls, 1)
	assert.Equal(t, report.Pending[0].CallID, resumed.Calls[0].CallID)
}

// TestHiddenWaits: a hidden call is among the pending actions like any other, and its events say that it is
// hidden.
func TestHiddenWaits(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newFake(t, "erase", behaves(fields{"destructive": true, "hidden": true}), echo))
	watcher := watch(t, e, nil)
	report := paused(t, e, nil, newCall("1", "erase", ""))
	require.Len(t, report.Pending, 1)
	waiting := watcher.rest(t)[1]
	assert.Equal(t, tool.CallWaiting, waiting.Type)
	assert.True(t, waiting.Hidden)
	assert.Equal(t, report.Pending[0], *waiting.Action)
}

// TestToolGetsUserAndFiles: a tool gets the session's user, its files and the batch's, and the request's
// trace, also after a pause; answers are not used again for another user or other files.
func TestToolGetsUserAndFiles(t *testing.T) {
	var seen []tool.Invocation
	e := newExecutor(t, executor.Options{}, newClient(t, "shell", nil), newFake(t, "look", readOnly, func(_ context.Context, i tool.Invocation) (tool.Outcome, error) {
		i.Host = nil
		seen = append(seen, i)
		for j := range i.Files {
			i.Files[j].Name = "changed" // it is the tool's own copy
		}
		return succeed(""), nil
	}))
	one, two, three := tool.File{Name: "1", Path: "/in/1", Bytes: 1}, tool.File{Name: "2", Path: "/in/2"}, tool.File{Name: "3", Path: "/in/3"}
	session := newSession(t, e, executor.SessionOptions{ID: "s", Tenant: "t", User: "ann", Files: []tool.File{one}})
	report := reportOf(t, e, executor.Batch{Session: session, Files: []tool.File{two}, Trace: "00-a-b-01", Calls: []tool.Call{newCall("1", "look", ""), newCall("2", "shell", ""), newCall("3", "look", "")}})
	r := answered(session, *report.State)
	r.Files, r.Trace = []tool.File{three}, "00-c-d-01"
	_ = resume(t, e, r)
	require.Len(t, seen, 2)
	for i, want := range []struct {
		files []string
		trace string
	}{{[]string{"/in/1", "/in/2"}, "00-a-b-01"}, {[]string{"/in/1", "/in/3"}, "00-c-d-01"}} {
		got := seen[i]
		assert.Equal(t, "s", got.Session)
		assert.Equal(t, "ann", got.User)
		assert.Equal(t, want.trace, got.Trace)
		assert.Equal(t, want.files, []string{got.Files[0].Path, got.Files[1].Path})
	}
	assert.Equal(t, "1", one.Name)

	asked := len(seen)
	for name, options := range map[string]executor.SessionOptions{
		"user": {Tenant: "t", User: "bob", Files: []tool.File{one, two}}, "files": {Tenant: "t", User: "ann"}, "both": {Tenant: "t"},
	} {
		assert.False(t, ask(t, e, newSession(t, e, options), "look", "").Cached, name)
	}
	assert.Len(t, seen, asked+3)
	assert.True(t, ask(t, e, newSession(t, e, executor.SessionOptions{Tenant: "t", User: "bob", Files: []tool.File{one, two}}), "look", "").Cached, "control")
}

// TestToolReadsItsPartOfTheRequest: a tool reads what the caller's request says to it, and to no other tool. Results
// are cached, and approvals are bound, accordingly.
func TestToolReadsItsPartOfTheRequest(t *testing.T) {
	var mu sync.Mutex
	seen := map[string][]tool.Request{}
	noting := func(_ context.Context, i tool.Invocation) (tool.Outcome, error) {
		mu.Lock()
		defer mu.Unlock()
		seen[i.Tool] = append(seen[i.Tool], tool.Request{Definition: bytes.Clone(i.Request.Definition), Values: maps.Clone(i.Request.Values)})
		if i.Request.Values != nil {
			i.Request.Values["locale"], i.Request.Definition[0] = "changed", 'X' // it is the tool's own copy
		}
		return succeed(""), nil
	}
	e := newExecutor(t, executor.Options{}, newClient(t, "shell", nil), newFake(t, "look", fields{"behavior": readOnly["behavior"], "aliases": []string{"glance"}}, noting),
		newFake(t, "other", readOnly, noting), newFake(t, "relay", may(true, "look"), relay), newFake(t, "remove", fields{"behavior": fields{"destructive": true}}, noting))
	session := newSession(t, e, executor.SessionOptions{})
	said := func(locale string) map[string]tool.Request {
		return map[string]tool.Request{"glance": {Definition: json.RawMessage(`{"type":"search"}`), Values: map[string]string{"locale": locale}}, "missing": {}}
	}
	inGerman := said("de")
	german := inGerman["glance"]

	report := reportOf(t, e, executor.Batch{Session: session, Requests: inGerman, Calls: []tool.Call{newCall("1", "look", ""), newCall("2", "other", ""), newCall("3", "shell", "")}})
	r := answered(session, *report.State)
	r.Requests = said("fr")
	_ = resume(t, e, r)
	assert.Equal(t, []tool.Request{german}, seen["look"])
	assert.Equal(t, []tool.Request{{}}, seen["other"])
	assert.Equal(t, said("de"), inGerman)

	one := func(name string, requests map[string]tool.Request) tool.Record {
		arguments := ""
		if name == "relay" {
			arguments = calling(function("look", "{}"))
		}
		return executeAll(t, e, executor.Batch{Session: session, Requests: requests, Calls: []tool.Call{newCall("1", name, arguments)}})[0]
	}
	for _, name := range []string{"look", "relay"} {
		one(name, said("de"))
		assert.True(t, one(name, said("de")).Cached, "control")
		assert.False(t, one(name, said("fr")).Cached)
		assert.False(t, one(name, nil).Cached)
	}

	status := func(requests map[string]tool.Request) string {
		report := reportOf(t, e, executor.Batch{Session: session, Requests: requests, Calls: []tool.Call{newCall("1", "remove", "")}})
		require.Len(t, report.Pending, 1)
		r := executor.Resumption{State: *report.State, Session: session, Requests: map[string]tool.Request{"remove": german},
			Approvals: []tool.Approval{{CallID: report.Pending[0].CallID, Approve: true, Fingerprint: report.Pending[0].Fingerprint}}}
		return string(resume(t, e, r).Status)
	}
	assert.Equal(t, string(executor.RequiresAction), status(nil), "another request is another call")
	assert.Equal(t, string(executor.Completed), status(map[string]tool.Request{"remove": german}))

	for want, requests := range map[string]map[string]tool.Request{
		`Requests["look"].Definition is not a JSON object`:                               {"look": {Definition: json.RawMessage(`[1]`)}},
		`Requests["glance"].Definition is not a JSON object`:                             {"glance": {Definition: json.RawMessage(" ")}},
		`the request to look has 1048578 bytes, over the limit`:                          {"look": {Definition: json.RawMessage("{}"), Values: map[string]string{"a": strings.Repeat("x", 1<<20-1)}}},
		`Requests["missing"].Values["a"] is not valid UTF-8`:                             {"missing": {Values: map[string]string{"a": "\xff"}}},
		`the tool look is in Requests twice, by its name and an alias or by two aliases`: {"look": {}, "glance": {}},
	} {
		_, err := e.Execute(t.Context(), executor.Batch{Session: session, Requests: requests, Calls: []tool.Call{newCall("1", "look", "")}})
		require.ErrorIs(t, err, executor.ErrInvalidBatch)
		assert.ErrorContains(t, err, want)
	}
}

// TestReplacedMeanwhile: between pause and resume a tool may be replaced or removed. A client's output
// is then rejected, and nothing is run in its place.
func TestReplacedMeanwhile(t *testing.T) {
	r := newRegistry(t, newClient(t, "shell", nil), newFake(t, "erase", destructive, echo))
	e := executorOf(t, r, executor.Options{})
	session := newSession(t, e, executor.SessionOptions{})
	report := paused(t, e, session, newCall("1", "shell", ""), newCall("2", "erase", ""))
	strict := fields{"parameters": fields{"type": "object", "required": []string{"n"}, "properties": fields{"n": fields{"type": "integer"}}}}
	tests := map[string]struct {
		with  []*fake
		kinds []tool.Kind // of both; "wait" where it waits
	}{
		"gone":               {nil, []tool.Kind{tool.Cancelled, tool.UnknownTool}},
		"run here":           {[]*fake{newFake(t, "shell", nil, echo), newFake(t, "erase", destructive, echo)}, []tool.Kind{tool.Cancelled, ""}},
		"other parameters":   {[]*fake{newClient(t, "shell", strict), newFake(t, "erase", strict, echo)}, []tool.Kind{tool.Cancelled, tool.InvalidArguments}},
		"asks no more":       {[]*fake{newClient(t, "shell", nil), newFake(t, "erase", nil, echo)}, []tool.Kind{"", ""}},
		"the client's now":   {[]*fake{newClient(t, "shell", nil), newClient(t, "erase", nil)}, []tool.Kind{"", "wait"}},
		"another manifest":   {[]*fake{newClient(t, "shell", nil), newFake(t, "erase", fields{"version": "2.0.0", "behavior": fields{"destructive": true}}, echo)}, []tool.Kind{"", "wait"}},
		"nothing is another": {[]*fake{newClient(t, "shell", nil), newFake(t, "erase", destructive, echo)}, []tool.Kind{"", ""}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			replaced := newRegistry(t)
			for _, f := range test.with {
				require.NoError(t, replaced.Register("", f))
			}
			e := executorOf(t, replaced, executor.Options{})
			done := resume(t, e, answered(newSession(t, e, executor.SessionOptions{}), stored(t, report.State)))
			assert.Equal(t, test.kinds[0], done.Records[0].Result.Kind)
			if test.kinds[1] == "wait" {
				assertPaused(t, done)
				assert.Len(t, done.Records, 1)
				return
			}
			assertCompleted(t, done)
			assert.Equal(t, test.kinds[1], done.Records[1].Result.Kind)
		})
	}
}

// TestPauseOptions: a negative Expire is refused, and zero means 24 hours.
func TestPauseOptions(t *testing.T) {
	require.ErrorIs(t, noerr.Error(executor.New(newRegistry(t), executor.Options{Pause: executor.Pause{Expire: -1}})), executor.ErrInvalidOptions)
	synctest.Test(t, func(t *testing.T) {
		e := newExecutor(t, executor.Options{}, newClient(t, "shell", nil))
		report := paused(t, e, nil, newCall("1", "shell", ""))
		assert.Equal(t, time.Now().Add(24*time.Hour).UTC(), report.State.Expires())
	})
}
