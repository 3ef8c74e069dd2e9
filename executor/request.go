package executor

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"unicode/utf8"

	"github.com/caisson-run/caisson/executor/internal/repair"
	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// request is the part of the caller's request for one tool, checked. Approvals and cached results of every call that
// may reach the tool are bound to it, so it is hashed once. The zero value is an empty request.
type request struct {
	said   tool.Request
	digest [sha256.Size]byte
}

func newRequest(name string, said tool.Request) (request, error) {
	d := said.Definition
	if len(d) > 0 && (!bytes.HasPrefix(bytes.TrimSpace(d), []byte("{")) || !json.Valid(d) || !utf8.Valid(d)) {
		return request{}, fmt.Errorf("Requests[%q].Definition is not a JSON object", name)
	}
	size := len(d)
	for key, value := range said.Values {
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return request{}, fmt.Errorf("Requests[%q].Values[%q] is not valid UTF-8", name, key)
		}
		size += len(key) + len(value)
	}
	if size > tool.MaxArgumentsBytes {
		return request{}, fmt.Errorf("the request to %s has %d bytes, over the limit of %d", tool.Shown(name, 64), size,
			tool.MaxArgumentsBytes)
	}
	if size == 0 {
		return request{}, nil
	}
	r := request{said: said}
	r.said = r.copied()
	r.digest = sha256.Sum256(appendValues(appendText(nil, string(d)), said.Values))
	return r, nil
}

// copied returns a copy that a tool may modify.
func (r request) copied() tool.Request {
	return tool.Request{Definition: bytes.Clone(r.said.Definition), Values: maps.Clone(r.said.Values)}
}

func (r request) append(to []byte) []byte { return append(to, r.digest[:]...) }

// newRequests returns the parts of the caller's request for tools, by registered name. It ignores unknown tools.
func newRequests(resolver Resolver, given map[string]tool.Request) (map[string]request, error) {
	if len(given) == 0 {
		return nil, nil
	}
	requests := make(map[string]request, len(given))
	for name, said := range given {
		r, err := newRequest(name, said)
		if err != nil {
			return nil, err
		}
		entry, ok := resolver.Get(name)
		if !ok {
			continue
		}
		if _, twice := requests[entry.Name]; twice {
			return nil, fmt.Errorf("the tool %s is in Requests twice, by its name and an alias or by two aliases", entry.Name)
		}
		requests[entry.Name] = r
	}
	return requests, nil
}

// Bounds of the tools that a batch may bring. Checking a schema takes about a microsecond per byte, and a subschema,
// which takes two values, about a kilobyte. All patterns together may be as large as those of one schema.
const (
	maxBrought       = 128
	maxBroughtBytes  = 256 << 10 // of their schemas together
	maxBroughtValues = 16 << 10  // likewise: values and names
)

// freeTextParameters is the schema of a custom tool that a caller brings without one.
const freeTextParameters = `{"type":"object","properties":{"input":{"type":"string"}},` +
	`"required":["input"],"additionalProperties":false}`

// planBrought plans the calls of tools that the caller brings. To compile schemas takes a tenth of a second, to check
// arguments by them may take half a second, and both take megabytes. So a batch waits for its turn, and keeps nothing
// that was compiled.
func (b *batch) planBrought(ctx context.Context, definitions []tool.Definition, calls []*call) error {
	if len(definitions) == 0 {
		return nil
	}
	err := checkBrought(definitions)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidBatch, err)
	}
	turn, err := b.takeTurn(ctx)
	if err != nil {
		return nil // no call starts
	}
	defer turn.Leave()
	b.brought, err = clientTools(ctx, definitions)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidBatch, err)
	}
	b.repairers = map[string]*repair.Repairer{}
	for _, c := range calls {
		if c.phase == phaseEnded {
			continue
		}
		if _, c.brought = b.brought[c.record.Function.Name]; c.brought {
			c.find() // which may find that a registered tool has the name
		}
		if c.brought {
			c.plan(ctx)
		}
	}
	b.repairers = nil
	for _, entry := range b.brought {
		m := entry.Manifest
		*m = manifests.Manifest{
			Name: m.Name, Label: m.Label, Category: m.Category, Behavior: m.Behavior, Execution: m.Execution, Type: m.Type,
		}
	}
	return nil
}

func checkBrought(definitions []tool.Definition) error {
	if len(definitions) > maxBrought {
		return fmt.Errorf("%d tools in Client are over the limit of %d", len(definitions), maxBrought)
	}
	size, values := 0, 0
	for _, d := range definitions {
		size += len(d.Parameters)
		if size <= maxBroughtBytes {
			values += valuesIn(d.Parameters)
		}
	}
	if size > maxBroughtBytes {
		return fmt.Errorf("the schemas of the tools in Client have %d bytes, over the limit of %d", size, maxBroughtBytes)
	}
	if values > maxBroughtValues {
		return fmt.Errorf("the schemas of the tools in Client have %d values and names, over the limit of %d",
			values, maxBroughtValues)
	}
	return nil
}

// clientTools returns the tools that a caller brings, by name, and none if ctx ends. They are checked like manifests.
func clientTools(ctx context.Context, definitions []tool.Definition) (map[string]registry.Entry, error) {
	entries := make(map[string]registry.Entry, len(definitions))
	patterns := 0
	for i, d := range definitions {
		if ctx.Err() != nil {
			return nil, nil // no call starts
		}
		m, err := manifestOf(d)
		if err != nil {
			return nil, fmt.Errorf("tool %d of Client, %s: %w", i, tool.Shown(d.Name, 64), err)
		}
		if patterns += m.Parameters.Patterns(); patterns > schema.MaxPatterns {
			return nil, errors.New("the patterns of the tools in Client are too large together; " +
				"bound lengths with maxLength instead of large repetitions")
		}
		if _, twice := entries[m.Name]; twice {
			return nil, fmt.Errorf("two tools of Client have the name %s", m.Name)
		}
		entries[m.Name] = registry.Entry{Name: m.Name, Manifest: m}
	}
	return entries, nil
}

// valuesIn counts the values and names in a document. One that is not JSON has none, and is refused elsewhere.
func valuesIn(document []byte) int {
	doc, err := jsontext.Parse(string(document),
		jsontext.Limits{Depth: maxBroughtValues, Values: 2 * maxBroughtBytes, Repeated: true})
	if err != nil {
		return 0
	}
	return doc.Extent().Values
}

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
	}{manifests.SchemaV1, d.Name, "A tool of the caller's.", manifests.ExecutionClient, cmp.Or(d.Type, tool.FunctionCall),
		parameters})
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
