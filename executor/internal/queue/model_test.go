package queue

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/testsize"
)

// modelled is a call in the reference.
type modelled struct {
	Call
	id       int
	deadline time.Time
	timeout  error // the error after the deadline
	cancel   context.CancelFunc
}

// reference does what a Queue does: it looks at every call whenever one has changed.
type reference struct {
	limits  Limits
	now     int
	running []*modelled
	waiting []*modelled // in the order in which they came
	served  map[[2]string]int
	failed  map[int]error
}

func (r *reference) count(in func(*modelled) bool) int {
	n := 0
	for _, c := range r.running {
		if in(c) {
			n++
		}
	}
	return n
}

func (r *reference) ofTenant(c *modelled) int {
	return r.count(func(o *modelled) bool { return o.Tenant == c.Tenant })
}

func (r *reference) ofSession(c *modelled) int {
	return r.count(func(o *modelled) bool { return o.Tenant == c.Tenant && o.Session == c.Session })
}

func (r *reference) ofTool(c *modelled) int {
	return r.count(func(o *modelled) bool { return o.Tenant == c.Tenant && o.Tool == c.Tool })
}

func (r *reference) mayRun(c *modelled) bool {
	return len(r.running) < r.limits.Running && r.ofTenant(c) < r.limits.PerTenant && r.ofTool(c) < r.limits.PerTool
}

// owners are the tenant and the session of a call.
func owners(c *modelled) [2][2]string { return [2][2]string{{c.Tenant}, {c.Tenant, "s" + c.Session}} }

// enter adds a call, or refuses it.
func (r *reference) enter(c *modelled) {
	r.now++
	for _, owner := range owners(c) {
		if _, here := r.served[owner]; !here {
			r.served[owner] = r.now
		}
	}
	waiting := 0
	for _, o := range r.waiting {
		if o.Tenant == c.Tenant {
			waiting++
		}
	}
	if !r.mayRun(c) && waiting >= r.limits.Waiting {
		r.failed[c.id] = ErrFull
	} else {
		r.waiting = append(r.waiting, c)
	}
	r.update()
}

// update starts the calls that may run, and removes owners without a call.
func (r *reference) update() {
	for {
		may := slices.DeleteFunc(slices.Clone(r.waiting), func(c *modelled) bool { return !r.mayRun(c) })
		if len(may) == 0 {
			break
		}
		next := slices.MinFunc(may, func(a, b *modelled) int {
			return cmp.Or(
				cmp.Compare(r.ofTenant(a), r.ofTenant(b)), cmp.Compare(r.served[owners(a)[0]], r.served[owners(b)[0]]),
				cmp.Compare(r.ofSession(a), r.ofSession(b)), cmp.Compare(r.served[owners(a)[1]], r.served[owners(b)[1]]),
				cmp.Compare(a.id, b.id))
		})
		r.waiting = slices.DeleteFunc(r.waiting, func(c *modelled) bool { return c == next })
		r.running = append(r.running, next)
		r.now++
		for _, owner := range owners(next) {
			r.served[owner] = r.now
		}
	}
	here := map[[2]string]int{}
	for _, c := range slices.Concat(r.running, r.waiting) {
		for _, owner := range owners(c) {
			here[owner] = r.served[owner]
		}
	}
	r.served = here
}

func (r *reference) leave(i int) {
	r.running = slices.Delete(r.running, i, i+1)
	r.update()
}

func (r *reference) fail(c *modelled, err error) {
	r.failed[c.id] = err
	r.waiting = slices.DeleteFunc(r.waiting, func(o *modelled) bool { return o == c })
	r.update()
}

// TestModel drives a queue and the reference with the same random steps.
func TestModel(t *testing.T) {
	for seed := range uint64(testsize.Of(6, 16)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { compare(t, rand.New(rand.NewPCG(seed, 1)), 1000) })
		})
	}
}

