package executor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// instant answers at once, so that all of a call's time is spent around it.
func instant(context.Context, tool.Invocation) (tool.Outcome, error) { return succeed(""), nil }

// payload returns arguments of the given length in bytes: half is one text, and half is
// a list of numbers, as what tools are given often is.
func payload(length int) string {
	const around = len(`{"text": "", "nums": [1000]}`)
	numbers := "1000" + strings.Repeat(",1001", (length-around)/2/len(",1001"))
	text := strings.Repeat("x", length-around-len(numbers)+len("1000"))
	return fmt.Sprintf(`{"text": %q, "nums": [%s]}`, text, numbers)
}

// benchmarkBatch runs a batch again and again. p50-ns/call is the median batch, divided by
// its calls.
func benchmarkBatch(b *testing.B, e *executor.Executor, batch executor.Batch) {
	b.ReportAllocs()
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		report, err := e.Execute(b.Context(), batch)
		took = append(took, time.Since(start))
		if err != nil || !report.Records[0].Result.Success {
			b.Fatal(err, report)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/float64(len(batch.Calls)), "p50-ns/call")
}

// newInstant returns an executor of tools that answer at once, and take the arguments from payload.
func newInstant(t testing.TB) *executor.Executor {
	t.Helper()
	parameters := fields{
		"type": "object", "required": []string{"text", "nums"},
		"properties": fields{"text": fields{"type": "string"}, "nums": fields{"type": "array", "items": fields{"type": "integer"}}},
	}
	as := func(behavior fields) fields { return fields{"parameters": parameters, "behavior": behavior} }
	return newExecutor(t, executor.Options{Rates: unlimited},
		newFake(t, "one", as(fields{"read_only": false}), instant), newFake(t, "beside", as(fields{"read_only": true, "cache": "off"}), instant),
		newFake(t, "known", as(fields{"read_only": true}), instant))
}

// TestCallAllocatesLittle: unused values are not made, such as entries of a log that is off and a note about a result
// that is not cut.
func TestCallAllocatesLittle(t *testing.T) {
	e := newInstant(t)
	for _, name := range []string{"one", "beside", "known"} {
		batch := executor.Batch{Calls: []tool.Call{newCall("1", name, payload(100))}, Session: newSession(t, e, executor.SessionOptions{})}
		allocated := testing.AllocsPerRun(200, func() {
			if report, err := e.Execute(t.Context(), batch); err != nil || !report.Records[0].Result.Success {
				t.Error(err, report)
			}
		})
		assert.LessOrEqual(t, allocated, 34.0, "%s: or a few less without the race detector, under which pools forget", name)
	}
}

// BenchmarkExecute measures the overhead of a call: the executor, the registry and the
// check of the arguments against the schema.
func BenchmarkExecute(b *testing.B) {
	e := newInstant(b)
	for _, length := range []int{100, 64 << 10} {
		arguments := payload(length)
		require.Len(b, arguments, length)
		for _, c := range []struct {
			tool  string
			calls int
		}{{"one", 1}, {"one", 8}, {"beside", 1}, {"beside", 8}, {"known", 1}, {"known", 8}} {
			b.Run(fmt.Sprintf("bytes=%d/tool=%s/calls=%d", length, c.tool, c.calls), func(b *testing.B) {
				session := newSession(b, e, executor.SessionOptions{})
				benchmarkBatch(b, e, executor.Batch{Calls: slices.Repeat([]tool.Call{newCall("1", c.tool, arguments)}, c.calls), Session: session})
			})
		}
	}
}

// BenchmarkFirst measures read-only calls without a cached result: they also look for an answer in the cache and put
// one there.
func BenchmarkFirst(b *testing.B) {
	e := newExecutor(b, executor.Options{Rates: unlimited}, newFake(b, "one", readOnly, instant))
	session := newSession(b, e, executor.SessionOptions{})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		report, err := e.Execute(b.Context(), executor.Batch{Calls: []tool.Call{newCall("1", "one", fmt.Sprintf(`{"n":%d}`, i))}, Session: session})
		if err != nil || report.Records[0].Cached {
			b.Fatal(err, report)
		}
	}
}

// BenchmarkNested measures a call that makes one call, which is run or known.
func BenchmarkNested(b *testing.B) {
	calls := func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
		record, err := invocation.Host.Call(ctx, newCall("", "inner", `{"n":1}`))
		return tool.Outcome{Result: record.Result}, err
	}
	for name, cache := range map[string]string{"run": "off", "known": "1h"} {
		b.Run(name, func(b *testing.B) {
			e := newExecutor(b, executor.Options{Rates: unlimited},
				newFake(b, "outer", fields{"permissions": fields{"tools": []string{"inner"}}, "behavior": fields{"read_only": true, "cache": "off"}}, calls),
				newFake(b, "inner", behaves(fields{"read_only": true, "cache": cache}), instant))
			benchmarkBatch(b, e, executor.Batch{Calls: []tool.Call{newCall("1", "outer", "")}, Session: newSession(b, e, executor.SessionOptions{})})
		})
	}
}

// BenchmarkObserved measures a call that a subscriber and a recorder are told of.
func BenchmarkObserved(b *testing.B) {
	e := newExecutor(b, executor.Options{Rates: unlimited, Recorder: forgetful{}}, newFake(b, "one", nil, instant))
	subscription := noerr.Get(e.Subscribe(executor.SubscribeOptions{}))(b)
	defer subscription.Close()
	benchmarkBatch(b, e, executor.Batch{Calls: []tool.Call{newCall("1", "one", "")}, Session: newSession(b, e, executor.SessionOptions{})})
}

// forgetful is a recorder that keeps nothing.
type forgetful struct{}

func (forgetful) Record(context.Context, executor.Entry) error { return nil }
