package dialects

import (
	"bytes"
	"encoding/json"

	"github.com/caisson-run/caisson/dialects/internal/exact"
)

// Detect returns the name of the dialect that a whole response is written in. It goes by what
// stands outermost, so that a document that it knows may still be refused by the dialect. It
// returns false for what is none or more than one of them, and for what is over [MaxDocument].
//
// A list is judged by its first element. Gemini streams one, unless it is asked for server-sent
// events, and a batch of requests of MCP is one; of other dialects it is several responses.
func Detect(document []byte) (name string, ok bool) {
	if len(document) > MaxDocument {
		return "", false
	}
	document = exact.Trimmed(document)
	isList := exact.First(document) == '['
	if isList {
		if !json.Valid(document) {
			return "", false
		}
		decoder := json.NewDecoder(bytes.NewReader(document[1:]))
		var first json.RawMessage
		if decoder.Decode(&first) != nil {
			return "", false // an empty list
		}
		document = first
	}
	var shape outermost
	if exact.First(document) != '{' || exact.Unmarshal(document, &shape) != nil {
		return "", false
	}
	for _, candidate := range shape.candidates() {
		if !candidate.fits {
			continue
		}
		if ok {
			return "", false
		}
		name, ok = candidate.name, true
	}
	if isList && name != Gemini && name != MCP {
		return "", false
	}
	return name, ok
}

// outermost is the union of what tells responses apart.
type outermost struct {
	Object         json.RawMessage `json:"object"`
	Type           json.RawMessage `json:"type"`
	Choices        json.RawMessage `json:"choices"`
	Output         json.RawMessage `json:"output"`
	Content        json.RawMessage `json:"content"`
	Role           json.RawMessage `json:"role"`
	Candidates     json.RawMessage `json:"candidates"`
	PromptFeedback json.RawMessage `json:"promptFeedback"`
	JSONRPC        json.RawMessage `json:"jsonrpc"`
}

type candidate struct {
	name string
	fits bool
}

// candidates judges the dialects. Servers that imitate OpenAI's leave out "object".
func (o *outermost) candidates() []candidate {
	return []candidate{
		{OpenAI, isList(o.Choices)},
		{Responses, is(o.Object, "response") && isList(o.Output)},
		{Anthropic, is(o.Type, "message") && is(o.Role, "assistant") && isList(o.Content)},
		{Gemini, isList(o.Candidates) || o.Candidates == nil && isObject(o.PromptFeedback)},
		{MCP, is(o.JSONRPC, "2.0")},
	}
}

func isList(value json.RawMessage) bool { return bytes.HasPrefix(value, []byte("[")) }

func isObject(value json.RawMessage) bool { return bytes.HasPrefix(value, []byte("{")) }

func is(value json.RawMessage, text string) bool { return string(value) == `"`+text+`"` }
