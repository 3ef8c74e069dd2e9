package queue_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caisson-run/caisson/executor/internal/queue"
)

func newQueue(limits queue.Limits) *queue.Queue {
	limits.PerTenant, limits.PerTool, limits.Wait = limits.Running, limits.Running, time.Hour
	return queue.New(limits)
}

// BenchmarkEnter measures a call that needs not wait, from its coming to its end.
func BenchmarkEnter(b *testing.B) {
	for _, beside := range []int{0, 1, 8} {
		b.Run(fmt.Sprintf("running=%d", beside), func(b *testing.B) {
			q := newQueue(queue.Limits{Running: 64})
			for i := range beside {
				if _, err := q.Enter(b.Context(), queue.Call{Tenant: "tenant-" + strconv.Itoa(i), Session: "session", Tool: "tool"}); err != nil {
					b.Fatal(err)
				}
			}
			call := queue.Call{Tenant: "tenant-0", Session: "0199a3c4-session", Tool: "calculator"}
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			b.ReportAllocs()
			for b.Loop() {
				turn, err := q.Enter(ctx, call)
				if err != nil {
					b.Fatal(err)
				}
				turn.Leave()
			}
		})
	}
}

// BenchmarkHandOver measures how long a place takes from one call to the next, with the
// switch between their goroutines, while hundreds wait: calls of so many tenants, of so many
// sessions and tools in each.
func BenchmarkHandOver(b *testing.B) {
	for _, c := range []struct{ tenants, sessions, tools int }{{1, 1, 1}, {10, 10, 1}, {10, 10, 10}, {1000, 1, 1}, {1, 1000, 1}, {1, 1, 1000}} {
		b.Run(fmt.Sprintf("tenants=%d/sessions=%d/tools=%d", c.tenants, c.sessions, c.tools), func(b *testing.B) {
			q := newQueue(queue.Limits{Running: 4, Waiting: 10_000})
			var calls atomic.Int64
			b.SetParallelism(1000 / runtime.GOMAXPROCS(0))
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				i := int(calls.Add(1))
				call := queue.Call{
					Tenant:  strconv.Itoa(i % c.tenants),
					Session: strconv.Itoa(i / c.tenants % c.sessions),
					Tool:    strconv.Itoa(i / c.tenants / c.sessions % c.tools),
				}
				for pb.Next() {
					turn, err := q.Enter(b.Context(), call)
					if err != nil {
						b.Error(err)
						return
					}
					runtime.Gosched() // so that other calls arrive meanwhile
					turn.Leave()
				}
			})
		})
	}
}
