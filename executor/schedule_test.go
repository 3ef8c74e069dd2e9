package executor_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// TestRowS24Parallel uses a fake clock: ten calls of a second each.
func TestRowS24Parallel(t *testing.T) {
	tests := []struct {
		name     string
		behavior fields
		parallel int
		want     time.Duration
	}{
		{"read-only, by default", readOnly, 0, 2 * time.Second},
		{"read-only, one at a time", readOnly, 1, 10 * time.Second},
		{"read-only, five at a time", readOnly, 5, 2 * time.Second},
		{"read-only, all at a time", readOnly, 100, time.Second},
		{"not read-only", nil, 100, 10 * time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var running, most atomic.Int64
				e := newExecutor(t, executor.Options{Parallel: test.parallel, Limits: executor.Limits{Running: 100, PerTool: 100}}, newFake(t, "wait", test.behavior,
					func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
						now := running.Add(1)
						defer running.Add(-1)
						for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
						}
						time.Sleep(time.Second)
						return echo(ctx, invocation)
					}))
				var calls []tool.Call
				for i := range 10 {
					calls = append(calls, newCall(strconv.Itoa(i), "wait", fmt.Sprintf(`{"i":%d}`, i)))
				}
				start := time.Now()
				records := executeAll(t, e, executor.Batch{Calls: calls})
				assert.Equal(t, test.want, time.Since(start))
				for i, record := range records {
					assert.Equal(t, strconv.Itoa(i), record.ID)
					assert.Equal(t, fmt.Sprintf(`{"i":%d}`, i), record.Result.Output)
					assert.Equal(t, time.Second, record.ExecutionTime, "waiting for a turn is not counted")
				}
				parallel := test.parallel
				if parallel == 0 {
					parallel = executor.DefaultParallel
				}
				assert.LessOrEqual(t, most.Load(), int64(parallel))
			})
		})
	}
}

// TestRefusedCallsSeparateNothing: a call that is not run is no barrier.
func TestRefusedCallsSeparateNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := func(context.Context, tool.Invocation) (tool.Outcome, error) {
			time.Sleep(time.Second)
			return succeed(""), nil
		}
		e := newExecutor(t, executor.Options{}, newFake(t, "read", readOnly, wait), newFake(t, "write", nil, wait))
		start := time.Now()
		executeAll(t, e, executor.Batch{Calls: []tool.Call{
			newCall("1", "read", ""), newCall("2", "write", "not JSON"), newCall("3", "nobody", ""), newCall("4", "read", `{"other":1}`),
		}})
		assert.Equal(t, time.Second, time.Since(start))
	})
}

// span is when a call ran, on a clock that counts starts and ends.
type span struct{ start, end int64 }

// world is tools over one state, which does not guard itself: only the order of the
// calls keeps writers apart. Under -race a broken barrier is a data race as well.
type world struct {
	state int
	clock atomic.Int64
	mu    sync.Mutex
	spans map[string]span // by the argument id
	pause func()
}

func (w *world) tools(t testing.TB) []registry.Tool {
	track := func(do func(id string) (tool.Outcome, error)) run {
		return func(_ context.Context, invocation tool.Invocation) (tool.Outcome, error) {
			raw, _ := invocation.Arguments.Get("id")
			start := w.clock.Add(1)
			defer func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.spans[string(raw)] = span{start, w.clock.Add(1)}
			}()
			w.pause()
			return do(string(raw))
		}
	}
	read := func(id string) (tool.Outcome, error) { return succeed(fmt.Sprint(id, w.state)), nil }
	return []registry.Tool{
		newFake(t, "read", readOnly, track(read)),
		newFake(t, "read_failing", readOnly, track(func(string) (tool.Outcome, error) {
			return tool.Outcome{Result: tool.Result{Error: fmt.Sprint("at ", w.state)}}, nil
		})),
		newFake(t, "read_panicking", readOnly, track(func(string) (tool.Outcome, error) { panic("boom") })),
		newFake(t, "write", nil, track(func(id string) (tool.Outcome, error) { w.state++; return read(id) })),
		newFake(t, "write_trapping", nil, track(func(string) (tool.Outcome, error) {
			w.state += 100
			return tool.Outcome{}, &tool.Error{Kind: tool.Trap, Message: "unreachable"}
		})),
	}
}

// settled leaves out of a record what differs between runs.
func settled(record tool.Record) tool.Record {
	record.Result.Error = strings.ReplaceAll(record.Result.Error, record.CallID, "ID")
	record.CallID, record.ExecutionTime = "", 0
	return record
}

