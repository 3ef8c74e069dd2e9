package queue

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
)

// stage lets calls come and go one by one. Calls are written "tenant/session/tool".
type stage struct {
	t     *testing.T
	queue *Queue
	mu    sync.Mutex // guards the fields below, which the test reads when all other goroutines are blocked
	began []string   // in this order
	turns map[string]*Place
	errs  map[string]error
}

func newStage(t *testing.T, limits Limits) *stage {
	// Limits that a test leaves out are not reached.
	limits.PerTenant, limits.PerTool = cmp.Or(limits.PerTenant, 100), cmp.Or(limits.PerTool, 100)
	limits.Waiting, limits.Wait = cmp.Or(limits.Waiting, 1024), cmp.Or(limits.Wait, 30*time.Second)
	return &stage{t: t, queue: New(limits), turns: map[string]*Place{}, errs: map[string]error{}}
}

func callOf(name string) Call {
	parts := append(strings.Split(name, "/"), "", "")
	return Call{Tenant: parts[0], Session: parts[1], Tool: parts[2]}
}

// enter lets calls come, in this order; what follows a "#" only tells them apart.
func (s *stage) enter(names ...string) {
	for _, name := range names {
		s.enterWith(s.t.Context(), name)
	}
}

func (s *stage) enterWith(ctx context.Context, name string) {
	s.t.Helper()
	require.NotContains(s.t, s.turns, name)
	call, _, _ := strings.Cut(name, "#")
	go func() {
		turn, err := s.queue.Enter(ctx, callOf(call))
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil {
			s.errs[name] = err
			return
		}
		s.began = append(s.began, name)
		s.turns[name] = turn
	}()
	synctest.Wait()
	s.check()
}

// leave ends a call, and asserts which begin for it.
func (s *stage) leave(name string, want ...string) {
	s.t.Helper()
	before := len(s.began)
	require.Contains(s.t, s.turns, name)
	turn := s.turns[name]
	delete(s.turns, name)
	turn.Leave()
	synctest.Wait()
	s.check()
	assert.Equal(s.t, append([]string{}, want...), append([]string{}, s.began[before:]...), "what begins when %s ends", name)
}

// end ends whatever runs, until nothing does.
func (s *stage) end() {
	for len(s.turns) > 0 {
		running := s.turns
		s.turns = map[string]*Place{}
		for _, turn := range running {
			turn.Leave()
		}
		synctest.Wait()
		s.check()
	}
	empty(s.t, s.queue)
}

func (s *stage) check() {
	s.t.Helper()
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	consistent(s.t, s.queue)
}

