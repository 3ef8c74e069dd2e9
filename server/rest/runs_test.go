package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/server/rest"
	"github.com/caisson-run/caisson/tool"
)

// start starts a run and returns it as it was answered.
func (w *world) start(as, body string, headers ...string) run {
	w.t.Helper()
	a := w.request("POST", "/v1/runs", as, body, headers...)
	r := of[run](a, 202)
	assert.Equal(w.t, "/v1/runs/"+r.ID, a.header.Get("Location"))
	return r
}

// household is a batch with calls of all kinds: two that run here, one that the client runs, one that needs an
// approval.
const household = `{"session":"s1","calls":[
	{"id":"c1","name":"calculator","arguments":{"expression":"6*7"}},
	{"id":"c2","name":"ask_user","arguments":{"question":"Which?"}},
	{"id":"c3","name":"wipe","arguments":{"what":"disk"}},
	{"id":"c4","name":"calculator","arguments":{"expression":"1+1"}}]}`

// approval approves a pending call.
func approval(action tool.Action) map[string]any {
	return map[string]any{"approvals": []any{map[string]any{"call_id": action.CallID, "approve": true, "fingerprint": action.Fingerprint}}}
}

func output(id, text string) map[string]any {
	return map[string]any{"tool_outputs": []any{map[string]any{"tool_call_id": id, "output": text}}}
}

// TestRun follows a run through all of its states: it waits for an output and an approval, which come one after the
// other from different tokens, and then goes on.
func TestRun(t *testing.T) {
	w := newWorld(t, rest.Options{})
	started := w.start("worker", strings.Replace(household, `"session":"s1",`, "", 1))
	assert.Contains(t, []string{"queued", "in_progress", "requires_action"}, started.Status)
	paused := w.until(started.ID, "worker", "requires_action")
	require.Len(t, paused.Pending, 2, "all that can be asked is asked at once")
	assert.NotNil(t, paused.ExpiresAt)
	require.Len(t, paused.Records, 1)
	asks, wipes := paused.Pending[0], paused.Pending[1]
	assert.Equal(t, []tool.ActionType{tool.NeedsOutput, tool.NeedsApproval}, []tool.ActionType{asks.Type, wipes.Type})

	path := "/v1/runs/" + started.ID
	w.request("POST", path+"/approvals", "worker", approval(wipes)).refused(403)
	half := of[run](w.request("POST", path+"/approvals", "approver", approval(wipes)), 202)
	assert.Equal(t, "requires_action", half.Status)
	require.Len(t, half.Pending, 1)
	assert.Equal(t, asks.CallID, half.Pending[0].CallID)
	w.request("POST", path+"/approvals", "approver", approval(wipes)).refused(409)
	assert.Empty(t, w.wipes())

	of[run](w.request("POST", path+"/submit_tool_outputs", "worker", output("c2", "the red one")), 202)
	ended := w.until(started.ID, "reader", "completed")
	require.Len(t, ended.Records, 4)
	assert.Equal(t, "the red one", ended.Records[1].Result.Output)
	assert.Equal(t, []string{"disk"}, w.wipes())
	assert.Empty(t, ended.Pending)
	assert.NotNil(t, ended.ExpiresAt)
	w.request("POST", path+"/submit_tool_outputs", "worker", output("c2", "again")).refused(409)
	w.request("POST", path+"/approvals", "approver", approval(wipes)).refused(409)

	type listed struct{ Runs []run }
	list := of[struct {
		Runs []struct{ ID, Status string }
	}](w.request("GET", "/v1/runs?status=completed", "reader", nil), 200)
	require.Len(t, list.Runs, 1)
	assert.Equal(t, started.ID, list.Runs[0].ID)
	assert.Empty(t, of[listed](w.request("GET", "/v1/runs?status=queued", "reader", nil), 200).Runs)
	w.request("GET", "/v1/runs?status=lost", "reader", nil).refused(400)
}

// TestRefusedCallsAreTold: an approval may be refused, and the model is told why.
func TestRefusedCallsAreTold(t *testing.T) {
	w := newWorld(t, rest.Options{})
	started := w.start("ada", `{"dialect":"openai","calls":[{"id":"c1","name":"wipe","arguments":{"what":"disk"}}]}`)
	paused := w.until(started.ID, "ada", "requires_action")
	of[run](w.request("POST", "/v1/runs/"+started.ID+"/approvals", "ada", `{"approvals":[{"call_id":"`+paused.Pending[0].CallID+`","approve":false,"reason":"not today"}]}`), 202)
	ended := w.until(started.ID, "ada", "completed")
	assert.Equal(t, tool.Denied, ended.Records[0].Result.Kind)
	assert.Contains(t, string(ended.Results), "not today")
	assert.Empty(t, w.wipes())
}

