package runtime

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/planning"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/tool"
)

// yielding is a program that calls sched_yield once.
var yielding = magic + section(1, "\x02\x60\x00\x00\x60\x00\x01\x7f") +
	section(2, "\x01"+vector("wasi_snapshot_preview1")+vector("sched_yield")+"\x00\x01") + section(3, "\x01\x00") + section(5, "\x01\x00\x01") +
	section(7, "\x02"+vector("memory")+"\x02\x00"+vector("_start")+"\x00\x01") + section(10, "\x01"+vector("\x00\x10\x00\x1a\x0b"))

// stuck is a runtime whose sched_yield blocks the first guests until the test releases them, and returns at once for
// all later ones.
type stuck struct {
	*Runtime
	release  func()       // of the first
	releases []func()     // of all that do not return at once
	came     atomic.Int32 // guests that called it
	log      *safeBuffer

	mu       sync.Mutex
	runaways []Runaway
}

// safeBuffer is a buffer for several goroutines.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// newStuck returns one in which the first count guests do not return at once.
func newStuck(t *testing.T, options Options, count int) *stuck {
	t.Helper()
	s := &stuck{log: &safeBuffer{}}
	released := make([]chan struct{}, count)
	for i := range released {
		released[i] = make(chan struct{})
		s.releases = append(s.releases, sync.OnceFunc(func() { close(released[i]) }))
	}
	s.release = s.releases[0]
	functions := offeredFunctions()
	for i, f := range functions {
		if f.Name == "sched_yield" {
			functions[i].Call = func(context.Context, hostfuncs.Memory, []uint64) error {
				if i := int(s.came.Add(1)) - 1; i < count {
					<-released[i]
				}
				return nil
			}
		}
	}
	options.CacheDir, options.Logger = cacheDir, slog.New(slog.NewJSONHandler(s.log, nil))
	options.OnRunaway = func(r Runaway) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.runaways = append(s.runaways, r)
	}
	var err error
	s.Runtime, err = newWith(t.Context(), options, functions)
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, release := range s.releases {
			release()
		}
		require.Eventually(t, func() bool { return s.Close(context.Background()) == nil }, 5*time.Second, time.Millisecond)
	})
	return s
}

// guest loads a program that calls sched_yield, and prepares it.
func (s *stuck) guest(t *testing.T, timeout string) *Tool {
	t.Helper()
	guest := load(t, s.Runtime, named(t, "guest", yielding, "limits: {timeout: "+timeout+"}"), manifests.Grants{})
	require.NoError(t, guest.Prepare(t.Context()))
	return guest
}

func (s *stuck) found() []Runaway {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runaways
}

// waiting is a host that learns when a call is abandoned.
type waiting struct {
	tool.Host
	given chan tool.Outcome
}

func newWaiting() *waiting { return &waiting{given: make(chan tool.Outcome, 1)} }

func (w *waiting) Abandon(outcome tool.Outcome, _ error) { w.given <- outcome }

// call makes a call that may never return, as the executor does.
func (s *stuck) call(t *testing.T, ctx context.Context, guest *Tool) (outcome tool.Outcome, late <-chan tool.Outcome) {
	t.Helper()
	host, returned := newWaiting(), make(chan tool.Outcome, 1)
	asked := invocation(t, `{}`, nil)
	asked.Host = host
	go func() {
		outcome, _ := guest.Invoke(ctx, asked)
		returned <- outcome
	}()
	select {
	case outcome = <-host.given:
	case outcome = <-returned:
	case <-time.After(20 * time.Second):
		t.Fatal("the call was not abandoned")
	}
	return outcome, returned
}

