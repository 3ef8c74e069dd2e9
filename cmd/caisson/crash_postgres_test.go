//go:build postgres

package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
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
	l.start()
	for range 2 {
		time.Sleep(2 * time.Second)
		require.True(t, l.isReady())
		var restarted sync.WaitGroup
		restarted.Go(func() { assert.NoError(t, c.Restart(4*time.Second)) })
		assert.Eventually(t, func() bool { return !l.isReady() }, 5*time.Second, 20*time.Millisecond)
		restarted.Wait()
		assert.Eventually(t, l.isReady, 20*time.Second, 20*time.Millisecond, s.log())
	}
	time.Sleep(5 * time.Second)
	assert.Contains(t, s.log(), "level=ERROR msg=\"ledger failed\"")
	l.end(s)
}

// TestAttackFullDisks: the disk of the ledger is full under load, and then has space again. Meanwhile, each write has a
// record, and the server says that it is not ready. It recovers by itself, and has all acknowledged calls.
func TestAttackFullDisks(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		disk := noerr.Get(testcluster.NewDisk(96))(t)
		t.Cleanup(func() { assert.NoError(t, disk.Stop()) })
		l := newLoad(t, 1, filepath.Join(disk.Inside, "state"), "")
		l.enter = disk.Enter
		s := l.onFullDisk(disk, func() {
			status, body := l.ask(`{"name":"calculator","arguments":{"expression":"7*6"}}`)
			assert.Equal(t, http.StatusOK, status, body)
			assert.Contains(t, body, `"unrecorded":true`)
		})
		l.stop(s)
		l.state = filepath.Join(t.TempDir(), "state")
		require.NoError(t, os.CopyFS(l.state, os.DirFS(filepath.Join(disk.Dir, "state"))))
		require.NoError(t, os.Chmod(filepath.Join(l.state, "ledger"), 0o700))
		l.look()
	})
	t.Run("postgres", func(t *testing.T) {
		c := noerr.Get(testcluster.StartSmall(160))(t)
		t.Cleanup(func() { assert.NoError(t, c.Stop()) })
		l := newLoad(t, 1, t.TempDir(), noerr.Get(c.NewDatabase())(t))
		l.end(l.onFullDisk(c.Disk, func() {
			require.NoError(t, c.Disk.Free())
			if !c.Runs() { // it ends if it cannot write its log
				assert.NoError(t, c.StartAgain())
			}
		}))
	})
}

// onFullDisk runs a server under load while the disk is full for some time. Meanwhile, it calls during.
func (l *load) onFullDisk(disk *testcluster.Disk, during func()) *served {
	t, s := l.t, l.serve(0)
	l.start()
	time.Sleep(2 * time.Second)
	require.NoError(t, disk.Fill())
	require.Eventually(t, func() bool { return !l.isReady() }, 20*time.Second, 20*time.Millisecond)
	refused, n := 0, 0
	require.Eventually(t, func() bool { // a short record may still find space
		n++
		body := fmt.Sprintf(`{"name":"file_write","arguments":{"path":"full.txt","content":"%d\n","mode":"append"}}`, n)
		if !l.answered(http.DefaultClient, 0, fmt.Sprint("full-", n), body, fmt.Sprintf("full.txt %d\n", n)) {
			refused++
		}
		return refused == 20
	}, 20*time.Second, 10*time.Millisecond)
	during()
	_ = disk.Free() // unless that was done
	require.Eventually(t, l.isReady, 40*time.Second, 20*time.Millisecond)
	time.Sleep(2 * time.Second)
	return s
}

func (l *load) isReady() bool {
	answer, err := http.Get("http://" + l.addresses[0] + "/readyz")
	return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
}

// ask makes a call without a key.
func (l *load) ask(body string) (status int, answer string) {
	got, err := http.Post("http://"+l.addresses[0]+"/v1/calls", "application/json", strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	defer got.Body.Close()
	content, err := io.ReadAll(got.Body)
	if err != nil {
		return 0, err.Error()
	}
	return got.StatusCode, string(content)
}
