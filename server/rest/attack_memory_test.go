package rest_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/internal/memory"
	"github.com/caisson-run/caisson/server/rest"
	"github.com/caisson-run/caisson/tool"
)

// bounded is the API behind a bound of memory, as package server puts it.
func (w *world) bounded(bound *memory.Bound) *httptest.Server {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		caller := callers[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
		w.underWay.Add(1)
		defer w.underWay.Add(-1)
		held := bound.Open(cmp.Or(caller.Tenant, caller.ID))
		defer held.Close()
		w.api.ServeHTTP(rw, r.WithContext(memory.With(auth.With(r.Context(), caller), held)))
	}))
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(64 << 10) // the operating system would hold megabytes
		return ctx
	}
	server.Start()
	w.t.Cleanup(server.Close)
	w.t.Cleanup(server.CloseClientConnections)
	return server
}

// unread makes a request whose answer the client does not read, beyond the little that its system holds.
func (w *world) unread(server *httptest.Server, path, as string, headers ...string) net.Conn {
	c := noerr.Get(net.Dial("tcp", server.Listener.Addr().String()))(w.t)
	w.t.Cleanup(func() { _ = c.Close() })
	require.NoError(w.t, c.(*net.TCPConn).SetReadBuffer(4<<10))
	lines := append([]string{"GET " + path + " HTTP/1.1", "Host: localhost", "Authorization: Bearer " + as}, headers...)
	noerr.Get(io.WriteString(c, strings.Join(lines, "\r\n")+"\r\n\r\n"))(w.t)
	return c
}

// begins waits until an answer begins, and checks that it is a success.
func begins(t *testing.T, c net.Conn) {
	t.Helper()
	status := make([]byte, len("HTTP/1.1 200"))
	noerr.Get(io.ReadFull(c, status))(t)
	require.Equal(t, "HTTP/1.1 200", string(status))
}

// liveHeap returns how many bytes are in use.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // what pools hold lives for one more
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// asksOf is a batch of calls with as many bytes of arguments, which are refused if they are long.
func asksOf(bytes int) string {
	const calls = 4
	var list strings.Builder
	for i := range calls {
		fmt.Fprintf(&list, `,{"id":"c%d","name":"ask","arguments":{"text":"%s"}}`, i, strings.Repeat("<", bytes/calls))
	}
	return `{"calls":[` + list.String()[1:] + `],"tools":[{"type":"function","name":"ask","parameters":{"type":"object"}}]}`
}

// TestAttackLongRequestLines: requests with a key, and with a request line that holds kilobytes of what is not read,
// take no more memory once they are answered. The control has short lines.
func TestAttackLongRequestLines(t *testing.T) {
	const requests, length = 300, 30_000
	w := newWorld(t, rest.Options{})
	server := w.bounded(memory.New(1<<40, 1<<40))
	taken := func(name, user string) int64 {
		before := liveHeap()
		c := noerr.Get(net.Dial("tcp", server.Listener.Addr().String()))(t)
		answers := bufio.NewReader(c)
		for i := range requests {
			body := `{"name":"none","arguments":{}}`
			noerr.Get(fmt.Fprintf(c, "POST http://%slocalhost/v1/calls HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ada\r\n"+
				"Content-Type: application/json\r\nIdempotency-Key: %s%d\r\nContent-Length: %d\r\n\r\n%s", user, name, i, len(body), body))(t)
			answer := noerr.Get(http.ReadResponse(answers, nil))(t)
			require.Equal(t, http.StatusOK, answer.StatusCode)
			noerr.Get(io.Copy(io.Discard, answer.Body))(t)
		}
		require.NoError(t, c.Close())
		return liveHeap() - before
	}
	control := taken("short", "")
	long := taken("long", strings.Repeat("u", length)+"@")
	assert.Less(t, long, control+requests*length/10, "the control takes %d", control)
}

