package rest_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
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

// TestAttackKeysOfTwoServers: a request with a key is sent to two servers with one ledger at once, and to a third after
// they have ended. It is answered once. The control has a key for each.
func TestAttackKeysOfTwoServers(t *testing.T) {
	const requests = 25
	servers := []*world{newWorld(t, rest.Options{})}
	servers = append(servers, replicaOf(t, servers[0], rest.Options{}))
	ids := make([][]string, len(servers))
	var sent sync.WaitGroup
	for i, w := range servers {
		ids[i] = make([]string, requests)
		for n := range requests {
			sent.Go(func() {
				body := fmt.Sprintf(`{"name":"echo","arguments":{"n":%d}}`, n)
				ids[i][n] = of[tool.Record](w.request("POST", "/v1/calls", "ada", body, "Idempotency-Key", fmt.Sprint(n)), 200).CallID
			})
		}
	}
	sent.Wait()
	assert.Equal(t, ids[0], ids[1])
	third := replicaOf(t, servers[0], rest.Options{})
	again := third.request("POST", "/v1/calls", "ada", `{"name":"echo","arguments":{"n":0}}`, "Idempotency-Key", "0")
	assert.Equal(t, ids[0][0], of[tool.Record](again, 200).CallID)
	assert.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
	assert.Equal(t, 422, third.request("POST", "/v1/calls", "ada", `{"name":"echo"}`, "Idempotency-Key", "0").status)
	db := third.database()
	var answer []byte
	require.NoError(t, db.QueryRowContext(t.Context(), "select answer from keys where answer is not null").Scan(&answer))
	assert.NotContains(t, string(answer), "echo", "answers are encrypted")
	for _, as := range []string{"bob", "mallory"} {
		other := third.request("POST", "/v1/calls", as, `{"name":"echo","arguments":{"n":0}}`, "Idempotency-Key", "0")
		assert.NotEqual(t, ids[0][0], of[tool.Record](other, 200).CallID, "the control")
		require.Empty(t, other.header.Get("Idempotent-Replayed"))
	}
}

// database opens the ledger's file, until the end of the test.
func (w *world) database() *sql.DB {
	file := filepath.Join(w.state, "ledger", "ledger.db") + "?_pragma=busy_timeout(10000)"
	db := noerr.Get(sql.Open("sqlite", file))(w.t)
	w.t.Cleanup(func() { assert.NoError(w.t, db.Close()) })
	return db
}

// answerAll answers for the client and the approver of household.
func answerAll(t *testing.T, w *world, waits run) {
	t.Helper()
	for _, action := range waits.Pending {
		path := "/v1/runs/" + waits.ID
		if action.Type == tool.NeedsApproval {
			of[run](w.request("POST", path+"/approvals", "approver", approval(action)), 202)
			continue
		}
		of[run](w.request("POST", path+"/submit_tool_outputs", "ada",
			map[string]any{"tool_outputs": []any{map[string]any{"tool_call_id": action.CallID, "output": "this one"}}}), 202)
	}
}

// TestRunsOfTwoServers: a run that waits at one server is seen, approved, followed and resumed at another, and its end
// is seen at the first.
func TestRunsOfTwoServers(t *testing.T) {
	first := newWorld(t, rest.Options{})
	second := replicaOf(t, first, rest.Options{})
	started := first.start("ada", household)
	waits := second.until(started.ID, "ada", "requires_action")
	require.NotEmpty(t, waits.Pending)
	assert.Equal(t, first.until(started.ID, "ada", "requires_action"), waits)
	assert.Equal(t, first.follow(started.ID, "ada"), second.follow(started.ID, "ada"))
	second.request("GET", "/v1/runs/"+started.ID, "mallory", nil).refused(404)

	followed := make(chan []sent, 1)
	after := len(first.follow(started.ID, "ada"))
	go func() { followed <- first.follow(started.ID, "ada", "Last-Event-ID", strconv.Itoa(after)) }()
	answerAll(t, second, waits)
	ended := second.until(started.ID, "ada", "completed")
	assert.Equal(t, ended, first.until(started.ID, "ada", "completed"))
	assert.Equal(t, second.follow(started.ID, "ada"), <-followed)
	assert.Len(t, second.wipes(), 1)
	assert.Empty(t, first.wipes())
	for _, w := range []*world{first, second} {
		list := of[struct{ Runs []struct{ ID, Status string } }](w.request("GET", "/v1/runs", "ada", nil), 200)
		require.Len(t, list.Runs, 1)
		assert.Equal(t, "completed", list.Runs[0].Status)
	}
}

