package rest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/server/internal/memory"
	"github.com/caisson-run/caisson/server/internal/standing"
	"github.com/caisson-run/caisson/server/rest"
)

// at is the world whose requests go to another address.
func (w *world) at(url string) *world { return &world{t: w.t, url: url, doc: w.doc} }

// batches waits until so many batches have ended.
func (w *world) batches(ended int) {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return strings.Count(w.log.String(), `"batch finished"`) == ended }, time.Minute, time.Millisecond)
}

// TestAttackAnswersInEachOthersWay: batches that have reserved all of a tenant's memory wait for their answers to be
// made, and long answers that have been made wait for memory. All are answered. None was, for ever: the long ones kept
// the places in which answers are made.
func TestAttackAnswersInEachOthersWay(t *testing.T) {
	t.Parallel() // it waits for most of its time
	for _, test := range []struct {
		name      string
		arguments int // the length of each call's, of which a record takes 4 KiB at most, or more
	}{
		{"of as many bytes as were reserved", 10},
		{"of more", 2 << 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, rest.Options{})
			w.doc = nil // reading the contract's own copies of bodies takes long
			api := w.at(w.bounded(memory.New(1<<20, 4<<20)).URL)
			answers := make(chan int, 4)
			ask := func(path, body string) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				response, err := api.try(ctx, http.MethodPost, path, "mallory", body)
				if !assert.NoError(t, err) {
					answers <- 0
					return
				}
				defer response.Body.Close()
				_, err = io.Copy(io.Discard, response.Body)
				assert.NoError(t, err)
				answers <- response.StatusCode
			}
			const calls = (512 + 64) / 4 // half of the memory, and the free part
			one := fmt.Sprintf(`{"name":"echo","arguments":{"text":%q}},`, strings.Repeat("x", test.arguments))
			for range 2 {
				go ask("/v1/batches", `{"calls":[`+strings.Repeat(one, calls-1)+`{"name":"wait","arguments":{}}]}`)
				<-w.waiting
			}
			for range 2 {
				go ask("/v1/calls", `{"name":"echo","arguments":{"text":"`+strings.Repeat("x", 100<<10)+`"}}`)
			}
			w.batches(2)
			time.Sleep(100 * time.Millisecond) // their answers are made, and wait
			for range 2 {
				w.let <- struct{}{}
			}
			for range cap(answers) {
				assert.Equal(t, http.StatusOK, <-answers)
			}
		})
	}
}

// TestAttackAnswersWithoutClients: a request ends soon after its client has gone, though there is no room for its
// answer, which a repetition gets. Such requests held their connections for as long as others left answers unread.
func TestAttackAnswersWithoutClients(t *testing.T) {
	t.Parallel() // it waits for most of its time
	w := newWorld(t, rest.Options{})
	bound := memory.New(1<<20, 4<<20)
	api := w.at(w.bounded(bound).URL)
	unread := bound.Open(callers["mallory"].Tenant)
	defer unread.Close()
	require.NoError(t, memory.Reserve(memory.With(t.Context(), unread), 2<<20))
	body := `{"name":"wait","arguments":{"text":"` + strings.Repeat("x", 100<<10) + `"}}`
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gone := make(chan error, 1)
	go func() {
		_, err := api.try(ctx, http.MethodPost, "/v1/calls", "mallory", body, "Idempotency-Key", "k")
		gone <- err
	}()
	<-w.waiting
	w.let <- struct{}{}
	w.batches(1)
	assert.Never(t, func() bool { return w.underWay.Load() == 0 }, 100*time.Millisecond, time.Millisecond, "the control")
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	require.Eventually(t, func() bool { return w.underWay.Load() == 0 }, rest.LateAnswer+5*time.Second, time.Millisecond)
	again := api.request("POST", "/v1/calls", "mallory", body, "Idempotency-Key", "k")
	assert.Equal(t, http.StatusOK, again.status)
	assert.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
	assert.Empty(t, w.waiting, "it ran once")
}

// TestAttackRepeatedWithUnreadableToken: the token of a request with a key cannot be read when its calls have run, such
// as for lack of descriptors. They do not run again. The control is a token that can be read.
func TestAttackRepeatedWithUnreadableToken(t *testing.T) {
	for _, test := range []struct {
		name, path, body string
		headers          []string
		status           int
	}{
		{"a call", "/v1/calls", `{"name":"wait","arguments":{}}`, nil, http.StatusInternalServerError},
		{"a batch", "/v1/batches", `{"calls":[{"name":"wait","arguments":{}}]}`, nil, http.StatusInternalServerError},
		{"a batch with events", "/v1/batches", `{"calls":[{"name":"wait","arguments":{}}]}`, []string{"Accept", "text/event-stream"}, http.StatusOK},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, rest.Options{})
			var unreadable atomic.Bool
			server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				w.api.ServeHTTP(rw, r.WithContext(standing.With(r.Context(), callers["mallory"], func() error {
					if unreadable.Load() {
						return errors.New("too many open files")
					}
					return nil
				})))
			}))
			defer server.Close()
			for _, broken := range []bool{true, false} {
				ask := func() answered {
					key := fmt.Sprint("broken: ", broken)
					return w.at(server.URL).request("POST", test.path, "", test.body, append(test.headers, "Idempotency-Key", key)...)
				}
				first := make(chan answered, 1)
				go func() { first <- ask() }()
				<-w.waiting
				unreadable.Store(broken)
				w.let <- struct{}{}
				got := <-first
				unreadable.Store(false)
				assert.Equal(t, broken, strings.Contains(string(got.body), "the server failed"), "%s", got.body)
				if broken {
					assert.Equal(t, test.status, got.status)
				}
				w.let <- struct{}{} // for a call that is made again
				again := ask()
				require.Empty(t, w.waiting, "it ran once")
				<-w.let
				assert.Equal(t, http.StatusOK, again.status, "%s", again.body)
				assert.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
				assert.Contains(t, string(again.body), "waited")
			}
		})
	}
}