func TestRunawayIsGivenUp(t *testing.T) {
	s := newStuck(t, Options{Running: 2}, 1)
	guest := s.guest(t, "300ms")
	twin := load(t, s.Runtime, named(t, "twin", yielding, ""), manifests.Grants{})
	other := load(t, s.Runtime, named(t, "other", idle, ""), manifests.Grants{})
	require.NoError(t, other.Prepare(t.Context()))
	assert.Empty(t, guest.Unavailable())

	began := time.Now()
	outcome, late := s.call(t, t.Context(), guest)
	took := time.Since(began)
	assert.GreaterOrEqual(t, took, 1300*time.Millisecond)
	assert.Less(t, took, 2300*time.Millisecond)
	assert.Equal(t, tool.Deadline, outcome.Result.Kind)
	assert.Equal(t, "the tool did not finish before its deadline of 300ms and could not be stopped: this is a bug in Caisson", outcome.Result.Error)
	assert.GreaterOrEqual(t, outcome.Usage.Wall, 1300*time.Millisecond)

	found := s.found()
	require.Len(t, found, 1)
	assert.Equal(t, "the-call", found[0].CallID)
	assert.Equal(t, "guest", found[0].Tool)
	assert.Equal(t, guest.digest.String(), found[0].SHA256)
	assert.Equal(t, "wasi_snapshot_preview1.sched_yield", found[0].HostFunction)
	assert.Equal(t, 300*time.Millisecond, found[0].Deadline.Sub(found[0].Began))
	log := s.log.String()
	assert.Equal(t, 1, strings.Count(log, "could not be stopped"), log)
	for _, part := range []string{`"level":"ERROR"`, `"call_id":"the-call"`, `"sha256":"` + found[0].SHA256, "in the host function wasi_snapshot_preview1.sched_yield"} {
		assert.Contains(t, log, part)
	}

	assert.Contains(t, guest.Unavailable(), "could not be stopped")
	refused, err := invoke(t, guest, `{}`)
	require.ErrorIs(t, err, tool.Denied)
	assert.Contains(t, refused.Result.Error, "unavailable")
	assert.Empty(t, twin.Unavailable(), "its module is not known yet")
	_, err = invoke(t, twin, `{}`)
	require.ErrorIs(t, err, tool.Denied, "the module is the same")
	assert.Contains(t, twin.Unavailable(), "could not be stopped")

	assert.Equal(t, 1, inside(s.gate), "its place is taken")
	for range 3 {
		mustInvoke(t, other, `{}`)
	}

	closing := time.Now()
	require.ErrorIs(t, s.Close(t.Context()), ErrRunaway)
	require.ErrorIs(t, s.Close(t.Context()), ErrRunaway, "still")
	assert.Less(t, time.Since(closing), time.Second)

	s.release()
	assert.Equal(t, tool.Deadline, (<-late).Result.Kind, "whatever the guest came to")
	assert.Zero(t, inside(s.gate))
	require.Eventually(t, func() bool { return s.Close(t.Context()) == nil }, 5*time.Second, 10*time.Millisecond)
	assert.Len(t, s.found(), 1)
}

func TestRunawayOfACancelledCall(t *testing.T) {
	s := newStuck(t, Options{}, 1)
	guest := s.guest(t, "10s")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	outcome, _ := s.call(t, ctx, guest)
	assert.Equal(t, tool.Cancelled, outcome.Result.Kind)
	assert.Equal(t, "the call was cancelled, and the tool could not be stopped: this is a bug in Caisson", outcome.Result.Error)
}

func TestGuestThatIsALittleLateIsNoRunaway(t *testing.T) {
	s := newStuck(t, Options{}, 1)
	guest := s.guest(t, "200ms")
	time.AfterFunc(900*time.Millisecond, s.release)
	outcome, _ := s.call(t, t.Context(), guest)
	assert.NotContains(t, outcome.Result.Error, "bug")
	assert.Empty(t, s.found())
	assert.Empty(t, guest.Unavailable())
}

// TestCallerOfARunawayGoesOn: a tool that waits for one is not to blame, and ends as any.
func TestCallerOfARunawayGoesOn(t *testing.T) {
	s := newStuck(t, Options{}, 1)
	callee := load(t, s.Runtime, named(t, "callee", yielding, "limits: {timeout: 300ms}"), manifests.Grants{})
	request := `{"name":"callee","arguments":{}}`
	caller := load(t, s.Runtime, named(t, "caller", requesting(request, 1, 1), "limits: {timeout: 10s}\npermissions: {tools: [callee]}"), calling("callee"))
	require.NoError(t, callee.Prepare(t.Context()))
	require.NoError(t, caller.Prepare(t.Context()))
	asked := invocation(t, `{}`, nil)
	asked.Host = callsBy(func(ctx context.Context, call tool.Call) (tool.Record, error) {
		outcome, _ := s.call(t, ctx, callee)
		return tool.Record{Call: call, Result: outcome.Result}, nil
	})
	outcome, err := caller.Invoke(t.Context(), asked)
	require.NoError(t, err, outcome.Result.Error)
	assert.Empty(t, caller.Unavailable())
	found := s.found()
	require.Len(t, found, 1)
	assert.Equal(t, "callee", found[0].Tool)
	assert.Equal(t, 1, inside(s.gate), "the runaway has taken over its caller's place")
	s.release()
	require.Eventually(t, func() bool { return inside(s.gate) == 0 }, 5*time.Second, time.Millisecond)
}