// TestWrongAnswers: none of them changes the run.
func TestWrongAnswers(t *testing.T) {
	w := newWorld(t, rest.Options{})
	started := w.start("ada", household)
	paused := w.until(started.ID, "ada", "requires_action")
	asks, wipes := paused.Pending[0], paused.Pending[1]
	outputs, approvals := "/v1/runs/"+started.ID+"/submit_tool_outputs", "/v1/runs/"+started.ID+"/approvals"
	for _, c := range []struct {
		path   string
		body   any
		status int
		detail string
	}{
		{outputs, `{}`, 400, "either tool_outputs, or results"},
		{outputs, `{"results":[]}`, 400, "with the dialect"},
		{outputs, `{"dialect":"openai","results":[]}`, 422, ""},
		{outputs, `{"dialect":"openai","results":"x"}`, 422, "results: "},
		{outputs, `{"tool_outputs":[{"output":"x"}]}`, 400, "tool_outputs[0] has no tool_call_id"},
		{outputs, `{"tool_outputs":[{"tool_call_id":"c2"}]}`, 400, "either an output"},
		{outputs, `{"tool_outputs":[{"tool_call_id":"c2","result":{"success":"yes"}}]}`, 400, "success must be true or false"},
		{outputs, `{"tool_outputs":[{"tool_call_id":"c2","result":{"error":"it failed"}}]}`, 400, "success must be true or false"},
		{outputs, `{"tool_outputs":[{"tool_call_id":"c2","result":{"success":true,"output":1}}]}`, 400, "a result that is none"},
		{outputs, `{"tool_outputs":[{"tool_call_id":"c9","result":{"success":true,"Output":1,"SUCCESS":false}}]}`, 422, "no call that waits"},
		{outputs + "?run=1", `{}`, 400, `no parameter "run"`},
		{outputs, `{"tool_outputs":[{"tool_call_id":"c2","result":{"success":true,"content":[1]}}]}`, 400, "content[0] must be an object"},
		{outputs, `{"tool_outputs":[{"tool_call_id":"c2","result":{"success":true,"content":[{"type":"image","data":"?"}]}}]}`, 422, "not base64"},
		{outputs, `{"tool_outputs":[{"tool_call_id":"","output":"x"}]}`, 400, "no tool_call_id"},
		{outputs, `{"tool_outputs":[{"tool_call_id":"c2","output":"x"}],"dialect":"mcp"}`, 400, "either tool_outputs, or results"},
		{outputs, `{"tool_outputs":[{"tool_call_id":"c2","output":"x"}],"results":[],"dialect":"mcp"}`, 400, "either tool_outputs, or results"},
		{outputs, `{"tool_outputs":[{"tool_call_id":"c9","result":{"success":true,"output":null,"error":null,"content":null}}],"results":null,"dialect":""}`, 422, "no call that waits"},
		{outputs, output("c9", "x"), 422, `no call that waits has the id "c9"`},
		{outputs, output("c1", "x"), 422, `no call that waits`},
		{outputs, output(wipes.CallID, "x"), 422, "another kind of answer"},
		{outputs, `{"tool_outputs":[{"tool_call_id":"c2","output":"x"},{"tool_call_id":"` + asks.CallID + `","output":"y"}]}`, 409, "has been answered"},
		{approvals, `{}`, 400, "approvals is missing"},
		{approvals, `{"approvals":[{"call_id":"c3"}]}`, 400, "must have a call_id, and approve"},
		{approvals, `{"approvals":[{"call_id":"c3","approve":true}]}`, 422, "the fingerprint is missing"},
		{approvals, `{"approvals":[{"call_id":"c3","approve":true,"fingerprint":"0"}]}`, 422, "not that of what waits"},
		{approvals, `{"approvals":[{"call_id":"c3","approve":true,"scope":"ever"}]}`, 400, "once, session or time"},
		{approvals, `{"approvals":[{"call_id":"c3","approve":true,"scope":"time"}]}`, 400, "for_seconds"},
		{approvals, `{"approvals":[{"call_id":"c3","approve":true,"scope":"time","for_seconds":1e-12}]}`, 422, "the fingerprint is missing"},
		{approvals, `{"approvals":[{"call_id":"c3","approve":true,"scope":"once","for_seconds":1}]}`, 400, "for_seconds"},
		{approvals, `{"approvals":[{"call_id":"c3","approve":true,"scope":"once","for_seconds":0}]}`, 422, "the fingerprint is missing"},
		{approvals, `{"approvals":[{"call_id":"","approve":true}]}`, 400, "must have a call_id"},
		{approvals, `{"approvals":[{"call_id":"c3","approve":true,"until":"2099-01-01T00:00:00Z"}]}`, 400, "until is unknown"},
		{approvals, approval(asks), 422, "another kind of answer"},
	} {
		assert.Contains(t, w.request("POST", c.path, "ada", c.body).refused(c.status), c.detail, "%v", c.body)
	}
	assert.Len(t, w.until(started.ID, "ada", "requires_action").Pending, 2)
	assert.Empty(t, w.wipes())
}