// TestAttackUnreadAnswers: a client asks for a long answer many times and reads none. The memory that they take is
// bounded, and other tenants do not wait. Each answer was made at once: 24 requests for a run took 5.5 GB.
func TestAttackUnreadAnswers(t *testing.T) {
	const requests, size, most = 32, 2 << 20, 8 << 20
	for _, test := range []struct {
		name  string
		path  string
		bound int64
		held  int64 // at most; zero for the control
	}{
		{"a run", "", most, 8 * most}, // two that are made take several times their length
		{"its events", "/events", most, most},
		{"control: a run without a bound", "", 1 << 40, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, rest.Options{Runs: rest.RunOptions{EventBytes: 64 << 20, Bytes: 256 << 20}})
			server := w.bounded(memory.New(test.bound, 4*test.bound))
			asks := asksOf(size)
			run := w.until(w.start("mallory", asks).ID, "mallory", "completed")
			other := w.until(w.start("ada", asksOf(4)).ID, "ada", "requires_action")
			before := liveHeap()
			for i := range requests {
				c := w.unread(server, "/v1/runs/"+run.ID+test.path, "mallory")
				if i == 0 { // others wait
					begins(t, c)
				}
			}
			held := func() int64 { return liveHeap() - before }
			if test.held == 0 {
				require.Eventually(t, func() bool { return held() > requests*size*3/4 }, time.Minute, 200*time.Millisecond, "the attack works")
				return
			}
			assert.Never(t, func() bool { return held() > test.held }, time.Second, 50*time.Millisecond, "%d MB", held()>>20)
			r := noerr.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/v1/runs/"+other.ID, nil))(t)
			r.Header.Set("Authorization", "Bearer ada")
			response := noerr.Get(http.DefaultClient.Do(r))(t)
			defer response.Body.Close()
			noerr.Get(io.Copy(io.Discard, response.Body))(t)
			assert.Equal(t, http.StatusOK, response.StatusCode)
		})
	}
}

// TestAnswersWithoutRoom: a request without effects is refused if there is no room for its answer. One with effects
// waits.
func TestAnswersWithoutRoom(t *testing.T) {
	t.Parallel() // it waits for most of its time
	w := newWorld(t, rest.Options{})
	bound := memory.New(1<<20, 4<<20)
	server := w.bounded(bound)
	run := w.until(w.start("mallory", asksOf(1<<20)).ID, "mallory", "completed")
	unread := bound.Open(callers["mallory"].Tenant)
	require.NoError(t, memory.Reserve(memory.With(t.Context(), unread), 2<<20))
	ask := func(method, path string) (status int, header http.Header) {
		r := noerr.Get(http.NewRequestWithContext(t.Context(), method, server.URL+path, nil))(t)
		r.Header.Set("Authorization", "Bearer mallory")
		response := noerr.Get(http.DefaultClient.Do(r))(t)
		defer response.Body.Close()
		noerr.Get(io.Copy(io.Discard, response.Body))(t)
		return response.StatusCode, response.Header
	}
	cancelled := make(chan int, 1)
	go func() {
		status, _ := ask(http.MethodPost, "/v1/runs/"+run.ID+"/cancel")
		cancelled <- status
	}()
	status, header := ask(http.MethodGet, "/v1/runs/"+run.ID)
	assert.Equal(t, http.StatusTooManyRequests, status)
	assert.NotEmpty(t, header.Get("Retry-After"))
	status, _ = ask(http.MethodGet, "/v1/runs?limit=1")
	assert.Equal(t, http.StatusOK, status, "a short answer")
	unread.Close()
	assert.Equal(t, http.StatusOK, <-cancelled)
}

// TestAttackUnreadAnswersOfAToken: a token without a tenant whose answers take long to make keeps no other such token
// from reading.
func TestAttackUnreadAnswersOfAToken(t *testing.T) {
	t.Parallel() // it waits for most of its time
	w := newWorld(t, rest.Options{})
	defer w.api.Occupy(callers["solo"])()
	w.request("GET", "/v1/runs?limit=1", "solo", nil).refused(http.StatusTooManyRequests)
	assert.Equal(t, http.StatusOK, w.request("GET", "/v1/runs?limit=1", "other", nil).status)
}