// compare makes random steps and asserts after each that the queue and the reference have
// the same calls running and failed.
func compare(t *testing.T, random *rand.Rand, steps int) {
	limits := Limits{
		Running: 1 + random.IntN(12), PerTenant: 1 + random.IntN(8), PerTool: 1 + random.IntN(5),
		Waiting: 1 + random.IntN(30), Wait: time.Duration(1+random.IntN(300)) * time.Second,
	}
	tenants, sessions, tools := 1+random.IntN(6), 1+random.IntN(5), 1+random.IntN(5)
	q := New(limits)
	model := &reference{limits: limits, failed: map[int]error{}, served: map[[2]string]int{}}
	turns, failed := map[int]*Place{}, map[int]error{}
	enter := func(id int) {
		c := &modelled{id: id, timeout: ErrWaited, deadline: time.Now().Add(limits.Wait), Call: Call{
			Tenant: fmt.Sprint(random.IntN(tenants)), Session: fmt.Sprint(random.IntN(sessions)), Tool: fmt.Sprint(random.IntN(tools)),
		}}
		ctx, cancel := context.WithCancel(t.Context())
		if own := time.Duration(random.Int64N(int64(2 * limits.Wait))); own < limits.Wait && random.IntN(3) == 0 {
			ctx, cancel = context.WithTimeout(t.Context(), own+1)
			c.timeout, c.deadline = context.DeadlineExceeded, time.Now().Add(own+1)
		}
		c.cancel = cancel
		go func() {
			turn, err := q.Enter(ctx, c.Call)
			q.mu.Lock()
			defer q.mu.Unlock()
			if err != nil {
				failed[id] = err
			} else {
				turns[id] = turn
			}
		}()
		model.enter(c)
	}
	for step := range steps {
		switch action := random.IntN(100); {
		case action < 50:
			enter(step)
		case action < 85 && len(model.running) > 0:
			i := random.IntN(len(model.running))
			c := model.running[i]
			turn := turns[c.id]
			delete(turns, c.id)
			turn.Leave()
			model.leave(i)
			c.cancel()
		case action < 92 && len(model.waiting) > 0:
			c := model.waiting[random.IntN(len(model.waiting))]
			c.cancel()
			model.fail(c, context.Canceled)
		case action >= 92:
			time.Sleep(time.Duration(random.Int64N(int64(limits.Wait/4)) + 1))
			for _, c := range slices.Clone(model.waiting) {
				if !c.deadline.After(time.Now()) {
					model.fail(c, c.timeout)
				}
			}
		}
		synctest.Wait()
		same(t, model, turns, failed, step)
		q.mu.Lock()
		consistent(t, q)
		q.mu.Unlock()
		if t.Failed() {
			t.FailNow()
		}
	}
	for len(model.running) > 0 {
		c := model.running[0]
		turn := turns[c.id]
		delete(turns, c.id)
		turn.Leave()
		model.leave(0)
		c.cancel()
		synctest.Wait()
		same(t, model, turns, failed, steps)
	}
	empty(t, q)
}

func same(t *testing.T, model *reference, turns map[int]*Place, failed map[int]error, step int) {
	t.Helper()
	var want, got []int
	for _, c := range model.running {
		want = append(want, c.id)
	}
	for id := range turns {
		got = append(got, id)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		require.Equal(t, want, got, "running after step %d", step)
	}
	require.Len(t, failed, len(model.failed), "step %d", step)
	for id, err := range model.failed {
		require.ErrorIs(t, failed[id], err, "call %d after step %d", id, step)
	}
}

// consistent asserts that no limit is exceeded, that no call waits that may run, and that
// all counts are right. The queue must be locked.
func consistent(t *testing.T, q *Queue) {
	t.Helper()
	running, waiting := 0, 0
	for name, tenant := range q.tenants {
		assert.Positive(t, tenant.calls, "a tenant that has no call")
		assert.LessOrEqual(t, tenant.running, q.limits.PerTenant)
		assert.LessOrEqual(t, len(tenant.waiting), q.limits.Waiting)
		assert.Equal(t, tenant.calls, tenant.running+len(tenant.waiting))
		for _, of := range []map[string]*share{tenant.sessions, tenant.tools} {
			sum := share{}
			for _, s := range of {
				assert.Positive(t, s.calls, "a session or a tool that has no call")
				sum.calls, sum.running = sum.calls+s.calls, sum.running+s.running
			}
			assert.Equal(t, share{calls: tenant.calls, running: tenant.running}, sum)
		}
		for _, tool := range tenant.tools {
			assert.LessOrEqual(t, tool.running, q.limits.PerTool)
		}
		for _, p := range tenant.waiting {
			if p.call.Tenant != name || q.reached(p) == "" {
				t.Fatal("a call waits that may run, or in the wrong place")
			}
		}
		running, waiting = running+tenant.running, waiting+len(tenant.waiting)
	}
	assert.Equal(t, [2]int{running, waiting}, [2]int{q.running, q.waiting})
	assert.LessOrEqual(t, running, q.limits.Running)
}

// empty asserts that a queue without calls has kept nothing of those that it had.
func empty(t *testing.T, q *Queue) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	assert.Zero(t, q.running+q.waiting)
	assert.Empty(t, q.tenants)
	spare, _ := q.spare.Get().(*tenant)
	assert.Empty(t, spare.sessions)
	assert.Empty(t, spare.tools)
	assert.Empty(t, spare.waiting)
	assert.Zero(t, spare.calls+spare.running)
}
