package executor_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

// crowd counts how many calls run at a time: of all, of each tenant, of each tenant's tool.
type crowd struct {
	mu        sync.Mutex
	now, most map[string]int
	order     []string // sessions, as their calls began
}

func newCrowd() *crowd { return &crowd{now: map[string]int{}, most: map[string]int{}} }

// work takes a second, or until the call is stopped.
func (c *crowd) work(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	groups := []string{"all", invocation.Tenant, invocation.Tenant + " " + invocation.Tool}
	c.change(groups, 1)
	defer c.change(groups, -1)
	c.mu.Lock()
	c.order = append(c.order, invocation.Context["session"])
	c.mu.Unlock()
	select {
	case <-ctx.Done():
		return tool.Outcome{}, ctx.Err()
	case <-time.After(time.Second):
		return succeed(""), nil
	}
}

func (c *crowd) change(groups []string, by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, group := range groups {
		c.now[group] += by
		c.most[group] = max(c.most[group], c.now[group])
	}
}

// many returns calls of a tool that ask something else each.
func many(name string, n int) (calls []tool.Call) {
	for i := range n {
		calls = append(calls, newCall(fmt.Sprint(i), name, fmt.Sprintf(`{"n":%d}`, i)))
	}
	return calls
}

// TestLimitsOnRunningCalls: how many calls run at a time is bounded for all, for each tenant, and for
// each tool of a tenant.
func TestLimitsOnRunningCalls(t *testing.T) {
	for _, limits := range []executor.Limits{
		{Running: 10, PerTenant: 6, PerTool: 4}, {Running: 10, PerTenant: 10, PerTool: 10}, {Running: 1, PerTenant: 1, PerTool: 1},
		{Running: 3, PerTenant: 10, PerTool: 10}, {Running: 10}, {},
	} {
		t.Run(fmt.Sprintf("%+v", limits), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				crowd := newCrowd()
				limits.Wait = time.Hour
				e := newExecutor(t, executor.Options{Parallel: 100, Limits: limits}, newFake(t, "one", readOnly, crowd.work), newFake(t, "two", readOnly, crowd.work))
				var sessions sync.WaitGroup
				for i := range 6 {
					session := newSession(t, e, executor.SessionOptions{Tenant: fmt.Sprint("tenant", i%3), Context: map[string]string{"session": fmt.Sprint(i)}})
					sessions.Go(func() {
						for _, record := range executeAll(t, e, executor.Batch{Session: session, Calls: append(many("one", 10), many("two", 10)...)}) {
							assert.True(t, record.Result.Success, record.Result.Error)
						}
					})
				}
				sessions.Wait()
				most := func(limit, fallback int) int {
					if limit == 0 {
						return fallback
					}
					return limit
				}
				running := most(limits.Running, crowd.most["all"])
				perTenant, perTool := min(running, most(limits.PerTenant, running*3/4)), min(running, most(limits.PerTool, running/2))
				assert.GreaterOrEqual(t, crowd.most["all"], 1)
				if limits.Running > 0 {
					assert.Equal(t, running, crowd.most["all"], "every place is used")
				} else {
					assert.GreaterOrEqual(t, crowd.most["all"], 16)
				}
				for i := range 3 {
					assert.LessOrEqual(t, crowd.most[fmt.Sprint("tenant", i)], perTenant)
					for _, name := range []string{"one", "two"} {
						assert.LessOrEqual(t, crowd.most[fmt.Sprint("tenant", i, " ", name)], perTool)
					}
				}
			})
		})
	}
}

// TestWaitingIsBounded: a call that would be one too many to wait is refused at once, with
// words for a model, and so is one that has waited for too long.
func TestWaitingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crowd := newCrowd()
		e := newExecutor(t, executor.Options{
			Parallel: 100, Limits: executor.Limits{Running: 1, PerTenant: 1, PerTool: 1, Waiting: 4, Wait: 2500 * time.Millisecond},
		}, newFake(t, "one", readOnly, crowd.work))
		start := time.Now()
		records := executeAll(t, e, executor.Batch{Calls: many("one", 10)})
		counts := map[string]int{}
		for _, record := range records {
			if record.Result.Success {
				counts["run"]++
				continue
			}
			counts[string(record.Result.Kind)]++
			assert.True(t, record.Skipped)
			assert.Zero(t, record.ExecutionTime)
			assert.Regexp(t, "^too many calls of this tool are running or waiting; try again later$", record.Result.Error)
		}
		assert.Equal(t, map[string]int{"run": 3, "busy": 7}, counts, "one ran at once and two in time; two waited too long and five could not wait")
		assert.Equal(t, 3*time.Second, time.Since(start))
		assert.True(t, ask(t, e, nil, "one", "").Result.Success, "there is room again")
	})
}

