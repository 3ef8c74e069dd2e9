package sessions

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/agents"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/tooltest"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/native"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a host with one tool that notes the sessions of its calls, and hears of their end.
type world struct {
	host   *caisson.Host
	agents *agents.Store

	mu    sync.Mutex
	ended []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{agents: tooltest.Agents(t, filepath.Join(t.TempDir(), "state"))}
	note := noerr.Get(native.New(native.About{
		Name: "note", Description: "Notes.", Behavior: manifests.Behavior{},
		CloseSession: func(_ context.Context, tenant, session string) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.ended = append(w.ended, tenant+"/"+session)
			return nil
		},
	}, func(context.Context, struct{}) (string, error) { return "noted", nil }))(t)
	w.host = tooltest.Host(t, caisson.Options{NoCache: true, Policies: []*manifests.Policy{}}, note)
	return w
}

func (w *world) sessions(t *testing.T, options Options) *Sessions {
	t.Helper()
	options.Agents = w.agents
	s := noerr.Get(New(w.host, options))(t)
	t.Cleanup(func() { assert.NoError(t, s.Close(context.Background())) })
	return s
}

func (w *world) endedSessions() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.ended...)
}

func (w *world) call(t *testing.T, session *executor.Session) tool.Record {
	t.Helper()
	report := noerr.Get(w.host.Execute(t.Context(), executor.Batch{Session: session, Calls: []tool.Call{{ID: "1", Function: tool.Function{Name: "note", Arguments: "{}"}}}}))(t)
	return report.Records[0]
}

func get(t *testing.T, s *Sessions, caller auth.Caller, id string) *executor.Session {
	t.Helper()
	session, done := noerr.Get2(s.Get(t.Context(), caller, id))(t)
	if id != "" {
		done()
	}
	return session
}

// TestAttackSessionsOfOthers: the same id of another tenant, token or user is another session, to the executor and to
// tools too. The control gets its own again.
func TestAttackSessionsOfOthers(t *testing.T) {
	w := newWorld(t)
	s := w.sessions(t, Options{})
	own := auth.Caller{ID: "token", Tenant: "acme", User: "ada"}
	first := get(t, s, own, "s")
	assert.Same(t, first, get(t, s, own, "s"), "the control")
	others := []auth.Caller{{ID: "token", Tenant: "other", User: "ada"}, {ID: "another", Tenant: "acme", User: "ada"}, {ID: "token", Tenant: "acme", User: "eve"}, {}}
	for _, other := range others {
		theirs := get(t, s, other, "s")
		assert.NotSame(t, first, theirs)
		assert.NotEqual(t, first.ID(), theirs.ID())
		w.call(t, theirs)
		assert.True(t, s.End(t.Context(), other, "s"))
		ended := w.endedSessions()
		assert.Equal(t, other.Tenant+"/"+theirs.ID(), ended[len(ended)-1])
	}
	assert.Same(t, first, get(t, s, own, "s"), "nobody else ends it")
}

// TestFind: a session is found by its caller, and looking for one makes none.
func TestFind(t *testing.T) {
	w := newWorld(t)
	s := w.sessions(t, Options{})
	caller := auth.Caller{ID: "token", Tenant: "acme"}
	found := func(caller auth.Caller, id string) *executor.Session {
		session, done := noerr.Get2(s.Find(t.Context(), caller, id))(t)
		done()
		return session
	}
	assert.Nil(t, found(caller, "s"))
	assert.Nil(t, found(caller, "s"), "it was not made")
	own := get(t, s, caller, "s")
	assert.Same(t, own, found(caller, "s"))
	assert.Nil(t, found(auth.Caller{ID: "another", Tenant: "acme"}, "s"))
	for _, id := range []string{"", "a b", strings.Repeat("a", 129)} {
		assert.ErrorIs(t, noerr.Error2(s.Find(t.Context(), caller, id)), ErrInvalidID, id)
	}
	caller.Agent = "a"
	assert.ErrorIs(t, noerr.Error2(s.Find(t.Context(), caller, "s")), agents.ErrNotFound)
	require.NoError(t, w.agents.Save(t.Context(), "acme", agents.Agent{Name: "a", AllowedTools: []string{"note"}}, w.host.Registry()))
	own = get(t, s, caller, "s")
	assert.Same(t, own, found(caller, "s"))
	assert.True(t, w.call(t, own).Result.Success)
	require.NoError(t, w.agents.Save(t.Context(), "acme", agents.Agent{Name: "a"}, w.host.Registry()))
	assert.Same(t, own, found(caller, "s"), "the agent has fewer tools now")
	assert.Equal(t, tool.Denied, w.call(t, own).Result.Kind)
	require.NoError(t, s.Close(t.Context()))
	caller.Agent = ""
	assert.ErrorIs(t, noerr.Error2(s.Find(t.Context(), caller, "s")), ErrClosed)
}

// TestAttackSessionsOfOneToken: a token that makes more sessions than its tenant may have ends its own, of which the
// one that was unused for longest is first: the control.
func TestAttackSessionsOfOneToken(t *testing.T) {
	s := newWorld(t).sessions(t, Options{Most: 4})
	now := time.Now()
	s.now = func() time.Time { now = now.Add(time.Millisecond); return now }
	ada, bob := auth.Caller{ID: "ada", Tenant: "acme"}, auth.Caller{ID: "bob", Tenant: "acme"}
	first, second := get(t, s, ada, "1"), get(t, s, ada, "2")
	for i := range 20 {
		get(t, s, bob, fmt.Sprint(i))
	}
	assert.Same(t, second, get(t, s, ada, "2"))
	assert.Same(t, first, get(t, s, ada, "1"))
	get(t, s, ada, "3")
	assert.Same(t, first, get(t, s, ada, "1"))
	assert.NotSame(t, second, get(t, s, ada, "2"), "the control")
}

