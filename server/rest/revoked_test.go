package rest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/internal/standing"
	"github.com/caisson-run/caisson/server/rest"
)

// expiring is the API for a caller who may act until revoked is set.
func (w *world) expiring(as string) (api *world, revoked *atomic.Bool) {
	revoked = &atomic.Bool{}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.api.ServeHTTP(rw, r.WithContext(standing.With(r.Context(), callers[as], func() error {
			if revoked.Load() {
				return auth.ErrRevoked
			}
			return nil
		})))
	}))
	w.t.Cleanup(server.Close)
	return &world{t: w.t, url: server.URL, doc: w.doc}, revoked
}

// TestAttackRevokedBeforeTheEffect: a token is revoked when its request has passed the server's gate. Nothing that the
// request asks for is done, whatever it is. The control is the same request with a token that works.
func TestAttackRevokedBeforeTheEffect(t *testing.T) {
	w := newWorld(t, rest.Options{})
	api, revoked := w.expiring("ada")
	paused := w.until(w.start("ada", `{"calls":[{"id":"c1","name":"wipe","arguments":{"what":"disk"}}]}`).ID, "ada", "requires_action")
	body := map[string]any{"approvals": []any{map[string]any{"call_id": paused.Pending[0].CallID, "approve": true, "fingerprint": paused.Pending[0].Fingerprint}}}
	agent := `{"allowed_tools":["echo"]}`
	of[any](w.request("PUT", "/v1/agents/kept", "ada", agent), 200)

	revoked.Store(true)
	operations := 0
	for path, methods := range w.doc.paths {
		for method, o := range methods {
			if o.ID == "openapi" {
				continue
			}
			operations++
			given := strings.NewReplacer("{run_id}", paused.ID, "{name}", "kept").Replace(path)
			var content any
			if o.Body != nil {
				content = "{}"
			}
			api.request(strings.ToUpper(method), given, "", content).refused(http.StatusUnauthorized)
		}
	}
	require.Greater(t, operations, 15)
	api.request("POST", "/v1/runs/"+paused.ID+"/approvals", "", body).refused(http.StatusUnauthorized)
	api.request("POST", "/v1/runs", "", `{"calls":[{"name":"wait","arguments":{}}]}`).refused(http.StatusUnauthorized)
	api.request("POST", "/v1/calls", "", `{"name":"wait","arguments":{}}`).refused(http.StatusUnauthorized)
	api.request("POST", "/v1/batches", "", `{"calls":[{"name":"wait","arguments":{}}]}`, "Accept", "text/event-stream").refused(http.StatusUnauthorized)
	api.request("PUT", "/v1/agents/new", "", agent).refused(http.StatusUnauthorized)
	assert.Empty(t, w.waiting, "no call has run")
	assert.Equal(t, "requires_action", w.until(paused.ID, "ada", "requires_action").Status)
	w.request("GET", "/v1/agents/new", "ada", nil).refused(http.StatusNotFound)
	of[any](w.request("GET", "/v1/agents/kept", "ada", nil), 200)

	revoked.Store(false)
	of[any](api.request("PUT", "/v1/agents/new", "", agent), 200)
	of[any](api.request("POST", "/v1/runs/"+paused.ID+"/approvals", "", body), 202)
	w.until(paused.ID, "ada", "completed")
	assert.Equal(t, []string{"disk"}, w.wipes())
}

// TestRevokedWhileAnswering: wherever in an approval the token stops working, the run goes on, or it still waits for
// the approval of another.
func TestRevokedWhileAnswering(t *testing.T) {
	w := newWorld(t, rest.Options{})
	left := atomic.Int64{} // checks that find the token working
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.api.ServeHTTP(rw, r.WithContext(standing.With(r.Context(), callers["ada"], func() error {
			if left.Add(-1) < 0 {
				return auth.ErrRevoked
			}
			return nil
		})))
	}))
	defer server.Close()
	api := &world{t: t, url: server.URL, doc: w.doc}
	paused := w.until(w.start("ada", `{"calls":[{"id":"c1","name":"wipe","arguments":{"what":"disk"}}]}`).ID, "ada", "requires_action")
	body := map[string]any{"approvals": []any{map[string]any{"call_id": paused.Pending[0].CallID, "approve": true, "fingerprint": paused.Pending[0].Fingerprint}}}
	checks := int64(0)
	for ; ; checks++ {
		left.Store(checks)
		answer := api.request("POST", "/v1/runs/"+paused.ID+"/approvals", "", body)
		if answer.status == http.StatusAccepted {
			break
		}
		answer.refused(http.StatusUnauthorized)
		assert.Len(t, w.until(paused.ID, "ada", "requires_action").Pending, 1, "after %d checks", checks)
		require.Less(t, checks, int64(20))
	}
	assert.Greater(t, checks, int64(1))
	w.until(paused.ID, "ada", "completed")
	assert.Equal(t, []string{"disk"}, w.wipes())
}

// TestAttackAnswersAfterRevocation: a token is revoked while the answer to its call waits for others. It is not sent
// what the tools returned. The control is a token that works.
func TestAttackAnswersAfterRevocation(t *testing.T) {
	t.Parallel() // it waits for most of its time
	for _, test := range []struct {
		path, body string
		revoked    bool
		status     int
	}{
		{"/v1/calls", `{"name":"wait","arguments":{}}`, true, http.StatusUnauthorized},
		{"/v1/batches", `{"calls":[{"id":"c1","name":"wait","arguments":{}}]}`, true, http.StatusUnauthorized},
		{"/v1/calls", `{"name":"wait","arguments":{}}`, false, http.StatusOK},
	} {
		t.Run(fmt.Sprintf("%s, revoked %t", test.path, test.revoked), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, rest.Options{})
			api, revoked := w.expiring("mallory")
			release := w.api.Occupy(callers["mallory"])
			answer := make(chan answered, 1)
			go func() { answer <- api.request("POST", test.path, "", test.body) }()
			<-w.waiting
			w.let <- struct{}{}
			require.Eventually(t, func() bool { return strings.Contains(w.log.String(), `"batch finished"`) }, time.Minute, time.Millisecond)
			revoked.Store(test.revoked)
			release()
			got := <-answer
			assert.Equal(t, test.status, got.status, test.path)
			assert.Equal(t, !test.revoked, strings.Contains(string(got.body), "waited"), test.path)
		})
	}
}

// TestBodiesWhoseTokenCannotBeRead: at the end of a body, its token cannot be read. The client is told to try again
// later, and not that the body is missing. The control is a body that is.
func TestBodiesWhoseTokenCannotBeRead(t *testing.T) {
	w := newWorld(t, rest.Options{})
	for err, status := range map[error]int{
		standing.ErrUnreadable: http.StatusServiceUnavailable, io.ErrUnexpectedEOF: http.StatusBadRequest,
	} {
		body := io.MultiReader(strings.NewReader(`{"name":"echo","arguments":{}}`), iotest.ErrReader(err))
		request := httptest.NewRequest(http.MethodPost, "/v1/calls", body)
		request.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		w.api.ServeHTTP(answer, request.WithContext(auth.With(t.Context(), callers["ada"])))
		assert.Equal(t, status, answer.Code, "%s", answer.Body)
	}
}
