package speech_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor/internal/speech"
	"github.com/caisson-run/caisson/tool"
)

const room = 1 << 20

// TestOrder: which call speaks, and which events pass meanwhile.
func TestOrder(t *testing.T) {
	for _, test := range []struct{ name, script, want string }{
		{"nothing", "<", "!"},
		{"empty batch", "[ ] <<", "[ ]"},
		{"one call", "[ < +a < a:1 < a:2 < a. < ] < <", "[ +a a:1 a:2 a. ] !"},
		{"one call, read late", "[ +a a:1 a:2 a. ] <<", "[ +a a:1 a:2 a. ]"},
		{"the second waits", "+a +b a:1 b:1 a:2 << b:2 < a. << b. <<", "+a +b a:1 a:2 ! a. b:1 b:2 b."},
		{"in the order of first speech, not of the start", "+a +b +c c:1 a:1 b:1 a. b. c. <<", "+a +b +c c:1 c. a:1 a. b:1 b."},
		{"who has ended without a word waits as well", "+a +b a:1 b. << a. <<", "+a +b a:1 a. b."},
		{"who ends first in silence goes first", "+a +b b. << a:1 << a. <<", "+a +b b. a:1 a."},
		{"the end is a first word", "+a +b +c a:1 b. c:1 a. c. <<", "+a +b +c a:1 a. b. c:1 c."},
		{"starts and waits pass", "+a a:1 +b ?c b:1 < < < < <", "+a a:1 +b ?c !"},
		{"what passes does not overtake the speaker", "+a a:1 a. +b b:1 b. <<", "+a a:1 a. +b b:1 b."},
		{"nor what had to wait for the floor", "+a +b a:1 b:1 b. a. +c <<", "+a +b a:1 a. b:1 b. +c"},
		{"a call that was never started", "a. b:1 b. <<", "a. b:1 b."},
		{"hidden calls", "[ +a +B B:1 ?C B. a:1 a. ] <<", "[ +a a:1 a. ]"},
		{"a hidden call does not take the floor", "+A +b A:1 b:1 << A. b. <<", "+b b:1 b."},
		{"the end waits for all", "[ +a +b a:1 b:1 ] <<", "[ +a +b a:1 b:1 ]"},
		{"a pause flushes what is left in order", "[ +a +b +c b:1 a:1 b:2 c. ?d | <<", "[ +a +b +c b:1 b:2 a:1 c. ?d |"},
		{"a pause after the speaker was read", "[ +a a:1 << b:1 < | <<", "[ +a a:1 ! b:1 |"},
		{"closed without an end", "[ +a a:1 b:1 b. << x <<", "[ +a a:1 b:1 b."},
		{"nothing comes after the end", "[ ] +a a:1 a. ] <<", "[ ]"},
		{"nothing comes after closing", "[ x +a <<", "["},
		{"nothing comes after a call's end", "a. a:1 << a:2 a. b:1 <<", "a. b:1"},
		{"resumed", "{ +a a:1 a. ] <<", "{ +a a:1 a. ]"},
	} {
		t.Run(test.name, func(t *testing.T) { assert.Equal(t, test.want, play(t, room, test.script)) })
	}
}

// TestLatest: of progress and of partial images that wait, the latest is kept, in the order in
// which the call said them.
func TestLatest(t *testing.T) {
	for _, test := range []struct{ name, script, want string }{
		{"progress", "a%1 a%2 a%3 <<", "a%3"},
		{"that was read is not taken back", "a%1 < a%2 a%3 <<", "a%1 a%3"},
		{"progress comes behind what was said since", "a%1 a:x a%2 a:y <<", "a:x a%2 a:y"},
		{"partial images", "a~1 a:x a~2 a*3 <<", "a:x a~2 a*3"},
		{"a whole image is kept", "a*1 a*2 a~3 <<", "a*1 a*2 a~3"},
		{"progress and images beside each other", "a%1 a~1 a%2 a~2 <<", "a%2 a~2"},
		{"each call has its own", "a%1 b%1 a%2 b%2 a. b. <<", "a%2 a. b%2 b."},
		{"the floor stays with who took it first", "a%1 b:1 a%2 << a. <<", "a%2 a. b:1"},
	} {
		t.Run(test.name, func(t *testing.T) { assert.Equal(t, test.want, play(t, room, test.script)) })
	}
}

