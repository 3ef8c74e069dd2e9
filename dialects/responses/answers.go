package responses

import (
	"encoding/json"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/pieces"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// approvalResponse is the type of items that allow a call, or refuse it.
const approvalResponse = "mcp_approval_response"

// answered is an item of a conversation, or a request, which holds items as its input.
type answered struct {
	Input     json.RawMessage `json:"input"`
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	ID        string          `json:"id"`
	CallID    string          `json:"call_id"`
	Output    json.RawMessage `json:"output"`
	Status    string          `json:"status"`
	RequestID string          `json:"approval_request_id"`
	Approve   *bool           `json:"approve"`
	Reason    string          `json:"reason"`
}

// Answers reads outputs of calls and answers to requests for approval: one item, an array of them,
// or a request with them as its input. What else a conversation has is passed over.
//
// An output that is the JSON of a result, as Results writes it, is that result; any other is what
// a call that succeeded has to say, unless its status is "incomplete". An approval holds for one
// call. It has the call's id and the fingerprint from the id of the request, if that is one that
// [Events] made; otherwise that id is the call's.
func (dialect) Answers(document []byte) (dialects.Answers, error) {
	return wire.ReadAnswers(reader("answers"), document, func(found *wire.Answers, path string, element json.RawMessage) error {
		return answers{found}.document(path, element)
	})
}

// answers adds what a document has to those that were found.
type answers struct{ *wire.Answers }

// document takes an item, or the one request that there is.
func (a answers) document(path string, document json.RawMessage) error {
	if path != "" {
		return a.element(path, 0, document)
	}
	var d struct {
		Type  json.RawMessage `json:"type"`
		Input json.RawMessage `json:"input"`
	}
	if err := a.Into("", document, &d); err != nil {
		return err
	}
	if !wire.Absent(d.Type) || wire.Absent(d.Input) {
		return a.element("", 0, document)
	}
	return pieces.Each(a.Reader, "input", d.Input, a.element)
}

func (a answers) element(path string, _ int, element json.RawMessage) error {
	var kind struct {
		Type string          `json:"type"`
		Role json.RawMessage `json:"role"`
	}
	if err := a.Into(path, element, &kind); err != nil {
		return err
	}
	switch kind.Type {
	case functionOutput, customOutput, localShellOutput, approvalResponse:
	case "":
		if !wire.Absent(kind.Role) {
			return nil // a message
		}
		return a.Fail(wire.Join(path, "type"), `is missing; want items: {"type":"function_call_output","call_id":…,"output":…}`)
	default:
		return nil // items of other types have other forms
	}
	var i answered
	if err := a.Into(path, element, &i); err != nil {
		return err
	}
	if i.Type == approvalResponse {
		return a.approval(path, &i)
	}
	return a.output(path, &i)
}

func (a answers) approval(path string, i *answered) error {
	switch {
	case i.RequestID == "":
		return a.Fail(wire.Join(path, "approval_request_id"), "is missing; it says which request is answered")
	case i.Approve == nil:
		return a.Fail(wire.Join(path, "approve"), "is missing; want true or false")
	}
	call, fingerprint := requested(i.RequestID)
	return a.AddApproval(path, tool.Approval{CallID: call, Approve: *i.Approve, Reason: i.Reason, Fingerprint: fingerprint})
}

func (a answers) output(path string, i *answered) error {
	id := i.CallID
	if id == "" && i.Type == localShellOutput {
		id = i.ID
	}
	switch {
	case id == "":
		return a.Fail(wire.Join(path, "call_id"), "is missing; it says which call is answered")
	case wire.Absent(i.Output):
		return a.Fail(wire.Join(path, "output"), "is missing; want a text")
	case i.Status == "in_progress":
		return a.Fail(wire.Join(path, "status"), "is %q; answer when the output is complete", i.Status)
	}
	failed := i.Status == "incomplete"
	result, err := a.result(wire.Join(path, "output"), i.Output, failed)
	if err != nil {
		return err
	}
	if failed && result.Error == "" {
		result.Error = "the output is incomplete"
	}
	return a.Add(path, tool.Answer{CallID: id, Result: result})
}

// result reads an output: a text, or an array of parts.
func (a answers) result(path string, output json.RawMessage, failed bool) (tool.Result, error) {
	if output[0] == '[' {
		return a.parts(path, output, failed)
	}
	var outcome wire.Outcome
	var text string
	err := a.Into(path, output, &text)
	outcome.Text(text)
	return outcome.Result(failed), err
}
