package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/rest"
)

func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}

// TestEventsOfARun: they are a response of the Responses API for each part of the run, up to where it pauses or
// ends. Who comes back with Last-Event-ID gets exactly the missing events, wherever the stream broke.
func TestEventsOfARun(t *testing.T) {
	w := newWorld(t, rest.Options{})
	started := w.start("ada", household)
	first := w.follow(started.ID, "ada")
	assert.Equal(t, "response.created", first[0].name)
	assert.Equal(t, "response.completed", first[len(first)-1].name)
	assert.Equal(t, "requires_action", w.until(started.ID, "ada", "requires_action").Status)
	assert.Equal(t, first, w.follow(started.ID, "reader"), "the whole response, for who comes later")
	for i, e := range first {
		assert.Equal(t, fmt.Sprint(i+1), e.id)
		assert.Contains(t, e.data, fmt.Sprintf(`"sequence_number":%d`, i))
		if i < len(first)-1 {
			assert.Equal(t, first[i+1:], w.follow(started.ID, "ada", "Last-Event-ID", e.id))
		}
	}

	// Who has seen all waits for what follows.
	follows := make(chan []sent, 1)
	response := w.open(t.Context(), "GET", "/v1/runs/"+started.ID+"/events", "ada", nil, "Last-Event-ID", first[len(first)-1].id, "Accept", "text/event-stream")
	go func() { follows <- allEvents(t, response) }()
	paused := w.until(started.ID, "ada", "requires_action")
	of[run](w.request("POST", "/v1/runs/"+started.ID+"/approvals", "ada", approval(paused.Pending[1])), 202)
	second := allEvents(t, w.open(t.Context(), "POST", "/v1/runs/"+started.ID+"/submit_tool_outputs", "ada", output("c2", "red"), "Accept", "text/event-stream"))
	assert.Equal(t, second, <-follows)
	assert.Equal(t, "response.created", second[0].name)
	var created struct {
		Response struct {
			ID       string
			Previous string `json:"previous_response_id"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(second[0].data), &created))
	assert.NotEmpty(t, created.Response.Previous)
	assert.Contains(t, first[0].data, created.Response.Previous)
	w.until(started.ID, "ada", "completed")

	// The current response is the default; the whole run is there from the beginning.
	assert.Equal(t, second, w.follow(started.ID, "ada"))
	assert.Equal(t, first, w.follow(started.ID, "ada", "Last-Event-ID", "0"))
	path := "/v1/runs/" + started.ID + "/events"
	assert.Equal(t, 204, w.request("GET", path, "ada", nil, "Last-Event-ID", second[len(second)-1].id).status, "nothing follows")
	w.request("GET", path, "ada", nil, "Last-Event-ID", "x").refused(400)
	w.request("GET", path, "ada", nil, "Last-Event-ID", "-1").refused(400)
	w.request("GET", path, "ada", nil, "Last-Event-ID", "100000").refused(422)
	w.request("GET", path, "ada", nil, "Last-Event-ID", "10000000000000000000000").refused(422)
}

// TestEventsAreBounded: a run keeps its latest events. Who asks for others is told.
func TestEventsAreBounded(t *testing.T) {
	w := newWorld(t, rest.Options{Runs: rest.RunOptions{EventBytes: 1000}})
	calls := strings.Repeat(`{"name":"echo","arguments":{"a":"`+strings.Repeat("x", 200)+`"}},`, 10)
	started := w.start("ada", `{"calls":[`+strings.TrimSuffix(calls, ",")+`]}`)
	w.until(started.ID, "ada", "completed")
	path := "/v1/runs/" + started.ID + "/events"
	assert.Contains(t, w.request("GET", path, "ada", nil, "Last-Event-ID", "1").refused(410), "the run itself has all results")
	w.request("GET", path, "ada", nil).refused(410)
	// The last event is always there: it has the whole response.
	for id := range 500 {
		if a := w.request("GET", path, "ada", nil, "Last-Event-ID", fmt.Sprint(id)); a.status == 200 {
			assert.Contains(t, string(a.body), "event: response.completed\n")
			return
		}
	}
	t.Error("no event is kept")
}

// TestHeartbeats: who follows a run that does nothing hears that the connection lives, and the end of the API.
func TestHeartbeats(t *testing.T) {
	w := newWorld(t, rest.Options{Heartbeat: time.Millisecond})
	started := w.start("ada", household)
	last := w.follow(started.ID, "ada")
	response := w.open(t.Context(), "GET", "/v1/runs/"+started.ID+"/events", "ada", nil, "Last-Event-ID", last[len(last)-1].id)
	defer response.Body.Close()
	time.AfterFunc(300*time.Millisecond, w.api.Stop)
	heartbeats := readEvents(t, response.Body, func(e sent) bool {
		t.Errorf("an event %v", e)
		return true
	})
	assert.Greater(t, heartbeats, 2)
	a := w.request("POST", "/v1/calls", "ada", `{"name":"echo"}`)
	a.refused(503)
	assert.NotEmpty(t, a.header.Get("Retry-After"))
}

// TestClose: runs that work are waited for, and cancelled when time is up. Their clients are told.
func TestClose(t *testing.T) {
	w := newWorld(t, rest.Options{})
	started := w.start("ada", `{"calls":[{"name":"wait"}]}`)
	<-w.waiting
	closed := make(chan error, 1)
	go func() { closed <- w.api.Close(t.Context()) }()
	time.Sleep(10 * time.Millisecond)
	assert.Empty(t, closed, "it waits")
	w.let <- struct{}{}
	w.request("POST", "/v1/runs", "ada", household).refused(503)
	require.NoError(t, <-closed)
	assert.Equal(t, "completed", of[run](w.request("GET", "/v1/runs/"+started.ID, "ada", nil), 200).Status)

	w = newWorld(t, rest.Options{})
	w.start("ada", `{"calls":[{"name":"wait"}]}`)
	response := w.open(t.Context(), "GET", strings.Replace(w.start("ada", `{"calls":[{"name":"wait"}]}`).ID, "run_", "/v1/runs/run_", 1)+"/events", "ada", nil)
	<-w.waiting
	<-w.waiting
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorContains(t, w.api.Close(over), "2 runs were cancelled")
	events := allEvents(t, response)
	assert.Equal(t, "response.completed", events[len(events)-1].name)
	assert.Contains(t, events[len(events)-1].data, "cancelled")
}

// TestFollowersAreToldOfTheEnd: the server's patience with a run and with who follows it ends at the same time, and the
// follower is still told what became of the run. One whose own client has gone is not waited for.
func TestFollowersAreToldOfTheEnd(t *testing.T) {
	w := newWorld(t, rest.Options{})
	started := w.start("ada", `{"calls":[{"name":"wait"}]}`)
	<-w.waiting
	ctx, over := context.WithCancel(auth.With(t.Context(), callers["ada"]))
	follower := httptest.NewRecorder()
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		w.api.ServeHTTP(follower, httptest.NewRequestWithContext(ctx, "GET", "/v1/runs/"+started.ID+"/events", nil))
	}()
	w.api.Stop()
	over()
	time.Sleep(20 * time.Millisecond)
	require.ErrorContains(t, w.api.Close(ctx), "1 runs were cancelled")
	<-followed
	assert.Contains(t, follower.Body.String(), "event: response.completed\n")
}