// TestRoom: the outputs that are lost for lack of room, and the events that report it. Of 1,000 bytes, two
// calls have 500 each, and three 333.
func TestRoom(t *testing.T) {
	for _, test := range []struct{ name, script, want string }{
		{"one call has all", "a:1@600 a:2@400 a. <<", "a:1 a:2 a."},
		{"larger than the room", "a:1@1001 a:2 a. <<", "a:2(-1) a."},
		{"told at the end at the latest", "a:1 a:2@1001 a:3@1001 a. <<", "a:1 a.(-2)"},
		{"told with the next", "a:1@900 a:2@900 < a:3 a. <<", "a:1 a:3(-1) a."},
		{"who has had no word at all", "a:1@1001 b:1 b. a. <<", "b:1 b. a.(-1)"},
		{"small ones count as 256 bytes", "a:1 a:2 a:3 a:4 a. <<", "a:1 a:2 a:3 a.(-1)"},
		{"the larger gives way", "a:1@500 a:2@500 b:1@500 a. b. <<", "a:1 a.(-1) b:1 b."},
		{"not for more than an equal part", "a:1@500 a:2@500 b:1@501 a. b. <<", "a:1 a:2 a. b.(-1)"},
		{"an equal part of three", "a:1@600 b:1@400 c:1@334 c:2@333 a. b. c. <<", "a.(-1) b:1 b. c:2(-1) c."},
		{"of several as large the last gives way", "a:1@500 b:1@500 c:1@300 a. b. c. <<", "a:1 a. b.(-1) c:1 c."},
		{"as many give way as it takes", "a:1 a:2 a:3 b:1@500 a. b. <<", "a:1 a.(-2) b:1 b."},
		{"one that gave way keeps its place in line", "a:1@1000 b:1@500 b. a:2@500 a. <<", "a:2(-1) a. b:1 b."},
		{"what was lost before what gives way", "a:1@400 a:2@700 a:3@600 b:1@500 a. b. <<", "a:1 a.(-2) b:1 b."},
		{"the later takes the place of the earlier", "a%1@900 a%2@1000 a. <<", "a%2 a."},
		{"and may be too large then", "a%1@900 a%2@1001 a. <<", "a.(-1)"},
		{"lost before what is taken the place of", "a:1@900 < a%0@100 a:2@1000 a%1 a:3 a%2 a. <<", "a:1 a:3(-1) a%2 a."},
		{"lost before the last that is taken the place of", "a:1@1001 a%1 a%2 a. <<", "a%2(-1) a."},
		{"a reader makes room", "a:1@1000 < a:2@1000 < a:3@1000 a. <<", "a:1 a:2 a:3 a."},
		{"ends are never lost", "a:1@1000 b. c. ?d +e a. ] <<", "a:1 ?d +e a. b. c. ]"},
	} {
		t.Run(test.name, func(t *testing.T) { assert.Equal(t, test.want, play(t, 1000, test.script)) })
	}
}

// TestNoRoom: without room, no output can wait, and all other events pass.
func TestNoRoom(t *testing.T) {
	assert.Equal(t, "[ +a a.(-2) ]", play(t, 0, "[ +a a:1 a:2 a. ] <<"))
}

// TestCallsAreListedWithoutHidden: hidden calls are left out of a copy; other receivers of the event have them.
func TestCallsAreListedWithoutHidden(t *testing.T) {
	calls := []tool.Planned{{CallID: "a"}, {CallID: "b", Hidden: true}, {CallID: "c"}}
	line := speech.New(room)
	line.Offer(tool.Event{Type: tool.BatchStarted, Calls: calls})
	event, ok := line.Next()
	require.True(t, ok)
	assert.Equal(t, []tool.Planned{{CallID: "a"}, {CallID: "c"}}, event.Calls)
	assert.Equal(t, []tool.Planned{{CallID: "a"}, {CallID: "b", Hidden: true}, {CallID: "c"}}, calls)
}

// TestNested: events of nested calls are dropped.
func TestNested(t *testing.T) {
	line := speech.New(room)
	for _, kind := range []tool.EventType{tool.CallStarted, tool.CallWaiting, tool.CallOutput, tool.CallFinished} {
		line.Offer(tool.Event{Type: kind, CallID: "b", Parent: "a", Emission: &tool.Emission{Type: tool.EmitText, Text: "x"}})
	}
	assert.False(t, line.Ready())
	assert.Zero(t, line.Held())
}

// TestWhole: all fields of an event are as offered.
func TestWhole(t *testing.T) {
	fraction := 0.5
	said := tool.Event{
		Type: tool.CallOutput, Time: time.Unix(5, 0), Batch: "b", Session: "s", Tenant: "t", CallID: "c", Tool: "draw",
		Emission: &tool.Emission{Type: tool.EmitProgress, Text: "drawing", Data: json.RawMessage(`1`), Fraction: &fraction, MIMEType: "image/png"},
	}
	ended := tool.Event{Type: tool.CallFinished, Time: time.Unix(6, 0), Batch: "b", Session: "s", Tenant: "t", CallID: "c", Tool: "draw", Record: &tool.Record{CallID: "c"}}
	paused := tool.Event{Type: tool.BatchPaused, Time: time.Unix(7, 0), Batch: "b", Totals: &tool.Totals{Calls: 1}}
	line := speech.New(room)
	for _, event := range []tool.Event{said, ended, paused} {
		line.Offer(event)
	}
	for _, want := range []tool.Event{said, ended, paused} {
		event, ok := line.Next()
		require.True(t, ok)
		assert.Equal(t, want, event)
	}
}

// TestOutputIsCopied: a tool may change an emission after it was offered.
func TestOutputIsCopied(t *testing.T) {
	fraction := 0.5
	emission := tool.Emission{Type: tool.EmitJSON, Data: json.RawMessage(`{"a":1}`), Fraction: &fraction}
	line := speech.New(room)
	line.Offer(tool.Event{Type: tool.CallOutput, CallID: "a", Emission: &emission})
	copy(emission.Data, `[]     `)
	fraction, emission.Text = 1, "changed"
	event, ok := line.Next()
	require.True(t, ok)
	half := 0.5
	assert.Equal(t, &tool.Emission{Type: tool.EmitJSON, Data: json.RawMessage(`{"a":1}`), Fraction: &half}, event.Emission)
}

// TestOutputOfNothing: an output without an emission is none.
func TestOutputOfNothing(t *testing.T) {
	line := speech.New(room)
	line.Offer(tool.Event{Type: tool.CallOutput, CallID: "a"})
	assert.False(t, line.Ready())
}

// TestLargestEmissionFits: where nothing else waits, the room that streams have by default holds
// whatever a call may say.
func TestLargestEmissionFits(t *testing.T) {
	line := speech.New(room)
	emission := tool.Emission{Type: tool.EmitText, Text: string(make([]byte, tool.MaxEmission))}
	require.NoError(t, emission.Check())
	line.Offer(tool.Event{Type: tool.CallOutput, CallID: "a", Emission: &emission})
	assert.EqualValues(t, tool.MaxEmission, line.Held())
}
