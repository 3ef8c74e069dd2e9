package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/native"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/server/internal/memory"
	"github.com/caisson-run/caisson/server/rest"
	"github.com/caisson-run/caisson/tool"
)

// chatty is a tool whose calls do nothing, and have as much beside their results as a tool can have.
type chatty struct{ registry.Tool }

// maxLog is the maximum length of a tool's log.
const maxLog = 1 << 20

func (chatty) Invoke(context.Context, tool.Invocation) (tool.Outcome, error) {
	outcome := tool.Outcome{Result: tool.Result{Success: true, Output: "done"}, Log: strings.Repeat("l", maxLog)}
	for range tool.MaxHostCalls {
		outcome.HostCalls = append(outcome.HostCalls, tool.HostCall{Target: strings.Repeat("t", 200), Began: time.Now()})
	}
	return outcome, nil
}

// TestAttackLongLogs: the logs and the host calls of a batch are bounded together, in its answer, its events and its
// run. The answers to 24 batches, short requests all, took 200 MB, since each of many calls had a log of its own. The
// control is one call, whose log is nearly whole.
func TestAttackLongLogs(t *testing.T) {
	const calls, most = 40, 2 << 20
	w := newWorld(t, rest.Options{})
	quiet := noerr.Get(native.New(native.About{Name: "chatty", Description: "Logs.", Behavior: manifests.Behavior{Cache: manifests.CacheOff}},
		func(context.Context, struct{}) (string, error) { return "", nil }))(t)
	require.NoError(t, w.host.Registry().Register("", chatty{quiet}))
	w.doc = nil // reading the contract's own copies of bodies takes long
	var list strings.Builder
	for i := range calls {
		fmt.Fprintf(&list, `,{"id":"c%d","name":"chatty","arguments":{}}`, i)
	}
	batch := `{"calls":[` + list.String()[1:] + `]}`

	one := w.request("POST", "/v1/calls", "mallory", `{"name":"chatty","arguments":{}}`)
	require.Equal(t, 200, one.status)
	assert.Greater(t, len(one.body), maxLog*3/4, "the control")

	whole := w.request("POST", "/v1/batches", "mallory", batch)
	require.Equal(t, 200, whole.status)
	require.Less(t, len(whole.body), most)
	var shown struct{ Records []tool.Record }
	require.NoError(t, json.Unmarshal(whole.body, &shown))
	require.Len(t, shown.Records, calls)
	assert.Contains(t, shown.Records[calls-1].Log, "bytes left out]\n")
	assert.EqualValues(t, "done", shown.Records[calls-1].Result.Output)
	kept := w.request("GET", "/v1/calls/"+shown.Records[calls-1].CallID, "mallory", nil)
	require.Equal(t, 200, kept.status)
	assert.Greater(t, len(kept.body), maxLog, "the record that is kept is whole")

	events := w.request("POST", "/v1/batches", "mallory", batch, "Accept", "text/event-stream")
	require.Equal(t, 200, events.status)
	assert.Less(t, len(events.body), 2*most, "once in an event, and once in the report")

	run := w.until(w.start("mallory", batch).ID, "mallory", "completed")
	assert.Less(t, len(w.request("GET", "/v1/runs/"+run.ID, "mallory", nil).body), most)
}

