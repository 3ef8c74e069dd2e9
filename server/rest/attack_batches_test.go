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

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/native"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/server/internal/memory"
	"github.com/caisson-run/caisson/server/rest"
	"github.com/caisson-run/caisson/tool"
)

// chatty is a tool whose calls do nothing, and have as much beside their results as a tool can have.
type chatty struct{ registry.Tool }

// maxLog is how long a tool's log may be.
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
	quiet, err := native.New(native.About{Name: "chatty", Description: "Logs.", Behavior: manifests.Behavior{Cache: manifests.CacheOff}},
		func(context.Context, struct{}) (string, error) { return "", nil })
	require.NoError(t, err)
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

	events := w.request("POST", "/v1/batches", "mallory", batch, "Accept", "text/event-stream")
	require.Equal(t, 200, events.status)
	assert.Less(t, len(events.body), 2*most, "once in an event, and once in the report")

	run := w.until(w.start("mallory", batch).ID, "mallory", "completed")
	assert.Less(t, len(w.request("GET", "/v1/runs/"+run.ID, "mallory", nil).body), most)
}

// TestAttackRepeatedCallWithoutAnswer: a call with a key whose client gives up while the answer waits for room has had
// its effect, which a repetition does not have again.
func TestAttackRepeatedCallWithoutAnswer(t *testing.T) {
	for _, test := range []struct{ path, body string }{
		{"/v1/calls", `{"name":"wait","arguments":{}}`},
		{"/v1/batches", `{"calls":[{"id":"c1","name":"wait","arguments":{}}]}`},
	} {
		t.Run(test.path, func(t *testing.T) {
			w := newWorld(t, rest.Options{})
			bound := memory.New(1<<20, 4<<20)
			server := w.bounded(bound)
			ask := func(ctx context.Context) (*http.Response, error) {
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+test.path, strings.NewReader(test.body))
				require.NoError(t, err)
				r.Header.Set("Authorization", "Bearer mallory")
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Idempotency-Key", "k")
				return http.DefaultClient.Do(r)
			}
			release := w.crowd(server, bound, "mallory")
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
			time.Sleep(200 * time.Millisecond) // the server sees it, and has nothing to do
			w.let <- struct{}{}                // for a call that is made again
			release()
			response, err := ask(t.Context())
			require.NoError(t, err)
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			assert.Equal(t, http.StatusOK, response.StatusCode, "%s", text)
			assert.Equal(t, "true", response.Header.Get("Idempotent-Replayed"))
			assert.Contains(t, string(text), "waited")
			assert.Empty(t, w.waiting, "it ran once")
		})
	}
}