// TestAnswersOfAProvider: outputs and approvals in the form of a provider's next request. Approvals need their scope
// there too.
func TestAnswersOfAProvider(t *testing.T) {
	w := newWorld(t, rest.Options{})
	started := w.start("worker", household)
	w.until(started.ID, "worker", "requires_action")
	var request string
	for _, e := range w.follow(started.ID, "worker") {
		var event struct{ Item struct{ ID, Type string } }
		require.NoError(t, json.Unmarshal([]byte(e.data), &event))
		if e.name == "response.output_item.done" && event.Item.Type == "mcp_approval_request" {
			request = event.Item.ID
		}
	}
	require.NotEmpty(t, request)
	path := "/v1/runs/" + started.ID + "/submit_tool_outputs"
	both := `{"dialect":"responses","results":[{"type":"mcp_approval_response","approval_request_id":"` + request + `","approve":true},{"type":"function_call_output","call_id":"c2","output":"red"}]}`
	assert.Contains(t, w.request("POST", path, "worker", both).refused(403), "scope approve")
	w.request("POST", path, "bob", both).refused(403)
	assert.Empty(t, w.wipes())
	assert.Len(t, w.until(started.ID, "worker", "requires_action").Pending, 2, "nothing of it was taken")

	mine := w.start("ada", household)
	w.until(mine.ID, "ada", "requires_action")
	for _, e := range w.follow(mine.ID, "ada") {
		var event struct{ Item struct{ ID, Type string } }
		require.NoError(t, json.Unmarshal([]byte(e.data), &event))
		if event.Item.Type == "mcp_approval_request" {
			both = strings.Replace(both, request, event.Item.ID, 1)
			break
		}
	}
	of[run](w.request("POST", "/v1/runs/"+mine.ID+"/submit_tool_outputs", "ada", both), 202)
	ended := w.until(mine.ID, "ada", "completed")
	assert.Equal(t, "red", ended.Records[1].Result.Output)
	assert.Equal(t, []string{"disk"}, w.wipes())
}

// TestPausedCallsBecomeRuns: a call or a batch that has to wait is answered with 202 and a run.
func TestPausedCallsBecomeRuns(t *testing.T) {
	w := newWorld(t, rest.Options{})
	for path, body := range map[string]string{
		"/v1/calls":   `{"id":"c2","name":"ask_user","arguments":{"question":"Which?"}}`,
		"/v1/batches": `{"calls":[{"id":"c2","name":"ask_user","arguments":{"question":"Which?"}}]}`,
	} {
		a := w.request("POST", path, "ada", body)
		paused := of[run](a, 202)
		assert.Equal(t, "/v1/runs/"+paused.ID, a.header.Get("Location"))
		require.Len(t, paused.Pending, 1)
		of[run](w.request("POST", "/v1/runs/"+paused.ID+"/submit_tool_outputs", "ada", output("c2", "red")), 202)
		assert.Equal(t, "red", w.until(paused.ID, "ada", "completed").Records[0].Result.Output)
		assert.NotEmpty(t, w.follow(paused.ID, "ada"))
	}
	events := allEvents(t, w.open(t.Context(), "POST", "/v1/batches", "ada", household, "Accept", "text/event-stream"))
	last := events[len(events)-1]
	require.Equal(t, "report", last.name)
	paused := noerr.Decode[run](t, []byte(last.data))
	assert.Equal(t, "requires_action", paused.Status)
	w.until(paused.ID, "ada", "requires_action")
}

// TestCancel: a run that works and one that waits. A run that has ended stays as it is.
func TestCancel(t *testing.T) {
	w := newWorld(t, rest.Options{})
	works := w.start("worker", `{"calls":[{"id":"1","name":"wait"},{"id":"2","name":"wipe","arguments":{"what":"x"}}]}`)
	<-w.waiting
	w.request("POST", "/v1/runs/"+works.ID+"/cancel", "approver", nil).refused(403)
	stopped := of[run](w.request("POST", "/v1/runs/"+works.ID+"/cancel", "bob", nil), 200) // an admin of the tenant
	<-w.stopped
	assert.Equal(t, "cancelled", stopped.Status)
	require.Len(t, stopped.Records, 2)
	assert.Equal(t, tool.Cancelled, stopped.Records[0].Result.Kind)

	waits := w.start("ada", household)
	w.until(waits.ID, "ada", "requires_action")
	other := w.request("POST", "/v1/runs/"+waits.ID+"/cancel", "worker", nil).refused(403)
	assert.Contains(t, other, "another token")
	assert.Equal(t, "cancelled", of[run](w.request("POST", "/v1/runs/"+waits.ID+"/cancel", "ada", nil), 200).Status)
	w.request("POST", "/v1/runs/"+waits.ID+"/submit_tool_outputs", "ada", output("c2", "x")).refused(409)

	done := w.start("ada", `{"calls":[{"name":"echo"}]}`)
	w.until(done.ID, "ada", "completed")
	assert.Equal(t, "completed", of[run](w.request("POST", "/v1/runs/"+done.ID+"/cancel", "ada", nil), 200).Status)
	assert.Empty(t, w.wipes())
}

// TestRunOutlivesItsClient: it goes on when the client that started it goes away.
func TestRunOutlivesItsClient(t *testing.T) {
	w := newWorld(t, rest.Options{})
	response := w.open(t.Context(), "POST", "/v1/runs", "ada", `{"calls":[{"id":"1","name":"wait"}]}`, "Accept", "text/event-stream")
	require.Equal(t, 200, response.StatusCode)
	id := strings.TrimPrefix(response.Header.Get("Location"), "/v1/runs/")
	<-w.waiting
	require.NoError(t, response.Body.Close())
	time.Sleep(20 * time.Millisecond)
	w.let <- struct{}{}
	assert.True(t, w.until(id, "ada", "completed").Records[0].Result.Success)
}

