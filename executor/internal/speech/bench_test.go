package speech_test

import (
	"fmt"
	"testing"

	"github.com/caisson-run/caisson/executor/internal/speech"
	"github.com/caisson-run/caisson/tool"
)

// BenchmarkSpeaker is one that speaks, read word by word.
func BenchmarkSpeaker(b *testing.B) {
	line := speech.New(room)
	event := tool.Event{Type: tool.CallOutput, CallID: "a", Emission: &tool.Emission{Type: tool.EmitText, Text: "word"}}
	b.ReportAllocs()
	for b.Loop() {
		line.Offer(event)
		line.Take()
	}
}

// BenchmarkFull is a line without room to which many calls speak in turns that nobody reads. What
// it takes must not grow with them.
func BenchmarkFull(b *testing.B) {
	for _, calls := range []int{10, 100, 1000, 10_000} {
		b.Run(fmt.Sprintf("calls=%d", calls), func(b *testing.B) {
			line := speech.New(int64(calls) * 1000)
			events := make([]tool.Event, calls)
			for i := range events {
				events[i] = tool.Event{Type: tool.CallOutput, CallID: fmt.Sprint(i), Emission: &tool.Emission{Type: tool.EmitText, Text: "word"}}
			}
			for i := range 10 * calls {
				line.Offer(events[i%calls])
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				line.Offer(events[i%calls])
				i += 1 + i%3
			}
		})
	}
}

// BenchmarkHidden is what nobody is to hear.
func BenchmarkHidden(b *testing.B) {
	line := speech.New(room)
	event := tool.Event{Type: tool.CallOutput, CallID: "a", Hidden: true, Emission: &tool.Emission{Type: tool.EmitText, Text: "word"}}
	b.ReportAllocs()
	for b.Loop() {
		line.Offer(event)
	}
}