// TestAttackRepeatedWithoutAnswer: a request with a key whose client gives up while the answer waits for others has
// had its effect, which a repetition does not have again. The control is a request that is answered.
func TestAttackRepeatedWithoutAnswer(t *testing.T) {
	t.Parallel() // it waits for most of its time
	w := newWorld(t, rest.Options{})
	server := w.bounded(memory.New(1<<20, 4<<20))
	ask := func(ctx context.Context, key string) (status int, replayed, location string, err error) {
		r := noerr.Get(http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/v1/runs", strings.NewReader(`{"calls":[{"id":"c1","name":"wait","arguments":{}}]}`)))(t)
		r.Header.Set("Authorization", "Bearer mallory")
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", key)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, "", "", err
		}
		defer response.Body.Close()
		var answered run
		require.NoError(t, json.NewDecoder(response.Body).Decode(&answered))
		assert.Equal(t, "/v1/runs/"+answered.ID, response.Header.Get("Location"))
		return response.StatusCode, response.Header.Get("Idempotent-Replayed"), response.Header.Get("Location"), nil
	}
	runs := func() int {
		return len(of[struct{ Runs []struct{ ID string } }](w.request("GET", "/v1/runs", "mallory", nil), http.StatusOK).Runs)
	}
	_, _, first, err := ask(t.Context(), "control")
	require.NoError(t, err)
	<-w.waiting
	_, replayed, again, err := ask(t.Context(), "control")
	require.NoError(t, err)
	assert.Equal(t, []string{"true", first}, []string{replayed, again})
	require.Equal(t, 1, runs())

	release := w.api.Occupy(callers["mallory"])
	ctx, giveUp := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, _, _, err := ask(ctx, "key")
		gone <- err
	}()
	<-w.waiting // the call has begun
	giveUp()
	require.Error(t, <-gone)
	require.Eventually(t, func() bool { return w.underWay.Load() == 0 }, time.Minute, time.Millisecond, "the server notices")
	release()
	status, replayed, _, err := ask(t.Context(), "key")
	require.NoError(t, err)
	assert.Equal(t, http.StatusAccepted, status)
	assert.Equal(t, "true", replayed)
	assert.Equal(t, 2, runs())
}

// TestAttackBytesThatNobodyHolds: bodies full of white space use up nothing of what a tenant's runs may hold. A token
// that may only approve emptied the list of runs with them. The control is an output, which counts.
func TestAttackBytesThatNobodyHolds(t *testing.T) {
	w := newWorld(t, rest.Options{Runs: rest.RunOptions{Bytes: 1 << 20}})
	over := w.until(w.start("ada", `{"calls":[{"id":"c1","name":"echo","arguments":{}}]}`).ID, "ada", "completed")
	waits := w.until(w.start("ada", asksOf(4)).ID, "ada", "requires_action")
	for range 5 {
		answer := w.request("POST", "/v1/runs/"+waits.ID+"/approvals", "approver", `{"approvals":[]`+strings.Repeat(" ", 1<<20)+`}`)
		assert.Equal(t, http.StatusAccepted, answer.status)
	}
	assert.Equal(t, http.StatusOK, w.request("GET", "/v1/runs/"+over.ID, "ada", nil).status)
	output := func(call int) answered {
		return w.request("POST", "/v1/runs/"+waits.ID+"/submit_tool_outputs", "ada", fmt.Sprintf(`{"tool_outputs":[{"tool_call_id":"c%d","output":"%s"}]}`, call, strings.Repeat("a", 600<<10)))
	}
	assert.Equal(t, http.StatusAccepted, output(0).status)
	assert.Equal(t, http.StatusTooManyRequests, output(1).status, "the control")
}

// TestAttackLongReasons: the reason for a decision is short. A session kept that of each approval that it keeps, which
// is a thousand of 16 MB.
func TestAttackLongReasons(t *testing.T) {
	w := newWorld(t, rest.Options{})
	waits := w.until(w.start("ada", `{"calls":[{"id":"c1","name":"wipe","arguments":{"what":"disk"}}]}`).ID, "ada", "requires_action")
	decide := func(reason string) answered {
		return w.request("POST", "/v1/runs/"+waits.ID+"/approvals", "approver", fmt.Sprintf(`{"approvals":[{"call_id":"c1","approve":false,"reason":%q}]}`, reason))
	}
	assert.Contains(t, decide(strings.Repeat("é", 2049)).refused(http.StatusBadRequest), "approvals[0].reason has more than 2048 characters")
	assert.Equal(t, http.StatusAccepted, decide(strings.Repeat("é", 2048)).status, "the control")
}