// TestRunsExpire: those that wait too long, and those that ended long ago.
func TestRunsExpire(t *testing.T) {
	w := newWorld(t, rest.Options{Runs: rest.RunOptions{Wait: 300 * time.Millisecond, Keep: 1500 * time.Millisecond}})
	waits := w.start("ada", household)
	w.until(waits.ID, "ada", "requires_action")
	w.until(waits.ID, "ada", "expired")
	w.request("POST", "/v1/runs/"+waits.ID+"/submit_tool_outputs", "ada", output("c2", "x")).refused(409)
	require.Eventually(t, func() bool { return w.request("GET", "/v1/runs/"+waits.ID, "ada", nil).status == 404 }, 5*time.Second, 10*time.Millisecond)
}

// TestExpiredRunsOfIdleTenants: a run that waits too long ends although its tenant makes no request, and a key that is
// not known any longer is forgotten. The controls are the same before.
func TestExpiredRunsOfIdleTenants(t *testing.T) {
	const wait = time.Second
	w := newWorld(t, rest.Options{Runs: rest.RunOptions{Wait: wait, Keep: time.Hour}})
	waits := w.start("ada", household)
	w.until(waits.ID, "ada", "requires_action")
	began := time.Now()
	w.follow(waits.ID, "ada", "Last-Event-ID", strconv.Itoa(len(w.follow(waits.ID, "ada"))))
	assert.Greater(t, time.Since(began), wait/2)
	w.until(waits.ID, "ada", "expired")
}

// TestRunsAreBounded: a tenant cannot have more runs than its bound. The one that ended first makes room; another
// tenant's are untouched.
func TestRunsAreBounded(t *testing.T) {
	w := newWorld(t, rest.Options{Runs: rest.RunOptions{PerTenant: 2}})
	first := w.start("ada", `{"calls":[]}`)
	w.until(first.ID, "ada", "completed")
	for range 2 {
		w.until(w.start("bob", household).ID, "bob", "requires_action")
	}
	w.request("GET", "/v1/runs/"+first.ID, "ada", nil).refused(404)
	w.request("POST", "/v1/runs", "ada", household).refused(429)
	w.request("POST", "/v1/calls", "ada", `{"name":"ask_user","arguments":{"question":"Which?"}}`).refused(429)
	given := of[run](w.request("POST", "/v1/batches", "ada", household), 200)
	assert.Equal(t, "failed", given.Status)
	assert.Contains(t, given.Problem, "what waits was given up")
	assert.Len(t, given.Records, 1, "what ran is told")
	w.start("mallory", household)
}

// TestRunsAreBoundedInBytes: many runs with long requests need as much room as they have bytes.
func TestRunsAreBoundedInBytes(t *testing.T) {
	w := newWorld(t, rest.Options{Runs: rest.RunOptions{Bytes: 20_000}})
	long := `{"calls":[{"name":"wipe","arguments":{"what":"` + strings.Repeat("x", 8_000) + `"}}]}`
	w.until(w.start("ada", long).ID, "ada", "requires_action")
	w.request("POST", "/v1/runs", "ada", long).refused(429)
	w.start("mallory", long)
	of[run](w.request("POST", "/v1/runs/"+w.running("ada")+"/cancel", "ada", nil), 200)
	w.start("ada", long)
}

// TestAttackToolTakenFromAnAgent: a run that waits calls no tool that was taken from its agent meanwhile, whoever
// approves it. The control is an agent that keeps its tools.
func TestAttackToolTakenFromAnAgent(t *testing.T) {
	const both, less = `{"allowed_tools":["wipe","echo"]}`, `{"allowed_tools":["echo"]}`
	w := newWorld(t, rest.Options{})
	put := func(agent string) { of[map[string]any](w.request("PUT", "/v1/agents/clerk", "ada", agent), 200) }
	for i, test := range []struct {
		name  string
		after func()
		wiped bool
	}{
		{"the control", func() {}, true},
		{"the tool is taken", func() { put(less) }, false},
		{"the agent is removed", func() {
			assert.Equal(t, http.StatusNoContent, w.request("DELETE", "/v1/agents/clerk", "ada", nil).status)
		}, false},
	} {
		for _, made := range []string{"/v1/runs", "/v1/batches"} {
			t.Run(test.name+made, func(t *testing.T) {
				put(both)
				what, before := fmt.Sprintf("disk %d", i), w.wipes()
				started := of[run](w.request("POST", made, "clerk", `{"calls":[{"id":"c1","name":"wipe","arguments":{"what":"`+what+`"}},{"id":"c2","name":"echo"}]}`), 202)
				paused := w.until(started.ID, "clerk", "requires_action")
				test.after()
				approve := func() answered {
					return w.request("POST", "/v1/runs/"+started.ID+"/approvals", "approver", approval(paused.Pending[0]))
				}
				if _, _, err := w.agents.Load(t.Context(), "acme", "clerk", anything{}); err != nil {
					assert.Contains(t, approve().refused(409), "the agent of the token that made the run does not exist any more")
					put(less) // refused answers can be sent again
				}
				of[run](approve(), 202)
				ended := w.until(started.ID, "clerk", "completed")
				assert.True(t, ended.Records[1].Result.Success)
				if test.wiped {
					assert.Equal(t, append(before, what), w.wipes())
					return
				}
				assert.Equal(t, before, w.wipes())
				require.Equal(t, tool.Denied, ended.Records[0].Result.Kind)
				assert.Equal(t, "allowed_tools", ended.Records[0].Denials[0].Permission)
			})
		}
	}
}

