package runtime

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// yielding is a program that calls sched_yield once.
var yielding = "\x00asm\x01\x00\x00\x00" + section(1, "\x02\x60\x00\x00\x60\x00\x01\x7f") +
	section(2, "\x01"+vector("wasi_snapshot_preview1")+vector("sched_yield")+"\x00\x01") + section(3, "\x01\x00") + section(5, "\x01\x00\x01") +
	section(7, "\x02"+vector("memory")+"\x02\x00"+vector("_start")+"\x00\x01") + section(10, "\x01"+vector("\x00\x10\x00\x1a\x0b"))

// stuck is a runtime in which sched_yield returns when the test says so, and whoever waits for calls
// in it. All guests but the first return at once.
type stuck struct {
	*Runtime
	release func()
	log     *safeBuffer

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

func newStuck(t *testing.T, options Options) *stuck {
	t.Helper()
	s := &stuck{log: &safeBuffer{}}
	released := make(chan struct{})
	s.release = sync.OnceFunc(func() { close(released) })
	var first sync.Once
	functions := offered()
	for i, f := range functions {
		if f.Name == "sched_yield" {
			functions[i].Call = func(context.Context, hostfuncs.Memory, []uint64) error {
				first.Do(func() { <-released })
				return nil
			}
		}
	}
	options.CacheDir, options.Logger = cacheDir(t), slog.New(slog.NewJSONHandler(s.log, nil))
	options.OnRunaway = func(r Runaway) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.runaways = append(s.runaways, r)
	}
	var err error
	s.Runtime, err = newWith(t.Context(), options, functions)
	require.NoError(t, err)
	t.Cleanup(func() {
		s.release()
		require.Eventually(t, func() bool { return s.watchdog.isIdle() }, 5*time.Second, time.Millisecond)
		_ = s.Close(context.Background())
	})
	return s
}

// isIdle reports whether no guest runs.
func (w *watchdog) isIdle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.first == nil
}

func (s *stuck) found() []Runaway {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runaways
}

// waiting is a host that is told when nobody need wait for a call.
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
		t.Fatal("nobody gave the call up")
	}
	return outcome, returned
}

func TestRunawayIsGivenUp(t *testing.T) {
	s := newStuck(t, Options{Concurrency: Concurrency{Running: 2}})
	guest := load(t, s.Runtime, named(t, "guest", yielding, "limits: {timeout: 300ms}"), manifests.Grants{})
	twin := load(t, s.Runtime, named(t, "twin", yielding, ""), manifests.Grants{})
	other := load(t, s.Runtime, named(t, "other", idle, ""), manifests.Grants{})
	require.NoError(t, guest.Prepare(t.Context()))
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
	assert.EqualValues(t, 1, s.Runaways())
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
	assert.Empty(t, twin.Unavailable(), "nobody knows its module yet")
	_, err = invoke(t, twin, `{}`)
	require.ErrorIs(t, err, tool.Denied, "the module is the same")
	assert.Contains(t, twin.Unavailable(), "could not be stopped")

	assert.Equal(t, 1, inside(s.gate), "its place is taken")
	for range 3 {
		_, err = invoke(t, other, `{}`)
		require.NoError(t, err, "other tools go on")
	}

	closing := time.Now()
	require.ErrorIs(t, s.Close(t.Context()), ErrRunaway)
	require.ErrorIs(t, s.Close(t.Context()), ErrRunaway, "still")
	assert.Less(t, time.Since(closing), time.Second)

	s.release()
	assert.Equal(t, tool.Deadline, (<-late).Result.Kind, "whatever the guest came to")
	assert.Zero(t, inside(s.gate))
	require.Eventually(t, func() bool { return s.Close(t.Context()) == nil }, 5*time.Second, 10*time.Millisecond)
	assert.EqualValues(t, 1, s.Runaways())
	assert.Len(t, s.found(), 1)
}

