package responses

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/internal/jsontext/decode"
	"github.com/caisson-run/caisson/tool"
)

// The types of items that ask whether a call may run, and that answer.
const (
	approvalRequest  = "mcp_approval_request"
	approvalResponse = "mcp_approval_response"
)

// answered is an item of a conversation.
type answered struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	CallID    string          `json:"call_id"`
	Output    json.RawMessage `json:"output"`
	Status    string          `json:"status"`
	RequestID string          `json:"approval_request_id"`
	Approve   *bool           `json:"approve"`
	Reason    string          `json:"reason"`
}

// Answers reads outputs of calls and answers to requests for approval: one item, an array of them, or a
// request with them as its input. Of a conversation, it reads those after the assistant's last message; those
// that a call follows are Earlier, since the items do not say which calls were made in one turn.
//
// An output that is the JSON of a result, as Results writes it, is that result; any other output is that of
// a successful call, unless its status is "incomplete". An approval is for one call. Its call id and
// fingerprint are those in the id of the request, if [Events] made that; any other id is the call's.
func (dialect) Answers(document []byte) (dialects.Answers, error) {
	return wire.ReadAnswers(reader("answers"), document, "input",
		func(r wire.Reader, a *wire.Answers, element *json.RawMessage) error {
			var kind struct {
				Type   string          `json:"type"`
				Role   json.RawMessage `json:"role"`
				ID     json.RawMessage `json:"id"`
				CallID json.RawMessage `json:"call_id"`
				Output json.RawMessage `json:"output"`
			}
			if err := r.Into("", *element, &kind); err != nil {
				return err
			}
			if string(kind.Role) == `"assistant"` {
				a.Turn()
				return nil
			}
			switch kind.Type {
			case functionCall, customCall, localShellCall, approvalRequest:
				var about aboutItem
				_ = decode.Unmarshal(*element, &about) // an item without an id answers nothing
				a.Called(cmp.Or(about.CallID, about.ID))
				return nil
			case functionOutput, customOutput, localShellOutput, approvalResponse:
			case "":
				isReference := !wire.Absent(kind.ID) && wire.Absent(kind.CallID) && wire.Absent(kind.Output)
				if wire.Absent(kind.Role) && !isReference {
					return r.Fail("type", `is missing; want items: {"type":"function_call_output","call_id":…,"output":…}`)
				}
				return nil // a message, or a reference to an item
			default:
				return nil // items of other types have other forms
			}
			var i answered
			if err := r.Into("", *element, &i); err != nil {
				return err
			}
			if i.Type == approvalResponse {
				return i.approval(r, a)
			}
			return i.output(r, a)
		})
}

func (i *answered) approval(r wire.Reader, a *wire.Answers) error {
	switch {
	case i.RequestID == "":
		return r.Fail("approval_request_id", "is missing; it says which request is answered")
	case i.Approve == nil:
		return r.Fail("approve", "is missing; want true or false")
	}
	call, fingerprint := requested(i.RequestID)
	return a.AddApproval(r, tool.Approval{CallID: call, Approve: *i.Approve, Reason: i.Reason, Fingerprint: fingerprint})
}

func (i *answered) output(r wire.Reader, a *wire.Answers) error {
	id := i.CallID
	if id == "" && i.Type == localShellOutput {
		id = i.ID
	}
	switch {
	case id == "":
		return r.Fail("call_id", "is missing; it says which call is answered")
	case wire.Absent(i.Output):
		return r.Fail("output", "is missing; want a text")
	case i.Status == "in_progress":
		return r.Fail("status", "is %q; answer when the output is complete", i.Status)
	}
	failed := i.Status == "incomplete"
	result, err := i.result(r, failed)
	if err != nil {
		return err
	}
	if failed && result.Error == "" {
		result.Error = "the output is incomplete"
	}
	return a.Add(r, tool.Answer{CallID: id, Result: result})
}

// result reads a text or an array of parts. If the first part is the JSON of a result, the others are content.
func (i *answered) result(r wire.Reader, failed bool) (tool.Result, error) {
	var outcome wire.Outcome
	if i.Output[0] != '[' {
		var text string
		err := r.Into("output", i.Output, &text)
		outcome.Text(text)
		return outcome.Result(failed), err
	}
	var all []tool.Content
	err := wire.Each(r, "output", i.Output, wire.MaxParts, func(r wire.Reader, p *answeredPart) error {
		read, err := p.read(r)
		all = append(all, read)
		return err
	})
	if err != nil {
		return tool.Result{}, err
	}
	if len(all) > 1 && all[0].Type == "text" {
		if stored, ok := wire.Stored([]byte(all[0].Text)); ok && !(failed && stored.Success) {
			stored.Content = append(stored.Content, all[1:]...)
			return stored, nil
		}
	}
	for _, part := range all {
		outcome.Part(part)
	}
	return outcome.Result(failed), nil
}

// answeredPart is the union of the parts of an output.
type answeredPart struct {
	part
	FileID string `json:"file_id"`
}

func (p *answeredPart) read(r wire.Reader) (tool.Content, error) {
	switch {
	case p.Type == "input_text" || p.Type == "output_text":
		return tool.Content{Type: "text", Text: p.Text}, nil
	case p.Type != "input_image" && p.Type != "input_file":
		return tool.Content{}, r.Fail("type", "is %q; want input_text, input_image or input_file", tool.Shown(p.Type, 64))
	case p.FileID != "":
		return tool.Content{},
			r.Fail("file_id", "names a file that the provider keeps, which cannot be read here; send the data or a URL")
	case p.Type == "input_image":
		return wire.Linked(r, "image_url", p.ImageURL, tool.Content{Type: "image"})
	}
	file := tool.Content{Type: "file", Name: p.FileName}
	if p.FileData == "" {
		file, err := wire.Linked(r, "file_url", p.FileURL, file)
		if file.MIMEType == "" {
			file.MIMEType = "application/pdf" // the only type of file that is sent as a link
		}
		return file, err
	}
	if !strings.HasPrefix(p.FileData, "data:") {
		return tool.Content{}, r.Fail("file_data", "is not a data URL; want data:application/pdf;base64,…")
	}
	return wire.Linked(r, "file_data", p.FileData, file)
}
