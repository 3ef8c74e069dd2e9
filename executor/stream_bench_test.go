package executor_test

import (
	"context"
	"sync"
	"testing"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// BenchmarkStream measures batches of four calls that each emit ten words: without a stream, with an
// unread stream, and with one that is read meanwhile.
func BenchmarkStream(b *testing.B) {
	speaks := func(_ context.Context, i tool.Invocation) (tool.Outcome, error) {
		for range 10 {
			if err := i.Host.Emit(tool.Emission{Type: tool.EmitText, Text: "word"}); err != nil {
				return tool.Outcome{}, err
			}
		}
		return succeed("done"), nil
	}
	e := newExecutor(b, executor.Options{Rates: unlimited}, newFake(b, "speaks", behaves(fields{"read_only": true, "cache": "off"}), speaks))
	var calls []tool.Call
	for _, id := range []string{"1", "2", "3", "4"} {
		calls = append(calls, newCall(id, "speaks", `{"id":`+id+`}`))
	}
	execute := func(b *testing.B, stream *executor.Stream) {
		noerr.Get(e.Execute(b.Context(), executor.Batch{Stream: stream, Calls: calls}))(b)
	}
	b.Run("nobody", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			execute(b, nil)
		}
	})
	b.Run("unread", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			execute(b, newStream(b, executor.StreamOptions{}))
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			stream := newStream(b, executor.StreamOptions{})
			var reader sync.WaitGroup
			reader.Go(func() { drainStream(b, stream) })
			execute(b, stream)
			reader.Wait()
		}
	})
}
