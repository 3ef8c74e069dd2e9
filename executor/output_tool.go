package executor

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/schema"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// OutputToolName is the name of [OutputTool].
const OutputToolName = "read_output"

const outputParameters = `{"type":"object","properties":{` +
	`"reference":{"type":"string","description":"The reference that stands where the result was cut."},` +
	`"from":{"type":"integer","minimum":0,"maximum":9007199254740991,"default":0,"description":"The first byte to read; the last page said where the next begins."},` +
	`"bytes":{"type":"integer","minimum":1,"maximum":1048576,"default":32768,"description":"How many bytes to read at most."}` +
	`},"required":["reference"],"additionalProperties":false}`

// OutputTool returns a tool with which a model reads the rest of a result that was cut, page by
// page. Register it where the executor finds its tools:
//
//	pages, err := executor.OutputTool()
//	err = tools.Register("", pages)
//
// Each session reads its own results alone. Only a mistake in this package makes an error.
func OutputTool() (registry.Tool, error) {
	parameters, err := schema.Compile([]byte(outputParameters))
	if err != nil {
		return nil, fmt.Errorf("executor: %s: %w", OutputToolName, err)
	}
	return outputTool{&manifests.Manifest{
		Name: OutputToolName, Label: "Read output", Category: "executor",
		Description: "Read more of a result that was cut because it is long. The place where it was cut names the reference.",
		Parameters:  parameters, ModelParameters: json.RawMessage(outputParameters),
		Behavior:  manifests.Behavior{ReadOnly: true, Idempotent: true, Cache: manifests.CacheOff},
		Execution: manifests.Sandbox,
	}}, nil
}

type outputTool struct{ manifest *manifests.Manifest }

// Manifest implements [registry.Tool].
func (t outputTool) Manifest() *manifests.Manifest { return t.manifest }

// Invoke implements [registry.Tool].
func (t outputTool) Invoke(_ context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	var arguments struct {
		Reference string  `json:"reference"`
		From      float64 `json:"from"` // an integer may be written as 1.0 or 1e3
		Bytes     float64 `json:"bytes"`
	}
	text, err := invocation.Arguments.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(text, &arguments)
	}
	if err != nil {
		return failedOutput(err)
	}
	if invocation.Host == nil {
		return failedOutput(fmt.Errorf("the call has no session"))
	}
	page, err := invocation.Host.Page(arguments.Reference, int64(arguments.From), int64(arguments.Bytes))
	if err != nil {
		return tool.Outcome{Result: tool.Result{Error: err.Error(), Kind: tool.ToolFailed}}, nil
	}
	data, err := json.Marshal(map[string]int64{"from": page.From, "next": page.Next, "total": page.Total})
	if err != nil {
		return failedOutput(err)
	}
	return tool.Outcome{Result: tool.Result{Success: true, Output: page.Text, Data: data}}, nil
}

func failedOutput(cause error) (tool.Outcome, error) {
	return tool.Outcome{Result: tool.Result{Kind: tool.Internal}}, &tool.Error{Op: "invoke", Tool: OutputToolName, Kind: tool.Internal, Err: cause}
}