func TestWhoIsNext(t *testing.T) {
	tests := []struct {
		name   string
		limits Limits
		enter  []string
		leaves [][]string // the call that ends, and those that then begin
	}{
		{"the oldest of a session", Limits{Running: 1},
			[]string{"a/s/x#1", "a/s/x#2", "a/s/y#3", "a/s/x#4"},
			[][]string{{"a/s/x#1", "a/s/x#2"}, {"a/s/x#2", "a/s/y#3"}, {"a/s/y#3", "a/s/x#4"}, {"a/s/x#4"}}},
		{"the tenant with the fewest running", Limits{Running: 3, PerTenant: 3, PerTool: 3},
			[]string{"a/s/x#1", "a/s/x#2", "b/s/x#1", "a/s/x#3", "b/s/x#2", "c/s/x#1"},
			[][]string{{"a/s/x#1", "c/s/x#1"}, {"a/s/x#2", "a/s/x#3"}, {"c/s/x#1", "b/s/x#2"}}},
		{"the session with the fewest running", Limits{Running: 3, PerTenant: 3, PerTool: 3},
			[]string{"a/s/x#1", "a/s/x#2", "a/r/x#1", "a/s/x#3", "a/r/x#2", "a/q/x#1"},
			[][]string{{"a/s/x#1", "a/q/x#1"}, {"a/s/x#2", "a/s/x#3"}, {"a/q/x#1", "a/r/x#2"}}},
		{"the tenant before the session", Limits{Running: 4, PerTenant: 4, PerTool: 4},
			[]string{"a/s/x#1", "a/s/x#2", "a/s/x#3", "b/s/x#1", "a/r/x#1", "b/s/x#2"},
			[][]string{{"a/s/x#1", "b/s/x#2"}, {"b/s/x#1", "a/r/x#1"}}},
		{"tenants take turns", Limits{Running: 1},
			[]string{"a/s/x#1", "a/s/x#2", "a/s/x#3", "b/s/x#1", "b/s/x#2", "c/s/x#1"},
			[][]string{{"a/s/x#1", "a/s/x#2"}, {"a/s/x#2", "b/s/x#1"}, {"b/s/x#1", "c/s/x#1"}, {"c/s/x#1", "a/s/x#3"}, {"a/s/x#3", "b/s/x#2"}, {"b/s/x#2"}}},
		{"sessions take turns", Limits{Running: 1},
			[]string{"a/s/x#1", "a/s/x#2", "a/s/x#3", "a/r/x#1", "a/r/x#2", "a/q/x#1"},
			[][]string{{"a/s/x#1", "a/s/x#2"}, {"a/s/x#2", "a/r/x#1"}, {"a/r/x#1", "a/q/x#1"}, {"a/q/x#1", "a/s/x#3"}, {"a/s/x#3", "a/r/x#2"}, {"a/r/x#2"}}},
		{"a tool at its limit holds up nobody", Limits{Running: 3, PerTenant: 3, PerTool: 1},
			[]string{"a/s/x#1", "a/s/x#2", "a/s/y#1", "b/s/y#1", "a/s/z#1", "b/s/y#2"},
			[][]string{{"b/s/y#1", "b/s/y#2"}, {"b/s/y#2", "a/s/z#1"}, {"a/s/z#1"}, {"a/s/x#1", "a/s/x#2"}}},
		{"a tenant at its limit holds up nobody", Limits{Running: 2, PerTenant: 1},
			[]string{"a/s/x#1", "a/s/x#2", "b/s/x#1", "b/s/x#2", "a/s/y#3"},
			[][]string{{"b/s/x#1", "b/s/x#2"}, {"a/s/x#1", "a/s/x#2"}, {"b/s/x#2"}, {"a/s/x#2", "a/s/y#3"}}},
		{"a tool's limit is a tenant's", Limits{Running: 2, PerTool: 1, PerTenant: 2},
			[]string{"a/s/x#1", "b/s/x#1"},
			[][]string{{"a/s/x#1"}, {"b/s/x#1"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, test.limits)
				s.enter(test.enter...)
				for _, step := range test.leaves {
					s.leave(step[0], step[1:]...)
				}
				s.end()
			})
		})
	}
}

func TestRefusals(t *testing.T) {
	tests := []struct {
		name   string
		limits Limits
		here   []string
		call   string
		after  time.Duration
		kind   error
		limit  Limit
		text   string
	}{
		{"full: all", Limits{Running: 1, Waiting: 1}, []string{"b/s/x#1", "a/s/x#2"}, "a/s/x", 0, ErrFull, All, "queue: too many calls wait (limit: all)"},
		{"full: tenant", Limits{Running: 3, PerTenant: 1, PerTool: 3, Waiting: 1}, []string{"a/s/x#1", "a/s/x#2"}, "a/r/x", 0, ErrFull, Tenant, "queue: too many calls wait (limit: tenant)"},
		{"full: tool", Limits{Running: 3, PerTenant: 3, PerTool: 1, Waiting: 1}, []string{"a/s/x#1", "a/s/x#2"}, "a/s/x", 0, ErrFull, Tool, "queue: too many calls wait (limit: tool)"},
		{"waited: all", Limits{Running: 1, Wait: time.Minute}, []string{"b/s/x#1"}, "a/s/x", time.Minute, ErrWaited, All, "queue: waited too long (limit: all)"},
		{"waited: tenant", Limits{Running: 3, PerTenant: 1}, []string{"a/s/x#1"}, "a/s/y", 30 * time.Second, ErrWaited, Tenant, "queue: waited too long (limit: tenant)"},
		{"waited: tool", Limits{Running: 3, PerTenant: 3, PerTool: 1, Wait: 1}, []string{"a/s/x#1"}, "a/r/x", 1, ErrWaited, Tool, "queue: waited too long (limit: tool)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, test.limits)
				s.enter(test.here...)
				start := time.Now()
				turn, err := s.queue.Enter(t.Context(), callOf(test.call))
				require.Nil(t, turn)
				assert.Equal(t, test.after, time.Since(start))
				require.EqualError(t, err, test.text)
				require.ErrorIs(t, err, test.kind)
				var failure *Error
				require.ErrorAs(t, err, &failure)
				assert.Equal(t, Error{Kind: test.kind, Limit: test.limit}, *failure)
				s.end()
			})
		})
	}
}

