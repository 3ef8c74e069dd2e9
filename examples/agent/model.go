package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/tool"
)

const maxAnswer = 16 << 20 // bytes of one response, with the protocol around the text

// model is a language model with an API for chat completions.
type model struct {
	client         http.Client
	url, name, key string
	dialect        dialects.Dialect
	tools          json.RawMessage // offered to the model
}

// answer sends the conversation, passes the text of the response to say as it arrives, and returns
// the whole response.
func (m *model) answer(ctx context.Context, messages []json.RawMessage, say func(string)) (tool.ChatResponse, error) {
	var none tool.ChatResponse
	body, err := json.Marshal(map[string]any{"model": m.name, "messages": messages, "tools": m.tools, "stream": true})
	if err != nil {
		return none, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, bytes.NewReader(body))
	if err != nil {
		return none, err
	}
	request.Header.Set("Content-Type", "application/json")
	if m.key != "" {
		request.Header.Set("Authorization", "Bearer "+m.key)
	}
	response, err := m.client.Do(request)
	if err != nil {
		return none, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return none, fmt.Errorf("the server answered %s", response.Status) // without the body, which may repeat the key
	}
	stream := m.dialect.Stream()
	defer func() {
		if stream.Response().Content != "" {
			say("\n")
		}
	}()
	show := func(pieces []tool.StreamResponse) {
		for _, piece := range pieces {
			if piece.ResponseType == tool.ResponseAnswer {
				say(piece.Content)
			}
		}
	}
	for event, err := range dialects.Events(io.LimitReader(response.Body, maxAnswer)) {
		if err != nil {
			return none, err
		}
		pieces, err := stream.Event(event.Name, event.Data)
		if show(pieces); err != nil {
			return none, err
		}
		if strings.TrimSpace(string(event.Data)) == "[DONE]" {
			break // some servers leave the connection open
		}
	}
	pieces, err := stream.End() // fails if the response is incomplete
	show(pieces)
	return stream.Response(), err
}

// message encodes a message of a conversation.
func message(role, content string) json.RawMessage {
	written, _ := json.Marshal(map[string]string{"role": role, "content": content}) // strings can always be encoded
	return written
}

// ran appends a response with calls, and their results, to a conversation.
func (m *model) ran(
	messages []json.RawMessage, answer tool.ChatResponse, records []tool.Record,
) ([]json.RawMessage, error) {
	calls, err := m.dialect.Calls(answer.ToolCalls)
	if err != nil {
		return nil, err
	}
	said, err := json.Marshal(map[string]any{"role": "assistant", "content": answer.Content, "tool_calls": calls})
	if err != nil {
		return nil, err
	}
	written, err := m.dialect.Results(records)
	if err != nil {
		return nil, err
	}
	var results []json.RawMessage
	err = json.Unmarshal(written, &results)
	return append(append(messages, said), results...), err
}