// TestAttackToolsOfAResumedRun: what a run may call when it resumes, a later call of its session may not if the tool
// was taken from the agent again. As the control, it may if the tool was not taken.
func TestAttackToolsOfAResumedRun(t *testing.T) {
	const less, both = `{"allowed_tools":["ask_user"]}`, `{"allowed_tools":["ask_user","echo"]}`
	for last, want := range map[string]tool.Kind{less: tool.Denied, both: ""} {
		w := newWorld(t, rest.Options{})
		put := func(agent string) { of[map[string]any](w.request("PUT", "/v1/agents/clerk", "ada", agent), 200) }
		put(less)
		started := of[run](w.request("POST", "/v1/runs", "clerk", `{"session":"s","calls":[{"id":"c1","name":"ask_user","arguments":{"question":"Which?"}}]}`), 202)
		w.until(started.ID, "clerk", "requires_action")
		put(both)
		of[run](w.request("POST", "/v1/runs/"+started.ID+"/submit_tool_outputs", "clerk", output("c1", "this")), 202)
		w.until(started.ID, "clerk", "completed")
		put(last)
		record := of[tool.Record](w.request("POST", "/v1/calls", "clerk", `{"id":"c2","name":"echo","session":"s"}`), 200)
		assert.Equal(t, want, record.Result.Kind, record.Result.Error)
	}
}

// TestAttackSubmissions: outputs for all but one of the calls that wait are held until the last one comes, and so are
// within the bound. Those that are refused are not counted.
func TestAttackSubmissions(t *testing.T) {
	const most, calls, long = 1 << 20, 10, 300 << 10
	for _, test := range []struct {
		name  string
		bytes int
		taken int
	}{{"guarded", most, 3}, {"control: a bound that is not reached", 100 * most, calls - 1}} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, rest.Options{Runs: rest.RunOptions{Bytes: test.bytes}})
			var asked []string
			for i := range calls {
				asked = append(asked, fmt.Sprintf(`{"id":"c%d","name":"ask_user","arguments":{"question":"Which?"}}`, i))
			}
			started := w.start("ada", `{"calls":[`+strings.Join(asked, ",")+`]}`)
			w.until(started.ID, "ada", "requires_action")
			path, taken := "/v1/runs/"+started.ID+"/submit_tool_outputs", 0
			for range 20 { // refused for another reason
				w.request("POST", path, "ada", output("nobody", strings.Repeat("x", long))).refused(422)
			}
			for i := range calls - 1 {
				switch answer := w.request("POST", path, "ada", output(fmt.Sprintf("c%d", i), strings.Repeat("x", long))); answer.status {
				case 202:
					taken++
				default:
					answer.refused(429)
				}
			}
			assert.Equal(t, test.taken, taken)
			of[run](w.request("POST", "/v1/runs/"+started.ID+"/cancel", "ada", nil), 200)
			w.until(w.start("ada", household).ID, "ada", "requires_action") // there is room again
		})
	}
}

// TestAttackResultsOfRuns: the records of runs that have ended count, so that long results make the oldest be
// forgotten.
func TestAttackResultsOfRuns(t *testing.T) {
	const long = 40_000
	for _, test := range []struct {
		name  string
		bytes int
		kept  int
	}{{"guarded", 8 * long, 3}, {"control: a bound that is not reached", 600 * long, 4}} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, rest.Options{Runs: rest.RunOptions{Bytes: test.bytes, EventBytes: 1}})
			of[tool.Record](w.request("POST", "/v1/calls", "ada", map[string]any{"name": "file_write", "arguments": map[string]any{"path": "long.txt", "content": strings.Repeat("x", long)}}), 200)
			var ids []string
			for range 4 { // the record has the text, and so has the last event
				started := w.start("ada", `{"calls":[{"name":"file_read","arguments":{"path":"long.txt"}}]}`)
				ended := w.until(started.ID, "ada", "completed")
				assert.Greater(t, len(ended.Records[0].Result.Output), long-1)
				ids = append(ids, started.ID)
			}
			kept := 0
			for _, id := range ids {
				if w.request("GET", "/v1/runs/"+id, "ada", nil).status == 200 {
					kept++
				}
			}
			assert.Equal(t, test.kept, kept)
		})
	}
}

// running returns the id of the newest run that has not ended.
func (w *world) running(as string) string {
	w.t.Helper()
	list := of[struct{ Runs []struct{ ID string } }](w.request("GET", "/v1/runs?status=requires_action", as, nil), 200)
	require.NotEmpty(w.t, list.Runs)
	return list.Runs[0].ID
}