// TestLimitsOfOthers: a tenant that has all its places taken keeps none from another.
func TestLimitsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crowd := newCrowd()
		e := newExecutor(t, executor.Options{Parallel: 100, Limits: executor.Limits{Running: 4, PerTenant: 3, PerTool: 3}}, newFake(t, "one", readOnly, crowd.work))
		var group sync.WaitGroup
		group.Go(func() {
			executeAll(t, e, executor.Batch{Session: newSession(t, e, executor.SessionOptions{Tenant: "greedy"}), Calls: many("one", 60)})
		})
		synctest.Wait()
		start := time.Now()
		ask(t, e, newSession(t, e, executor.SessionOptions{Tenant: "modest"}), "one", "")
		assert.Equal(t, time.Second, time.Since(start))
		group.Wait()
	})
}

// TestFairness: places go in turn to tenants, and of one tenant to sessions, however many
// calls each has.
func TestFairness(t *testing.T) {
	for _, test := range []struct {
		name   string
		tenant func(i int) string
	}{
		{"tenants", func(i int) string { return fmt.Sprint("tenant", i) }},
		{"sessions of a tenant", func(int) string { return "tenant" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				crowd := newCrowd()
				e := newExecutor(t, executor.Options{Parallel: 100, Limits: executor.Limits{Running: 2, PerTenant: 2, PerTool: 2}}, newFake(t, "one", readOnly, crowd.work))
				var group sync.WaitGroup
				for i, calls := range []int{50, 2, 2} {
					name := fmt.Sprint(i)
					session := newSession(t, e, executor.SessionOptions{Tenant: test.tenant(i), Context: map[string]string{"session": name}})
					group.Go(func() { executeAll(t, e, executor.Batch{Session: session, Calls: many("one", calls)}) })
					synctest.Wait()
				}
				group.Wait()
				crowd.mu.Lock()
				defer crowd.mu.Unlock()
				// Of the first ten that were started, those of the small ones are all.
				started := map[string]int{}
				for _, session := range crowd.order[:10] {
					started[session]++
				}
				assert.Equal(t, map[string]int{"0": 6, "1": 2, "2": 2}, started)
			})
		})
	}
}

// TestWaitingCallsAreCancelled: a call that waits for its turn is not started when its batch
// ends, and leaves its place in the queue.
func TestWaitingCallsAreCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crowd := newCrowd()
		e := newExecutor(t, executor.Options{Parallel: 100, Limits: executor.Limits{Running: 1, PerTenant: 1, PerTool: 1, Waiting: 3}}, newFake(t, "one", readOnly, crowd.work))
		report := reportOf(t, e, executor.Batch{Calls: many("one", 4), Timeout: 1500 * time.Millisecond})
		counts := map[string]int{}
		for _, record := range report.Records {
			counts[fmt.Sprint(record.Result.Kind, " skipped ", record.Skipped)]++
		}
		assert.Equal(t, map[string]int{" skipped false": 1, "deadline skipped false": 1, "deadline skipped true": 2}, counts)
		start := time.Now()
		for _, record := range executeAll(t, e, executor.Batch{Calls: many("one", 4)}) {
			assert.True(t, record.Result.Success, record.Result.Error)
		}
		assert.Equal(t, 3*time.Second, time.Since(start), "one of them is known by now")
	})
}

// TestQueueTimeIsApart: a record tells the time in the queue from the time that the call took.
func TestQueueTimeIsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExecutor(t, executor.Options{Limits: executor.Limits{Running: 1, PerTenant: 1, PerTool: 1, Wait: 2500 * time.Millisecond}}, newFake(t, "slow", readOnly, second))
		busy := background(t, e, executor.Batch{Parallel: 2, Calls: many("slow", 2)})
		synctest.Wait()
		late := ask(t, e, nil, "slow", `{"other": 1}`)
		queued := map[time.Duration]bool{late.Usage.Queue: true}
		for _, record := range append(busy(), late) {
			assert.True(t, record.Result.Success, record.Result.Error)
			assert.Equal(t, time.Second, record.ExecutionTime)
			queued[record.Usage.Queue] = true
		}
		assert.Equal(t, map[time.Duration]bool{0: true, time.Second: true, 2 * time.Second: true}, queued)
	})
	synctest.Test(t, func(t *testing.T) {
		e := newExecutor(t, executor.Options{Limits: executor.Limits{Running: 1, PerTenant: 1, PerTool: 1, Wait: time.Second / 2}}, newFake(t, "slow", readOnly, second))
		busy := background(t, e, executor.Batch{Calls: many("slow", 1)})
		synctest.Wait()
		refused := ask(t, e, nil, "slow", `{"other": 1}`)
		assert.Equal(t, tool.Busy, refused.Result.Kind)
		assert.Equal(t, time.Second/2, refused.Usage.Queue)
		assert.Zero(t, refused.ExecutionTime)
		busy()
	})
}
