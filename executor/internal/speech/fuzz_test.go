package speech_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor/internal/speech"
	"github.com/caisson-run/caisson/tool"
)

// FuzzLine plays a script of offers and takes to a sequencer and to the reference. The first byte is
// the room; in each following pair of bytes, one selects the action and the other the call.
func FuzzLine(f *testing.F) {
	f.Add([]byte("\x04"))
	f.Add([]byte("\x08\x00\x00\x01\x01\x02\x01\x03\x02\x0a\x01\x0a\x01\x0a\x02"))
	f.Add([]byte("\x02\x02\x01\x12\x01\x22\x02\x04\x02\x05\x01\x04\x01\x03\x01\x0b\x00"))
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 0 && len(script) < 2000 {
			compare(t, script)
		}
	})
}

// TestRandomScripts is FuzzLine for many long scripts that are random.
func TestRandomScripts(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	var sum reference
	for range 500 {
		script := make([]byte, 1+random.IntN(300))
		for i := range script {
			script[i] = byte(random.Uint32())
		}
		played := compare(t, script)
		sum.taken += played.taken
		sum.dropped += played.dropped
		sum.replaced += played.replaced
		if t.Failed() {
			t.Fatal("seed", seed)
		}
	}
	for what, n := range map[string]int{"taken": sum.taken, "dropped": sum.dropped, "replaced": sum.replaced} {
		assert.Greater(t, n, 500, "%s: the test is of nothing otherwise", what)
	}
}

// compare compares a sequencer with the reference, and checks the properties of both.
func compare(t *testing.T, script []byte) *reference {
	t.Helper()
	most := int64(script[0]) * 64
	line, want := speech.New(most), newReference(most)
	check := shown{calls: map[string]string{}}
	take := func() bool {
		require.Equal(t, len(want.waiting) > 0 && canTake(want), line.Ready())
		event, ok := line.Next()
		wanted, wantedOK := want.take()
		require.Equal(t, wantedOK, ok)
		require.Equal(t, wanted, event)
		if ok {
			check.event(t, event)
		}
		return ok
	}
	for i := 1; i+1 < len(script); i += 2 {
		action, which := script[i], script[i+1]
		switch action % 16 {
		case 12, 13:
			take()
		case 14:
			for which%4 == 0 && take() {
			}
		default:
			event := scripted(action, which, i)
			line.Offer(event)
			want.offer(event)
		}
		require.LessOrEqual(t, line.Held(), most)
	}
	line.Close()
	want.closed = true
	for take() {
	}
	assert.Empty(t, want.waiting)
	assert.Zero(t, line.Held())
	assert.Equal(t, want.given, want.taken+want.dropped+want.replaced)
	return want
}

func canTake(r *reference) bool {
	for _, w := range r.waiting {
		if w.call == "" || w.call == r.speaker() {
			return true
		}
	}
	return false
}

// scripted returns the event for two bytes of a script.
func scripted(action, which byte, at int) tool.Event {
	event := tool.Event{Time: time.Unix(int64(at), 0), CallID: fmt.Sprint("call", which%6), Hidden: which%6 == 5, Tool: "t"}
	if which > 250 {
		event.Parent = "call0"
	}
	text := fmt.Sprint(at)
	switch kind := action % 16; kind {
	case 0:
		event.Type = tool.CallStarted
	case 1:
		event.Type = tool.CallWaiting
	case 2:
		event.Type = tool.CallFinished
	case 3:
		if which < 250 {
			event.Type = tool.BatchStarted
			event.Calls = []tool.Planned{{CallID: "call1"}, {CallID: "call5", Hidden: true}}[:1]
			return event
		}
		event = tool.Event{Type: tool.BatchFinished, Time: event.Time}
		if which%2 == 0 {
			event.Type = tool.BatchPaused
		}
	case 4, 5:
		event.Type, event.Emission = tool.CallOutput, &tool.Emission{Type: tool.EmitProgress, Text: text}
	case 6, 7:
		event.Type, event.Emission = tool.CallOutput, &tool.Emission{Type: tool.EmitImage, Text: text, Partial: kind == 6}
	default:
		event.Type, event.Emission = tool.CallOutput, &tool.Emission{Type: tool.EmitText, Text: text}
	}
	if event.Emission != nil {
		event.Emission.Data = make(json.RawMessage, int(action/16)*100)
	}
	return event
}

// shown is the state of the events taken so far.
type shown struct {
	speaker string
	calls   map[string]string // "speaks" or "ended"
	last    time.Time         // of the speaker's last event
	over    bool
}

// event checks the properties of every sequence of events, whatever was offered.
func (s *shown) event(t *testing.T, event tool.Event) {
	t.Helper()
	require.False(t, event.Hidden || event.Parent != "")
	require.False(t, s.over, "nothing comes after the end")
	switch event.Type {
	case tool.CallOutput, tool.CallFinished:
		require.NotEqual(t, "ended", s.calls[event.CallID])
		if s.speaker != event.CallID {
			require.Empty(t, s.calls[event.CallID], "it had the floor and lost it before its end")
			s.speaker, s.last = event.CallID, time.Time{}
		}
		require.True(t, event.Time.After(s.last), "a call's words are in their order")
		s.last, s.calls[event.CallID] = event.Time, "speaks"
		if event.Type == tool.CallFinished {
			s.speaker, s.calls[event.CallID] = "", "ended"
		}
	case tool.BatchFinished, tool.BatchPaused:
		s.over = true
	}
}
