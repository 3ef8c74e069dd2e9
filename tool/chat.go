package tool

import "encoding/json"

// ChatResponse is one complete response of a language model, from any provider.
type ChatResponse struct {
	ID      string `json:"id,omitempty"`
	Model   string `json:"model,omitempty"`
	Content string `json:"content"`
	// ToolCalls are the calls that the model requests, in order. It is [] in JSON, never null.
	ToolCalls    []Call       `json:"tool_calls"`
	FinishReason FinishReason `json:"finish_reason,omitempty"`
	Usage        ChatUsage    `json:"usage"`
}

// MarshalJSON writes the response. An empty list is [].
func (r ChatResponse) MarshalJSON() ([]byte, error) {
	type plain ChatResponse // without this method
	r.ToolCalls = orEmpty(r.ToolCalls)
	return json.Marshal(plain(r))
}

// FinishReason says why a model stopped. Values other than the constants are the provider's own.
type FinishReason string

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
	// KnowledgeReferences and ToolCalls are [] in JSON, never null. ToolCalls holds complete calls.
	KnowledgeReferences []Reference     `json:"knowledge_references"`
	SessionID           string          `json:"session_id,omitempty"`
	AssistantMessageID  string          `json:"assistant_message_id,omitempty"`
	ToolCalls           []Call          `json:"tool_calls"`
	Data                json.RawMessage `json:"data,omitempty"` // a JSON object with everything else
}

// MarshalJSON writes the chunk. Empty lists are [].
func (r StreamResponse) MarshalJSON() ([]byte, error) {
	type plain StreamResponse // without this method
	r.KnowledgeReferences = orEmpty(r.KnowledgeReferences)
	r.ToolCalls = orEmpty(r.ToolCalls)
	return json.Marshal(plain(r))
}

// ResponseType is the type of a chunk.
type ResponseType string

// The types of chunks.
const (
	ResponseAnswer     ResponseType = "answer"     // text for the reader
	ResponseThinking   ResponseType = "thinking"   // the model's reasoning
	ResponseToolCall   ResponseType = "tool_call"  // ToolCalls holds complete calls
	ResponseToolDelta  ResponseType = "tool_delta" // a fragment of a call: Data {"index","id","name","arguments"}
	ResponseToolResult ResponseType = "tool_result"
	ResponseReferences ResponseType = "references"
	ResponseError      ResponseType = "error"
	ResponseComplete   ResponseType = "complete" // the last chunk; Data {"finish_reason","usage"}
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
