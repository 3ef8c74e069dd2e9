package executor_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

var soak = flag.Duration("soak", time.Second/5, "for how long each variant of TestLoad loads the executor")

const (
	loadSessions = 64
	loadTools    = 50
)

// TestLoad has 64 sessions of eight tenants call 50 tools at once, which call each other: no
// record is lost or made twice, nothing waits for ever, and memory does not grow.
func TestLoad(t *testing.T) {
	for name, limits := range map[string]executor.Limits{
		"default":   {},
		"one place": {Running: 1, PerTenant: 1, PerTool: 1},
		"few wait":  {Running: 4, PerTenant: 2, PerTool: 1, Waiting: 4, Wait: 10 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			l := &load{}
			options := executor.Options{
				Limits: limits, Rates: unlimited, Breaker: executor.Breaker{Open: 10 * time.Millisecond},
				Reuse: executor.Reuse{TTL: 100 * time.Millisecond, Bytes: 1 << 20}, Output: executor.Output{PerCall: 512, Kept: 100_000}, Recorder: l,
			}
			e := newExecutor(t, options, loadedTools(t)...)
			l.ends = time.Now().Add(*soak)
			stop := l.guard(t)
			l.run(t, e)
			stop()
			assert.Equal(t, l.reported.Load(), l.direct.Load(), "records of calls that models made")
			assert.Equal(t, l.totals.Load(), l.direct.Load()+l.nested.Load(), "records by the batches' totals")
			assert.Equal(t, 2*(l.direct.Load()+l.nested.Load())+2*l.batches.Load(), l.events.Load(), "events that a subscriber got or lost")
			assert.Zero(t, l.twice.Load(), "calls that were recorded twice")
			assert.Positive(t, l.nested.Load())
			t.Logf("%d batches, %d calls of models and %d of tools, %d busy, heap from %d to %d KiB",
				l.batches.Load(), l.direct.Load(), l.nested.Load(), l.busy.Load(), l.heapBefore>>10, l.heapAfter>>10)
			if *soak >= time.Minute {
				assert.Less(t, l.heapAfter, l.heapBefore+l.heapBefore/4+(8<<20), "the heap has not grown since a quarter of the time")
			}
		})
	}
}

// load counts the calls in reports, records and events. It is a recorder.
type load struct {
	ends                        time.Time
	batches, reported, totals   atomic.Int64 // by Execute
	direct, nested, busy, twice atomic.Int64 // by the recorder
	events                      atomic.Int64
	ids                         sync.Map // of the calls of batches in progress
	heapBefore, heapAfter       uint64
}

// Record implements [executor.Recorder].
func (l *load) Record(_ context.Context, entry executor.Entry) error {
	if entry.Record.Parent == "" {
		l.direct.Add(1)
	} else {
		l.nested.Add(1)
	}
	if entry.Record.Result.Kind == tool.Busy {
		l.busy.Add(1)
	}
	if _, known := l.ids.LoadOrStore(entry.Record.CallID, entry.Batch); known {
		l.twice.Add(1)
	}
	return nil
}

// forget drops the ids of a batch, or the test itself would be what grows.
func (l *load) forget(batch string) {
	l.ids.Range(func(id, of any) bool {
		if of == batch {
			l.ids.Delete(id)
		}
		return true
	})
}

// run has all sessions make calls until the time is up.
func (l *load) run(t *testing.T, e *executor.Executor) {
	subscription := subscribe(t, e, executor.SubscribeOptions{Queue: 256})
	var readers, sessions sync.WaitGroup
	readers.Go(func() {
		for {
			_, lost, err := subscription.Next(t.Context())
			l.events.Add(lost)
			if err != nil {
				return
			}
			l.events.Add(1)
		}
	})
	readers.Go(func() {
		time.Sleep(*soak / 4)
		l.heapBefore = heap()
		time.Sleep(*soak * 7 / 10)
		l.heapAfter = heap()
	})
	for i := range loadSessions {
		sessions.Go(func() { l.converse(t, e, i) })
	}
	sessions.Wait()
	subscription.Close()
	readers.Wait()
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// converse is one agent after the other, each with a session of some batches.
func (l *load) converse(t *testing.T, e *executor.Executor, number int) {
	random := rand.New(rand.NewPCG(uint64(number), 1))
	for first := true; first || time.Now().Before(l.ends); first = false {
		session, err := e.NewSession(executor.SessionOptions{Tenant: fmt.Sprint("tenant", number%8)})
		if !assert.NoError(t, err) {
			return
		}
		for range 1 + random.IntN(5) {
			batch := executor.Batch{Session: session}
			for range 1 + random.IntN(6) {
				batch.Calls = append(batch.Calls, loadedCall(random, 0))
			}
			if random.IntN(20) == 0 {
				batch.Timeout = time.Duration(1+random.IntN(1000)) * time.Microsecond
			}
			report, err := e.Execute(t.Context(), batch)
			if !assert.NoError(t, err) || !assert.Len(t, report.Records, len(batch.Calls)) {
				return
			}
			for i, record := range report.Records {
				assert.Equal(t, batch.Calls[i], record.Call)
				if cuts := record.Cuts; len(cuts) > 0 && cuts[0].Reference != "" && random.IntN(10) == 0 {
					assert.NoError(t, noerr.Error(session.Page(cuts[0].Reference, 0, 100)))
				}
			}
			l.batches.Add(1)
			l.reported.Add(int64(len(report.Records)))
			l.totals.Add(int64(report.Totals.Calls))
			l.forget(report.ID)
		}
	}
}

// loadedCall makes up a call of one of the tools.
func loadedCall(random *rand.Rand, depth int) tool.Call {
	number := random.IntN(loadTools)
	var functions []tool.Function
	for range random.IntN(3 - min(depth, 2)) {
		functions = append(functions, loadedCall(random, depth+1).Function)
	}
	return newCall("1", fmt.Sprint("tool", number), calling(functions...))
}

// loadedTools are tools of which two in three are read-only, and each may call any other.
func loadedTools(t *testing.T) (tools []registry.Tool) {
	var names []string
	for i := range loadTools {
		names = append(names, fmt.Sprint("tool", i))
	}
	for i, name := range names {
		tools = append(tools, newFake(t, name, may(i%3 > 0, names...), func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
			switch rand.IntN(50) {
			case 0:
				panic("at random")
			case 1:
				return tool.Outcome{}, tool.Trap
			case 2:
				return succeed(strings.Repeat("long ", 1000)), nil
			case 3:
				time.Sleep(time.Duration(rand.IntN(500)) * time.Microsecond)
			}
			return relay(ctx, invocation)
		}))
	}
	return tools
}

// guard prints all stacks and ends the program if the load does not end in time: a test cannot
// continue after a deadlock.
func (l *load) guard(t *testing.T) (stop func()) {
	timer := time.AfterFunc(time.Until(l.ends)+time.Minute, func() {
		fmt.Fprintln(os.Stderr, "TestLoad has not ended; this is where it is:")
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
		panic(t.Name() + ": no end")
	})
	return func() { timer.Stop() }
}
