package gemini

import (
	"cmp"
	"encoding/json"

	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// document is a GenerateContentResponse: a whole response, or one event of a stream.
type document struct {
	Candidates     json.RawMessage `json:"candidates"`
	PromptFeedback *feedback       `json:"promptFeedback" alias:"prompt_feedback"`
	UsageMetadata  json.RawMessage `json:"usageMetadata" alias:"usage_metadata"`
	ModelVersion   string          `json:"modelVersion" alias:"model_version"`
	ResponseID     string          `json:"responseId" alias:"response_id"`
	Error          *failure        `json:"error"`
}

type feedback struct {
	BlockReason  string `json:"blockReason" alias:"block_reason"`
	BlockMessage string `json:"blockReasonMessage" alias:"block_reason_message"`
}

type candidate struct {
	Index   wire.Integer `json:"index"`
	Content struct {
		Parts json.RawMessage `json:"parts"`
	} `json:"content"`
	FinishReason  string `json:"finishReason" alias:"finish_reason"`
	FinishMessage string `json:"finishMessage" alias:"finish_message"`
}

type part struct {
	Text             string        `json:"text"`
	Thought          bool          `json:"thought"`
	ThoughtSignature string        `json:"thoughtSignature" alias:"thought_signature"`
	FunctionCall     *functionCall `json:"functionCall" alias:"function_call"`
}

type functionCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
	// PartialArgs and WillContinue are only read.
	PartialArgs  json.RawMessage `json:"partialArgs,omitempty" alias:"partial_args"`
	WillContinue bool            `json:"willContinue,omitempty" alias:"will_continue"`
}

type failure struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

// usage counts tokens. In a stream, each count includes the earlier ones.
type usage struct {
	Prompt        wire.Count `json:"promptTokenCount" alias:"prompt_token_count"`
	ToolUsePrompt wire.Count `json:"toolUsePromptTokenCount" alias:"tool_use_prompt_token_count"`
	Candidates    wire.Count `json:"candidatesTokenCount" alias:"candidates_token_count"`
	Thoughts      wire.Count `json:"thoughtsTokenCount" alias:"thoughts_token_count"`
	Total         wire.Count `json:"totalTokenCount" alias:"total_token_count"`
}

func (u *usage) total() tool.ChatUsage {
	counted := tool.ChatUsage{PromptTokens: wire.Sum(u.Prompt, u.ToolUsePrompt),
		CompletionTokens: wire.Sum(u.Candidates, u.Thoughts)}
	counted.TotalTokens = cmp.Or(wire.Sum(u.Total), wire.Sum(counted.PromptTokens, counted.CompletionTokens))
	return counted
}

func finishReason(reason string, calls bool) tool.FinishReason {
	switch reason {
	case "STOP":
		if calls {
			return tool.FinishToolCalls
		}
		return tool.FinishStop
	case "MAX_TOKENS":
		return tool.FinishLength
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return tool.FinishContentFilter
	}
	return tool.FinishReason(reason) // MALFORMED_FUNCTION_CALL, LANGUAGE, OTHER, and future ones
}

// Response reads a whole response, or the array of those of a stream, which ends as a stream does.
func (dialect) Response(text []byte) (tool.ChatResponse, error) {
	read := newAssembly(reader("response"))
	err := read.Elements(text, read.add)
	switch {
	case err != nil:
	case wire.First(text) == '[' && read.known:
		err = read.Finish()
	default:
		err = read.end()
	}
	if err != nil {
		return tool.ChatResponse{}, err
	}
	return read.Response(), nil
}
