package breaker

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/testsize"
)

type options struct {
	Failures int
	Open     time.Duration
}

// reference is one circuit, kept for good.
type reference struct {
	options  options
	failures int
	open     bool
	until    time.Time
	opened   int       // the step at which it last opened
	probe    *modelled // that may report
	heard    time.Time // when a failure was counted, or a probe sent or back
}

// modelled is a call that was let through.
type modelled struct {
	attempt Attempt[int]
	step    int
	key     int
}

func (r *reference) forget() {
	if time.Since(r.heard) > r.options.Open+quiet {
		*r = reference{options: r.options}
	}
}

func (r *reference) allow(c *modelled) bool {
	r.forget()
	if !r.open {
		return true
	}
	if time.Now().Before(r.until) {
		return false
	}
	r.probe, r.until, r.heard = c, time.Now().Add(r.options.Open), time.Now()
	return true
}

func (r *reference) report(c *modelled, outcome Outcome, step int) State {
	r.forget()
	isProbe := r.probe == c
	counts := isProbe || !r.open && c.step > r.opened && !c.wasProbe()
	if !counts || outcome == Unknown && !isProbe {
		return Unchanged
	}
	if isProbe {
		r.probe, r.heard, r.until = nil, time.Now(), time.Now()
	}
	switch outcome {
	case Succeeded:
		r.failures = 0
		if isProbe {
			r.open = false
			return Closed
		}
	case Failed:
		r.failures++
		r.heard = time.Now()
		if isProbe || r.failures >= r.options.Failures {
			r.open, r.until, r.opened = true, time.Now().Add(r.options.Open), step
			return Opened
		}
	}
	return Unchanged
}

// wasProbe reports whether a call was let through as a probe: its report counts only
// while it is the probe.
func (c *modelled) wasProbe() bool { return c.attempt.probe > 0 }

// TestModel drives breakers and references with the same random steps.
func TestModel(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 5))
				compare(t, random, options{1 + random.IntN(5), time.Duration(1+random.IntN(100)) * time.Second}, testsize.Of(2000, 5000))
			})
		})
	}
}

func compare(t *testing.T, random *rand.Rand, options options, steps int) {
	b := New[int](options.Failures, options.Open)
	var references [3]reference
	for i := range references {
		references[i].options = options
	}
	var running []*modelled
	states := map[State]int{}
	failing := random.Float64()
	for step := 1; step <= steps; step++ {
		switch action := random.IntN(100); {
		case action < 45:
			c := &modelled{step: step, key: random.IntN(len(references))}
			attempt, err := b.Allow(c.key)
			c.attempt = attempt
			r := &references[c.key]
			if !r.allow(c) {
				require.Equal(t, &OpenError{r.failures, r.until}, err, "step %d", step)
				continue
			}
			require.NoError(t, err, "step %d", step)
			running = append(running, c)
		case action < 90 && len(running) > 0:
			i := random.IntN(len(running))
			c := running[i]
			running[i] = running[len(running)-1]
			running = running[:len(running)-1]
			outcome := Succeeded
			if random.Float64() < failing {
				outcome = Failed
			}
			if random.IntN(6) == 0 {
				outcome = Unknown
			}
			got := c.attempt.Report(outcome)
			require.Equal(t, references[c.key].report(c, outcome, step), got, "step %d", step)
			states[got]++
		case action < 98:
			time.Sleep(time.Duration(random.Int64N(int64(options.Open/2) + 1)))
		case action == 98 && len(running) > 0: // a caller that never reports
			running = running[1:]
		case random.IntN(10) == 0:
			time.Sleep(time.Duration(random.Int64N(int64(2*quiet) + 1)))
			failing = random.Float64()
		}
	}
	assert.NotZero(t, states[Opened])
	assert.NotZero(t, states[Closed])
}

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
		if round%8 == 7 { // keeps the circuits of other keys from opening
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
