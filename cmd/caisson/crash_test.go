//go:build slow || postgres

package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

var kills = flag.Int("kills", 2, "how often TestAttackKills kills the server")

// crashed is the load on a server that is killed again and again: callers that repeat each request until it is answered.
type crashed struct {
	t       *testing.T
	address string
	over    atomic.Bool

	mu    sync.Mutex
	acked map[string]string    // the call ids of writes, by what they have written
	doubt map[string]bool      // what was written by requests whose outcome is not known
	calls map[string]tool.Kind // of all calls that were acknowledged, by id
}

// TestAttackKills: a server is killed with kill -9 while 64 callers read and write, and started again. Each record that
// was acknowledged is there, the chain is whole, and nothing was written twice. What was written and not acknowledged is
// reported as unknown_outcome.
func TestAttackKills(t *testing.T) {
	for name, location := range crashStores {
		t.Run(name, func(t *testing.T) {
			state, url := location(t)
			killAgainAndAgain(t, state, url)
		})
	}
}

// crashStores return the flags that say where the ledger is, and the options with which it is opened.
var crashStores = map[string]func(t *testing.T) (state, url string){
	"sqlite": func(t *testing.T) (string, string) { return t.TempDir(), "" },
}

const crashCallers = 64

func killAgainAndAgain(t *testing.T, state, url string) {
	work := t.TempDir()
	free := noerr.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	require.NoError(t, free.Close())
	c := &crashed{t: t, address: free.Addr().String(), acked: map[string]string{}, doubt: map[string]bool{},
		calls: map[string]tool.Kind{}}
	args := []string{"--addr", c.address, "--state-dir", state,
		"--mount", "/project=" + work + ":rw", "--context", "project_id=p",
		"--rate", "100000"}
	if url != "" {
		args = append(args, "--ledger", url)
	}
	var callers sync.WaitGroup
	for n := range crashCallers {
		callers.Go(func() { c.call(n) })
	}
	for range *kills {
		s := startServe(t, args...)
		time.Sleep(17*time.Second + rand.N(3*time.Second)) // what an earlier one has begun is decided after 15 s
		require.NoError(t, s.Process.Kill())
		_ = s.Wait()
	}
	s := startServe(t, args...)
	time.Sleep(25 * time.Second)
	c.over.Store(true)
	callers.Wait()
	require.Zero(t, s.end(t), s.log())

	options := ledger.Options{Location: url}
	l := noerr.Get(ledger.OpenIn(t.Context(), state, options))(t)
	defer func() { require.NoError(t, l.Close(t.Context())) }()
	v := noerr.Get(l.Verify(t.Context()))(t)
	assert.Empty(t, v.Faults)
	for id, kind := range c.calls {
		found, err := l.Find(t.Context(), id)
		require.NoError(t, err, id)
		assert.Equal(t, kind, found.Record.Result.Kind)
	}
	kept := map[string][]tool.Kind{} // of writes, by what they have written
	for f := (ledger.Filter{Tool: "file_write", Limit: ledger.MaxLimit}); ; {
		page := noerr.Get(l.Calls(t.Context(), f))(t)
		for _, e := range page.Entries {
			var arguments struct{ Path string }
			require.NoError(t, json.Unmarshal([]byte(e.Record.Function.Arguments), &arguments))
			kept[arguments.Path] = append(kept[arguments.Path], e.Record.Result.Kind)
		}
		if f.Cursor = page.Cursor; f.Cursor == "" {
			break
		}
	}
	unknown := 0
	for _, file := range noerr.Get(os.ReadDir(work))(t) {
		content := noerr.Get(os.ReadFile(filepath.Join(work, file.Name())))(t)
		assert.Equal(t, "x", string(content), "%s was written twice", file.Name())
		require.Len(t, kept[file.Name()], 1, file.Name())
		if kept[file.Name()][0] == tool.UnknownOutcome {
			unknown++
			assert.NotContains(t, c.acked, file.Name())
		}
	}
	for path := range c.acked {
		assert.FileExists(t, filepath.Join(work, path))
	}
	t.Logf("%d calls acknowledged, %d of them writes; %d in doubt, of which %d had written", len(c.calls), len(c.acked),
		len(c.doubt), unknown)
	assert.Greater(t, len(c.acked), 100)
}

// call makes calls, half of which write, until the test is over.
func (c *crashed) call(caller int) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for n := 0; !c.over.Load(); n++ {
		path := fmt.Sprintf("%d-%d.txt", caller, n)
		body := `{"name":"calculator","arguments":{"expression":"7*6"}}`
		if n%2 == 0 {
			body = fmt.Sprintf(`{"name":"file_write","arguments":{"path":%q,"content":"x","mode":"append"}}`, path)
		}
		for !c.over.Load() && !c.answered(client, path, body, n%2 == 0) {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// answered makes a request, and reports whether it was answered.
func (c *crashed) answered(client *http.Client, path, body string, writes bool) bool {
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, "http://"+c.address+"/v1/calls", strings.NewReader(body))
	if err != nil {
		return false
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", path)
	answer, err := client.Do(r)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch answer.StatusCode {
	case http.StatusOK:
		var record tool.Record
		if err := json.Unmarshal(content, &record); err != nil {
			return false
		}
		if !assert.True(c.t, record.Result.Success, string(content)) {
			return true
		}
		c.calls[record.CallID] = record.Result.Kind
		if writes {
			c.acked[path] = record.CallID
		}
		return true
	case http.StatusConflict:
		assert.Contains(c.t, string(content), "unknown_outcome")
		c.doubt[path] = true
		return true
	default:
		return false
	}
}