// TestRandomBatches compares batches with running their calls one after the other.
func TestRandomBatches(t *testing.T) {
	names := []string{"read", "read", "read", "read", "read_failing", "read_panicking", "write", "write_trapping", "nobody"}
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		var calls []tool.Call
		for i := range random.IntN(40) {
			arguments := fmt.Sprintf(`{"id":"%d"}`, i)
			if random.IntN(10) == 0 {
				arguments = "{"
			}
			calls = append(calls, newCall("provider", names[random.IntN(len(names))], arguments))
		}

		reference := world{spans: map[string]span{}, pause: func() {}}
		sequential := newExecutor(t, executor.Options{Breaker: executor.Breaker{Off: true}}, reference.tools(t)...)
		var want []tool.Record
		for _, c := range calls {
			want = append(want, settled(execute(t, sequential, executor.Batch{Calls: []tool.Call{c}})))
		}

		w := world{spans: map[string]span{}, pause: func() { time.Sleep(time.Duration(rand.IntN(50)) * time.Microsecond) }}
		e := newExecutor(t, executor.Options{Parallel: 1 + random.IntN(6), Breaker: executor.Breaker{Off: true}}, w.tools(t)...)
		watcher := watch(t, e, nil)
		report, err := e.Execute(t.Context(), executor.Batch{Calls: calls})
		require.NoError(t, err)
		records := report.Records
		require.Len(t, records, len(want))
		ids := map[string]bool{}
		for i, record := range records {
			require.Equal(t, want[i], settled(record), "seed %d, call %d", seed, i)
			ids[record.CallID] = true
		}
		assert.Len(t, ids, len(calls), "call ids never repeat")
		assert.Equal(t, reference.state, w.state)
		assertBarriers(t, calls, w.spans)
		assertEvents(t, report, watcher.rest(t))
	}
}

// assertBarriers checks that a writing call overlaps no other.
func assertBarriers(t *testing.T, calls []tool.Call, spans map[string]span) {
	t.Helper()
	at := func(i int) (span, bool) { s, ok := spans[fmt.Sprintf(`"%d"`, i)]; return s, ok }
	for i, c := range calls {
		barrier, ran := at(i)
		if !ran || !strings.HasPrefix(c.Function.Name, "write") {
			continue
		}
		for j := range calls {
			other, ran := at(j)
			switch {
			case !ran || i == j:
			case j < i:
				assert.Less(t, other.end, barrier.start)
			default:
				assert.Greater(t, other.start, barrier.end)
			}
		}
	}
}

// TestCancel ends the context during the second call of four.
func TestCancel(t *testing.T) {
	for _, test := range []struct {
		name    string
		end     func(context.Context) (context.Context, context.CancelFunc)
		running tool.Kind
	}{
		{"cancelled", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}, tool.Cancelled},
		{"deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, tool.Deadline},
	} {
		for _, behavior := range []fields{nil, readOnly} {
			t.Run(fmt.Sprint(test.name, " read-only ", behavior != nil), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := newExecutor(t, executor.Options{Parallel: 1}, newFake(t, "quick", behavior, echo),
						newFake(t, "slow", behavior, func(ctx context.Context, _ tool.Invocation) (tool.Outcome, error) {
							<-ctx.Done()
							return tool.Outcome{}, ctx.Err()
						}))
					ctx, cancel := test.end(t.Context())
					defer cancel()
					report, err := e.Execute(ctx, executor.Batch{Calls: []tool.Call{
						newCall("1", "quick", ""), newCall("2", "slow", ""), newCall("3", "quick", `{"n":3}`), newCall("4", "quick", "{"),
					}})
					require.NoError(t, err)
					records := report.Records
					require.Len(t, records, 4)
					assert.True(t, records[0].Result.Success)
					assert.Equal(t, test.running, records[1].Result.Kind)
					assert.False(t, records[1].Skipped)
					assert.Equal(t, test.running, records[2].Result.Kind)
					assert.True(t, records[2].Skipped)
					assert.NotEmpty(t, records[2].Result.Error)
					assert.Equal(t, tool.InvalidArguments, records[3].Result.Kind, "what is wrong with a call is still said")
				})
			})
		}
	}
}

// TestConcurrentBatches shares one executor and a subscription to all events between sessions.
func TestConcurrentBatches(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newFake(t, "read", fields{
		"context": []string{"session"}, "behavior": fields{"read_only": true},
	}, func(_ context.Context, invocation tool.Invocation) (tool.Outcome, error) {
		own := invocation.Context["session"]
		invocation.Context["session"] = "nobody's"
		return succeed(own), nil
	}))
	watcher := watch(t, e, nil)
	var sessions sync.WaitGroup
	for i := range 16 {
		session := withContext(t, e, map[string]string{"session": strconv.Itoa(i)})
		sessions.Go(func() {
			for j := range 10 {
				report, err := e.Execute(t.Context(), executor.Batch{Calls: []tool.Call{
					newCall("a", "read", ""), newCall("b", "read", fmt.Sprintf(`{"n":%d}`, j)), newCall("c", "read", ""),
				}, Session: session})
				assert.NoError(t, err)
				for _, record := range report.Records {
					assert.Equal(t, strconv.Itoa(i), record.Result.Output, "never another session's")
				}
			}
		})
	}
	sessions.Wait()
	assert.Len(t, watcher.rest(t), 16*10*(3*2+2))
}
