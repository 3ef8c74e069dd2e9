package responses

import (
	"strings"

	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// server is the item of a call of any other tool: the API has it for tools that a server runs.
type server struct {
	at   place
	item serverItem
}

func (e *Events) server(p *tool.Planned) (running, error) {
	arguments, err := wire.Input(&tool.Call{Type: p.Type, Function: tool.Function{Arguments: p.Arguments}})
	if err != nil {
		return nil, reader("events").Within(p.CallID, err)
	}
	s := &server{item: serverItem{
		ID: prefixServer + p.CallID, Type: "mcp_call", Status: "in_progress", Name: p.Tool, ServerLabel: e.options.ServerLabel,
	}}
	s.at = e.add(s.item.ID, s.item)
	s.item.Arguments = string(arguments)
	e.step("mcp_call.in_progress", s.at)
	e.send(deltaEvent{e.head("mcp_call_arguments.delta"), s.at, s.item.Arguments})
	e.send(argumentsEvent{e.head("mcp_call_arguments.done"), s.at, s.item.Arguments})
	return s, nil
}

// say does nothing: the API has no form for what such a call says before it has ended.
func (s *server) say(*Events, *tool.Emission) {}

func (s *server) end(e *Events, result *tool.Result) {
	if result.Success {
		s.item.Status, s.item.Output = "completed", optional(text(result))
	} else {
		s.item.Status, s.item.Error = "failed", failed(result)
	}
	e.step("mcp_call."+s.item.Status, s.at)
	e.done(s.at, s.item)
}

// text returns what a result says as one text.
func text(result *tool.Result) string {
	var said []string
	if result.Output != "" {
		said = append(said, result.Output)
	}
	if len(result.Data) > 0 && !wire.Repeats(result) {
		said = append(said, string(result.Data))
	}
	for i := range result.Content {
		said = append(said, wire.Mention(&result.Content[i]))
	}
	return strings.Join(said, "\n")
}

// executionError says that the tool failed.
type executionError struct {
	Type    string      `json:"type"`
	Content []errorText `json:"content"`
}

type errorText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// protocolError says that the tool did not get to run.
type protocolError struct {
	Type    string `json:"type"`
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// The codes of JSON-RPC that protocol errors have.
const (
	invalidParams = -32602
	internalError = -32603
)

// failed returns the error of a call. The protocol has errors of its own for a tool that there is
// not, and for one that the host failed; every other failure is the tool's, also for models.
func failed(result *tool.Result) any {
	message := wire.Failure(result)
	switch result.Kind {
	case tool.UnknownTool:
		return protocolError{"mcp_protocol_error", invalidParams, message}
	case tool.Internal:
		return protocolError{"mcp_protocol_error", internalError, message}
	}
	content := []errorText{{"text", message}}
	if said := text(result); said != "" {
		content = []errorText{{"text", said}, {"text", message}}
	}
	return executionError{"mcp_tool_execution_error", content}
}