// TestAttackTextsThatHoldTheirBodies: a few bytes that outlive a request hold those alone, and not the body, the
// document or the address in which they came. A session's id held a body of megabytes for an hour, and so did an output
// that was submitted, an approval for a session and a call that waits; a tenant may have a thousand sessions. The
// controls are outputs that are as long.
func TestAttackTextsThatHoldTheirBodies(t *testing.T) {
	const requests, size = 10, 2 << 20
	white, digits := strings.Repeat(" ", size), strings.Repeat("7", size)
	for _, test := range []struct {
		name   string
		calls  string // of a run that waits, which a format makes for each request; without one there is no run
		path   string // below the run, if there is one
		body   func(i int, action tool.Action) string
		status int
		holds  bool
	}{
		{name: "the id of a session", path: "/v1/calls", status: 200, body: func(i int, _ tool.Action) string {
			return fmt.Sprintf(`{"name":"echo","arguments":{},"session":"s%d"}`, i) + white
		}},
		{name: "an output", calls: `{"id":"c%d","name":"ask_user","arguments":{"question":"Which?"}}`, path: "/submit_tool_outputs", status: 202, body: func(i int, _ tool.Action) string {
			return fmt.Sprintf(`{"tool_outputs":[{"tool_call_id":"c%d","output":"y"}]}`, i) + white
		}},
		{name: "the type of an image", calls: `{"id":"c%d","name":"ask_user","arguments":{"question":"Which?"}}`, path: "/submit_tool_outputs", status: 202, body: func(i int, _ tool.Action) string {
			return fmt.Sprintf(`{"dialect":"responses","results":[{"type":"function_call_output","call_id":"c%d","output":[{"type":"input_image","image_url":"data:image/png;x=%s;base64,AAAA"}]}]}`, i, digits[:512<<10])
		}},
		{name: "an approval", calls: `{"id":"c%d","name":"wipe","arguments":{"what":"disk"}}`, path: "/approvals", status: 202, body: func(_ int, a tool.Action) string {
			return fmt.Sprintf(`{"approvals":[{"call_id":%q,"approve":true,"fingerprint":%q,"scope":"session"}]}`, a.CallID, a.Fingerprint) + white
		}},
		{name: "control: long outputs", calls: `{"id":"c%d","name":"ask_user","arguments":{"question":"Which?"}}`, path: "/submit_tool_outputs", status: 202, holds: true, body: func(i int, _ tool.Action) string {
			return fmt.Sprintf(`{"tool_outputs":[{"tool_call_id":"c%d","output":"%s"}]}`, i, digits)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, rest.Options{})
			w.doc = nil // reading the contract's own copies of bodies takes long
			path, actions := test.path, make([]tool.Action, requests)
			if test.calls != "" {
				calls := make([]string, requests+1) // one stays without an answer, so that the run waits
				for i := range calls {
					calls[i] = fmt.Sprintf(test.calls, i)
				}
				waits := w.until(w.start("ada", `{"session":"s","calls":[`+strings.Join(calls, ",")+`]}`).ID, "ada", "requires_action")
				path, actions = "/v1/runs/"+waits.ID+test.path, waits.Pending
			}
			as := "ada"
			if test.path == "/approvals" {
				as = "approver"
			}
			before := liveHeap()
			for i := range requests {
				a := w.request("POST", path, as, test.body(i, actions[i]))
				require.Equal(t, test.status, a.status, "%.300s", a.body)
			}
			held := liveHeap() - before
			t.Logf("%d KB for each request", held>>10/requests)
			if test.holds {
				assert.Greater(t, held, int64(requests*size*3/4))
				return
			}
			assert.Less(t, held, int64(requests*256<<10))
		})
	}
}

// TestAnswersWhileThereIsRoom: a client that closes its side of the connection is answered if nothing has to be waited
// for, although its context has ended.
func TestAnswersWhileThereIsRoom(t *testing.T) {
	w := newWorld(t, rest.Options{})
	ctx, cancel := context.WithCancel(auth.With(t.Context(), callers["ada"]))
	cancel()
	for range 20 {
		answer := httptest.NewRecorder()
		w.api.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/tools", nil))
		require.Equal(t, http.StatusOK, answer.Code)
	}
}