func TestContextsThatEnd(t *testing.T) {
	for want, end := range map[error]func(context.Context) (context.Context, context.CancelFunc){
		context.DeadlineExceeded: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		},
		context.Canceled: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, Limits{Running: 1})
			s.enter("a/s/x#1", "a/s/x#2")
			ctx, cancel := end(t.Context())
			defer cancel()
			start := time.Now()
			for range 2 { // the second time, it has already ended
				place, err := s.queue.Enter(ctx, callOf("a/s/x"))
				require.Nil(t, place)
				require.ErrorIs(t, err, want)
				assert.Equal(t, time.Second, time.Since(start))
				s.check()
			}
			s.leave("a/s/x#1", "a/s/x#2")
			place, err := s.queue.Enter(ctx, callOf("b/s/x"))
			require.Nil(t, place, "nor where there is one")
			require.Error(t, err)
			s.end()
		})
	}
}

// TestGrantedWhileGivingUp: who gets a place at the moment of giving up hands it on.
func TestGrantedWhileGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, Limits{Running: 1, Wait: time.Minute})
		s.enter("a/s/x#1")
		ctx, cancel := context.WithCancel(t.Context())
		s.enterWith(ctx, "a/s/x#2")
		s.enter("a/s/x#3")
		first := s.turns["a/s/x#1"]
		delete(s.turns, "a/s/x#1")
		s.queue.mu.Lock() // so that the call is woken by its context, and finds that it has a place
		cancel()
		s.queue.end(first)
		s.queue.mu.Unlock()
		synctest.Wait()
		require.ErrorIs(t, s.errs["a/s/x#2"], context.Canceled)
		require.Equal(t, []string{"a/s/x#1", "a/s/x#3"}, s.began)
		s.end()
	})
}

// TestGrantedAsTheWaitEnds: a place that comes in the last moment is taken.
func TestGrantedAsTheWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, Limits{Running: 1, Wait: time.Minute})
		s.enter("a/s/x#1")
		s.enter("a/s/x#2")
		first := s.turns["a/s/x#1"]
		delete(s.turns, "a/s/x#1")
		s.queue.mu.Lock() // so that the call is woken by its timer, and finds that it has a place
		time.Sleep(time.Minute)
		s.queue.end(first)
		s.queue.mu.Unlock()
		synctest.Wait()
		require.Contains(t, s.turns, "a/s/x#2")
		s.end()
	})
}

func TestLeavingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, Limits{Running: 2, PerTenant: 2, PerTool: 2})
		s.enter("a/s/x#1", "a/s/x#2", "a/s/x#3", "a/s/x#4")
		first := s.turns["a/s/x#1"]
		s.leave("a/s/x#1", "a/s/x#3")
		for range 3 {
			first.Leave()
			synctest.Wait()
			s.check()
		}
		require.NotContains(t, s.turns, "a/s/x#4")
		s.end()
	})
}

// TestStarvation: one tenant's thousand calls hold up the one of each other tenant no longer
// than until as many calls have ended as there are tenants.
func TestStarvation(t *testing.T) {
	for _, others := range []int{1, 5} {
		t.Run(fmt.Sprint(others), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, Limits{Running: 8, PerTenant: 8, PerTool: 8})
				for i := range 1000 {
					s.enter(fmt.Sprintf("greedy/%d/x#%d", i%3, i))
				}
				for i := range others {
					s.enter(fmt.Sprintf("other-%d/s/x", i))
				}
				for i := range others {
					var ends string
					for name := range s.turns {
						if strings.HasPrefix(name, "greedy") {
							ends = name
						}
					}
					s.leave(ends, fmt.Sprintf("other-%d/s/x", i))
				}
				s.end()
				require.Len(t, s.began, 1000+others)
			})
		})
	}
}

// TestPlacesThatComeTooLate: a call whose context has ended by the time that it learns of its place does not get it.
func TestPlacesThatComeTooLate(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that it learns of both at once, but for a rare preemption
	synctest.Test(t, func(t *testing.T) {
		q := New(Limits{Running: 1, PerTenant: 1, PerTool: 1, Waiting: 1, Wait: time.Minute})
		refused := 0
		for range 100 {
			first := noerr.Get(q.Enter(t.Context(), Call{}))(t)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				place, err := q.Enter(ctx, Call{})
				if err == nil {
					place.Leave()
					return
				}
				assert.ErrorIs(t, err, context.Canceled)
				refused++
			}()
			synctest.Wait()
			first.Leave()
			cancel()
			<-done
		}
		assert.Greater(t, refused, 80)
		running, waiting := q.Load()
		assert.Equal(t, []int{0, 0}, []int{running, waiting})
	})
}