// TestAttackRepeatedCallWithoutAnswer: a call with a key whose client gives up while the answer waits for others has
// had its effect, which a repetition does not have again.
func TestAttackRepeatedCallWithoutAnswer(t *testing.T) {
	t.Parallel() // it waits for most of its time
	for _, test := range []struct{ path, body string }{
		{"/v1/calls", `{"name":"wait","arguments":{}}`},
		{"/v1/batches", `{"calls":[{"id":"c1","name":"wait","arguments":{}}]}`},
	} {
		t.Run(test.path, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, rest.Options{})
			ask := func(ctx context.Context) (*http.Response, error) {
				return w.try(ctx, http.MethodPost, test.path, "mallory", test.body, "Idempotency-Key", "k")
			}
			release := w.api.Occupy(callers["mallory"])
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan error, 1)
			go func() {
				_, err := ask(ctx)
				gone <- err
			}()
			<-w.waiting
			w.let <- struct{}{}
			finished := func() bool { return strings.Contains(w.log.String(), `"batch finished"`) }
			require.Eventually(t, finished, time.Minute, time.Millisecond)
			cancel()
			require.ErrorIs(t, <-gone, context.Canceled)
			time.Sleep(rest.LateAnswer + 200*time.Millisecond) // the server sees it, and no longer waits
			w.let <- struct{}{}                                // for a call that is made again
			release()
			response := noerr.Get(ask(t.Context()))(t)
			defer response.Body.Close()
			text := noerr.Get(io.ReadAll(response.Body))(t)
			assert.Equal(t, http.StatusOK, response.StatusCode, "%s", text)
			assert.Equal(t, "true", response.Header.Get("Idempotent-Replayed"))
			assert.Contains(t, string(text), "waited")
			assert.Empty(t, w.waiting, "it ran once")
		})
	}
}

// TestAttackManyRequests: what a batch says to tools counts as much as it takes while its run is kept. Each of 87,000
// unknown names had a map: a run with a body of 2 MB held 50 MB.
func TestAttackManyRequests(t *testing.T) {
	const size, runs, bound = 1 << 20, 10, 8 << 20
	repeat := func(piece func(n int) string) string {
		var all strings.Builder
		for n := 0; all.Len() < size; n++ {
			all.WriteString("," + piece(n))
		}
		return all.String()[1:]
	}
	for _, test := range []struct {
		name, requests string
		held           int64 // at most
	}{
		{"to unknown tools", repeat(func(n int) string { return fmt.Sprintf(`"%x":{"values":{"":""}}`, n) }), size},
		{"with many values", `"echo":{"values":{` + repeat(func(n int) string { return fmt.Sprintf(`"%x":""`, n) }) + `}}`, bound},
		{"control: with a long value", `"echo":{"values":{"":"` + strings.Repeat("v", size) + `"}}`, bound},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, rest.Options{Runs: rest.RunOptions{Bytes: bound}})
			w.doc = nil                                                     // reading the contract's own copies of bodies takes long
			w.until(w.start("ada", asksOf(4)).ID, "ada", "requires_action") // which allocates once
			before, accepted := liveHeap(), 0
			for range runs {
				answer := w.request("POST", "/v1/runs", "mallory", `{"calls":[{"id":"c","name":"wait","arguments":{}}],"requests":{`+test.requests+`}}`)
				if answer.status == http.StatusAccepted {
					<-w.waiting
					accepted++
				}
			}
			held := liveHeap() - before
			t.Logf("%d runs hold %d KiB", accepted, held>>10)
			assert.Less(t, held, test.held)
			assert.Less(t, accepted, runs)
		})
	}
}

// TestAttackFollowersOfForgottenRuns: clients that follow runs, and take the last event of each slowly, have the server
// hold as many bytes as answers may have, also if the runs are forgotten meanwhile. 61 such clients held 5 GB.
func TestAttackFollowersOfForgottenRuns(t *testing.T) {
	const followers, size, most = 12, 1 << 20, 4 << 20
	for _, test := range []struct {
		name  string
		bound int64
		held  int64 // at most; zero for the control
	}{
		{"guarded", most, 2 * most},
		{"control: without a bound", 1 << 40, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, rest.Options{Runs: rest.RunOptions{PerTenant: 2, EventBytes: 64 << 20, Bytes: 64 << 20}})
			server := w.bounded(memory.New(test.bound, 4*test.bound))
			for range 2 { // which are kept
				w.until(w.start("mallory", asksOf(size)).ID, "mallory", "completed")
			}
			before := liveHeap()
			for range followers {
				run := w.until(w.start("mallory", asksOf(size)).ID, "mallory", "completed")
				events := w.request("GET", "/v1/runs/"+run.ID+"/events", "mallory", nil)
				last := strings.LastIndex(string(events.body), "\nid: ")
				id := 0
				noerr.Get(fmt.Sscanf(string(events.body[last:]), "\nid: %d", &id))(t)
				begins(t, w.unread(server, "/v1/runs/"+run.ID+"/events", "mallory", fmt.Sprint("Last-Event-ID: ", id-1)))
			}
			held := func() int64 { return liveHeap() - before }
			if test.held == 0 {
				assert.Greater(t, held(), int64(followers*size*3/4), "the attack works")
				return
			}
			assert.Never(t, func() bool { return held() > test.held }, time.Second, 50*time.Millisecond, "%d MB", held()>>20)
		})
	}
}