// TestSessionOfARunEnds: a run whose session was ended cannot go on, and says so.
func TestSessionOfARunEnds(t *testing.T) {
	w := newWorld(t, rest.Options{})
	started := w.start("ada", `{"session":"s1","calls":[{"id":"c2","name":"ask_user","arguments":{"question":"Which?"}}]}`)
	w.until(started.ID, "ada", "requires_action")
	assert.Equal(t, http.StatusNoContent, w.request("DELETE", "/v1/sessions/s1", "ada", nil).status)
	of[run](w.request("POST", "/v1/runs/"+started.ID+"/submit_tool_outputs", "ada", output("c2", "x")), 202)
	ended := w.until(started.ID, "ada", "failed")
	assert.Contains(t, ended.Problem, "closed")
	events := w.follow(started.ID, "ada")
	assert.Equal(t, "error", events[len(events)-1].name)
}

// TestSessionOfARunEndsMeanwhile: a run fails if its session was ended before all its calls had run. The control is one
// that is cancelled.
func TestSessionOfARunEndsMeanwhile(t *testing.T) {
	for status, ends := range map[string]func(w *world, id string) answered{
		"failed":    func(w *world, _ string) answered { return w.request("DELETE", "/v1/sessions/s1", "ada", nil) },
		"cancelled": func(w *world, id string) answered { return w.request("POST", "/v1/runs/"+id+"/cancel", "ada", nil) },
	} {
		w := newWorld(t, rest.Options{})
		started := w.start("ada", `{"session":"s1","calls":[{"id":"1","name":"wait"},{"id":"2","name":"wait"}]}`)
		<-w.waiting
		assert.Less(t, ends(w, started.ID).status, 300)
		ended := w.until(started.ID, "ada", status)
		assert.Equal(t, status == "failed", strings.Contains(ended.Problem, "session"), ended.Problem)
	}
}

// TestAttackOtherTenant: who is of another tenant, with all scopes and the same user's name, sees, approves, answers,
// cancels and reads nothing. The control is a token of the tenant.
func TestAttackOtherTenant(t *testing.T) {
	w := newWorld(t, rest.Options{})
	started := w.start("ada", household, "Idempotency-Key", "k1")
	paused := w.until(started.ID, "ada", "requires_action")
	path := "/v1/runs/" + started.ID
	for _, attack := range []struct {
		method, path string
		body         any
	}{
		{"GET", path, nil}, {"GET", path + "/events", nil}, {"POST", path + "/cancel", nil},
		{"POST", path + "/approvals", approval(paused.Pending[1])}, {"POST", path + "/submit_tool_outputs", output("c2", "forged")},
		{"GET", "/v1/calls/" + paused.Records[0].CallID, nil}, {"DELETE", "/v1/sessions/s1", nil},
	} {
		w.request(attack.method, attack.path, "mallory", attack.body).refused(404)
	}
	for _, list := range []string{"/v1/runs", "/v1/calls"} {
		assert.NotContains(t, string(w.request("GET", list, "mallory", nil).body), started.ID)
		assert.NotContains(t, string(w.request("GET", list, "mallory", nil).body), paused.Records[0].CallID)
	}
	theirs := w.start("mallory", household, "Idempotency-Key", "k1")
	assert.NotEqual(t, started.ID, theirs.ID, "a key of another tenant is another key")
	assert.Len(t, w.until(started.ID, "ada", "requires_action").Pending, 2, "nothing has changed")
	assert.Empty(t, w.wipes())

	for _, control := range []struct{ method, path string }{{"GET", path}, {"GET", path + "/events"}, {"GET", "/v1/calls/" + paused.Records[0].CallID}} {
		assert.Equal(t, 200, w.request(control.method, control.path, "reader", nil).status)
	}
	of[run](w.request("POST", path+"/approvals", "approver", approval(paused.Pending[1])), 202)
	of[run](w.request("POST", path+"/submit_tool_outputs", "ada", output("c2", "red")), 202)
	w.until(started.ID, "ada", "completed")
	assert.Equal(t, []string{"disk"}, w.wipes())
}

// TestAttackRunsWithoutRead: tokens without the scope read learn nothing of the calls of others' runs by approving,
// answering or cancelling them. The controls are a token with the scope, and the one that made the run.
func TestAttackRunsWithoutRead(t *testing.T) {
	w := newWorld(t, rest.Options{})
	started := w.start("ada", household)
	paused := w.until(started.ID, "ada", "requires_action")
	path := "/v1/runs/" + started.ID
	nothing := `{"approvals":[]}`
	w.request("GET", path, "deputy", nil).refused(403)
	w.request("GET", path, "manager", nil).refused(403)

	read := of[run](w.request("POST", path+"/approvals", "approver", nothing), 202)
	assert.Len(t, read.Pending, 2, "control")
	assert.Len(t, read.Records, 1, "control")
	for token, want := range map[string]string{"approver": "text/event-stream", "deputy": "application/json"} {
		answer := w.open(t.Context(), "POST", path+"/approvals", token, nothing, "Accept", "text/event-stream")
		require.NoError(t, answer.Body.Close()) // events have no end while the run waits
		require.Equal(t, want, answer.Header.Get("Content-Type"), token)
	}
	own := w.start("manager", household)
	own = of[run](w.request("POST", "/v1/runs/"+own.ID+"/cancel", "manager", nil), 200)
	assert.NotEmpty(t, own.Session, "control")

	for _, attack := range []struct {
		path, token string
		body        any
		header      []string
		answer      int
		status      string
	}{
		{"/approvals", "deputy", nothing, nil, 202, "requires_action"},
		{"/approvals", "deputy", nothing, []string{"Accept", "text/event-stream"}, 202, "requires_action"},
		{"/approvals", "deputy", approval(paused.Pending[1]), []string{"Idempotency-Key", "k1"}, 202, "requires_action"},
		{"/cancel", "manager", nil, nil, 200, "cancelled"},
	} {
		got := of[run](w.request("POST", path+attack.path, attack.token, attack.body, attack.header...), attack.answer)
		assert.Equal(t, run{ID: started.ID, Status: attack.status, CreatedAt: got.CreatedAt, ExpiresAt: got.ExpiresAt,
			Records: []tool.Record{}, Pending: []tool.Action{}, Final: []string{}, Results: json.RawMessage("null")}, got)
	}
	repeated := w.request("POST", path+"/approvals", "deputy", approval(paused.Pending[1]), "Idempotency-Key", "k1")
	assert.Equal(t, "true", repeated.header.Get("Idempotent-Replayed"))
	assert.Empty(t, of[run](repeated, 202).Records)
}

