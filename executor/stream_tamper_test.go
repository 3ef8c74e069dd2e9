package executor_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

// genuine returns a batch as a quick reader saw it: one call speaks and waits for another to have
// spoken, a hidden one speaks, one is refused, and one is a barrier.
func genuine(t *testing.T) watched {
	t.Helper()
	world := newTalkWorld()
	spoken := make(chan struct{}, 2)
	first := newFake(t, "first", readOnly, func(ctx context.Context, i tool.Invocation) (tool.Outcome, error) {
		world.say(i, emissionOf('t', "one"))
		spoken <- struct{}{}
		spoken <- struct{}{}
		spoken <- struct{}{} // the second call has received twice
		world.say(i, emissionOf('t', "two"))
		return succeed(""), nil
	})
	second := newFake(t, "second", readOnly, func(ctx context.Context, i tool.Invocation) (tool.Outcome, error) {
		<-spoken
		world.say(i, emissionOf('j', "3"))
		world.say(i, emissionOf('I', "four"))
		<-spoken
		return succeed(""), nil
	})
	e := newExecutor(t, executor.Options{}, append(world.tools(t), first, second)...)
	stream := newStream(t, executor.StreamOptions{})
	report := reportOf(t, e, executor.Batch{Stream: stream, Calls: []tool.Call{
		newCall("1", "first", "{}"), newCall("2", "second", "{}"), talking("3", "whisper", "t"), newCall("4", "missing", "{}"), talking("5", "write", "tpt"),
	}})
	return watched{
		events: drainStream(t, stream), report: report, said: world.saidBy, hidden: isHiddenTalk, writes: isWritingTalk,
	}
}

// tampering is one change of a stream that no reader may take for genuine.
type tampering struct {
	name   string
	change func(w *watched)
}

// at changes one event.
func at(i int, change func(*tool.Event)) func(*watched) {
	return func(w *watched) { change(&w.events[i]) }
}

// TestStreamCheckerNotices: the checker of streams accepts a genuine stream, and none with an event that
// was left out, repeated, moved or changed.
func TestStreamCheckerNotices(t *testing.T) {
	original := genuine(t)
	require.Empty(t, original.check(), show(original.events))
	for _, test := range tamperings(original) {
		t.Run(test.name, func(t *testing.T) {
			changed := original
			changed.events = slices.Clone(original.events)
			test.change(&changed)
			assert.NotEmpty(t, changed.check(), show(changed.events))
		})
	}
	require.Empty(t, original.check(), "the original was not changed")
}

func tamperings(w watched) (all []tampering) {
	for i, event := range w.events {
		name := fmt.Sprintf("%d %s of %s ", i, event.Type, event.Tool)
		all = append(all,
			tampering{name + "is missing", func(w *watched) { w.events = slices.Delete(w.events, i, i+1) }},
			tampering{name + "comes twice", func(w *watched) { w.events = slices.Insert(w.events, i, event) }},
			tampering{name + "is another batch's", at(i, func(e *tool.Event) { e.Batch = "other" })},
			tampering{name + "is another session's", at(i, func(e *tool.Event) { e.Session = "other" })},
			tampering{name + "is hidden", at(i, func(e *tool.Event) { e.Hidden = true })},
			tampering{name + "is nested", at(i, func(e *tool.Event) { e.Parent = "other" })},
			tampering{name + "has lost one", at(i, func(e *tool.Event) { e.Lost++ })},
			tampering{name + "has no time", at(i, func(e *tool.Event) { e.Time = time.Time{} })},
			tampering{name + "is another's", at(i, func(e *tool.Event) { e.CallID += "other" })},
			tampering{name + "waits for an action", at(i, func(e *tool.Event) { e.Action = &tool.Action{} })},
		)
		for _, kind := range []tool.EventType{tool.BatchStarted, tool.BatchResumed, tool.CallWaiting, tool.CallStarted, tool.CallOutput, tool.CallFinished, tool.BatchPaused, tool.BatchFinished} {
			if kind != event.Type {
				all = append(all, tampering{name + "is a " + string(kind), at(i, func(e *tool.Event) { e.Type = kind })})
			}
		}
		if i > 0 && dependent(w.events[i-1], event) {
			all = append(all, tampering{name + "comes before what was before it", func(w *watched) {
				w.events[i-1], w.events[i] = w.events[i], w.events[i-1]
			}})
		}
		all = append(all, ofContent(i, name, event)...)
	}
	return append(all, ofTurns(w)...)
}

// dependent reports whether one of two events that follow each other cannot come before the other.
func dependent(a, b tool.Event) bool {
	return a.CallID == b.CallID || a.CallID == "" || b.CallID == ""
}

// ofContent returns changes of an event's content.
func ofContent(i int, name string, event tool.Event) (all []tampering) {
	if event.Emission != nil {
		other := *event.Emission
		other.Text += "other"
		all = append(all, tampering{name + "says something else", at(i, func(e *tool.Event) { e.Emission = &other })})
	}
	if event.Record != nil {
		other := *event.Record
		other.Result.Output += "other"
		all = append(all, tampering{name + "came to something else", at(i, func(e *tool.Event) { e.Record = &other })})
	}
	if event.Totals != nil {
		other := *event.Totals
		other.Nested++
		all = append(all, tampering{name + "has other totals", at(i, func(e *tool.Event) { e.Totals = &other })})
	}
	for at := range event.Calls {
		all = append(all,
			tampering{name + fmt.Sprint("does not list ", at), func(w *watched) {
				w.events[i].Calls = slices.Delete(slices.Clone(event.Calls), at, at+1)
			}},
			tampering{name + fmt.Sprint("lists as hidden ", at), func(w *watched) {
				w.events[i].Calls = slices.Clone(event.Calls)
				w.events[i].Calls[at].Hidden = true
			}})
	}
	return all
}

// ofTurns returns changes of who speaks when.
func ofTurns(w watched) []tampering {
	find := func(kind tool.EventType, name string) int {
		return slices.IndexFunc(w.events, func(e tool.Event) bool { return e.Type == kind && e.Tool == name })
	}
	move := func(from, to int) func(*watched) {
		return func(w *watched) {
			moved := w.events[from]
			w.events = slices.Insert(slices.Delete(w.events, from, from+1), to, moved)
		}
	}
	firstSays, firstEnds, secondSays, secondEnds := find(tool.CallOutput, "first"), find(tool.CallFinished, "first"), find(tool.CallOutput, "second"), find(tool.CallFinished, "second")
	return []tampering{
		{"the second interrupts", move(secondSays, firstSays+1)},
		{"the second ends within the first's words", move(secondEnds, firstSays+1)},
		{"the second speaks first", func(w *watched) {
			var words, rest []tool.Event
			for i, event := range w.events[:secondEnds+1] {
				if event.Tool == "second" && i >= secondSays {
					words = append(words, event)
					continue
				}
				rest = append(rest, event)
			}
			w.events = slices.Concat(rest[:firstSays], words, rest[firstSays:], w.events[secondEnds+1:])
		}},
		{"the barrier starts too early", move(find(tool.CallStarted, "write"), firstEnds)},
		{"what a hidden call says", func(w *watched) {
			w.events = slices.Insert(w.events, firstSays, tool.Event{
				Type: tool.CallOutput, Time: w.events[firstSays].Time, Batch: w.report.ID, Session: w.report.Session.ID(),
				CallID: w.report.Records[2].CallID, Tool: "whisper", Emission: &tool.Emission{Type: tool.EmitText, Text: "0"},
			})
		}},
		{"nothing at all", func(w *watched) { w.events = nil }},
	}
}
