package anthropic

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/caisson-run/caisson/dialects/internal/pieces"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// message is a response, or the message in a stream's message_start.
type message struct {
	Type       string          `json:"type"`
	ID         string          `json:"id"`
	Model      string          `json:"model"`
	Content    json.RawMessage `json:"content"`
	StopReason string          `json:"stop_reason"`
	Usage      json.RawMessage `json:"usage"`
	Error      *failure        `json:"error"`
	Details    json.RawMessage `json:"stop_details"`
}

// details say why the provider refused to continue.
type details struct {
	Category    string `json:"category"`
	Explanation string `json:"explanation"`
}

type block struct {
	Type  string          `json:"type"`
	Text  pieces.Text     `json:"text"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
	// Thinking and Data are those of thinking and redacted_thinking.
	Thinking string `json:"thinking"`
	Data     string `json:"data"`
	// Caller and Toolset are those of tool_use.
	Caller  json.RawMessage `json:"caller"`
	Toolset json.RawMessage `json:"toolset_name"`
}

// readBlock reads a block. Of one that belongs to the provider's own tools, it reads only the type and the id.
func readBlock(r wire.Reader, document json.RawMessage) (b block, err error) {
	var kind struct {
		Type string          `json:"type"`
		ID   json.RawMessage `json:"id"`
	}
	if err := r.Into("", document, &kind); err != nil {
		return b, err
	}
	if b.Type = kind.Type; b.isRead() {
		return b, r.Into("", document, &b)
	}
	_ = json.Unmarshal(kind.ID, &b.ID) // which may be anything
	return b, nil
}

// isRead returns whether a block is text, thinking or a call. Other blocks belong to the provider's own tools.
func (b *block) isRead() bool {
	return slices.Contains([]string{"", textBlock, thinkingBlock, redactedBlock, callBlock}, b.Type)
}

type failure struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// usage counts tokens. In a stream, later counts replace earlier ones.
type usage struct {
	Input        wire.Count `json:"input_tokens"`
	CacheWritten wire.Count `json:"cache_creation_input_tokens"`
	CacheRead    wire.Count `json:"cache_read_input_tokens"`
	Output       wire.Count `json:"output_tokens"`
}

// total counts all input as prompt: the provider counts cached input separately.
func (u *usage) total() tool.ChatUsage {
	prompt, completion := wire.Sum(u.Input, u.CacheWritten, u.CacheRead), wire.Sum(u.Output)
	return tool.ChatUsage{PromptTokens: prompt, CompletionTokens: completion, TotalTokens: wire.Sum(prompt, completion)}
}

var finishReasons = map[string]tool.FinishReason{
	"end_turn": tool.FinishStop, "stop_sequence": tool.FinishStop,
	"max_tokens": tool.FinishLength, "model_context_window_exceeded": tool.FinishLength,
	"tool_use": tool.FinishToolCalls, "refusal": tool.FinishContentFilter,
}

// finishReason keeps pause_turn, and reasons that are not known yet.
func finishReason(stop string) tool.FinishReason {
	return cmp.Or(finishReasons[stop], tool.FinishReason(stop))
}

// Response reads a message.
func (dialect) Response(document []byte) (tool.ChatResponse, error) {
	r := reader("response")
	var whole message
	if err := r.Document(document, &whole); err != nil {
		return tool.ChatResponse{}, err
	}
	if whole.Error != nil {
		return tool.ChatResponse{}, r.In("error").Answered(whole.Error.Type, whole.Error.Message)
	}
	if whole.Type != "message" && whole.Type != "" || wire.Absent(whole.Content) {
		return tool.ChatResponse{}, r.Fail("", "is not a message: want {\"type\":\"message\",\"content\":[…]}, not type %q",
			tool.Shown(whole.Type, 64))
	}
	read := newAssembly(r)
	read.done = true
	read.begin(whole)
	err := wire.Each(r, "content", whole.Content, maxBlocks, func(r wire.Reader, written *json.RawMessage) error {
		first, err := readBlock(r, *written)
		if err != nil {
			return err
		}
		p, err := read.part(len(read.parts))
		if err != nil {
			return err
		}
		if err := read.start(r, p, first, *written); err != nil {
			return err
		}
		_, err = read.end(p)
		return err
	})
	if err != nil {
		return tool.ChatResponse{}, err
	}
	return read.Response(), nil
}