// TestAnswersOfTwoServers: the calls that a run waits for are answered at two servers in turn, before and after a
// restart. Until the last answer, the run itself is not written again.
func TestAnswersOfTwoServers(t *testing.T) {
	first := newWorld(t, rest.Options{})
	const calls = 6
	var body strings.Builder
	for i := range calls {
		fmt.Fprintf(&body, `,{"id":"c%d","name":"ask_user","arguments":{"question":"%d?"}}`, i, i)
	}
	started := first.start("ada", `{"calls":[`+body.String()[1:]+`]}`)
	servers := []*world{first, replicaOf(t, first, rest.Options{})}
	waits := servers[1].until(started.ID, "ada", "requires_action")
	require.Len(t, waits.Pending, calls)
	db := first.database()
	stored := func() (content string) {
		require.NoError(t, db.QueryRowContext(t.Context(), "select content from runs where id = ?", started.ID).Scan(&content))
		return content
	}
	before := stored()
	submit := func(w *world, call string, status int) {
		answer := w.request("POST", "/v1/runs/"+started.ID+"/submit_tool_outputs", "ada", output(call, "answer to "+call))
		require.Equal(t, status, answer.status, "%s", answer.body)
	}
	for i, action := range waits.Pending {
		if i == calls/2 {
			for _, w := range servers {
				require.NoError(t, w.api.Close(t.Context()))
			}
			servers = []*world{replicaOf(t, first, rest.Options{}), replicaOf(t, first, rest.Options{})}
		}
		assert.Equal(t, before, stored())
		submit(servers[i%2], action.CallID, 202)
		if i < calls-1 {
			now := servers[0].until(started.ID, "ada", "requires_action")
			assert.Equal(t, now, servers[1].until(started.ID, "ada", "requires_action"))
			assert.Len(t, now.Pending, calls-1-i)
			submit(servers[1], action.CallID, 409)
		}
	}
	assert.NotEqual(t, before, stored())
	ended := servers[0].until(started.ID, "ada", "completed")
	for _, record := range ended.Records {
		assert.Equal(t, "answer to "+record.CallID, record.Result.Output)
	}
	var answers int
	require.NoError(t, db.QueryRowContext(t.Context(), "select count(*) from run_answers").Scan(&answers))
	assert.Zero(t, answers)
}

// TestAttackOutputsAfterARestart: a client submits outputs up to the bound of its tenant, and goes on after a restart,
// when no server has the run in memory. The bound still holds. The control is the server before.
func TestAttackOutputsAfterARestart(t *testing.T) {
	options := rest.Options{Runs: rest.RunOptions{Bytes: 200 << 10}}
	first := newWorld(t, options)
	started := first.start("ada", `{"calls":[{"name":"ask_user","arguments":{"question":"1?"}},
		{"name":"ask_user","arguments":{"question":"2?"}},{"name":"ask_user","arguments":{"question":"3?"}},
		{"name":"ask_user","arguments":{"question":"4?"}}]}`)
	waits := first.until(started.ID, "ada", "requires_action")
	submit := func(w *world, n, length int) int {
		return w.request("POST", "/v1/runs/"+started.ID+"/submit_tool_outputs", "ada",
			output(waits.Pending[n].CallID, strings.Repeat("x", length))).status
	}
	require.Equal(t, 202, submit(first, 0, 70<<10))
	require.Equal(t, 202, submit(first, 1, 70<<10))
	require.Equal(t, 429, submit(first, 2, 70<<10), "the control")
	require.NoError(t, first.api.Close(t.Context()))
	second := replicaOf(t, first, options)
	require.Equal(t, 429, submit(second, 2, 70<<10))
	require.Equal(t, 202, submit(second, 2, 1<<10))
}

