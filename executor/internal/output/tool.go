package output

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// ToolName is the name of [Tool].
const ToolName = "read_output"

const toolParameters = `{"type":"object","properties":{` +
	`"reference":{"type":"string","description":"The reference that stands where the result was cut."},` +
	`"from":{"type":"integer","minimum":0,"maximum":9007199254740991,"default":0,` +
	`"description":"The first byte to read; the last page said where the next begins."},` +
	`"bytes":{"type":"integer","minimum":1,"maximum":1048576,"default":32768,` +
	`"description":"How many bytes to read at most."}` +
	`},"required":["reference"],"additionalProperties":false}`

// Tool is a tool with which a model reads the rest of a result that was cut.
type Tool struct{ manifest *manifests.Manifest }

// NewTool returns the tool. It fails only if this package has a bug.
func NewTool() (Tool, error) {
	parameters, err := schema.Compile([]byte(toolParameters))
	if err != nil {
		return Tool{}, err
	}
	return Tool{&manifests.Manifest{
		Name: ToolName, Label: "Read output", Category: "executor",
		Description: "Read more of a result that was cut because it is long. The place where it was cut names the reference.",
		Parameters:  parameters, ModelParameters: json.RawMessage(toolParameters),
		Behavior:  manifests.Behavior{ReadOnly: true, Idempotent: true, Cache: manifests.CacheOff},
		Execution: manifests.ExecutionHost,
	}}, nil
}

// Manifest implements [registry.Tool].
func (t Tool) Manifest() *manifests.Manifest { return t.manifest }

// Invoke implements [registry.Tool].
func (t Tool) Invoke(_ context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	var arguments struct {
		Reference string  `json:"reference"`
		From      float64 `json:"from"` // an integer may be written as 1.0 or 1e3
		Bytes     float64 `json:"bytes"`
	}
	text, err := invocation.Arguments.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(text, &arguments)
	}
	if err == nil && invocation.Host == nil {
		err = errors.New("the call has no session")
	}
	if err != nil {
		return tool.Outcome{}, &tool.Error{Op: "invoke", Tool: ToolName, Kind: tool.Internal, Err: err}
	}
	page, err := invocation.Host.Page(arguments.Reference, int64(arguments.From), int64(arguments.Bytes))
	if err != nil { // worded for the model
		return tool.Outcome{Result: tool.Result{Error: err.Error(), Kind: tool.ToolFailed}}, nil
	}
	data := fmt.Appendf(nil, `{"from":%d,"next":%d,"total":%d}`, page.From, page.Next, page.Total)
	return tool.Outcome{Result: tool.Result{Success: true, Output: page.Text + pageMark(page), Data: data}}, nil
}

// pageMark returns the note that follows a page: a model does not read the data.
func pageMark(page tool.Page) string {
	if page.Next < 0 {
		return ""
	}
	return fmt.Sprintf("\n[bytes %d to %d of %d; the next page begins at %d]", page.From, page.Next, page.Total, page.Next)
}
