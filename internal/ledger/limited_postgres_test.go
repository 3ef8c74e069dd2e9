//go:build postgres

package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/noerr"
)

// TestAttackFewConnections: other programs use most connections of the database. Callers of the ledger share the rest.
// Without any, they get an error that says so, and the ledger works again afterwards.
func TestAttackFewConnections(t *testing.T) {
	c := noerr.Get(started())(t)
	url, limit, disconnect, err := c.NewLimited(20)
	require.NoError(t, err)
	l := opened(t, ledger.Options{Location: url})
	work := func(from int) {
		var all sync.WaitGroup
		for n := range 32 {
			all.Go(func() {
				assert.NoError(t, l.Append(t.Context(), entry(from+n)))
				for range 5 {
					assert.NoError(t, noerr.Error(l.Calls(t.Context(), ledger.Filter{Words: "ok", Limit: 10})))
				}
			})
		}
		all.Wait()
	}
	for i, connections := range []int{2, 4, 20} {
		require.NoError(t, limit(connections))
		require.NoError(t, disconnect())
		work(100 * (i + 1))
	}
	require.NoError(t, limit(0))
	require.NoError(t, disconnect())
	for range 3 {
		require.ErrorContains(t, l.Append(t.Context(), entry(1000)), "too many connections")
	}
	require.NoError(t, limit(4))
	require.NoError(t, l.Check(t.Context()))
	work(400)
	assert.Len(t, found(t, l, ledger.Filter{Limit: 1000}), 4*32)
}

// TestAttackDeadlocks: two processes keep calls of the same tenants, with names that are new to both, and take the same
// keys, one in the order opposite to the other's. They never wait for each other.
func TestAttackDeadlocks(t *testing.T) {
	location := stores["postgres"](t)
	var all sync.WaitGroup
	for process := range 2 {
		l := opened(t, ledger.Options{Location: location})
		for caller := range 16 {
			all.Go(func() {
				for n := range 50 {
					assert.NoError(t, l.Append(t.Context(), entry(10000*process+100*caller+n, func(e *ledger.Entry) {
						e.Tenant, e.User = fmt.Sprint(rand.N(8)), fmt.Sprint(n)
					})))
				}
			})
			all.Go(func() {
				for n := range 50 {
					noerr.Get(l.TakeKey(t.Context(), key("acme", fmt.Sprint(n/2, rand.N(8)))))(t)
				}
			})
		}
	}
	all.Wait()
	time.Sleep(time.Second) // until PostgreSQL has counted
	assert.Equal(t, []string{"0"}, queried(t, location,
		"select deadlocks::text from pg_stat_database where datname = current_database()"))
}

// TestAttackRefusedWork: a tenant that has as many runs as it may have begins more, without end. Groups with refused
// runs are committed all the same.
func TestAttackRefusedWork(t *testing.T) {
	location := stores["postgres"](t)
	l := opened(t, ledger.Options{Location: location})
	run := func(id string) error {
		r := ledger.Run{ID: id, Tenant: "acme", Created: time.Now(), Content: []byte("{}")}
		return noerr.Error(l.AddRun(t.Context(), r, ledger.RunBounds{Runs: 1, Bytes: 1 << 20, Keep: time.Hour}))
	}
	require.NoError(t, run("first"))
	var all sync.WaitGroup
	for n := range 16 {
		all.Go(func() {
			for i := range 20 {
				assert.NoError(t, l.Append(t.Context(), entry(1000*n+i)))
				assert.ErrorIs(t, run(fmt.Sprint(n, i)), ledger.ErrTooMany)
			}
		})
	}
	all.Wait()
	assert.Len(t, found(t, l, ledger.Filter{Limit: 1000}), 16*20)
	time.Sleep(time.Second) // until PostgreSQL has counted
	assert.Equal(t, []string{"0"}, queried(t, location,
		"select xact_rollback::text from pg_stat_database where datname = current_database()"))
}
