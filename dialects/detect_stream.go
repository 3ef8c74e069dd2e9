package dialects

import (
	"bytes"
	"encoding/json"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/dialects/internal/exact"
)

// Transcript reads the events of a stream that was kept whole, as [Events] does, but that the last
// needs no blank line behind it: who kept the stream may have cut that off.
func Transcript(document []byte) iter.Seq2[Event, error] {
	return Events(io.MultiReader(bytes.NewReader(document), strings.NewReader("\n\n")))
}

// DetectStream returns the name of the dialect of a transcript: a streamed response as it came, that
// is its server-sent events, or the list that Gemini sends in their place. It goes by the first event
// that some dialect has, so that a transcript that it knows may still be refused by the dialect. It
// returns false for what is none or could be of several, and for what is over [MaxDocument].
func DetectStream(document []byte) (name string, ok bool) {
	if len(document) > MaxDocument {
		return "", false
	}
	if !exact.IsTranscript(document) {
		// Of the lists that there are, Gemini's alone is a stream.
		name, ok = Detect(document)
		ok = ok && name == Gemini && exact.First(document) == '['
		if !ok {
			name = ""
		}
		return name, ok
	}
	for event, err := range Transcript(document) {
		if err != nil {
			return "", false
		}
		switch fits := event.dialects(); len(fits) {
		case 0:
		case 1:
			return fits[0], true
		default:
			return "", false
		}
	}
	return "", false
}

// dialects returns the names of those that have an event like this. Pings and the like tell nothing.
func (e *Event) dialects() []string {
	var shape struct {
		outermost
		Type  string          `json:"type"`
		Usage json.RawMessage `json:"usageMetadata"`
	}
	if data := bytes.TrimSpace(e.Data); len(data) == 0 || data[0] != '{' || exact.Unmarshal(data, &shape) != nil {
		return nil
	}
	if shape.Type == "" {
		shape.Type = e.Name
	}
	var fits []string
	for _, c := range []candidate{
		{OpenAI, isList(shape.Choices)},
		{Responses, strings.HasPrefix(shape.Type, "response.")},
		{Anthropic, slices.Contains([]string{"message_start", "message_delta", "message_stop", "content_block_start", "content_block_delta", "content_block_stop"}, shape.Type)},
		{Gemini, isList(shape.Candidates) || isObject(shape.PromptFeedback) || isObject(shape.Usage)},
		{MCP, is(shape.JSONRPC, "2.0")},
	} {
		if c.fits {
			fits = append(fits, c.name)
		}
	}
	return fits
}
