package speech_test

import (
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/executor/internal/speech"
	"github.com/caisson-run/caisson/tool"
)

// TestMemory: very many unread outputs need little memory, also if they are small, or
// small parts of a large string. Without the bound their memory grows with their number.
func TestMemory(t *testing.T) {
	const many = 100_000
	say := func(line *speech.Sequencer, text string) {
		line.Offer(tool.Event{Type: tool.CallOutput, CallID: "a", Emission: &tool.Emission{Type: tool.EmitText, Text: text}})
	}
	small := func(most int64) func() any {
		return func() any {
			line := speech.New(most)
			for range many {
				say(line, "x")
			}
			return line
		}
	}
	assert.Less(t, needs(small(room)), int64(4*room))
	assert.Greater(t, needs(small(math.MaxInt64)), int64(10*room), "the control")

	const parts = 50
	large := func() string { return strings.Repeat("x", room)[:10] }
	assert.Less(t, needs(func() any {
		line := speech.New(room)
		for range parts {
			say(line, large())
		}
		return line
	}), int64(4*room))
	assert.Greater(t, needs(func() any {
		var all []string
		for range parts {
			all = append(all, large())
		}
		return all
	}), int64(parts/2*room), "the control")
}

// needs returns the bytes of memory that the result of build holds.
func needs(build func() any) int64 {
	before := reachable()
	built := build()
	held := reachable() - before
	runtime.KeepAlive(built)
	return held
}

func reachable() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
