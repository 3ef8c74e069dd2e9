package speech_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/executor/internal/speech"
	"github.com/caisson-run/caisson/tool"
)

// read returns the event for a word:
//
//	[ { ] |   the batch's start, resumption, end and pause
//	+a ?a a.  the call a starts, waits, has finished
//	a:word    it says a text
//	a%5       it has come so far
//	a~x       it shows a partial image, and a*x a whole one
//
// A capital letter is a hidden call. An emission has the length after the @, if any.
func read(word string) tool.Event {
	switch word {
	case "[":
		return tool.Event{Type: tool.BatchStarted}
	case "{":
		return tool.Event{Type: tool.BatchResumed}
	case "]":
		return tool.Event{Type: tool.BatchFinished}
	case "|":
		return tool.Event{Type: tool.BatchPaused}
	}
	event := tool.Event{Type: tool.CallOutput, CallID: word[:1]}
	switch word[0] {
	case '+':
		event.Type, event.CallID = tool.CallStarted, word[1:]
	case '?':
		event.Type, event.CallID = tool.CallWaiting, word[1:]
	}
	event.Hidden = event.CallID == strings.ToUpper(event.CallID)
	if event.Type != tool.CallOutput {
		return event
	}
	said, size := word[2:], 0
	if before, after, found := strings.Cut(said, "@"); found {
		said = before
		_, _ = fmt.Sscan(after, &size)
	}
	emission := tool.Emission{Text: said}
	switch word[1] {
	case '.':
		event.Type = tool.CallFinished
		return event
	case ':':
		emission.Type = tool.EmitText
	case '%':
		emission.Type = tool.EmitProgress
	case '~', '*':
		emission.Type, emission.Partial = tool.EmitImage, word[1] == '~'
	}
	emission.Data = json.RawMessage(strings.Repeat(" ", max(size-len(said), 0)))
	event.Emission = &emission
	return event
}

// write returns the word for an event, with how many outputs were lost before it.
func write(event tool.Event) string {
	var word string
	switch event.Type {
	case tool.BatchStarted:
		word = "["
	case tool.BatchResumed:
		word = "{"
	case tool.BatchFinished:
		word = "]"
	case tool.BatchPaused:
		word = "|"
	case tool.CallStarted:
		word = "+" + event.CallID
	case tool.CallWaiting:
		word = "?" + event.CallID
	case tool.CallFinished:
		word = event.CallID + "."
	case tool.CallOutput:
		mark := map[tool.EmissionType]string{tool.EmitText: ":", tool.EmitProgress: "%", tool.EmitImage: "*"}[event.Emission.Type]
		if event.Emission.Partial {
			mark = "~"
		}
		word = event.CallID + mark + event.Emission.Text
	}
	if event.Lost > 0 {
		word += fmt.Sprintf("(-%d)", event.Lost)
	}
	return word
}

// play offers the words of a script to a sequencer with so much room. A "<" takes one event, "<<" all
// available ones, and "x" closes the sequencer. It returns the events taken, with "!" for a take without
// an event.
func play(t testing.TB, most int64, script string) string {
	t.Helper()
	line := speech.New(most)
	at := time.Unix(0, 0)
	var taken []string
	take := func() bool {
		ready := line.Ready()
		event, ok := line.Next()
		assert.Equal(t, ready, ok)
		if !ok {
			return false
		}
		taken = append(taken, write(event))
		return true
	}
	for word := range strings.FieldsSeq(script) {
		switch word {
		case "<":
			if !take() {
				taken = append(taken, "!")
			}
		case "<<":
			for take() {
			}
		case "x":
			line.Close()
		default:
			event := read(word)
			at = at.Add(time.Second)
			event.Time = at
			line.Offer(event)
		}
		assert.LessOrEqual(t, line.Held(), most)
	}
	return strings.Join(taken, " ")
}
