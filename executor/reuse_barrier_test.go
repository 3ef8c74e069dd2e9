package executor_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// register is one number for each tenant. Reading takes the number at once and as long to
// say it as the argument says; writing takes as long and sets it before, or after that.
type register struct{ values sync.Map }

func (r *register) of(tenant string) *atomic.Int64 {
	value, _ := r.values.LoadOrStore(tenant, new(atomic.Int64))
	return value.(*atomic.Int64)
}

func (r *register) read(_ context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	value := r.of(invocation.Tenant).Load()
	pause(invocation)
	return succeed(fmt.Sprint(value)), nil
}

func (r *register) write(_ context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	if argument(invocation, "when") != "after" {
		r.of(invocation.Tenant).Add(1)
	}
	pause(invocation)
	if argument(invocation, "when") == "after" {
		r.of(invocation.Tenant).Add(1)
	}
	return succeed(""), nil
}

func pause(invocation tool.Invocation) {
	if d, err := time.ParseDuration(argument(invocation, "takes")); err == nil {
		time.Sleep(d)
	}
}

func (r *register) tools(t testing.TB) []registry.Tool {
	files := func(access string, only bool) fields {
		return fields{"permissions": fields{"files": []fields{{"path": "/p", "access": access}}}, "behavior": fields{"read_only": only}}
	}
	return []registry.Tool{
		newFake(t, "read", readOnly, r.read), newFake(t, "write", nil, r.write),
		newFake(t, "file_read", files("read", true), r.read), newFake(t, "file_write", files("read-write", false), r.write),
		newFake(t, "file_list", files("read", false), r.write),
	}
}

// TestBarrierForgets: after a call of a tool that is not read-only, no cached result of its tenant
// is used again, in any session; and if it may write files, no result of any tenant's tool that sees files.
func TestBarrierForgets(t *testing.T) {
	tests := []struct {
		barrier, tenant, session string // of the barrier; the answer is kept for tenant a
		read                     string
		kept                     bool
	}{
		{"write", "a", "same", "read", false},
		{"write", "a", "other", "read", false},
		{"write", "b", "other", "read", true},
		{"write", "b", "other", "file_read", true},
		{"write", "a", "other", "file_read", false},
		{"file_write", "b", "other", "file_read", false},
		{"file_write", "b", "other", "read", true},
		{"file_list", "b", "other", "file_read", true},
		{"file_list", "a", "other", "read", false},
	}
	for _, test := range tests {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			var numbers register
			e := newExecutor(t, executor.Options{}, numbers.tools(t)...)
			session := newSession(t, e, executor.SessionOptions{Tenant: "a"})
			writer := session
			if test.session == "other" {
				writer = newSession(t, e, executor.SessionOptions{Tenant: test.tenant})
			}
			ask(t, e, session, test.read, "")
			assert.True(t, ask(t, e, session, test.read, "").Cached, "control: without the barrier it is kept")
			ask(t, e, writer, test.barrier, "")
			record := ask(t, e, session, test.read, "")
			assert.Equal(t, test.kept, record.Cached)
			assert.Equal(t, fmt.Sprint(numbers.of("a").Load()), record.Result.Output)
		})
	}
}

// TestBarrierThatFails: a call that failed or trapped may have changed something before.
func TestBarrierThatFails(t *testing.T) {
	for name, fail := range map[string]run{
		"fails": func(context.Context, tool.Invocation) (tool.Outcome, error) { return tool.Outcome{}, nil },
		"traps": func(context.Context, tool.Invocation) (tool.Outcome, error) { return tool.Outcome{}, tool.Trap },
		"bug":   func(context.Context, tool.Invocation) (tool.Outcome, error) { panic("no") },
	} {
		t.Run(name, func(t *testing.T) {
			var count counted
			e := newExecutor(t, executor.Options{}, newFake(t, "one", readOnly, count.answer), newFake(t, "write", nil, fail))
			ask(t, e, nil, "one", "")
			ask(t, e, nil, "write", "")
			assert.Equal(t, "2", ask(t, e, nil, "one", "").Result.Output)
		})
	}
}

// TestRefusedBarrierForgetsNothing: a call that was not run has changed nothing.
func TestRefusedBarrierForgetsNothing(t *testing.T) {
	var count counted
	e := newExecutor(t, executor.Options{}, newFake(t, "one", readOnly, count.answer), newFake(t, "write", nil, echo))
	ask(t, e, nil, "one", "")
	ask(t, e, nil, "write", "{")
	ask(t, e, newSession(t, e, executor.SessionOptions{Allowed: []string{"one"}}), "write", "")
	assert.True(t, ask(t, e, nil, "one", "").Cached)
}

