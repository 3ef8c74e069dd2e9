package responses

import "encoding/json"

// The structures of the events that are written. Their members are those that the API documents
// as required, in its names.

// head is what every event begins with.
type head struct {
	Type     string `json:"type"`
	Sequence int    `json:"sequence_number"`
}

func (h head) name() string { return h.Type }

// place is which item an event is about.
type place struct {
	ItemID      string `json:"item_id"`
	OutputIndex int    `json:"output_index"`
}

type responseEvent struct {
	head
	Response streamed `json:"response"`
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

// stepEvent says how far a call has come: in_progress, searching, generating, completed, failed.
type stepEvent struct {
	head
	place
}

// deltaEvent is a piece of a call's arguments or input.
type deltaEvent struct {
	head
	place
	Delta string `json:"delta"`
}

type argumentsEvent struct {
	head
	place
	Arguments string `json:"arguments"`
}

type inputEvent struct {
	head
	place
	Input string `json:"input"`
}

type partialImageEvent struct {
	head
	place
	Index  int    `json:"partial_image_index"`
	Image  string `json:"partial_image_b64"`
	Format string `json:"output_format,omitempty"`
}

// partEvent is content_part.added or content_part.done.
type partEvent struct {
	head
	place
	ContentIndex int      `json:"content_index"`
	Part         textPart `json:"part"`
}

type textDeltaEvent struct {
	head
	place
	ContentIndex int    `json:"content_index"`
	Delta        string `json:"delta"`
	Logprobs     []any  `json:"logprobs"`
}

type textDoneEvent struct {
	head
	place
	ContentIndex int    `json:"content_index"`
	Text         string `json:"text"`
	Logprobs     []any  `json:"logprobs"`
}

// streamed is a response as it is written. What a response says of a model's request has the
// values that stand for nothing.
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

type functionItem struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Status    string `json:"status"`
	Arguments string `json:"arguments"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
}

type customItem struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	CallID string `json:"call_id"`
	Input  string `json:"input"`
	Name   string `json:"name"`
}

type shellItem struct {
	ID     string          `json:"id"`
	Type   string          `json:"type"`
	Status string          `json:"status"`
	CallID string          `json:"call_id"`
	Action json.RawMessage `json:"action"`
}

type approvalItem struct {
	ID          string `json:"id"`
	Type        string `json:"type"`
	Arguments   string `json:"arguments"`
	Name        string `json:"name"`
	ServerLabel string `json:"server_label"`
}

type webSearchItem struct {
	ID     string       `json:"id"`
	Type   string       `json:"type"`
	Status string       `json:"status"`
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
	ID      string      `json:"id"`
	Type    string      `json:"type"`
	Status  string      `json:"status"`
	Queries []string    `json:"queries"`
	Results []foundFile `json:"results"` // null where they are not told
}

type foundFile struct {
	FileID     string                     `json:"file_id"`
	FileName   string                     `json:"filename"`
	Score      float64                    `json:"score"`
	Text       string                     `json:"text"`
	Attributes map[string]json.RawMessage `json:"attributes"`
}

type imageItem struct {
	ID     string  `json:"id"`
	Type   string  `json:"type"`
	Status string  `json:"status"`
	Result *string `json:"result"` // base64
	Format string  `json:"output_format,omitempty"`
}

type serverItem struct {
	ID          string  `json:"id"`
	Type        string  `json:"type"`
	Status      string  `json:"status"`
	Arguments   string  `json:"arguments"`
	Name        string  `json:"name"`
	ServerLabel string  `json:"server_label"`
	RequestID   *string `json:"approval_request_id"`
	Error       any     `json:"error"`
	Output      *string `json:"output"`
}

type spokenItem struct {
	ID      string     `json:"id"`
	Type    string     `json:"type"`
	Status  string     `json:"status"`
	Role    string     `json:"role"`
	Content []textPart `json:"content"`
}

type textPart struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Annotations []any  `json:"annotations"`
	Logprobs    []any  `json:"logprobs"`
}