func TestSessionsEnd(t *testing.T) {
	w := newWorld(t)
	s := w.sessions(t, Options{Most: 2, Idle: time.Minute})
	now := time.Now()
	s.now = func() time.Time { return now }
	caller := auth.Caller{Tenant: "acme"}
	ids := map[string]string{}
	for _, name := range []string{"a", "b", "c"} { // one more than there may be
		session := get(t, s, caller, name)
		assert.True(t, w.call(t, session).Result.Success)
		ids["acme/"+session.ID()] = name
		now = now.Add(time.Second)
	}
	get(t, s, auth.Caller{Tenant: "other"}, "a") // another tenant's do not count
	names := func() (names []string) {
		for _, ended := range w.endedSessions() {
			if name := ids[ended]; name != "" {
				names = append(names, name)
			}
		}
		return names
	}
	assert.Eventually(t, func() bool { return fmt.Sprint(names()) == "[a]" }, time.Minute, time.Millisecond, "the one unused for longest")

	now = now.Add(time.Minute - time.Second)
	get(t, s, caller, "c")
	now = now.Add(2 * time.Second)
	get(t, s, caller, "c")
	assert.Eventually(t, func() bool { return fmt.Sprint(names()) == "[a b]" }, time.Minute, time.Millisecond, "unused for a minute")

	assert.True(t, s.End(t.Context(), caller, "c"))
	assert.False(t, s.End(t.Context(), caller, "c"))
	assert.Equal(t, []string{"a", "b", "c"}, names())

	single, done := noerr.Get2(s.Get(t.Context(), caller, ""))(t)
	assert.True(t, w.call(t, single).Result.Success)
	done()
	assert.Contains(t, w.endedSessions(), "acme/"+single.ID())
}

// TestSessionsInUseStay: a session in use is not ended to make room, and one too many is refused.
func TestSessionsInUseStay(t *testing.T) {
	s := newWorld(t).sessions(t, Options{Most: 1, Idle: time.Nanosecond})
	used, done := noerr.Get2(s.Get(t.Context(), auth.Caller{}, "used"))(t)
	s.now = func() time.Time { return time.Now().Add(time.Hour) }
	require.ErrorIs(t, noerr.Error2(s.Get(t.Context(), auth.Caller{}, "more")), ErrTooMany)
	assert.Same(t, used, get(t, s, auth.Caller{}, "used"))
	done()
	done() // twice is once
	get(t, s, auth.Caller{}, "more")
}

func TestSessionsOfAgents(t *testing.T) {
	w := newWorld(t)
	s := w.sessions(t, Options{})
	caller := auth.Caller{Tenant: "acme", Agent: "noter"}
	require.ErrorIs(t, noerr.Error2(s.Get(t.Context(), caller, "s")), agents.ErrNotFound)
	save := func(names ...string) {
		require.NoError(t, w.agents.Save(t.Context(), "acme", agents.Agent{Name: "noter", AllowedTools: names}, w.host.Registry()))
	}
	save()
	assert.Equal(t, tool.Denied, w.call(t, get(t, s, caller, "s")).Result.Kind, "an agent without tools may call none")
	save("note")
	assert.True(t, w.call(t, get(t, s, caller, "s")).Result.Success, "what changed holds for the next request")
	require.ErrorIs(t, noerr.Error2(s.Get(t.Context(), auth.Caller{Tenant: "other", Agent: "noter"}, "s")), agents.ErrNotFound, "it is another tenant's")
	none := noerr.Get(New(w.host, Options{}))(t)
	require.ErrorIs(t, noerr.Error2(none.Get(t.Context(), caller, "")), agents.ErrNotFound)
	require.NoError(t, none.Close(t.Context()))
}

func TestWrongIDs(t *testing.T) {
	s := newWorld(t).sessions(t, Options{})
	for _, id := range []string{" ", "a b", "a\n", "é", string(make([]byte, 129)), "a\x7f"} {
		require.ErrorIs(t, noerr.Error2(s.Get(t.Context(), auth.Caller{}, id)), ErrInvalidID)
	}
	require.Error(t, noerr.Error(New(nil, Options{Most: -1})))
	require.NoError(t, s.Close(t.Context()))
	require.ErrorIs(t, noerr.Error2(s.Get(t.Context(), auth.Caller{}, "a")), ErrClosed)
}

// TestSessionsAtOnce: many callers get, use and end sessions at the same time.
func TestSessionsAtOnce(t *testing.T) {
	w := newWorld(t)
	s := w.sessions(t, Options{Most: 3, Idle: time.Millisecond})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 30 {
				caller := auth.Caller{Tenant: fmt.Sprint(i % 2)}
				session, done, err := s.Get(t.Context(), caller, fmt.Sprint(j%4))
				if errors.Is(err, ErrTooMany) {
					continue
				}
				if assert.NoError(t, err) {
					// Another caller may have ended the session meanwhile, which refuses the batch.
					_, _ = w.host.Execute(t.Context(), executor.Batch{Session: session, Calls: []tool.Call{{ID: "1", Function: tool.Function{Name: "note", Arguments: "{}"}}}})
					done()
				}
				if j%7 == 0 {
					s.End(t.Context(), caller, fmt.Sprint(j%4))
				}
			}
		})
	}
	all.Wait()
}
