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

const maxAnswer = 16 << 20 // bytes of one answer, with all that stands around the model's words

// model is a language model behind an API for chat completions.
type model struct {
	client         http.Client
	url, name, key string
	dialect        dialects.Dialect
	tools          json.RawMessage // that it is offered
}

// answer has the model answer a conversation, shows its words as they come, and returns the whole.
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
		return none, fmt.Errorf("the server says %s", response.Status) // and no more, which may have the key in it
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
	pieces, err := stream.End() // which fails where the answer broke off
	show(pieces)
	return stream.Response(), err
}

// message writes what somebody says.
func message(role, content string) json.RawMessage {
	written, _ := json.Marshal(map[string]string{"role": role, "content": content}) // which cannot fail
	return written
}

// ran adds an answer with its calls to a conversation, and what they came to.
func (m *model) ran(messages []json.RawMessage, answer tool.ChatResponse, records []tool.Record) ([]json.RawMessage, error) {
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