// TestIdempotency: the same request with the same key is answered the same, and run once, also when both come at once.
func TestIdempotency(t *testing.T) {
	w := newWorld(t, rest.Options{})
	body := `{"name":"wait","arguments":{"text":"a"}}`
	var answers [4]answered
	var asking sync.WaitGroup
	for i := range answers {
		asking.Go(func() { answers[i] = w.request("POST", "/v1/calls", "ada", body, "Idempotency-Key", "k1") })
	}
	<-w.waiting
	w.let <- struct{}{}
	asking.Wait()
	replayed := 0
	for _, a := range answers {
		assert.Equal(t, string(answers[0].body), string(a.body))
		if a.header.Get("Idempotent-Replayed") == "true" {
			replayed++
		}
	}
	assert.Equal(t, 3, replayed)
	assert.Empty(t, w.waiting, "it ran once")

	assert.Contains(t, w.request("POST", "/v1/calls", "ada", `{"name":"wait","arguments":{"text":"b"}}`, "Idempotency-Key", "k1").refused(422), "another body")
	w.request("POST", "/v1/calls", "ada", body, "Idempotency-Key", strings.Repeat("k", 256)).refused(400)
	assert.Contains(t, w.request("POST", "/v1/calls", "ada", body, "Idempotency-Key", "").refused(400), "is empty")
	for i, other := range []string{"bob", "mallory"} { // each has keys of their own
		go func() { w.let <- struct{}{} }()
		record := of[tool.Record](w.request("POST", "/v1/calls", other, body, "Idempotency-Key", "k1"), 200)
		<-w.waiting
		assert.NotContains(t, string(answers[0].body), record.CallID, i)
	}

	// A refused request may be made again with the same key.
	w.request("POST", "/v1/calls", "ada", `{"name":"echo","session":"a b"}`, "Idempotency-Key", "k2").refused(400)
	of[tool.Record](w.request("POST", "/v1/calls", "ada", `{"name":"echo"}`, "Idempotency-Key", "k2"), 200)

	// A run is made once, and its repetition has its path.
	first := w.start("ada", household, "Idempotency-Key", "k3")
	assert.Equal(t, first.ID, w.start("ada", household, "Idempotency-Key", "k3").ID)

	// The repetition of a streamed batch is its report.
	events := allEvents(t, w.open(t.Context(), "POST", "/v1/batches", "ada", `{"calls":[{"name":"echo"}]}`, "Idempotency-Key", "k4", "Accept", "text/event-stream"))
	again := allEvents(t, w.open(t.Context(), "POST", "/v1/batches", "ada", `{"calls":[{"name":"echo"}]}`, "Idempotency-Key", "k4", "Accept", "text/event-stream"))
	assert.Equal(t, []string{"report"}, names(again))
	assert.Equal(t, events[len(events)-1].data, again[0].data)
	whole := w.request("POST", "/v1/batches", "ada", `{"calls":[{"name":"echo"}]}`, "Idempotency-Key", "k4")
	assert.JSONEq(t, again[0].data, string(whole.body))
}

// TestAbandonedRequestsAreRepeated: who goes away and asks again with the key is told that the call was cancelled, and
// it is not run a second time.
func TestAbandonedRequestsAreRepeated(t *testing.T) {
	w := newWorld(t, rest.Options{})
	response := make(chan error, 1)
	ctx, leave := contextOf(t)
	go func() {
		_, err := w.try(ctx, "POST", "/v1/calls", "ada", `{"name":"wait"}`, "Idempotency-Key", "k")
		response <- err
	}()
	<-w.waiting
	leave()
	require.Error(t, <-response)
	<-w.stopped
	assert.Equal(t, tool.Cancelled, of[tool.Record](w.request("POST", "/v1/calls", "ada", `{"name":"wait"}`, "Idempotency-Key", "k"), 200).Result.Kind)
	assert.Empty(t, w.waiting)
}

