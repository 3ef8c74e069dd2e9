package responses

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// sent is an item that shows a call of a function or of a custom tool.
type sent struct {
	Type      string  `json:"type"`
	CallID    string  `json:"call_id"`
	Name      string  `json:"name"`
	Arguments *string `json:"arguments,omitempty"`
	Input     *string `json:"input,omitempty"` // of a custom tool
	origin
}

// origin has the members of a call that are sent back with it unchanged. All may be absent.
type origin struct {
	Namespace json.RawMessage `json:"namespace,omitempty"`
	Caller    json.RawMessage `json:"caller,omitempty"`
	Async     json.RawMessage `json:"async,omitempty"`
}

func originOf(call *tool.Call) (from origin) {
	wire.FromOrigin(dialects.Responses, call, &from)
	return from
}

// sentShell is an item that shows a call of the local shell.
type sentShell struct {
	Type   string          `json:"type"`
	ID     string          `json:"id"`
	CallID string          `json:"call_id"`
	Action json.RawMessage `json:"action"`
	Status string          `json:"status"`
}

// Calls writes items that show calls, as the next request has them before their results.
func (dialect) Calls(calls []tool.Call) (json.RawMessage, error) {
	return wire.List(reader("calls"), calls, show)
}

func show(call *tool.Call) (any, error) {
	if err := wire.Matched("id", call.ID); err != nil {
		return nil, err
	}
	item := sent{Type: functionCall, CallID: call.ID, Name: call.Function.Name, origin: originOf(call)}
	switch call.Type {
	case tool.LocalShellCall:
		return sentShell{localShellCall, prefixShell + call.ID, call.ID, shellAction(call.Function.Arguments), "completed"},
			nil
	case tool.CustomCall:
		item.Type, item.Input = customCall, &call.Function.Arguments
	default:
		item.Arguments = &call.Function.Arguments
	}
	return item, nil
}

// output is an item with the result of a call.
type output struct {
	Type   string `json:"type"`
	ID     string `json:"id,omitempty"`      // of a local shell's call
	CallID string `json:"call_id,omitempty"` // of any other call
	Output any    `json:"output"`            // a string or []part
	Status string `json:"status,omitempty"`
	// Namespace and Caller are those of the call; a custom tool's output has no namespace.
	Namespace json.RawMessage `json:"namespace,omitempty"`
	Caller    json.RawMessage `json:"caller,omitempty"`
}

// The types of items with results of calls.
const (
	functionOutput   = "function_call_output"
	customOutput     = "custom_tool_call_output"
	localShellOutput = "local_shell_call_output"
)

type part struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
	Detail   string `json:"detail,omitempty"` // of an image, which a custom tool's output requires
	FileName string `json:"filename,omitempty"`
	FileData string `json:"file_data,omitempty"`
	FileURL  string `json:"file_url,omitempty"`
}

// Results writes one item for each record. They follow the items of the calls, unless the next request has a
// previous_response_id.
//
// An output is a text: that of the result, or the data if there is none, and a mention of each part of the
// content that the model cannot view. If the call failed, the text is the JSON of a result, in the form of
// records, since nothing else says so. The images and files that the model can view follow it as parts.
func (dialect) Results(records []tool.Record) (json.RawMessage, error) {
	return wire.List(reader("results"), records, func(record *tool.Record) (output, error) {
		if err := wire.Matched("id", record.ID); err != nil {
			return output{}, err
		}
		if record.Type == tool.LocalShellCall { // whose output is only text
			text, err := wire.Text(&record.Result)
			return output{Type: localShellOutput, ID: record.ID, Output: text, Status: "completed"}, err
		}
		from := originOf(&record.Call)
		content, err := outcome(record.Result)
		item := output{Type: functionOutput, CallID: record.ID, Output: content, Namespace: from.Namespace,
			Caller: from.Caller}
		if record.Type == tool.CustomCall {
			item.Type, item.Namespace = customOutput, nil
		}
		return item, err
	})
}

// outcome returns a result as text, or as parts if the model can view some of it.
func outcome(result tool.Result) (any, error) {
	var shown []part
	result.Content = slices.DeleteFunc(slices.Clone(result.Content), func(c tool.Content) bool {
		p, ok := shownAs(&c)
		if ok {
			shown = append(shown, p)
		}
		return ok
	})
	text, err := wire.Text(&result)
	switch {
	case err != nil || len(shown) == 0:
		return text, err
	case text == "":
		return shown, nil
	}
	return append([]part{{Type: "input_text", Text: text}}, shown...), nil
}

// shownAs returns the part for an image or a file that the model can view.
func shownAs(content *tool.Content) (part, bool) {
	isImage := strings.HasPrefix(content.MIMEType, "image/") ||
		// The provider detects what a link leads to.
		content.MIMEType == "" && content.Type == "image" && len(content.Data) == 0
	canView := []string{"image/png", "image/jpeg", "image/webp", "image/gif", "application/pdf"}
	if !slices.Contains(canView, content.MIMEType) && !(isImage && content.MIMEType == "") {
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
	if isImage {
		return part{Type: "input_image", ImageURL: data + link, Detail: "auto"}, true
	}
	file := part{Type: "input_file", FileData: data, FileURL: link}
	if data != "" { // a linked file has the name in its URL
		file.FileName = cmp.Or(content.Name, "file.pdf")
	}
	return file, true
}

// execute is the only type of action of a local shell.
const execute = `"exec"`

// shellArguments returns the arguments in a local shell's action, a JSON object: all members but the type,
// which is the same in all actions, and null ones, which mean absent ones. Any other action is returned
// unchanged, to be refused when arguments are checked.
func shellArguments(action json.RawMessage) string {
	if wire.Absent(action) {
		return "{}"
	}
	action = bytes.ToValidUTF8(action, []byte("\uFFFD")) // as texts are decoded
	given, err := tool.ParseArguments(string(action))
	if err != nil {
		return string(wire.Compact(action))
	}
	var unasked []string
	for _, name := range given.Names() {
		if value, _ := given.Get(name); string(value) == "null" || name == "type" && string(value) == execute {
			unasked = append(unasked, name)
		}
	}
	text, _ := given.Without(unasked...).MarshalJSON() // which never fails
	return string(wire.Compact(text))
}

// shellAction is the reverse of shellArguments.
func shellAction(arguments string) json.RawMessage { return withMember(arguments, "type", execute) }

// withMember returns arguments as a JSON object with a member, which is added where it is missing.
func withMember(arguments, name, value string) json.RawMessage {
	given, err := tool.ParseArguments(arguments)
	if err != nil {
		return wire.Object(arguments)
	}
	if _, ok := given.Get(name); !ok {
		given = given.With(name, json.RawMessage(value))
	}
	text, _ := given.MarshalJSON() // which never fails
	return text
}
