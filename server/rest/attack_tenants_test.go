package rest_test

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/server/rest"
)

// TestAttackSubmissionsInTheWay: a tenant that submits long documents to a run of its own does not delay what others
// ask of theirs. Reading such a document takes a second, in which the run is locked; whoever asks for that run waits
// with the lock of all runs.
func TestAttackSubmissionsInTheWay(t *testing.T) {
	w := newWorld(t, rest.Options{})
	asks := `{"calls":[{"id":"c1","name":"ask","arguments":{}}],"tools":[{"type":"function","name":"ask","parameters":{"type":"object"}}]}`
	mine := w.until(w.start("mallory", asks).ID, "mallory", "requires_action")
	others := w.until(w.start("ada", asks).ID, "ada", "requires_action")
	var document strings.Builder
	for i := range testsize.Of(40_000, 60_000) {
		fmt.Fprintf(&document, `,{"type":"function_call_output","call_id":"x%d","output":"%s"}`, i, strings.Repeat("a", 50))
	}
	body := `{"dialect":"responses","results":[` + document.String()[1:] + `]}`

	var submitting sync.WaitGroup
	ended := make(chan struct{})
	took := make(chan time.Duration, 1000)
	for range testsize.Of(2, 3) {
		submitting.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
				}
				began := time.Now()
				response, err := w.try(t.Context(), "POST", "/v1/runs/"+mine.ID+"/submit_tool_outputs", "mallory", body)
				if assert.NoError(t, err) {
					assert.Equal(t, 422, response.StatusCode)
					_ = response.Body.Close()
				}
				took <- time.Since(began)
			}
		})
	}
	alone := <-took
	var slowest time.Duration
	for range 10 {
		time.Sleep(50 * time.Millisecond)
		began := time.Now()
		response := noerr.Get(w.try(t.Context(), "GET", "/v1/runs/"+others.ID, "ada", nil))(t)
		_ = response.Body.Close()
		slowest = max(slowest, time.Since(began))
	}
	close(ended)
	submitting.Wait()
	t.Logf("the first submission took %s, and the slowest answer to another tenant %s", alone, slowest)
	assert.Less(t, slowest, alone/4)
}

// TestAttackLongRecords: a tenant whose calls had long arguments cannot have the server read and answer all of them
// with each request, of which 256 may be made at a time.
func TestAttackLongRecords(t *testing.T) {
	w := newWorld(t, rest.Options{})
	for i := range 24 {
		body := fmt.Sprintf(`{"name":"none%d","arguments":{"text":"%s"}}`, i, strings.Repeat("a", 1<<20))
		response := w.open(t.Context(), "POST", "/v1/calls", "mallory", body)
		require.Equal(t, 200, response.StatusCode)
		noerr.Get(io.Copy(io.Discard, response.Body))(t)
		require.NoError(t, response.Body.Close())
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	response := w.open(t.Context(), "GET", "/v1/calls?limit=100", "mallory", nil)
	defer response.Body.Close()
	bytes := noerr.Get(io.Copy(io.Discard, response.Body))(t)
	require.Equal(t, 200, response.StatusCode)
	runtime.ReadMemStats(&after)
	t.Logf("%s, %d MB allocated, an answer of %d MB", time.Since(began), (after.TotalAlloc-before.TotalAlloc)>>20, bytes>>20)
	assert.Less(t, bytes, int64(6<<20))
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(200<<20))
}
