package openai

import (
	"encoding/json"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/pieces"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

type toolMessage struct {
	Role       string `json:"role"`
	ToolCallID string `json:"tool_call_id"`
	Content    string `json:"content"`
}

// Results writes messages with the role "tool", one for each record. They follow the assistant's message
// with the calls. A message has one text, since servers that imitate OpenAI accept nothing else: the output,
// or the data if there is none, and a mention of each part of the content. If the call failed, it is the JSON
// of a result, in the form of records, since nothing else says so.
func (dialect) Results(records []tool.Record) (json.RawMessage, error) {
	return wire.List(reader("results"), records, func(record *tool.Record) (toolMessage, error) {
		if err := wire.Matched("id", record.ID); err != nil {
			return toolMessage{}, err
		}
		content, err := wire.Text(&record.Result)
		return toolMessage{"tool", record.ID, content}, err
	})
}

type sentCall struct {
	ID       string         `json:"id"`
	Type     string         `json:"type"`
	Function *tool.Function `json:"function,omitempty"`
	Custom   *sentCustom    `json:"custom,omitempty"`
}

type sentCustom struct {
	Name  string `json:"name"`
	Input string `json:"input"`
}

// Calls writes the elements of "tool_calls", as an assistant's message has them.
func (dialect) Calls(calls []tool.Call) (json.RawMessage, error) {
	return wire.List(reader("calls"), calls, func(call *tool.Call) (sentCall, error) {
		sent := sentCall{ID: call.ID, Type: tool.FunctionCall, Function: &call.Function}
		if call.Type == tool.CustomCall {
			sent = sentCall{ID: call.ID, Type: tool.CustomCall, Custom: &sentCustom{call.Function.Name, call.Function.Arguments}}
		}
		return sent, wire.Matched("id", call.ID)
	})
}

// answered is a message of a conversation.
type answered struct {
	Role       string          `json:"role"`
	ToolCallID string          `json:"tool_call_id"`
	Content    json.RawMessage `json:"content"`
}

// Answers reads messages with the role "tool": one, an array, or a request with them. Of a conversation, it reads those
// after the assistant's last message. Content that is the JSON of a result, as Results writes it, is that result; any
// other content is the output of a successful call.
func (dialect) Answers(document []byte) (dialects.Answers, error) {
	return wire.ReadAnswers(reader("answers"), document, "messages",
		func(r wire.Reader, a *wire.Answers, m *answered) error {
			switch m.Role {
			case "tool":
			case "assistant":
				a.Turn()
				return nil
			case "user", "system", "developer":
				return nil
			case "":
				return r.Fail("role", `is missing; want messages: {"role":"tool","tool_call_id":…,"content":…}`)
			default:
				return r.Fail("role", `is %q; want "tool"`, tool.Shown(m.Role, 64))
			}
			if m.ToolCallID == "" {
				return r.Fail("tool_call_id", "is missing; it says which call is answered")
			}
			outcome, err := m.outcome(r.In("content"))
			if err != nil {
				return err
			}
			return a.Add(r, tool.Answer{CallID: m.ToolCallID, Result: outcome.Result(false)})
		})
}

// outcome reads a text, or an array of parts, which is not documented: servers use the parts of a user's message.
func (m *answered) outcome(r wire.Reader) (outcome wire.Outcome, err error) {
	switch {
	case wire.Absent(m.Content):
		err = r.Fail("", "is missing; want a text")
	case m.Content[0] == '[':
		err = wire.Each(r, "", m.Content, wire.MaxParts,
			func(r wire.Reader, p *answeredPart) error { return p.add(r, &outcome) })
	default:
		var text pieces.Text
		err = r.Into("", m.Content, &text)
		outcome.Text(text.String())
	}
	return outcome, err
}

// answeredPart is the union of the parts of content.
type answeredPart struct {
	Type  string      `json:"type"`
	Text  pieces.Text `json:"text"`
	Image *struct {
		URL string `json:"url"`
	} `json:"image_url"`
	File *struct {
		Data string `json:"file_data"`
		Name string `json:"filename"`
	} `json:"file"`
}

func (p *answeredPart) add(r wire.Reader, outcome *wire.Outcome) (err error) {
	part := tool.Content{Type: "image"}
	switch {
	case p.Type == "text":
		outcome.Text(p.Text.String())
		return nil
	case p.Type == "image_url" && p.Image != nil:
		part, err = wire.Linked(r, "image_url.url", p.Image.URL, part)
	case p.Type == "file" && p.File != nil:
		part, err = wire.Linked(r, "file.file_data", p.File.Data, tool.Content{Type: "file", Name: p.File.Name})
	default:
		err = r.Fail("", `is of type %q; want "text", "image_url" or "file", with what it holds`, tool.Shown(p.Type, 64))
	}
	outcome.Part(part)
	return err
}
