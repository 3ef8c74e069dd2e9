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
	PromptFeedback *feedback       `json:"promptFeedback"`
	UsageMetadata  *usage          `json:"usageMetadata"`
	ModelVersion   string          `json:"modelVersion"`
	ResponseID     string          `json:"responseId"`
	Error          *failure        `json:"error"`
}

type feedback struct {
	BlockReason string `json:"blockReason"`
}

type candidate struct {
	Index   int `json:"index"`
	Content struct {
		Parts json.RawMessage `json:"parts"`
	} `json:"content"`
	FinishReason string `json:"finishReason"`
}

// part is a part of a candidate's content.
type part struct {
	Text             string        `json:"text"`
	Thought          bool          `json:"thought"`
	ThoughtSignature string        `json:"thoughtSignature"`
	FunctionCall     *functionCall `json:"functionCall"`
}

type functionCall struct {
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Args         json.RawMessage `json:"args"`
	PartialArgs  json.RawMessage `json:"partialArgs"`
	WillContinue bool            `json:"willContinue"`
}

type failure struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

// usage counts tokens. In a stream, each count includes the earlier ones.
type usage struct {
	Prompt        int64  `json:"promptTokenCount"`
	ToolUsePrompt int64  `json:"toolUsePromptTokenCount"`
	Candidates    int64  `json:"candidatesTokenCount"`
	Thoughts      int64  `json:"thoughtsTokenCount"`
	Total         *int64 `json:"totalTokenCount"`
}

func (u *usage) total() tool.ChatUsage {
	counted := tool.ChatUsage{PromptTokens: wire.Sum(u.Prompt, u.ToolUsePrompt), CompletionTokens: wire.Sum(u.Candidates, u.Thoughts)}
	counted.TotalTokens = wire.Sum(counted.PromptTokens, counted.CompletionTokens)
	if u.Total != nil {
		counted.TotalTokens = wire.Sum(*u.Total)
	}
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

// Response reads a whole response, or the array of those of a stream.
func (dialect) Response(text []byte) (tool.ChatResponse, error) {
	r := reader("response")
	read := assembly{Output: wire.Output{Reader: r}}
	err := r.Elements(text, read.add)
	if err == nil {
		err = read.check()
	}
	if err != nil {
		return tool.ChatResponse{}, err
	}
	return read.Response(), nil
}

// as returns the error that the provider sent instead of a response.
func (f *failure) as(r wire.Reader) error {
	return r.Reported("error", "the provider answered with %s: %s", tool.Shown(cmp.Or(f.Status, "an error"), 64), tool.Shown(f.Message, 512))
}
