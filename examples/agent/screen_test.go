package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/tool"
)

// TestEventsAreShown: one line for each, whatever tools put into them.
func TestEventsAreShown(t *testing.T) {
	var out, notes strings.Builder
	s := &screen{out: &out, notes: &notes}
	half := 0.5
	for _, event := range []tool.Event{
		{Type: tool.BatchStarted, Calls: []tool.Planned{{CallID: "1", Arguments: "{\"a\":\n\"\u202eb\"}"}}},
		{Type: tool.CallStarted, CallID: "1", Tool: "draw"},
		{Type: tool.CallOutput, Tool: "draw", Emission: &tool.Emission{Type: tool.EmitProgress, Text: "drawing", Fraction: &half}},
		{Type: tool.CallOutput, Tool: "draw", Emission: &tool.Emission{Type: tool.EmitProgress, Text: "nearly"}},
		{Type: tool.CallOutput, Tool: "draw", Emission: &tool.Emission{Type: tool.EmitImage, MIMEType: "image/png\x1b[2J", Data: json.RawMessage(`"YWI="`), Partial: true}},
		{Type: tool.CallOutput, Tool: "draw", Emission: &tool.Emission{Type: tool.EmitLink, Text: "a page", Data: json.RawMessage(`"https://example.com/"`)}},
		{Type: tool.CallOutput, Tool: "draw", Emission: &tool.Emission{Type: tool.EmitText, Text: strings.Repeat("a", 500)}},
		{Type: tool.CallFinished, Tool: "draw", Record: &tool.Record{Result: tool.Result{Success: true, Output: "a house", Content: []tool.Content{{Type: "image", MIMEType: "image/png", Data: []byte("abc")}}}}},
		{Type: tool.CallFinished, Tool: "draw", Record: &tool.Record{Result: tool.Result{Success: true, Output: "a file", Content: []tool.Content{{Type: "file", Name: strings.Repeat("n", 500), MIMEType: strings.Repeat("m", 500), Text: "abc"}}}}},
		{Type: tool.CallFinished, Tool: "\x1b[2Jnone", Record: &tool.Record{Result: tool.Result{Error: "no\nsuch tool", Kind: tool.UnknownTool}}},
		{Type: tool.BatchFinished},
	} {
		s.event(event)
	}
	assert.Equal(t, `· draw {"a": · "\u202eb"} …
· draw: drawing 50%
· draw: nearly
· draw: a first image (image/png\u001b[2J, 2 bytes)
· draw: a page "https://example.com/"
· draw: `+strings.Repeat("a", maxShown)+`…
· draw: a house
· draw: with image (image/png, 3 bytes)
· draw: a file
· draw: with file `+strings.Repeat("n", maxShown)+"… ("+strings.Repeat("m", maxShown)+`…, 3 bytes)
· \u001b[2Jnone failed (unknown_tool): no · such tool
`, notes.String())
	assert.Empty(t, out.String(), "what tools say is no answer")
}

func TestWordsAreShownAsTheyCome(t *testing.T) {
	var out, notes strings.Builder
	s := &screen{out: &out, notes: &notes}
	for _, piece := range []tool.StreamResponse{
		{ResponseType: tool.ResponseThinking, Content: "hm"}, {ResponseType: tool.ResponseThinking, Content: "hm"},
		{ResponseType: tool.ResponseAnswer, Content: "one\n"}, {ResponseType: tool.ResponseToolDelta}, {ResponseType: tool.ResponseAnswer, Content: "two"},
	} {
		s.piece(piece)
	}
	s.endLine()
	s.endLine()
	s.stopped(tool.FinishLength)
	s.stopped(tool.FinishContentFilter)
	s.stopped(tool.FinishStop)
	assert.Equal(t, "one\ntwo\n", out.String())
	assert.Equal(t, 3, strings.Count(notes.String(), "\n"))
}
