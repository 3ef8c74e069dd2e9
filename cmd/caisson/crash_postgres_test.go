//go:build postgres

package main

import (
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/testcluster"
)

func init() {
	crashStores["postgres"] = func(t *testing.T) (string, string) {
		_, url := cluster(t)
		return t.TempDir(), url
	}
}

// cluster starts a PostgreSQL server for the test, and returns the URL of a database.
func cluster(t *testing.T) (c *testcluster.Cluster, url string) {
	c, err := testcluster.Start()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Stop()) })
	return c, noerr.Get(c.NewDatabase())(t)
}

// TestAttackKilledReplicas: each of three servers with one database is killed and started again while callers send each
// request to another server until it is answered.
func TestAttackKilledReplicas(t *testing.T) {
	_, url := cluster(t)
	l := newLoad(t, 3, t.TempDir(), url)
	servers := []*served{l.serve(0), l.serve(1), l.serve(2)}
	l.start()
	for n := range servers {
		time.Sleep(3 * time.Second)
		kill(t, servers[n])
		time.Sleep(decided)
		servers[n] = l.serve(n)
	}
	time.Sleep(decided)
	l.end(servers...)
}

// TestAttackStoppedReplicas: each request is sent to two servers at once. One of them is stopped for longer than its
// lease, and goes on. Nothing is done twice.
func TestAttackStoppedReplicas(t *testing.T) {
	_, url := cluster(t)
	l := newLoad(t, 2, t.TempDir(), url)
	servers := []*served{l.serve(0), l.serve(1)}
	l.start()
	twin := *newLoad(t, 0, l.state, url) // the same requests to the other server
	twin.work, twin.addresses = l.work, []string{l.addresses[1], l.addresses[0]}
	twin.start()
	for _, s := range servers {
		time.Sleep(2 * time.Second)
		require.NoError(t, s.Process.Signal(syscall.SIGSTOP))
		time.Sleep(decided + 15*time.Second)
		require.NoError(t, s.Process.Signal(syscall.SIGCONT))
	}
	time.Sleep(decided)
	twin.over.Store(true)
	twin.callers.Wait()
	l.over.Store(true)
	l.callers.Wait()
	same := 0
	for path, id := range twin.acked {
		if own, ok := l.acked[path]; ok {
			assert.Equal(t, own, id, "%s has two answers", path)
			same++
		}
	}
	assert.Positive(t, same)
	l.end(servers...)
}

// TestAttackDatabaseRestarts: the database crashes and comes back under load. The server says that it is not ready
// meanwhile, and goes on by itself.
func TestAttackDatabaseRestarts(t *testing.T) {
	c, url := cluster(t)
	l := newLoad(t, 1, t.TempDir(), url)
	s := l.serve(0)
	ready := func() bool {
		answer, err := http.Get("http://" + l.addresses[0] + "/readyz")
		return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	}
	l.start()
	for range 2 {
		time.Sleep(2 * time.Second)
		require.True(t, ready())
		var restarted sync.WaitGroup
		restarted.Go(func() { assert.NoError(t, c.Restart(4*time.Second)) })
		assert.Eventually(t, func() bool { return !ready() }, 5*time.Second, 20*time.Millisecond)
		restarted.Wait()
		assert.Eventually(t, ready, 20*time.Second, 20*time.Millisecond, s.log())
	}
	time.Sleep(5 * time.Second)
	assert.Contains(t, s.log(), "level=ERROR msg=\"ledger failed\"")
	l.end(s)
}
