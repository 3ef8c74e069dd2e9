package executor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// parse reads what a call was written with: a JSON object, or the free text of a custom call. The
// entry is the zero value where there is no such tool. The error is worded for a model.
func (p planner) parse(requested tool.Call, entry registry.Entry) (tool.Arguments, []tool.Repair, error) {
	text := requested.Function.Arguments
	if requested.Type != tool.CustomCall {
		return p.repairers.parse(text, p.program)
	}
	if entry.Manifest == nil { // so that it is refused for that
		return tool.Arguments{}, nil, nil
	}
	if entry.Manifest.Type != manifests.CustomTool {
		return tool.Arguments{}, nil, fmt.Errorf("%w: %s takes a JSON object, and no free text", tool.ErrArguments, entry.Name)
	}
	arguments, err := freeText(entry.Manifest, text)
	return arguments, nil, err
}

// freeText makes arguments of a custom call's text: the tool's only parameter has it.
func freeText(m *manifests.Manifest, text string) (tool.Arguments, error) {
	if len(text) > tool.MaxArgumentsBytes {
		return tool.Arguments{}, fmt.Errorf("%w: %d bytes are over the limit of %d", tool.ErrArguments, len(text), tool.MaxArgumentsBytes)
	}
	if !utf8.ValidString(text) {
		return tool.Arguments{}, fmt.Errorf("%w: the text is not valid UTF-8", tool.ErrArguments)
	}
	var shown struct {
		Required []string `json:"required"`
	}
	if err := json.Unmarshal(m.ModelParameters, &shown); err != nil || len(shown.Required) != 1 {
		return tool.Arguments{}, fmt.Errorf("%w: %s has no parameter for free text", tool.ErrArguments, m.Name)
	}
	var value bytes.Buffer
	encoder := json.NewEncoder(&value)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		return tool.Arguments{}, fmt.Errorf("%w: %w", tool.ErrArguments, err)
	}
	return tool.Arguments{}.With(shown.Required[0], bytes.TrimRight(value.Bytes(), "\n")), nil
}
