package responses

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/dialects/internal/pieces"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// output is an item with what a call came to.
type output struct {
	Type   string `json:"type"`
	CallID string `json:"call_id"`
	Output any    `json:"output"` // a string or []part
}

type part struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
	FileName string `json:"filename,omitempty"`
	FileData string `json:"file_data,omitempty"`
	FileURL  string `json:"file_url,omitempty"`
}

// Results writes one item for each record. They belong behind the items of the calls, unless the
// next request has a previous_response_id.
func (dialect) Results(records []tool.Record) (json.RawMessage, error) {
	outputs := make([]output, len(records))
	for i := range records {
		record := &records[i]
		if record.ID == "" {
			return nil, unnamed("results", i)
		}
		content, err := outcome(record.Result)
		if err != nil {
			return nil, reader("results").Within(fmt.Sprintf("[%d].result", i), err)
		}
		kind := "function_call_output"
		if record.Type == pieces.Custom {
			kind = "custom_tool_call_output"
		}
		outputs[i] = output{kind, record.ID, content}
	}
	return wire.Encode(outputs)
}

// unnamed refuses a call that no result can be matched with.
func unnamed(op string, i int) error {
	return reader(op).Fail(fmt.Sprintf("[%d].id", i), "is empty; the provider matches results with calls by it")
}

// outcome returns a result as text, or as parts if the model can look at some of it.
func outcome(result tool.Result) (any, error) {
	content := slices.Clone(result.Content)
	var shown []part
	for i := range content {
		if p, ok := show(&content[i]); ok {
			shown = append(shown, p)
			content[i].Data = nil
		}
	}
	result.Content = content
	text, err := json.Marshal(result)
	if err != nil || len(shown) == 0 {
		return string(text), err
	}
	return append([]part{{Type: "input_text", Text: string(text)}}, shown...), nil
}

// show returns the part for an image or a file that the model can look at.
func show(content *tool.Content) (part, bool) {
	image := slices.Contains([]string{"image/png", "image/jpeg", "image/webp", "image/gif"}, content.MIMEType)
	if !image && content.MIMEType != "application/pdf" {
		return part{}, false
	}
	data, link := "", ""
	switch {
	case len(content.Data) > 0:
		data = "data:" + content.MIMEType + ";base64," + base64.StdEncoding.EncodeToString(content.Data)
	case strings.HasPrefix(content.URL, "https://"):
		link = content.URL
	default:
		return part{}, false
	}
	if image {
		return part{Type: "input_image", ImageURL: data + link}, true
	}
	file := part{Type: "input_file", FileData: data, FileURL: link}
	if data != "" { // a file that is linked to has its name from there
		if file.FileName = content.Name; file.FileName == "" {
			file.FileName = "file.pdf"
		}
	}
	return file, true
}

// sent is an item that shows a call.
type sent struct {
	Type      string  `json:"type"`
	CallID    string  `json:"call_id"`
	Name      string  `json:"name"`
	Arguments *string `json:"arguments,omitempty"`
	Input     *string `json:"input,omitempty"` // of a custom tool
}

// Calls writes items that show calls, as the next request has them before their results.
func (dialect) Calls(calls []tool.Call) (json.RawMessage, error) {
	items := make([]sent, len(calls))
	for i := range calls {
		call := &calls[i]
		if call.ID == "" {
			return nil, unnamed("calls", i)
		}
		items[i] = sent{Type: functionCall, CallID: call.ID, Name: call.Function.Name}
		if call.Type == pieces.Custom {
			items[i].Type, items[i].Input = customCall, &call.Function.Arguments
		} else {
			items[i].Arguments = &call.Function.Arguments
		}
	}
	return wire.Encode(items)
}
