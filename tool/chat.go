package tool

import (
	"encoding/json"
	"slices"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// ChatResponse is one complete response of a language model, from any provider.
type ChatResponse struct {
	ID      string `json:"id,omitempty"`
	Model   string `json:"model,omitempty"`
	Content string `json:"content"`
	// ToolCalls are the calls that the model requests, in order. It is [] in JSON, never null.
	// The last ones may be incomplete; see [Call.Incomplete].
	ToolCalls []Call `json:"tool_calls"`
	// ProviderItems are the parts of the response that belong to the provider's own tools, in order.
	ProviderItems []ProviderItem `json:"provider_items,omitempty"`
	FinishReason  FinishReason   `json:"finish_reason,omitempty"`
	Usage         ChatUsage      `json:"usage"`
	// Remarks name the irregularities of the response, in sentences for people: calls that were not read,
	// calls without a unique id, and why the provider stopped the model.
	Remarks []string `json:"remarks,omitempty"`
}

// ProviderItem is a part of a response that is neither text, nor reasoning, nor a call of an offered function: an
// action of a tool that the provider runs, such as web_search_call, or a request to the client, such as computer_call.
// Caisson neither runs nor answers it: the program does, in the provider's format.
type ProviderItem struct {
	Type string `json:"type"` // as the provider names it
	// ID is the id by which the client answers it, or else its own; empty if it has none.
	ID string `json:"id,omitempty"`
	// Waiting is set if the provider waits for the client: to run a call of a tool that the provider
	// defines, or to decide whether its own tool may run.
	Waiting bool            `json:"waiting,omitempty"`
	Data    json.RawMessage `json:"data"` // the whole item in compact form, and else as the provider wrote it
}

// MarshalJSON writes the response. An empty list is [].
func (r ChatResponse) MarshalJSON() ([]byte, error) {
	type plain ChatResponse // without this method
	r.ToolCalls = jsontext.List(r.ToolCalls)
	return json.Marshal(plain(r))
}

// FinishReason says why a model stopped. Values other than the constants are the provider's own.
type FinishReason string

// WasCut reports whether a model stopped before its response was complete, such as at the token limit.
// Such a response may have incomplete calls.
func (r FinishReason) WasCut() bool {
	return r != "" && !slices.Contains(complete, r)
}

// complete are the reasons of complete responses: ours, and those of providers and of servers that speak their formats.
var complete = []FinishReason{FinishStop, FinishToolCalls, "pause_turn", "tool_use", "function_call", "end_turn",
	"stop_sequence", "eos"}

// The reasons that all providers have in some form.
const (
	FinishStop          FinishReason = "stop"
	FinishLength        FinishReason = "length"
	FinishToolCalls     FinishReason = "tool_calls"
	FinishContentFilter FinishReason = "content_filter"
)

// ChatUsage counts tokens.
type ChatUsage struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	TotalTokens      int64 `json:"total_tokens"`
}

// StreamResponse is one chunk of a streamed response.
type StreamResponse struct {
	ID           string       `json:"id"`
	ResponseType ResponseType `json:"response_type"`
	Content      string       `json:"content"`
	Done         bool         `json:"done"`
	// KnowledgeReferences and ToolCalls are [] in JSON, never null.
	KnowledgeReferences []Reference     `json:"knowledge_references"`
	SessionID           string          `json:"session_id,omitempty"`
	AssistantMessageID  string          `json:"assistant_message_id,omitempty"`
	ToolCalls           []Call          `json:"tool_calls"`
	Data                json.RawMessage `json:"data,omitempty"` // a JSON object with everything else
}

// MarshalJSON writes the chunk. Empty lists are [].
func (r StreamResponse) MarshalJSON() ([]byte, error) {
	type plain StreamResponse // without this method
	r.KnowledgeReferences = jsontext.List(r.KnowledgeReferences)
	r.ToolCalls = jsontext.List(r.ToolCalls)
	return json.Marshal(plain(r))
}

// ResponseType is the type of a chunk.
type ResponseType string

// The types of chunks.
const (
	ResponseAnswer   ResponseType = "answer"   // text for the reader
	ResponseThinking ResponseType = "thinking" // the model's reasoning
	// ToolCalls holds whole calls, or what there is of one that was cut off
	ResponseToolCall     ResponseType = "tool_call"
	ResponseToolDelta    ResponseType = "tool_delta" // a fragment of a call: Data {"index","id","name","arguments"}
	ResponseToolResult   ResponseType = "tool_result"
	ResponseProviderItem ResponseType = "provider_item" // Data is a [ProviderItem]
	ResponseReferences   ResponseType = "references"
	ResponseError        ResponseType = "error"
	// ResponseComplete is the last chunk; Data {"finish_reason","usage","remarks"}, without remarks if there are none
	ResponseComplete ResponseType = "complete"
)

// Reference is a source that a response is based on.
type Reference struct {
	ID      string          `json:"id"`
	Title   string          `json:"title,omitempty"`
	URL     string          `json:"url,omitempty"`
	Content string          `json:"content,omitempty"`
	Score   float64         `json:"score,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
}
