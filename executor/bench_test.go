package executor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
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

// BenchmarkExecute measures what stands around a call: the executor, the registry and the
// check of the arguments against the schema. p50-ns/call is the median batch, divided by
// its calls.
func BenchmarkExecute(b *testing.B) {
	parameters := fields{
		"type": "object", "required": []string{"text", "nums"},
		"properties": fields{"text": fields{"type": "string"}, "nums": fields{"type": "array", "items": fields{"type": "integer"}}},
	}
	one := newFake(b, "one", fields{"parameters": parameters}, instant)
	beside := newFake(b, "beside", fields{"parameters": parameters, "behavior": fields{"read_only": true}}, instant)
	e := newExecutor(b, executor.Options{}, one, beside)
	for _, length := range []int{100, 64 << 10} {
		arguments := payload(length)
		require.Len(b, arguments, length)
		for _, c := range []struct {
			tool  string
			calls int
		}{{"one", 1}, {"one", 8}, {"beside", 1}, {"beside", 8}} {
			batch := executor.Batch{Calls: slices.Repeat([]tool.Call{newCall("1", c.tool, arguments)}, c.calls)}
			b.Run(fmt.Sprintf("bytes=%d/tool=%s/calls=%d", length, c.tool, c.calls), func(b *testing.B) {
				b.ReportAllocs()
				var took []time.Duration
				for b.Loop() {
					start := time.Now()
					records, err := e.Execute(b.Context(), batch)
					took = append(took, time.Since(start))
					if err != nil || !records[0].Result.Success {
						b.Fatal(err, records)
					}
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/float64(c.calls), "p50-ns/call")
			})
		}
	}
}
