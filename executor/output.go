package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/manifests"
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
// A session can read its own results only. OutputTool fails only if this package has a bug.
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
		Execution: manifests.ExecutionHost,
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
	if err == nil && invocation.Host == nil {
		err = errors.New("the call has no session")
	}
	if err != nil {
		return tool.Outcome{}, &tool.Error{Op: "invoke", Tool: OutputToolName, Kind: tool.Internal, Err: err}
	}
	page, err := invocation.Host.Page(arguments.Reference, int64(arguments.From), int64(arguments.Bytes))
	if err != nil { // worded for the model
		return tool.Outcome{Result: tool.Result{Error: err.Error(), Kind: tool.ToolFailed}}, nil
	}
	data := fmt.Appendf(nil, `{"from":%d,"next":%d,"total":%d}`, page.From, page.Next, page.Total)
	return tool.Outcome{Result: tool.Result{Success: true, Output: page.Text + pageMark(page), Data: data}}, nil
}

// pageMark is the note behind a page: a model does not read the data.
func pageMark(page tool.Page) string {
	if page.Next < 0 {
		return ""
	}
	return fmt.Sprintf("\n[bytes %d to %d of %d; the next page begins at %d]", page.From, page.Next, page.Total, page.Next)
}

// mark is the note that takes the place of what was cut.
func (b *batch) mark(cut tool.Cut) string {
	text := fmt.Sprintf("[%s cut: %d of %d bytes shown", cut.Part, cut.Kept, cut.Bytes)
	if hint := b.hint(cut); hint != "" {
		text += "; " + hint
	}
	return text + "]"
}

func (b *batch) hint(cut tool.Cut) string {
	switch {
	case cut.Reference == "":
		return "the rest is not kept"
	case b.executor.options.Output.Hint != nil:
		return b.ownHint(cut)
	}
	if entry, ok, _ := lookUp(b.executor.resolver, OutputToolName); ok && b.allows(entry.Name) {
		if _, ours := entry.Tool.(outputTool); ours {
			return fmt.Sprintf(`read on with %s {"reference": "%s", "from": %d}`, OutputToolName, cut.Reference, cut.Kept)
		}
	}
	return "the rest is kept under the reference " + cut.Reference
}

// ownHint calls the program's hint. A panic in it must not affect the call.
func (b *batch) ownHint(cut tool.Cut) (hint string) {
	defer func() {
		if value := recover(); value != nil {
			b.executor.log.Error("hint panicked", "reference", cut.Reference, "error", fmt.Sprint(value))
		}
	}()
	return b.executor.options.Output.Hint(cut)
}