// TestKeysAreBounded: the oldest are forgotten first, and those of another tenant stay.
func TestKeysAreBounded(t *testing.T) {
	w := newWorld(t, rest.Options{Keys: rest.KeyOptions{PerTenant: 2}})
	call := func(as, key string) (id string, again bool) {
		a := w.request("POST", "/v1/calls", as, `{"name":"echo"}`, "Idempotency-Key", key)
		return of[tool.Record](a, 200).CallID, a.header.Get("Idempotent-Replayed") != ""
	}
	call("mallory", "k0")
	for i := range 70 { // the ledger forgets some later
		_, again := call("ada", fmt.Sprint("k", i))
		assert.False(t, again)
	}
	_, again := call("ada", "k69")
	assert.True(t, again)
	_, again = call("ada", "k0")
	assert.False(t, again, "it was forgotten")
	_, again = call("mallory", "k0")
	assert.True(t, again)

	short := newWorld(t, rest.Options{Keys: rest.KeyOptions{Keep: time.Millisecond}})
	for range 2 {
		a := short.request("POST", "/v1/calls", "ada", `{"name":"echo"}`, "Idempotency-Key", "k")
		assert.Empty(t, a.header.Get("Idempotent-Replayed"))
		time.Sleep(5 * time.Millisecond)
	}
}

// TestToolsOfTheRequest: functions and custom tools of a request to a model need no manifest. They are offered
// beside the host's own, and answered by the client, which gets them as items of the Responses API.
func TestToolsOfTheRequest(t *testing.T) {
	w := newWorld(t, rest.Options{})
	tools := `[{"type":"function","name":"ask_crm","description":"Looks up a customer.","parameters":{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}},
		{"type":"custom","name":"sql","format":{"type":"text"}},{"type":"function","function":{"name":"chat_form"}},
		{"type":"function","name":"calculator","parameters":{"type":"object"}},{"type":"web_search"},{"type":"echo","size":1.50}]`
	for _, dialect := range []string{"responses", "openai", "anthropic"} {
		offers := of[struct {
			Definitions []struct {
				Name     string
				Function struct{ Name string }
			}
		}](w.request("POST", "/v1/definitions", "reader", `{"dialect":"`+dialect+`","tools":`+tools+`}`), 200)
		count := map[string]int{}
		for _, d := range offers.Definitions {
			count[d.Name+d.Function.Name]++
		}
		assert.Equal(t, 1, count["ask_crm"], dialect)
		assert.Equal(t, 1, count["calculator"], dialect)
		assert.Equal(t, 1, count["chat_form"], dialect)
	}

	response := `{"id":"resp_1","object":"response","status":"completed","model":"m","output":[
		{"type":"function_call","id":"fc_1","call_id":"c1","name":"ask_crm","arguments":"{\"id\":7}","status":"completed"},
		{"type":"custom_tool_call","id":"ct_1","call_id":"c2","name":"sql","input":"SELECT 1;"},
		{"type":"function_call","id":"fc_3","call_id":"c3","name":"calculator","arguments":"{\"expression\":\"6*7\"}","status":"completed"}]}`
	started := w.start("ada", `{"response":`+response+`,"tools":`+tools+`}`)
	paused := w.until(started.ID, "ada", "requires_action")
	require.Len(t, paused.Pending, 2)
	var items []string
	for _, e := range w.follow(started.ID, "ada") {
		var event struct {
			Item struct {
				Type, Name, Arguments, Input string
				CallID                       string `json:"call_id"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(e.data), &event))
		if e.name == "response.output_item.done" {
			items = append(items, strings.Join([]string{event.Item.Type, event.Item.CallID, event.Item.Name, event.Item.Arguments, event.Item.Input}, " "))
		}
	}
	assert.Equal(t, []string{`function_call c1 ask_crm {"id":7} `, `custom_tool_call c2 sql  SELECT 1;`}, items)
	results := `{"dialect":"responses","results":[{"type":"function_call_output","call_id":"c1","output":"Ada"},{"type":"custom_tool_call_output","call_id":"c2","output":"1"}]}`
	of[run](w.request("POST", "/v1/runs/"+started.ID+"/submit_tool_outputs", "ada", results), 202)
	ended := w.until(started.ID, "ada", "completed")
	assert.Equal(t, []string{"Ada", "1", "42"}, []string{ended.Records[0].Result.Output, ended.Records[1].Result.Output, ended.Records[2].Result.Output})

	for body, detail := range map[string]string{
		`{"calls":[],"tools":[1]}`: "tools[0] must be an object",
		`{"calls":[],"tools":{}}`:  "tools must be an array",
		`{"calls":[],"tools":[{"type":"function","name":"a","parameters":{"a":1,"a":2}}]}`: `the name "a" occurs twice`,
	} {
		assert.Contains(t, w.request("POST", "/v1/batches", "ada", body).refused(400), detail)
	}
	for _, wrong := range []string{`{"type":"function"}`, `{"type":"function","name":"a b"}`, `{"type":"function","name":"a"},{"type":"custom","name":"a"}`, `{"type":"function","name":"a","parameters":{"type":"array"}}`} {
		w.request("POST", "/v1/batches", "ada", `{"calls":[],"tools":[`+wrong+`]}`).refused(422)
	}
}