// TestAttackBatchesWithoutRoom: a batch of many calls begins when there is room for its records, and is refused
// otherwise. 240 short requests held 1.6 GB of records while their answers waited. A single call needs no room.
func TestAttackBatchesWithoutRoom(t *testing.T) {
	t.Parallel() // it waits for most of its time
	w := newWorld(t, rest.Options{})
	bound := memory.New(4<<20, 16<<20)
	server := w.bounded(bound)
	ask := func(path, body string) int {
		r := noerr.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, strings.NewReader(body)))(t)
		r.Header.Set("Authorization", "Bearer mallory")
		r.Header.Set("Content-Type", "application/json")
		response := noerr.Get(http.DefaultClient.Do(r))(t)
		defer response.Body.Close()
		noerr.Get(io.Copy(io.Discard, response.Body))(t)
		return response.StatusCode
	}
	batch := `{"calls":[` + strings.Repeat(`{"name":"echo","arguments":{}},`, 499) + `{"name":"wait","arguments":{}}]}`
	unread := bound.Open(callers["mallory"].Tenant)
	require.NoError(t, memory.Reserve(memory.With(t.Context(), unread), 3<<20))
	w.let <- struct{}{} // for a batch that should not begin
	assert.Equal(t, http.StatusTooManyRequests, ask("/v1/batches", batch))
	assert.Empty(t, w.waiting, "no call has begun")
	assert.Equal(t, http.StatusOK, ask("/v1/calls", `{"name":"echo","arguments":{}}`))
	unread.Close()
	w.let <- struct{}{}
	assert.Equal(t, http.StatusOK, ask("/v1/batches", batch), "the control")
	assert.Len(t, w.waiting, 1)
}

// TestAttackRunsOfManyCalls: a run of many calls is accepted if there is room for them, not only for its short body.
// 200 runs of 1,024 calls, with bodies of 8 MB in all, held 1.3 GB. The controls are as long a run of few calls, and
// one that begins when others have ended.
func TestAttackRunsOfManyCalls(t *testing.T) {
	t.Parallel() // it waits for most of its time
	w := newWorld(t, rest.Options{Runs: rest.RunOptions{Bytes: 8 << 20}})
	many := `{"calls":[{"name":"wait","arguments":{}}` + strings.Repeat(`,{"name":"echo","arguments":{}}`, 999) + `]}`
	few := `{"calls":[{"name":"echo","arguments":{"text":"` + strings.Repeat("x", len(many)) + `"}}]}`
	start := func(body string) int { return w.request("POST", "/v1/runs", "mallory", body).status }
	first, second := w.start("mallory", many), w.start("mallory", many)
	assert.Equal(t, http.StatusTooManyRequests, start(many))
	assert.Equal(t, http.StatusAccepted, start(few))
	for range 2 {
		w.let <- struct{}{}
	}
	w.until(first.ID, "mallory", "completed")
	w.until(second.ID, "mallory", "completed")
	assert.Equal(t, http.StatusAccepted, start(many))
	w.let <- struct{}{}
}

// TestBroughtToolsThatCannotBeWritten: a mistake in a tool that a request brings is the caller's.
func TestBroughtToolsThatCannotBeWritten(t *testing.T) {
	w := newWorld(t, rest.Options{})
	w.doc = nil // the contract has the schema's values in it
	body := `{"dialect":"openai","tools":[{"type":"function","name":"long","parameters":{"type":"object","enum":[` + strings.Repeat("1,", 30_000) + `1]}}]}`
	answer := w.request("POST", "/v1/definitions", "ada", body)
	assert.Equal(t, http.StatusUnprocessableEntity, answer.status, "%s", answer.body)
	assert.Contains(t, string(answer.body), "more than 20000 values")
}