// TestSeatOfARunawayIsNobodyElses: a tool of the host's makes several calls for a guest, of which the first cannot be
// stopped. None of the other calls runs, not even after the first has returned.
func TestSeatOfARunawayIsNobodyElses(t *testing.T) {
	s := newStuck(t, Options{}, 2)
	callee := load(t, s.Runtime, named(t, "callee", yielding, "limits: {timeout: 300ms}"), manifests.Grants{})
	second := load(t, s.Runtime, named(t, "second", yielding+section(0, vector("another")), "limits: {timeout: 300ms}"), manifests.Grants{})
	caller := load(t, s.Runtime, named(t, "caller", requesting(`{"name":"callee","arguments":{}}`, 1, 1), "limits: {timeout: 20s}\npermissions: {tools: [callee]}"), calling("callee"))
	for _, guest := range []*Tool{callee, second, caller} {
		require.NoError(t, guest.Prepare(t.Context()))
	}
	var waiting, after tool.Outcome
	asked := invocation(t, `{}`, nil)
	asked.Host = callsBy(func(ctx context.Context, call tool.Call) (tool.Record, error) {
		var group sync.WaitGroup
		group.Go(func() {
			assert.Eventually(t, func() bool { return s.came.Load() == 1 }, 5*time.Second, time.Millisecond)
			waiting, _ = s.call(t, ctx, second)
		})
		outcome, late := s.call(t, ctx, callee)
		s.release()
		<-late
		after, _ = s.call(t, ctx, second)
		group.Wait()
		return tool.Record{Call: call, Result: outcome.Result}, nil
	})
	outcome, err := caller.Invoke(t.Context(), asked)
	require.NoError(t, err, outcome.Result.Error)
	for _, refused := range []tool.Outcome{waiting, after} {
		assert.Equal(t, tool.Busy, refused.Result.Kind)
		assert.Contains(t, refused.Result.Error, "could not be stopped")
	}
	assert.Len(t, s.found(), 1)
	assert.Empty(t, second.Unavailable())
	assert.Zero(t, inside(s.gate), "every place was given back")
}

// TestTurnEndsOnce: a call that has released its lease cannot lose it, and one that has lost it cannot release it.
func TestTurnEndsOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &nestedSlot{ctx: ctx, cancel: cancel, free: make(chan struct{}, 1), lost: make(chan struct{})}
	s.free <- struct{}{}
	_, first, err := s.acquire(t.Context())
	require.NoError(t, err)
	first.release()
	first.lose()
	_, second, err := s.acquire(t.Context())
	require.NoError(t, err, "a released lease is not lost")
	second.lose()
	second.lose()
	second.release()
	_, _, err = s.acquire(t.Context())
	require.ErrorIs(t, err, errLost)
	s.close()
}

// closeTwice has two goroutines close the runtime, and returns their errors.
func (s *stuck) closeTwice(t *testing.T) <-chan error {
	t.Helper()
	closed := make(chan error, 2)
	for range 2 {
		go func() { closed <- s.Close(context.WithoutCancel(t.Context())) }()
	}
	return closed
}

// soon receives from a channel, and fails the test if nothing comes in time.
func soon[T any](t *testing.T, from <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(5 * time.Second):
		t.Fatal("nothing comes")
	}
	return value
}

// TestCloseTwiceWaitsForACall: two goroutines that close a runtime wait for a running guest, and it
// is not reported as a runaway.
func TestCloseTwiceWaitsForACall(t *testing.T) {
	s := newStuck(t, Options{}, 1)
	guest := s.guest(t, "10s")
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		_, _ = invoke(t, guest, `{}`)
	}()
	require.Eventually(t, func() bool { return s.came.Load() == 1 }, 5*time.Second, time.Millisecond)
	closed := s.closeTwice(t)
	select {
	case err := <-closed:
		t.Errorf("a call is running, and Close returned %v", err)
	case <-time.After(400 * time.Millisecond):
	}
	s.release()
	<-returned
	for range 2 {
		require.NoError(t, soon(t, closed))
	}
	require.NoError(t, s.Close(t.Context()), "once more")
	_, err := s.Load(t.Context(), guest.manifest, manifests.Grants{})
	require.ErrorIs(t, err, engine.ErrClosed)
	assert.Empty(t, s.found())
}

// TestCloseTwiceWithARunaway: all calls of Close return an error once it is known that a guest cannot be stopped.
func TestCloseTwiceWithARunaway(t *testing.T) {
	s := newStuck(t, Options{}, 1)
	guest := s.guest(t, "300ms")
	go func() { _, _ = invoke(t, guest, `{}`) }()
	require.Eventually(t, func() bool { return s.came.Load() == 1 }, 5*time.Second, time.Millisecond)
	closed := s.closeTwice(t)
	for range 2 {
		require.ErrorIs(t, soon(t, closed), ErrRunaway)
		assert.Contains(t, guest.Unavailable(), "could not be stopped", "not before it is one")
	}
	s.release()
	require.Eventually(t, func() bool { return s.Close(t.Context()) == nil }, 5*time.Second, 10*time.Millisecond)
}

