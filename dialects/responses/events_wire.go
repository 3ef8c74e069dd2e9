package responses

import (
	"encoding/json"
	"strings"
)

// The structures of the events that are written, with the members that the API documents as required.

type head struct {
	Type     string `json:"type"`
	Sequence int    `json:"sequence_number"`
}

func (h *head) start(name string, sequence int) { h.Type, h.Sequence = name, sequence }

// place says which item an event is about.
type place struct {
	ItemID      string `json:"item_id"`
	OutputIndex int    `json:"output_index"`
}

type responseEvent struct {
	head
	Response *streamed `json:"response"`
}

type errorEvent struct {
	head
	Code    string  `json:"code"`
	Message string  `json:"message"`
	Param   *string `json:"param"`
}

// itemEvent is output_item.added or output_item.done.
type itemEvent struct {
	head
	OutputIndex int `json:"output_index"`
	Item        any `json:"item"`
}

// itemStep is any other event about an item: its progress, and additions to its content.
type itemStep struct {
	head
	place
	ContentIndex *int      `json:"content_index,omitempty"` // of a part of a message
	Part         *textPart `json:"part,omitempty"`
	Delta        *string   `json:"delta,omitempty"`
	Text         *string   `json:"text,omitempty"`
	Logprobs     []any     `json:"logprobs,omitzero"`
	Arguments    *string   `json:"arguments,omitempty"`
	Input        *string   `json:"input,omitempty"`
	ImageIndex   *int      `json:"partial_image_index,omitempty"`
	Image        string    `json:"partial_image_b64,omitempty"`
	Format       string    `json:"output_format,omitempty"`
}

// streamed is a response on the wire. The members that would repeat the request to a model have neutral values.
type streamed struct {
	ID              string         `json:"id"`
	Object          string         `json:"object"`
	CreatedAt       int64          `json:"created_at"`
	CompletedAt     *int64         `json:"completed_at"`
	Status          string         `json:"status"`
	Background      bool           `json:"background"`
	AccessPrograms  *string        `json:"access_programs"`
	Error           *failureObject `json:"error"`
	Incomplete      *string        `json:"incomplete_details"`
	Instructions    *string        `json:"instructions"`
	MaxOutputTokens *int64         `json:"max_output_tokens"`
	Model           string         `json:"model"`
	Output          []any          `json:"output"`
	Parallel        bool           `json:"parallel_tool_calls"`
	Previous        *string        `json:"previous_response_id"`
	Temperature     *float64       `json:"temperature"`
	ToolChoice      string         `json:"tool_choice"`
	Tools           []any          `json:"tools"`
	TopP            *float64       `json:"top_p"`
	Usage           *usage         `json:"usage"`
	Metadata        struct{}       `json:"metadata"`
}

type failureObject struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// The structures of the items that are written.

// callItem is a call that the client runs, or is asked to approve.
type callItem struct {
	ID          string          `json:"id"`
	Type        string          `json:"type"`
	Status      string          `json:"status,omitempty"`
	Arguments   *string         `json:"arguments,omitempty"`
	CallID      string          `json:"call_id,omitempty"`
	Action      json.RawMessage `json:"action,omitempty"` // of a local shell
	Input       *string         `json:"input,omitempty"`  // of a custom tool
	Name        string          `json:"name,omitempty"`
	ServerLabel string          `json:"server_label,omitempty"`
}

// itemHead starts every item that this side completes.
type itemHead struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Status string `json:"status"`
}

type webSearchItem struct {
	itemHead
	Action searchAction `json:"action"`
}

type searchAction struct {
	Type    string   `json:"type"`
	Query   string   `json:"query"`
	Queries []string `json:"queries"`
	Sources []source `json:"sources,omitempty"`
}

type source struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

type fileSearchItem struct {
	itemHead
	Queries []string    `json:"queries"`
	Results []foundFile `json:"results"` // null where they are unknown
}

// foundFile is a file as a tool's result may list it, and as an item does.
type foundFile struct {
	FileID     string                     `json:"file_id"`
	FileName   string                     `json:"filename"`
	Score      *float64                   `json:"score"`
	Text       string                     `json:"text"`
	Attributes map[string]json.RawMessage `json:"attributes"`
}

type imageItem struct {
	itemHead
	Result *string `json:"result"` // base64
	Format string  `json:"output_format,omitempty"`
}

type serverItem struct {
	itemHead
	Arguments   string     `json:"arguments"`
	Name        string     `json:"name"`
	ServerLabel string     `json:"server_label"`
	RequestID   *string    `json:"approval_request_id"`
	Error       *callError `json:"error"`
	Output      *string    `json:"output"`
}

// callError says why a call failed: in Content where the tool ran, and else in Code and Message.
type callError struct {
	Type    string      `json:"type"`
	Code    int         `json:"code,omitempty"`
	Message string      `json:"message,omitempty"`
	Content []errorText `json:"content,omitempty"`
}

type errorText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type spokenItem struct {
	itemHead
	Role    string     `json:"role"`
	Content []textPart `json:"content"`
}

type textPart struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Annotations []any  `json:"annotations"`
	Logprobs    []any  `json:"logprobs"`
}

// The API's prefixes of the ids of items.
const (
	prefixFunction = "fc_"
	prefixCustom   = "ctc_"
	prefixShell    = "lsh_"
	prefixWeb      = "ws_"
	prefixFiles    = "fs_"
	prefixImage    = "ig_"
	prefixServer   = "mcp_"
	prefixRequest  = "mcpr_"
	prefixMessage  = "msg_"
)

// requestID returns the id of a request for approval, from which [requested] reads both. Call ids have no underscores.
func requestID(callID, fingerprint string) string {
	return prefixRequest + callID + "_" + fingerprint
}

// requested is the reverse of requestID. Any other id is taken for the call's id.
func requested(id string) (callID, fingerprint string) {
	inside, ours := strings.CutPrefix(id, prefixRequest)
	callID, fingerprint, both := strings.Cut(inside, "_")
	if !ours || !both || callID == "" || fingerprint == "" {
		return id, ""
	}
	return callID, fingerprint
}