// TestRunsSurviveARestart: a run that waits goes on when another server has taken the place of the one that began it.
func TestRunsSurviveARestart(t *testing.T) {
	first := newWorld(t, rest.Options{})
	started := first.start("ada", household)
	waits := first.until(started.ID, "ada", "requires_action")
	require.NoError(t, first.api.Close(t.Context()))
	second := replicaOf(t, first, rest.Options{})
	assert.Equal(t, waits, second.until(started.ID, "ada", "requires_action"))
	answerAll(t, second, waits)
	second.until(started.ID, "ada", "completed")
	assert.Len(t, second.wipes(), 1)
}

// TestRunsAreCancelledElsewhere: a run that is in progress at one server is seen, and cancelled, at another.
func TestRunsAreCancelledElsewhere(t *testing.T) {
	first := newWorld(t, rest.Options{})
	second := replicaOf(t, first, rest.Options{})
	started := first.start("ada", `{"calls":[{"name":"wait"}]}`)
	<-first.waiting
	second.until(started.ID, "ada", "in_progress")
	second.request("POST", "/v1/runs/"+started.ID+"/submit_tool_outputs", "ada", `{"tool_outputs":[]}`).refused(409)
	cancelled := of[run](second.request("POST", "/v1/runs/"+started.ID+"/cancel", "ada", nil), 200)
	assert.Equal(t, "cancelled", cancelled.Status)
	<-first.stopped
	first.until(started.ID, "ada", "cancelled")
}

// TestAttackApprovalsAtTwoServers: a run is approved at two servers at once. It goes on at one of them. The control is
// the answer of the other.
func TestAttackApprovalsAtTwoServers(t *testing.T) {
	first := newWorld(t, rest.Options{})
	second := replicaOf(t, first, rest.Options{})
	for range 5 {
		started := first.start("ada", `{"calls":[{"name":"wipe","arguments":{"what":"all"}}]}`)
		waits := first.until(started.ID, "ada", "requires_action")
		second.until(started.ID, "ada", "requires_action")
		before := len(first.wipes()) + len(second.wipes())
		statuses := make(chan int, 2)
		for _, w := range []*world{first, second} {
			go func() {
				statuses <- w.request("POST", "/v1/runs/"+started.ID+"/approvals", "ada", approval(waits.Pending[0])).status
			}()
		}
		assert.ElementsMatch(t, []int{202, 409}, []int{<-statuses, <-statuses})
		first.until(started.ID, "ada", "completed")
		second.until(started.ID, "ada", "completed")
		assert.Equal(t, before+1, len(first.wipes())+len(second.wipes()))
	}
}

// TestAttackRunsOfDeadServers: a server is taken for dead while it works on a run. Others show that the run has failed,
// what came of its calls, and follow it to its end, and the server does not change that when it goes on. The control is
// a run that waits.
func TestAttackRunsOfDeadServers(t *testing.T) {
	first := newWorld(t, rest.Options{})
	second := replicaOf(t, first, rest.Options{})
	started := first.start("ada", `{"calls":[{"name":"wait"}]}`)
	waits := first.start("ada", household)
	<-first.waiting
	first.until(waits.ID, "ada", "requires_action")
	db := first.database()
	require.Eventually(t, func() bool {
		noerr.Get(db.ExecContext(t.Context(), "update writers set until = 0"))(t) // the first renews it now and then
		return of[run](second.request("GET", "/v1/runs/"+started.ID, "ada", nil), 200).Status == "failed"
	}, time.Minute, 10*time.Millisecond)
	dead := second.until(started.ID, "ada", "failed")
	assert.Contains(t, dead.Problem, "has ended")
	events := second.follow(started.ID, "ada")
	assert.Contains(t, events[len(events)-1].data, "has ended")
	first.isDead = true
	first.let <- struct{}{}
	require.Eventually(t, func() bool {
		return of[run](first.request("GET", "/v1/runs/"+started.ID, "ada", nil), 200).Status == "failed"
	}, 10*time.Second, 10*time.Millisecond)
	second.until(waits.ID, "ada", "requires_action")
}

