package breaker

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/caisson-run/caisson/internal/noerr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// step is one thing that happens. Calls have names of one letter.
type step struct {
	do    string        // "allow", "refuse", "succeed", "fail", "unknown" or "wait"
	call  string        // of all but "wait"; of "refuse", nothing
	state State         // that a report returns
	wait  time.Duration // of "wait"; of "refuse", until when
	count int           // of "refuse": failures in a row
}

const open = 30 * time.Second

func allow(call string) step            { return step{do: "allow", call: call} }
func succeed(call string, s State) step { return step{do: "succeed", call: call, state: s} }
func fail(call string, s State) step    { return step{do: "fail", call: call, state: s} }
func unknown(call string) step          { return step{do: "unknown", call: call} }
func wait(d time.Duration) step         { return step{do: "wait", wait: d} }

// refuse says that no call is let through, after so many failures and for so long.
func refuse(failures int, in time.Duration) step {
	return step{do: "refuse", count: failures, wait: in}
}

// failing lets n calls fail one after the other, the last of which does to the circuit what
// is said.
func failing(n int, last State) (all []step) {
	for i := range n {
		state := Unchanged
		if i == n-1 {
			state = last
		}
		all = append(all, allow("f"), fail("f", state))
	}
	return all
}

func TestCircuit(t *testing.T) {
	opened := failing(3, Opened) // all tests have three failures
	tests := []struct {
		name  string
		steps []step
	}{
		{"a success", []step{allow("a"), succeed("a", Unchanged), allow("a")}},
		{"too few failures", slices.Concat(failing(2, Unchanged), []step{allow("a")})},
		{"failures in a row", slices.Concat(opened, []step{refuse(3, open)})},
		{"a success between", slices.Concat(failing(2, Unchanged), []step{allow("a"), succeed("a", Unchanged)}, failing(2, Unchanged), []step{allow("a")})},
		{"what is unknown counts for nothing", slices.Concat(failing(2, Unchanged), []step{allow("a"), unknown("a"), allow("a"), fail("a", Opened)})},
		{"failures at the same time", []step{
			allow("a"), allow("b"), allow("c"), allow("d"), allow("e"),
			fail("a", Unchanged), fail("b", Unchanged), fail("c", Opened), fail("d", Unchanged), refuse(3, open),
			wait(open), allow("p"), succeed("e", Unchanged), refuse(3, open), succeed("p", Closed), allow("a"),
		}},
		{"failures far apart", []step{
			allow("a"), fail("a", Unchanged), wait(time.Hour), allow("a"), fail("a", Unchanged), wait(time.Hour), allow("a"), fail("a", Opened),
		}},
		{"until the time is up", slices.Concat(opened, []step{wait(open - 1), refuse(3, 1), wait(1), allow("p")})},
		{"one probe", slices.Concat(opened, []step{wait(open), allow("p"), refuse(3, open), wait(time.Second), refuse(3, open-time.Second)})},
		{"the probe succeeds", slices.Concat(opened, []step{wait(open), allow("p"), succeed("p", Closed), allow("a"), allow("b")}, failing(3, Opened))},
		{"the probe fails", slices.Concat(opened, []step{
			wait(open), allow("p"), wait(time.Second), fail("p", Opened), refuse(4, open),
			wait(open), allow("p"), fail("p", Opened), refuse(5, open),
			wait(open), allow("p"), succeed("p", Closed),
		}, failing(3, Opened))},
		{"nothing is known of the probe", slices.Concat(opened, []step{
			wait(open), allow("p"), wait(time.Second), unknown("p"), allow("q"), refuse(3, open), succeed("q", Closed),
		})},
		{"the probe is lost", slices.Concat(opened, []step{
			wait(open), allow("p"), wait(open - 1), refuse(3, 1), wait(1), allow("q"), refuse(3, open),
			succeed("p", Unchanged), fail("p", Unchanged), unknown("p"), refuse(3, open), succeed("q", Closed),
			fail("p", Unchanged), fail("q", Unchanged), succeed("q", Unchanged), allow("a"),
		}, failing(3, Opened))},
		{"successes from before do not close it", slices.Concat([]step{allow("a")}, opened, []step{succeed("a", Unchanged), refuse(3, open)})},
		{"nor while a probe is on its way", slices.Concat([]step{allow("a")}, opened, []step{wait(open), allow("p"), succeed("a", Unchanged), refuse(3, open)})},
		{"failures from before do not prolong it", slices.Concat([]step{allow("a"), allow("b")}, opened, []step{
			wait(open - 1), fail("a", Unchanged), refuse(3, 1), wait(1), allow("p"), fail("b", Unchanged), refuse(3, open), succeed("p", Closed),
		})},
		{"nor count when it is closed again", slices.Concat([]step{allow("a"), allow("b"), allow("c"), allow("d")}, opened, []step{
			wait(open), allow("p"), succeed("p", Closed), fail("a", Unchanged), fail("b", Unchanged), fail("c", Unchanged), allow("x"),
		}, failing(2, Unchanged), []step{succeed("d", Unchanged), fail("x", Opened)})},
		{"a success between when it is closed again", slices.Concat(opened, []step{wait(open), allow("p"), succeed("p", Closed)},
			failing(2, Unchanged), []step{allow("a"), succeed("a", Unchanged)}, failing(3, Opened))},
		{"quiet for long", slices.Concat(failing(2, Unchanged), []step{wait(open + quiet), allow("a"), fail("a", Opened)})},
		{"forgotten failures", slices.Concat(failing(2, Unchanged), []step{wait(open + quiet + 1)}, failing(2, Unchanged), []step{allow("a"), fail("a", Opened)})},
		{"forgotten failures before a success", slices.Concat([]step{allow("a")}, failing(2, Unchanged), []step{
			wait(open + quiet + 1), succeed("a", Unchanged)}, failing(3, Opened))},
		{"an open circuit that was quiet for long", slices.Concat(opened, []step{wait(open + quiet), allow("p"), refuse(3, open)})},
		{"a forgotten circuit", slices.Concat(opened, []step{wait(open + quiet + 1), allow("a"), allow("b")}, failing(3, Opened))},
		{"a forgotten probe", slices.Concat(opened, []step{wait(open), allow("p"), wait(open + quiet + 1), succeed("p", Unchanged), allow("a"), allow("b")})},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { play(t, New[string](3, open), test.steps) })
		})
	}
}

