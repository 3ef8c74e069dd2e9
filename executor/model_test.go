package executor_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/tool"
)

var modelSeed = flag.Uint64("model.seed", 0, "the seed of TestModel's batches; 0: another one each time")

// TestModel runs random batches of several sessions of several tenants at once, and compares
// each with a reference that runs its calls one after the other. What sessions of a tenant
// share must have been true while it was asked for, and every call be accounted for once:
// in its report, at the recorder, in the events and by the tools themselves.
func TestModel(t *testing.T) {
	seed := *modelSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	each := testsize.Of(30, 150) // batches of each session
	for name, options := range modelOptions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			history := playModel(t, options, seed, each)
			if !assert.Empty(t, history.check()) {
				t.Logf("go test -run 'TestModel/%s' ./executor -args -model.seed %d", name, seed)
			}
			assert.Len(t, history.batches, modelSessions*each)
			cached := 0
			for _, entry := range history.entries {
				if entry.Record.Cached {
					cached++
				}
			}
			if options.Reuse.Scope == executor.ReuseTenant || options.Reuse.Scope == executor.ReuseSession {
				assert.Greater(t, cached, 15, "the test is of nothing otherwise")
			}
		})
	}
}

// modelSessions is the number of sessions, of three tenants.
const modelSessions = 9

func modelOptions() map[string]executor.Options {
	base := executor.Options{
		Reuse: executor.Reuse{Scope: executor.ReuseTenant}, Rates: unlimited, Breaker: executor.Breaker{Off: true},
		Nesting: executor.Nesting{Calls: 1000, Depth: 10}, Output: executor.Output{PerCall: 1000, PerBatch: 4000},
	}
	with := func(change func(*executor.Options)) executor.Options {
		changed := base
		change(&changed)
		return changed
	}
	return map[string]executor.Options{
		"tenant":  base,
		"session": with(func(o *executor.Options) { o.Reuse.Scope = executor.ReuseSession }),
		"batch":   with(func(o *executor.Options) { o.Reuse.Scope = executor.ReuseBatch }),
		"none":    with(func(o *executor.Options) { o.Reuse.Scope = executor.ReuseNone }),
		"little room": with(func(o *executor.Options) {
			o.Limits, o.Parallel = executor.Limits{Running: 1, PerTenant: 1, PerTool: 1}, 2
		}),
		"little memory": with(func(o *executor.Options) { o.Reuse.Bytes, o.Output.Kept = 10_000, 5000 }),
	}
}

// playModel runs the batches and returns their history.
func playModel(t *testing.T, options executor.Options, seed uint64, each int) *modelHistory {
	t.Helper()
	world, kept := newModelWorld(), &ledger{}
	options.Recorder = kept
	e := newExecutor(t, options, world.tools(t)...)
	for i := range modelSessions {
		world.sessions = append(world.sessions, newSession(t, e, executor.SessionOptions{
			ID: fmt.Sprint("s", i), Tenant: fmt.Sprint("t", i%3), Allowed: allButSecret(),
		}))
	}
	everything := subscribe(t, e, executor.SubscribeOptions{Queue: 1 << 20})
	lagging := subscribe(t, e, executor.SubscribeOptions{Queue: 8})

	history := &modelHistory{options: options, runs: world.runs, writes: world.writes}
	var mu sync.Mutex
	var sessions, lag sync.WaitGroup
	var seen int64
	lag.Go(func() { seen = countSlowly(t, lagging) })
	for i, session := range world.sessions {
		maker := &modelMaker{random: rand.New(rand.NewPCG(seed, uint64(i))), session: session.ID()}
		reference := &modelReference{scope: options.Reuse.Scope, numbers: map[string]int64{}}
		sessions.Go(func() {
			for range each {
				calls := maker.batch()
				done := modelDone{session: session, calls: calls, report: world.execute(t, e, session, calls)}
				done.wants = reference.batch(calls)
				mu.Lock()
				history.batches = append(history.batches, done)
				mu.Unlock()
			}
		})
	}
	sessions.Wait()
	history.entries, history.events = kept.all(), watcher{everything}.rest(t)
	lagging.Close()
	lag.Wait()
	assert.EqualValues(t, len(history.events), seen, "the events that a slow subscriber got or lost")
	return history
}

func allButSecret() (names []string) {
	for _, list := range [][]string{modelReading, modelWriting} {
		names = append(names, list...)
	}
	return names
}

// execute runs a batch that its tools can stop.
func (w *modelWorld) execute(t *testing.T, e *executor.Executor, session *executor.Session, calls []tool.Call) executor.Report {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	w.mu.Lock()
	w.stops[session.ID()] = stop
	w.mu.Unlock()
	report, err := e.Execute(ctx, executor.Batch{Session: session, Calls: calls})
	assert.NoError(t, err)
	return report
}

// countSlowly counts the events of a subscription with those that it lost.
func countSlowly(t *testing.T, subscription *executor.Subscription) (seen int64) {
	for {
		_, lost, err := subscription.Next(t.Context())
		seen += lost
		if err != nil {
			assert.ErrorIs(t, err, io.EOF)
			return seen
		}
		seen++
		if seen%64 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}