// TestAttackFrozenServersGoOn: a server that others have taken for dead makes no more calls of a run. The control is
// the call that had begun before.
func TestAttackFrozenServersGoOn(t *testing.T) {
	first := newWorld(t, rest.Options{})
	second := replicaOf(t, first, rest.Options{})
	started := first.start("ada", `{"calls":[{"name":"wait"},{"name":"echo","arguments":{"n":1}}]}`)
	<-first.waiting
	db := first.database()
	noerr.Get(db.ExecContext(t.Context(), "delete from writers"))(t)
	second.until(started.ID, "ada", "failed")
	first.isDead = true
	select {
	case <-first.stopped: // it is cancelled, since its events cannot be kept
	case first.let <- struct{}{}:
	}
	time.Sleep(time.Second)
	type calls struct{ Calls []struct{ Name string } }
	for _, call := range of[calls](second.request("GET", "/v1/calls", "ada", nil), 200).Calls {
		assert.NotEqual(t, "echo", call.Name, "the control is wait")
	}
}

// TestFinishedRunsMakeRoom: runs that were answered at another server do not count as waiting here.
func TestFinishedRunsMakeRoom(t *testing.T) {
	first := newWorld(t, rest.Options{Runs: rest.RunOptions{PerTenant: 2}})
	second := replicaOf(t, first, rest.Options{Runs: rest.RunOptions{PerTenant: 2}})
	for range 3 {
		for range 2 {
			started := first.start("ada", `{"calls":[{"name":"wipe","arguments":{"what":"all"}}]}`)
			waits := first.until(started.ID, "ada", "requires_action")
			of[run](second.request("POST", "/v1/runs/"+started.ID+"/approvals", "ada", approval(waits.Pending[0])), 202)
			second.until(started.ID, "ada", "completed")
		}
	}
	for _, w := range []*world{first, second} {
		w.start("ada", `{"calls":[{"name":"wipe","arguments":{"what":"all"}}]}`)
	}
	first.request("POST", "/v1/runs", "ada", `{"calls":[]}`).refused(429)
}

// TestRunsThatCannotBeAdded: a run that the ledger cannot add is refused, and leaves nothing that is tried again. The
// control is the next.
func TestRunsThatCannotBeAdded(t *testing.T) {
	w := newWorld(t, rest.Options{})
	w.until(w.start("ada", `{"calls":[]}`).ID, "ada", "completed")
	db := w.database()
	noerr.Get(db.ExecContext(t.Context(), "alter table runs rename to hidden"))(t)
	w.request("POST", "/v1/runs", "ada", `{"calls":[]}`).refused(503)
	noerr.Get(db.ExecContext(t.Context(), "alter table hidden rename to runs"))(t)
	time.Sleep(time.Second)
	assert.Equal(t, 1, strings.Count(w.log.String(), "a run cannot be kept"), w.log.String())
	w.until(w.start("ada", `{"calls":[]}`).ID, "ada", "completed")
	assert.Len(t, of[struct{ Runs []struct{ ID string } }](w.request("GET", "/v1/runs", "ada", nil), 200).Runs, 2)
}

// TestAttackFollowersOfBigRuns: many clients follow a big run on which another server works. Its copies are not kept for
// as long as they follow it. The control is the size of the run.
func TestAttackFollowersOfBigRuns(t *testing.T) {
	const followers, size = 12, 2 << 20
	first := newWorld(t, rest.Options{})
	second := replicaOf(t, first, rest.Options{})
	started := first.start("ada", asksOf(size))
	first.until(started.ID, "ada", "completed")
	db := first.database()
	noerr.Get(db.ExecContext(t.Context(), "update runs set over = 0, status = 'in_progress', writer = (select max(id) from writers)"))(t)
	var stored int64
	var last string
	require.NoError(t, db.QueryRowContext(t.Context(), "select length(content), (select max(id) from run_events) from runs").Scan(&stored, &last))
	require.Greater(t, stored, int64(size), "the control")
	before := liveHeap()
	for range followers {
		response := second.open(t.Context(), "GET", "/v1/runs/"+started.ID+"/events", "ada", nil, "Last-Event-ID", last)
		defer response.Body.Close()
		require.Equal(t, 200, response.StatusCode)
	}
	held := liveHeap() - before
	assert.Less(t, held, int64(followers*size/3), "%d KB for each", held>>10/followers)
}