func play(t *testing.T, b *Breakers[string], all []step) {
	attempts := map[string]Attempt[string]{}
	for i, s := range all {
		message := fmt.Sprintf("step %d: %s %s", i, s.do, s.call)
		report := func(outcome Outcome) { require.Equal(t, s.state, attempts[s.call].Report(outcome), message) }
		switch s.do {
		case "allow":
			attempt, err := b.Allow("key")
			require.NoError(t, err, message)
			attempts[s.call] = attempt
		case "refuse":
			attempt, err := b.Allow("key")
			require.Zero(t, attempt)
			var refusal *OpenError
			require.ErrorAs(t, err, &refusal, message)
			require.Equal(t, OpenError{s.count, time.Now().Add(s.wait)}, *refusal, message)
		case "succeed":
			report(Succeeded)
		case "fail":
			report(Failed)
		case "unknown":
			report(Unknown)
		case "wait":
			time.Sleep(s.wait)
		}
		other := noerr.Get(b.Allow("other key"))(t)
		require.Equal(t, Unchanged, other.Report(Succeeded))
	}
}

func TestZeroAttempt(t *testing.T) {
	for _, outcome := range []Outcome{Unknown, Succeeded, Failed} {
		assert.Equal(t, Unchanged, Attempt[string]{}.Report(outcome))
	}
}

// TestKeysWithoutFailuresNeedNoMemory also counts those that have had some, but no longer.
func TestKeysWithoutFailuresNeedNoMemory(t *testing.T) {
	b := New[int](5, open)
	for key := range 1000 {
		for _, outcome := range []Outcome{Succeeded, Unknown, Failed, Failed, Succeeded} {
			attempt := noerr.Get(b.Allow(key))(t)
			attempt.Report(outcome)
		}
		require.Zero(t, b.circuits.Len())
	}
}

// TestKeysThatAreGone: keys that failed and never come back are forgotten.
func TestKeysThatAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New[int](5, open)
		const lasting = 3601 + 30 // keys, one in a second
		most := 0
		for key := range 20_000 {
			attempt := noerr.Get(b.Allow(key))(t)
			attempt.Report(Failed)
			most = max(most, b.circuits.Len())
			time.Sleep(time.Second)
		}
		assert.GreaterOrEqual(t, most, lasting)
		assert.LessOrEqual(t, most, 2*lasting+1)
	})
}