// step is one call at a time of a fake clock, in a separate session.
type step struct {
	at              time.Duration
	name, arguments string
	want            string // the result's output
}

// TestBesideBarriers: reading and writing by several sessions of a tenant that overlap. A
// call that begins after a write's end reads the written value, whatever other calls are in progress.
func TestBesideBarriers(t *testing.T) {
	const second = time.Second
	slow, write := `{"takes":"10s"}`, `{"takes":"4s"}`
	writeAfter := `{"takes":"4s","when":"after"}`
	tests := map[string][]step{
		"began before, ends after": {
			{0, "read", slow, "0"}, {2 * second, "write", write, ""}, {3 * second, "read", slow, "1"}, {7 * second, "read", slow, "1"},
			{11 * second, "read", slow, "1"},
		},
		"began within, read the old value": {
			{0, "write", writeAfter, ""}, {1 * second, "read", slow, "0"}, {5 * second, "read", slow, "1"}, {12 * second, "read", slow, "1"},
		},
		"within, one after the other": {
			{0, "write", `{"takes":"30s","when":"after"}`, ""}, {1 * second, "read", `{"takes":"1s"}`, "0"}, {3 * second, "read", `{"takes":"1s"}`, "0"},
			{31 * second, "read", `{"takes":"1s"}`, "1"},
		},
		"two barriers that overlap": {
			{0, "write", writeAfter, ""}, {2 * second, "write", writeAfter, ""}, {3 * second, "read", slow, "0"},
			{4500 * time.Millisecond, "read", slow, "1"}, {6500 * time.Millisecond, "read", slow, "2"}, {20 * second, "read", slow, "2"},
		},
		"ends between two barriers": {
			{0, "write", write, ""}, {1 * second, "read", `{"takes":"5s"}`, "1"}, {7 * second, "write", writeAfter, ""}, {12 * second, "read", `{"takes":"5s"}`, "2"},
		},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var numbers register
				e := newExecutor(t, executor.Options{}, numbers.tools(t)...)
				var group sync.WaitGroup
				for i, s := range steps {
					session := newSession(t, e, executor.SessionOptions{Tenant: "a"})
					group.Go(func() {
						time.Sleep(s.at)
						assert.Equal(t, s.want, ask(t, e, session, s.name, s.arguments).Result.Output, "step %d", i)
					})
				}
				group.Wait()
			})
		})
	}
}

// TestKeptOnlyBetweenBarriers: the result of a call that ran during a barrier goes to its caller and is not cached.
func TestKeptOnlyBetweenBarriers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var numbers register
		e := newExecutor(t, executor.Options{}, numbers.tools(t)...)
		var group sync.WaitGroup
		group.Go(func() { ask(t, e, nil, "write", `{"takes":"10s"}`) })
		time.Sleep(time.Second)
		assert.False(t, ask(t, e, nil, "read", "").Cached)
		assert.False(t, ask(t, e, nil, "read", "").Cached, "the barrier is still in progress")
		group.Wait()
		assert.False(t, ask(t, e, nil, "read", "").Cached)
		assert.True(t, ask(t, e, nil, "read", "").Cached)
	})
}

// TestReadWriteRead: in one batch, each reading call sees the writes before it and no other.
func TestReadWriteRead(t *testing.T) {
	for _, scope := range []executor.Scope{executor.ReuseTenant, executor.ReuseSession, executor.ReuseBatch, executor.ReuseNone} {
		var numbers register
		e := newExecutor(t, executor.Options{Reuse: executor.Reuse{Scope: scope}}, numbers.tools(t)...)
		session := newSession(t, e, executor.SessionOptions{})
		for round := range 3 {
			records := executeAll(t, e, executor.Batch{Session: session, Calls: []tool.Call{
				newCall("1", "read", ""), newCall("2", "read", ""), newCall("3", "write", ""), newCall("4", "read", ""), newCall("5", "read", ""),
			}})
			for i, n := range []int{round, round, -1, round + 1, round + 1} {
				if n >= 0 {
					assert.Equal(t, fmt.Sprint(n), records[i].Result.Output, "%s, round %d, call %d", scope, round, i)
				}
			}
		}
	}
}