func TestRunawayOfACancelledCall(t *testing.T) {
	s := newStuck(t, Options{})
	guest := load(t, s.Runtime, named(t, "guest", yielding, "limits: {timeout: 10s}"), manifests.Grants{})
	require.NoError(t, guest.Prepare(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	outcome, _ := s.call(t, ctx, guest)
	assert.Equal(t, tool.Cancelled, outcome.Result.Kind)
	assert.Equal(t, "the call was cancelled, and the tool could not be stopped: this is a bug in Caisson", outcome.Result.Error)
}

func TestGuestThatIsALittleLateIsNoRunaway(t *testing.T) {
	s := newStuck(t, Options{})
	guest := load(t, s.Runtime, named(t, "guest", yielding, "limits: {timeout: 200ms}"), manifests.Grants{})
	require.NoError(t, guest.Prepare(t.Context()))
	time.AfterFunc(900*time.Millisecond, s.release)
	outcome, _ := s.call(t, t.Context(), guest)
	assert.NotContains(t, outcome.Result.Error, "bug")
	assert.Zero(t, s.Runaways())
	assert.Empty(t, guest.Unavailable())
}

// TestWatchdogTrustsNoClock: a guest that is hours late since the process was suspended may be as
// healthy as any.
func TestWatchdogTrustsNoClock(t *testing.T) {
	w := newWatchdog(nil, nil, nil, nil)
	now := time.Now()
	g := &guest{began: now.Add(-2 * time.Hour), deadline: now.Add(-time.Hour)}
	for range mostLooks - 1 {
		assert.False(t, w.check(g, now))
	}
	assert.True(t, w.check(g, now))
}

// within calls tools for a guest, as the executor does: it need not wait for one that cannot be
// stopped.
type within struct {
	tool.Host
	s     *stuck
	tools map[string]*Tool
	t     *testing.T
}

func (w within) Call(ctx context.Context, call tool.Call) (tool.Record, error) {
	outcome, _ := w.s.call(w.t, ctx, w.tools[call.Function.Name])
	return tool.Record{Call: call, Result: outcome.Result}, nil
}

// TestCallerOfARunawayGoesOn: a tool that waits for one is not to blame, and ends as any.
func TestCallerOfARunawayGoesOn(t *testing.T) {
	s := newStuck(t, Options{})
	callee := load(t, s.Runtime, named(t, "callee", yielding, "limits: {timeout: 300ms}"), manifests.Grants{})
	request := `{"name":"callee","arguments":{}}`
	caller := load(t, s.Runtime, named(t, "caller", requesting(request, 1, 1), "limits: {timeout: 10s}\npermissions: {tools: [callee]}"), calling("callee"))
	require.NoError(t, callee.Prepare(t.Context()))
	require.NoError(t, caller.Prepare(t.Context()))
	asked := invocation(t, `{}`, nil)
	asked.Host = within{s: s, tools: map[string]*Tool{"callee": callee}, t: t}
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

// events notes what a last resort is told.
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

// TestLastResort: it is armed before a guest can stop everything, later than the watchdog finds a
// runaway, and as long as there is one.
func TestLastResort(t *testing.T) {
	e := &events{}
	s := newStuck(t, Options{LastResort: e})
	guest := load(t, s.Runtime, named(t, "guest", yielding, "limits: {timeout: 300ms}"), manifests.Grants{})
	require.NoError(t, guest.Prepare(t.Context()))
	began := time.Now()
	s.call(t, t.Context(), guest)
	given := time.Now()
	deadline := s.found()[0].Deadline
	e.mu.Lock()
	require.NotEmpty(t, e.armed)
	assert.Equal(t, deadline.Add(overdue), e.armed[0])
	assert.Equal(t, "guest", e.next[0].Tool)
	assert.Equal(t, guest.digest.String(), e.next[0].SHA256)
	last := e.armed[len(e.armed)-1]
	e.mu.Unlock()
	assert.True(t, last.After(given), "it never comes while the watchdog runs")
	assert.Less(t, last.Sub(deadline), 3*time.Second)
	assert.Less(t, given.Sub(began), 2300*time.Millisecond)
	require.Eventually(t, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.armed[len(e.armed)-1].After(last)
	}, 5*time.Second, time.Millisecond, "it is put off while the process lives")
	assert.Zero(t, e.off)
	s.release()
	require.Eventually(t, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.off == 1
	}, 5*time.Second, time.Millisecond)
}

// TestLastResortIsForTheFirstDeadline: whoever stops the process, all guests stand still.
func TestLastResortIsForTheFirstDeadline(t *testing.T) {
	e := &events{}
	s := newStuck(t, Options{LastResort: e})
	slow := load(t, s.Runtime, named(t, "slow", yielding, "limits: {timeout: 10s}"), manifests.Grants{})
	quick := load(t, s.Runtime, named(t, "quick", idle, "limits: {timeout: 1s}"), manifests.Grants{})
	require.NoError(t, slow.Prepare(t.Context()))
	require.NoError(t, quick.Prepare(t.Context()))
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		_, _ = invoke(t, slow, `{}`)
	}()
	require.Eventually(t, func() bool { return !s.watchdog.isIdle() }, 5*time.Second, time.Millisecond)
	for range 2 {
		_, err := invoke(t, quick, `{}`)
		require.NoError(t, err)
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
