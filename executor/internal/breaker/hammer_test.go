package breaker

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHammer: one report opens the circuit, and there is never more than one probe.
func TestHammer(t *testing.T) {
	const callers, rounds = 32, 50
	b := New[string](callers/2, time.Hour)
	var opened, closed, probing, probes, others atomic.Int64
	together := func(one func(i int)) {
		var group sync.WaitGroup
		for i := range callers {
			group.Go(func() { one(i) })
		}
		group.Wait()
	}
	pass := func() { // lets the time for which the circuit is open go by
		b.mu.Lock()
		defer b.mu.Unlock()
		c, _ := b.circuits.Get("key")
		c.until = c.until.Add(-2 * time.Hour)
	}
	note := func(state State) {
		switch state {
		case Opened:
			opened.Add(1)
		case Closed:
			closed.Add(1)
		}
	}
	probe := func(outcome Outcome) {
		together(func(int) {
			attempt, err := b.Allow("key")
			if err != nil {
				return
			}
			if attempt.probe == 0 { // the circuit was closed by the one that was a probe
				attempt.Report(Unknown)
				return
			}
			probes.Add(1)
			assert.Equal(t, int64(1), probing.Add(1), "probes at a time")
			probing.Add(-1)
			note(attempt.Report(outcome))
		})
	}
	for round := range int64(rounds) {
		var attempts [callers]Attempt[string]
		together(func(i int) {
			attempt, err := b.Allow("key")
			assert.NoError(t, err)
			attempts[i] = attempt
		})
		together(func(i int) {
			note(attempts[i].Report(Failed))
			if other, err := b.Allow(fmt.Sprint("other", i)); assert.NoError(t, err) {
				other.Report([]Outcome{Failed, Succeeded}[i%2])
				others.Add(1)
			}
		})
		require.Equal(t, 2*round+1, opened.Load(), "opened once")
		pass()
		probe(Failed)
		require.Equal(t, 2*round+2, opened.Load())
		pass()
		probe(Succeeded)
		require.Equal(t, round+1, closed.Load())
		require.Equal(t, 2*round+2, probes.Load(), "one probe was enough")
		if round%8 == 7 { // keeps the circuits of others from opening
			for i := range callers {
				if other, err := b.Allow(fmt.Sprint("other", i)); assert.NoError(t, err) {
					other.Report(Succeeded)
				}
			}
		}
	}
	assert.Equal(t, int64(callers*rounds), others.Load())
	assert.Equal(t, 1+callers/2, b.circuits.Len(), "those that failed since, and the one that had been open")
}
