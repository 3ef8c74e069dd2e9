package executor

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// Bounds of the tools that a batch may bring. Checking a schema takes about a microsecond per byte.
const (
	maxBrought      = 128
	maxBroughtBytes = 256 << 10 // of their schemas together
)

// freeTextParameters is the schema of a custom tool that a caller brings without one.
const freeTextParameters = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`

// brought returns the tools that a caller brings, by name. They are checked like manifests of tools that clients run,
// which they then are. Descriptions are for the caller's own model, so that they are left out.
func brought(definitions []tool.Definition) (map[string]registry.Entry, error) {
	if len(definitions) == 0 {
		return nil, nil
	}
	if len(definitions) > maxBrought {
		return nil, fmt.Errorf("%d tools in Client are over the limit of %d", len(definitions), maxBrought)
	}
	size := 0
	for _, d := range definitions {
		size += len(d.Parameters)
	}
	if size > maxBroughtBytes {
		return nil, fmt.Errorf("the schemas of the tools in Client have %d bytes, over the limit of %d", size, maxBroughtBytes)
	}
	entries := make(map[string]registry.Entry, len(definitions))
	for i, d := range definitions {
		m, err := manifestOf(d)
		if err != nil {
			return nil, fmt.Errorf("tool %d of Client, %s: %w", i, tool.Shown(d.Name, 64), err)
		}
		if _, twice := entries[m.Name]; twice {
			return nil, fmt.Errorf("two tools of Client have the name %s", m.Name)
		}
		entries[m.Name] = registry.Entry{Name: m.Name, Manifest: m}
	}
	return entries, nil
}

// manifestOf returns the manifest that a definition stands for.
func manifestOf(d tool.Definition) (*manifests.Manifest, error) {
	parameters := d.Parameters
	if len(parameters) == 0 || string(parameters) == "null" {
		parameters = json.RawMessage(`{"type":"object"}`)
		if d.Type == tool.CustomCall {
			parameters = json.RawMessage(freeTextParameters)
		}
	}
	source, err := json.Marshal(struct {
		Schema      string              `json:"schema"`
		Name        string              `json:"name"`
		Description string              `json:"description"`
		Execution   manifests.Execution `json:"execution"`
		Type        string              `json:"type"`
		Parameters  json.RawMessage     `json:"parameters"`
	}{manifests.SchemaV1, d.Name, "A tool of the caller's.", manifests.ExecutionClient, cmp.Or(d.Type, tool.FunctionCall), parameters})
	if err != nil {
		return nil, errors.New("its parameters are not JSON")
	}
	m, err := manifests.Parse("", source)
	var wrong *manifests.Error
	if errors.As(err, &wrong) {
		p := wrong.Problems[0] // its line is that of a document that the caller has not written
		return nil, fmt.Errorf("%s: %s (%s)", cmp.Or(p.Path, "its definition"), p.Message, p.Fix)
	}
	return m, err
}
