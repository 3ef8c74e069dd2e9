package main

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/openai"
	"github.com/caisson-run/caisson/tool"
)

// newDialect returns how the model's API writes calls and results.
func newDialect() dialects.Dialect { return openai.New() }

// conversation is what the model has been told, and what the question that it is at has taken.
type conversation struct {
	Messages []json.RawMessage `json:"messages"`
	Rounds   int               `json:"rounds"`
	Tokens   int64             `json:"tokens"`
}

// message is one that we write. Those of tools come from the dialect.
type message struct {
	Role      string          `json:"role"`
	Content   *string         `json:"content,omitempty"`
	ToolCalls json.RawMessage `json:"tool_calls,omitempty"`
}

func (c *conversation) say(role, text string) error {
	return c.add(message{Role: role, Content: &text})
}

func (c *conversation) add(m message) error {
	encoded, err := json.Marshal(m)
	c.Messages = append(c.Messages, encoded)
	return err
}

// answered adds the model's answer, with its calls.
func (c *conversation) answered(dialect dialects.Dialect, response tool.ChatResponse) error {
	m := message{Role: "assistant"}
	if response.Content != "" || len(response.ToolCalls) == 0 {
		m.Content = &response.Content
	}
	if len(response.ToolCalls) > 0 {
		calls, err := dialect.Calls(response.ToolCalls)
		if err != nil {
			return err
		}
		m.ToolCalls = calls
	}
	return c.add(m)
}

// ran adds what calls came to, one message for each.
func (c *conversation) ran(dialect dialects.Dialect, records []tool.Record) error {
	results, err := dialect.Results(records)
	if err != nil {
		return err
	}
	var messages []json.RawMessage
	if err := json.Unmarshal(results, &messages); err != nil {
		return err
	}
	c.Messages = append(c.Messages, messages...)
	return nil
}

// request asks the model to go on.
func (c *conversation) request(model string, tools json.RawMessage) ([]byte, error) {
	type streamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	}
	if string(tools) == "[]" {
		tools = nil // an empty list is refused
	}
	return json.Marshal(struct {
		Model    string            `json:"model"`
		Messages []json.RawMessage `json:"messages"`
		Tools    json.RawMessage   `json:"tools,omitempty"`
		Stream   bool              `json:"stream"`
		Options  streamOptions     `json:"stream_options"`
	}{model, c.Messages, tools, true, streamOptions{true}})
}

// within returns an error once the question has taken more than it may.
func (c *conversation) within(b bounds) error {
	if c.Rounds >= b.rounds {
		return failed(exitLimit, fmt.Sprintf("the model has not come to an end in %d rounds", c.Rounds), "let it go on for longer with --rounds N")
	}
	if c.Tokens >= b.tokens {
		return failed(exitLimit, fmt.Sprintf("the question has taken %d tokens", c.Tokens), "let it take more with --tokens N")
	}
	return nil
}

// count adds what a round took: as the server counts, or else a token for four bytes.
func (c *conversation) count(request []byte, response tool.ChatResponse) {
	c.Rounds++
	taken := response.Usage.TotalTokens
	if taken <= 0 {
		taken = estimate(request, response)
	}
	c.Tokens += min(taken, math.MaxInt64-c.Tokens)
}

// estimate counts a token for four bytes.
func estimate(request []byte, response tool.ChatResponse) int64 {
	size := len(request) + len(response.Content)
	for _, call := range response.ToolCalls {
		size += len(call.Function.Arguments)
	}
	return int64(size+3) / 4
}
