package tool

import "encoding/json"

// ChatResponse is one answer of a language model, whole, whichever provider's it is.
type ChatResponse struct {
	ID      string `json:"id,omitempty"`
	Model   string `json:"model,omitempty"`
	Content string `json:"content"`
	// ToolCalls are the calls that the model asks for, in its order. It is [] in JSON, never null.
	ToolCalls    []Call       `json:"tool_calls"`
	FinishReason FinishReason `json:"finish_reason,omitempty"`
	Usage        ChatUsage    `json:"usage"`
}

// MarshalJSON writes the response; without calls, tool_calls is [].
func (r ChatResponse) MarshalJSON() ([]byte, error) {
	type plain ChatResponse // without this method
	if r.ToolCalls == nil {
		r.ToolCalls = []Call{}
	}
	return json.Marshal(plain(r))
}

// FinishReason says why a model stopped. Reasons that are none of the constants are the
// provider's own words.
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

// StreamResponse is one piece of a streamed answer.
type StreamResponse struct {
	ID           string       `json:"id"`
	ResponseType ResponseType `json:"response_type"`
	Content      string       `json:"content"`
	Done         bool         `json:"done"`
	// KnowledgeReferences and ToolCalls are [] in JSON, never null. A call is in it once it is whole.
	KnowledgeReferences []Reference     `json:"knowledge_references"`
	SessionID           string          `json:"session_id,omitempty"`
	AssistantMessageID  string          `json:"assistant_message_id,omitempty"`
	ToolCalls           []Call          `json:"tool_calls"`
	Data                json.RawMessage `json:"data,omitempty"` // a JSON object, for what has no field of its own
}

// MarshalJSON writes the piece; empty lists are [].
func (r StreamResponse) MarshalJSON() ([]byte, error) {
	type plain StreamResponse // without this method
	if r.KnowledgeReferences == nil {
		r.KnowledgeReferences = []Reference{}
	}
	if r.ToolCalls == nil {
		r.ToolCalls = []Call{}
	}
	return json.Marshal(plain(r))
}

// ResponseType says what a piece of a stream is.
type ResponseType string

// The types of pieces.
const (
	ResponseAnswer     ResponseType = "answer"     // text for the reader
	ResponseThinking   ResponseType = "thinking"   // text that the model wrote to itself
	ResponseToolCall   ResponseType = "tool_call"  // ToolCalls holds calls that are whole
	ResponseToolDelta  ResponseType = "tool_delta" // a piece of a call: Data {"index","id","name","arguments"}
	ResponseToolResult ResponseType = "tool_result"
	ResponseReferences ResponseType = "references"
	ResponseError      ResponseType = "error"
	ResponseComplete   ResponseType = "complete" // the last; Data {"finish_reason","usage"}
)

// Reference is a source that an answer rests on.
type Reference struct {
	ID      string          `json:"id"`
	Title   string          `json:"title,omitempty"`
	URL     string          `json:"url,omitempty"`
	Content string          `json:"content,omitempty"`
	Score   float64         `json:"score,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
}