// events records the calls of a last resort.
type events struct {
	mu    sync.Mutex
	armed []time.Time
	next  []Runaway
	off   int
}

func (e *events) Arm(at time.Time, next Runaway) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.armed, e.next = append(e.armed, at), append(e.next, next)
}

func (e *events) Disarm() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.off++
}

// eventually waits until a condition about the events is true.
func (e *events) eventually(t *testing.T, condition func() bool, why string) {
	t.Helper()
	require.Eventually(t, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return condition()
	}, 5*time.Second, time.Millisecond, why)
}

// TestLastResort: it is armed before a guest can stop everything, later than the watchdog finds a
// runaway, and as long as there is one.
func TestLastResort(t *testing.T) {
	e := &events{}
	s := newStuck(t, Options{LastResort: e}, 1)
	guest := s.guest(t, "300ms")
	began := time.Now()
	s.call(t, t.Context(), guest)
	given := time.Now()
	deadline := s.found()[0].Deadline
	e.mu.Lock()
	require.NotEmpty(t, e.armed)
	assert.Equal(t, deadline.Add(2*time.Second), e.armed[0])
	assert.Equal(t, "guest", e.next[0].Tool)
	assert.Equal(t, guest.digest.String(), e.next[0].SHA256)
	last := e.armed[len(e.armed)-1]
	e.mu.Unlock()
	assert.True(t, last.After(given), "it never comes while the watchdog runs")
	assert.Less(t, last.Sub(deadline), 5*time.Second)
	assert.Less(t, given.Sub(began), 2300*time.Millisecond)
	e.eventually(t, func() bool { return e.armed[len(e.armed)-1].After(last) }, "it is put off while the process lives")
	assert.Zero(t, e.off)
	s.release()
	e.eventually(t, func() bool { return e.off == 1 }, "no guest runs")
}

// TestLastResortIsForTheFirstDeadline: the last resort is armed for the earliest deadline of all
// running guests, because any of them may block the whole process.
func TestLastResortIsForTheFirstDeadline(t *testing.T) {
	e := &events{}
	s := newStuck(t, Options{LastResort: e}, 1)
	slow := load(t, s.Runtime, named(t, "slow", yielding, "limits: {timeout: 10s}"), manifests.Grants{})
	quick := load(t, s.Runtime, named(t, "quick", idle, "limits: {timeout: 1s}"), manifests.Grants{})
	require.NoError(t, slow.Prepare(t.Context()))
	require.NoError(t, quick.Prepare(t.Context()))
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		_, _ = invoke(t, slow, `{}`)
	}()
	require.Eventually(t, func() bool { return s.came.Load() == 1 }, 5*time.Second, time.Millisecond)
	for range 2 {
		mustInvoke(t, quick, `{}`)
	}
	s.release()
	<-returned
	e.mu.Lock()
	defer e.mu.Unlock()
	require.GreaterOrEqual(t, len(e.armed), 2)
	assert.Equal(t, "slow", e.next[0].Tool)
	assert.Equal(t, "quick", e.next[1].Tool)
	assert.Less(t, e.armed[1].Sub(e.armed[0]), -5*time.Second)
}

// TestGuestsAreWatchedWhileTheHostPlans: a guest that waits for another tool is not watched, since the tool is. While
// the host plans the call, the guest must be watched, since no tool runs.
func TestGuestsAreWatchedWhileTheHostPlans(t *testing.T) {
	for name, plans := range map[string]bool{"the host plans": true, "a tool of the host's runs": false} {
		t.Run(name, func(t *testing.T) {
			s := newStuck(t, Options{}, 1)
			caller := load(t, s.Runtime, named(t, "caller", requesting(`{"name":"callee","arguments":{}}`, 1, 1), "limits: {timeout: 300ms}\npermissions: {tools: [callee]}"), calling("callee"))
			require.NoError(t, caller.Prepare(t.Context()))
			planned := make(chan struct{})
			host := newWaiting()
			host.Host = callsBy(func(ctx context.Context, call tool.Call) (tool.Record, error) {
				end := planning.Begin(ctx)
				if !plans {
					end()
				}
				<-planned
				if plans {
					end()
				}
				return tool.Record{Call: call}, nil
			})
			asked := invocation(t, `{}`, nil)
			asked.Host = host
			returned := make(chan struct{})
			go func() {
				defer close(returned)
				_, _ = caller.Invoke(t.Context(), asked)
			}()
			select {
			case outcome := <-host.given:
				assert.True(t, plans)
				assert.Equal(t, tool.Deadline, outcome.Result.Kind)
			case <-time.After(2500 * time.Millisecond):
				assert.False(t, plans, "the call was not abandoned")
			}
			close(planned)
			<-returned
			assert.Equal(t, plans, len(s.found()) == 1)
		})
	}
}
