//go:build postgres

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

// load is a load on servers that crash: callers that repeat each request, at the next server, until it is answered.
type load struct {
	t         *testing.T
	enter     []string // what begins the commands of servers; nil for nothing
	work      string   // the directory of the tools
	addresses []string // of the servers
	state     string
	url       string // of the ledger; "" for the state folder
	over      atomic.Bool
	callers   sync.WaitGroup

	mu    sync.Mutex
	acked map[string]string    // the call ids of writes, by the lines that they have written
	doubt map[string]bool      // what was written by requests whose outcome is not known
	calls map[string]tool.Kind // of all calls that were acknowledged, by id
}

const loadCallers = 64

// newLoad returns a load, which begins with start, on some servers, which begin with serve.
func newLoad(t *testing.T, servers int, state, url string) *load {
	l := &load{t: t, work: t.TempDir(), state: state, url: url, acked: map[string]string{}, doubt: map[string]bool{},
		calls: map[string]tool.Kind{}}
	for range servers {
		free := noerr.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		l.addresses = append(l.addresses, free.Addr().String())
		require.NoError(t, free.Close())
	}
	return l
}

func (l *load) start() {
	for n := range loadCallers {
		l.callers.Go(func() { l.call(n) })
	}
}

// serve starts the server with a number.
func (l *load) serve(n int) *served {
	args := []string{"--addr", l.addresses[n], "--state-dir", l.state, "--mount", "/project=" + l.work + ":rw", "--context",
		"project_id=p", "--rate", "100000", "--keep-records", "10000000"}
	if l.url != "" {
		args = append(args, "--ledger", l.url)
	}
	return startServeIn(l.t, l.enter, args...)
}

// kill kills a server with kill -9.
func kill(t *testing.T, s *served) {
	t.Helper()
	require.NoError(t, s.Process.Kill())
	_ = s.Wait()
}

// TestAttackKills: a server is killed with kill -9 while 64 callers read and write, and started again. Each record that
// was acknowledged is there, the chain is whole, and nothing was written twice. What was written and not acknowledged is
// reported as unknown_outcome.
func TestAttackKills(t *testing.T) {
	for name, location := range crashStores {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait for most of their time
			state, url := location(t)
			l := newLoad(t, 1, state, url)
			l.start()
			for n := range *kills {
				s := l.serve(0)
				if n%4 == 0 { // otherwise, all callers would at some time wait for calls in doubt
					time.Sleep(decided)
				}
				time.Sleep(rand.N(3 * time.Second))
				kill(t, s)
			}
			s := l.serve(0)
			time.Sleep(decided)
			l.end(s)
		})
	}
}

// decided is how long it takes until what a dead process has begun is decided.
const decided = 26 * time.Second

// crashStores return the state folder and the URL of a ledger.
var crashStores = map[string]func(t *testing.T) (state, url string){
	"sqlite": func(t *testing.T) (string, string) { return t.TempDir(), "" },
}

// end ends the load and the servers, and looks at what is left.
func (l *load) end(servers ...*served) {
	l.stop(servers...)
	l.look()
}

func (l *load) stop(servers ...*served) {
	l.over.Store(true)
	l.callers.Wait()
	for _, s := range servers {
		require.Zero(l.t, s.end(l.t), s.log())
	}
}

// look compares the ledger and the files with the acknowledged calls.
func (l *load) look() {
	t := l.t
	kept := noerr.Get(ledger.OpenIn(t.Context(), l.state, ledger.Options{Location: l.url}))(t)
	defer func() { require.NoError(t, kept.Close(t.Context())) }()
	v := noerr.Get(kept.Verify(t.Context()))(t)
	assert.Empty(t, v.Faults)
	for id, kind := range l.calls {
		found, err := kept.Find(t.Context(), id)
		require.NoError(t, err, id)
		assert.Equal(t, kind, found.Record.Result.Kind)
	}
	records := map[string][]tool.Kind{} // of writes, by what they have written
	for f := (ledger.Filter{Tool: "file_write", Limit: ledger.MaxLimit}); ; {
		page := noerr.Get(kept.Calls(t.Context(), f))(t)
		for _, e := range page.Entries {
			var arguments struct{ Path, Content string }
			require.NoError(t, json.Unmarshal([]byte(e.Record.Function.Arguments), &arguments))
			if line := arguments.Path + " " + arguments.Content; !e.Record.Skipped {
				records[line] = append(records[line], e.Record.Result.Kind)
			}
		}
		if f.Cursor = page.Cursor; f.Cursor == "" {
			break
		}
	}
	unknown, written := 0, map[string]bool{}
	for _, file := range noerr.Get(os.ReadDir(l.work))(t) {
		content := noerr.Get(os.ReadFile(filepath.Join(l.work, file.Name())))(t)
		for line := range strings.Lines(string(content)) {
			line = file.Name() + " " + line
			assert.False(t, written[line], "%q was written twice", line)
			written[line] = true
			if assert.Len(t, records[line], 1, line) && records[line][0] == tool.UnknownOutcome {
				unknown++
				assert.NotContains(t, l.acked, line)
			}
		}
	}
	for line := range l.acked {
		assert.Contains(t, written, line)
	}
	t.Logf("%d calls acknowledged, %d of them writes; %d in doubt; %d have written and are unknown", len(l.calls),
		len(l.acked), len(l.doubt), unknown)
	assert.Greater(t, len(l.acked), 100)
}

// call makes calls, half of which write, until the test is over.
func (l *load) call(caller int) {
	client := &http.Client{Transport: &http.Transport{}, Timeout: 40 * time.Second}
	defer client.CloseIdleConnections()
	for n := 0; !l.over.Load(); n++ {
		key := fmt.Sprintf("%d-%d", caller, n)
		body, line := `{"name":"calculator","arguments":{"expression":"7*6"}}`, ""
		if n%2 == 0 {
			path := fmt.Sprintf("%d-%d.txt", caller, n/1000) // a directory has few files
			body = fmt.Sprintf(`{"name":"file_write","arguments":{"path":%q,"content":"%d\n","mode":"append"}}`, path, n)
			line = fmt.Sprintf("%s %d\n", path, n)
		}
		for server := caller; !l.over.Load() && !l.answered(client, server, key, body, line); server++ {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// answered makes a request, which writes a line or reads, and reports whether it was answered.
func (l *load) answered(client *http.Client, server int, key, body, line string) bool {
	url := "http://" + l.addresses[server%len(l.addresses)] + "/v1/calls"
	r, err := http.NewRequestWithContext(l.t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return false
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	answer, err := client.Do(r)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch answer.StatusCode {
	case http.StatusOK:
		var record tool.Record
		if err := json.Unmarshal(content, &record); err != nil {
			return false
		}
		switch kind := record.Result.Kind; {
		case kind == tool.UnknownOutcome:
			l.doubt[key] = true
		case kind == tool.Busy: // it has not run
		case kind == tool.Cancelled: // its client has waited too long for a server that died
			assert.True(l.t, record.Skipped, string(content))
		case assert.True(l.t, record.Result.Success, string(content)) && !record.Unrecorded:
			l.calls[record.CallID] = kind
			if line != "" {
				l.acked[line] = record.CallID
			}
		}
		return true
	case http.StatusConflict:
		assert.Contains(l.t, string(content), "unknown_outcome")
		l.doubt[key] = true
		return true
	default:
		return false
	}
}
