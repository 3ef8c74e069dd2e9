package server

import (
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/sampling"
	"github.com/caisson-run/caisson/internal/tooltest"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/internal/standing"
)

// TestAttackDamagedToken: a client that knows the id of a token whose file is damaged fills the log no more than one
// that shows wrong tokens, which is the control. Each request was logged as a failure, and none had to wait.
func TestAttackDamagedToken(t *testing.T) {
	for _, test := range []struct {
		name    string
		damaged bool
		status  int
		logged  string
	}{{"damaged", true, http.StatusInternalServerError, "tokens cannot be checked"}, {"control: whole", false, http.StatusUnauthorized, "its secret is wrong"}} {
		t.Run(test.name, func(t *testing.T) {
			state := stateFolder(t)
			of := tokensIn(t, state)
			works, _ := issued(t, of, auth.Token{Scopes: []auth.Scope{auth.Read}})
			text, id := issued(t, of, auth.Token{Scopes: []auth.Scope{auth.Read}})
			if test.damaged {
				tooltest.Place(t, state, ledger.TokenKind, "", id, []byte("{"))
			}
			wrong := text[:len(text)-52] + strings.Repeat("a", 52)
			for name, limits := range map[string]Limits{"waits": {Failures: 0.001}, "is not logged": {Failures: 1e6}} {
				t.Run(name, func(t *testing.T) {
					r := start(t, Options{Tokens: of, Limits: limits})
					statuses := map[int]int{}
					for range 200 {
						statuses[r.do(t, "GET", "/echo", "", "Authorization", "Bearer "+wrong).status]++
					}
					assert.Equal(t, http.StatusOK, r.do(t, "GET", "/echo", "", "Authorization", "Bearer "+works).status)
					if name == "waits" {
						assert.Equal(t, map[int]int{test.status: failureBurst, http.StatusTooManyRequests: 200 - failureBurst}, statuses)
					} else {
						assert.Equal(t, map[int]int{test.status: 200}, statuses)
					}
					assert.Less(t, strings.Count(r.log.String(), "\n"), 3*sampling.Burst)
					assert.Contains(t, r.log.String(), test.logged)
				})
			}
		})
	}
}

// TestAttackLongPathsInTheLog: what clients without a token send does not make lines long. The control is that the path
// is logged.
func TestAttackLongPathsInTheLog(t *testing.T) {
	state := stateFolder(t)
	of := tokensIn(t, state)
	text, id := issued(t, of, auth.Token{Scopes: []auth.Scope{auth.Read}})
	tooltest.Place(t, state, ledger.TokenKind, "", id, []byte("{"))
	r := start(t, Options{Tokens: of})
	long := strings.Repeat("\xff", 31_000)
	for name, header := range map[string]string{
		"without a token": "Host: localhost", "with a wrong token": "Host: localhost\r\nAuthorization: Bearer x", "for another host": "Host: example.com",
		"with a token that cannot be read": "Host: localhost\r\nAuthorization: Bearer " + text,
	} {
		t.Run(name, func(t *testing.T) {
			before := len(r.log.String())
			for _, line := range []string{"GET /path/" + long, "PATH" + strings.Repeat("T", 31_000) + " /path/"} {
				c := dial(t, r)
				send(t, c, line+" HTTP/1.1\r\nConnection: close\r\n"+header+"\r\n\r\n")
				answer, err := io.ReadAll(c)
				require.NoError(t, err)
				require.Regexp(t, "^HTTP/1.1 (401|403|500)", string(answer))
			}
			log := r.log.String()[before:]
			assert.Contains(t, log, "path=")
			assert.Contains(t, log, "/path/")
			assert.Less(t, len(log), 4000)
		})
	}
}

// TestAttackUnreadableToken: a stream ends when its token cannot be read any more, since it may have been revoked. New
// requests are told to come later, and not that the token is wrong. The control is a server whose tokens can be read.
func TestAttackUnreadableToken(t *testing.T) {
	t.Parallel() // it waits for most of its time
	begin := func() (r *running, text, state string, ended <-chan struct{}) {
		state = stateFolder(t)
		of := tokensIn(t, state)
		text, _ = issued(t, of, auth.Token{Scopes: []auth.Scope{auth.Read}})
		r = start(t, Options{Tokens: of, Limits: Limits{Drain: time.Millisecond}}, waiting(), Endpoint{Pattern: "/echo", Handler: http.HandlerFunc(echo)})
		_, ended = r.waits(t, text)
		return r, text, state, ended
	}
	r, text, state, ended := begin()
	controlled, works, _, control := begin()
	file := filepath.Join(ledger.In(state), "ledger.db")
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Mkdir(file, 0o700))
	select {
	case <-ended:
	case <-time.After(10 * time.Second): // two seconds, and what a busy machine takes
		t.Error("the stream goes on")
	}
	select {
	case <-control:
		t.Error("the stream of a token that works ended")
	default:
	}
	assert.Contains(t, r.log.String(), standing.ErrUnchecked.Error())
	later := r.do(t, "GET", "/echo", "", "Authorization", "Bearer "+text)
	assert.Equal(t, http.StatusServiceUnavailable, later.status)
	assert.NotContains(t, later.body, "ledger")
	assert.Empty(t, later.header.Get("WWW-Authenticate"))
	assert.Contains(t, r.log.String(), "tokens cannot be checked")
	assert.Equal(t, http.StatusOK, controlled.do(t, "GET", "/echo", "", "Authorization", "Bearer "+works).status)
}

// TestConnectionsLeaveDescriptors: the server holds fewer connections than there are descriptors, and says so.
func TestConnectionsLeaveDescriptors(t *testing.T) {
	most := maxDescriptors()
	for _, test := range []struct{ asked, want int }{{2, 2}, {math.MaxInt, most / 4 * 3}} {
		r := &tooltest.Log{}
		s, err := New(Options{Limits: Limits{Connections: test.asked}, Logger: slog.New(slog.NewTextHandler(r, nil))})
		require.NoError(t, err)
		assert.Equal(t, test.want, s.options.Limits.Connections)
		assert.Equal(t, max(test.want/4, 1), s.options.Limits.Requests, "one tenant takes no more than a quarter")
		assert.Equal(t, test.want < test.asked, strings.Contains(r.String(), "too few descriptors"), r.String())
	}
}
