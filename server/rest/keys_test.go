package rest

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/internal/noerr"
)

// TestAttackIdleTenants: what tenants leave behind is forgotten although they make no other request. The controls are
// runs and keys whose time is not over.
func TestAttackIdleTenants(t *testing.T) {
	const keep = time.Minute
	synctest.Test(t, func(t *testing.T) {
		api := &API{stopping: make(chan struct{}), options: Options{Runs: RunOptions{Keep: time.Hour, Wait: time.Hour, PerTenant: 10, Bytes: 1 << 20}, Keys: KeyOptions{Keep: keep}}}
		api.keys = &keys{byTenant: map[string]*keysOf{}, options: KeyOptions{Keep: keep, PerTenant: 10}}
		api.runs = &runs{api: api, byTenant: map[string]*runsOf{}}
		k, first := api.keys.take("acme", requestKey{key: "k"}, [32]byte{})
		require.True(t, first)
		api.keys.put("acme", k, reply{status: http.StatusOK}, true)
		r := &run{api: api, id: "r", tenant: "acme", status: completed, expires: time.Now().Add(keep)}
		of := api.runs.locked("acme")
		of.byID["r"] = r
		of.mu.Unlock()
		api.ending.Go(api.sweep)
		defer api.ending.Wait()
		defer api.stop()
		left := func() (keys, runs int) {
			api.keys.mu.Lock()
			defer api.keys.mu.Unlock()
			of := api.runs.locked("acme")
			defer of.mu.Unlock()
			return len(api.keys.byTenant), len(of.byID)
		}
		time.Sleep(keep - time.Second)
		keys, runs := left()
		assert.Equal(t, []int{1, 1}, []int{keys, runs})
		time.Sleep(2 * keep)
		keys, runs = left()
		assert.Equal(t, []int{0, 0}, []int{keys, runs})
	})
}

// TestAttackRepeatedWithoutAnyAnswer: a request with a key that has had its effect has it once, also if no answer can
// be made. The control is a request that fails before its effect.
func TestAttackRepeatedWithoutAnyAnswer(t *testing.T) {
	broken := errors.New("it cannot be written")
	for _, test := range []struct {
		name  string
		begun func() (reply, error)
		calls int
	}{
		{"an answer that cannot be written", func() (reply, error) { return reply{}, broken }, 1},
		{"a panic", func() (reply, error) { panic("it cannot be written") }, 1},
		{"the control", nil, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			host := noerr.Get(caisson.Open(t.Context(), caisson.Options{}))(t)
			defer host.Close(t.Context())
			api, calls := &API{host: host, keys: &keys{byTenant: map[string]*keysOf{}, options: KeyOptions{Keep: time.Hour, PerTenant: 10}}}, 0
			for range 2 {
				x := &exchange{api: api, request: httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/calls", nil)}
				x.route = &route{handle: func(x *exchange) (reply, error) {
					calls++
					x.begun = test.begun
					if test.begun == nil {
						return reply{}, broken
					}
					return test.begun()
				}}
				var err error
				func() {
					defer func() {
						if recover() != nil {
							err = errNoAnswer
						}
					}()
					_, err = x.serveIdempotent([]string{"k"})
				}()
				require.Error(t, err)
			}
			assert.Equal(t, test.calls, calls)
		})
	}
}

// TestEvictedRunsAreCancelled: a run that was evicted from memory just before it went on is cancelled when the server
// stops, once, as others are.
func TestEvictedRunsAreCancelled(t *testing.T) {
	s := &runs{byTenant: map[string]*runsOf{}}
	cancelled := 0
	working := func(id string) *run { return &run{id: id, tenant: "acme", cancel: func() { cancelled++ }} }
	evicted, other := working("evicted"), working("other")
	s.working(evicted)
	s.working(other)
	of := s.locked("acme")
	of.byID["other"] = other
	of.mu.Unlock()
	assert.Equal(t, 2, s.cancelAll())
	assert.Equal(t, 2, cancelled)
}
