package schema

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Probe checks values against the schemas inside a schema. Get one from [Schema.Probe].
// One goroutine uses it at a time.
type Probe struct {
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema // by JSON pointer
	meter    *meter
	work     int
}

// Probe returns a new probe for the nodes of [Schema.Structure]. It takes about as long as
// [Compile], so a probe is worth keeping. The error is an [*Error].
func (s *Schema) Probe() (*Probe, error) {
	text, err := json.Marshal(s.plan.lowered)
	if err != nil {
		return nil, schemaError(Problem{"", err.Error()})
	}
	compiler := jsonschema.NewCompiler()
	compiler.Draft = jsonschema.Draft2020
	compiler.AssertFormat = true
	compiler.LoadURL = func(string) (io.ReadCloser, error) { return nil, errNoLoading }
	m := &meter{lengths: s.plan.lengths, factor: 1}
	if s.plan.draft < draft2019 {
		m.factor = 2 // the format of a schema that is a reference is not looked at
	}
	register(compiler, m, s.plan.steps)
	if err := compiler.AddResource(baseURL, bytes.NewReader(text)); err != nil {
		return nil, schemaError(Problem{"", "the schema cannot be read"})
	}
	return &Probe{compiler: compiler, compiled: map[string]*jsonschema.Schema{}, meter: m}, nil
}

// Restart gives the probe the budget of one validation for all checks until the next
// restart. A new probe has it.
func (p *Probe) Restart() { p.work = 0 }

// Fits reports whether a value, given as JSON text, certainly fits the schema of a node of
// the schema that the probe is of. It is false, too, once the budget is spent or ctx has
// ended.
func (p *Probe) Fits(ctx context.Context, n *Node, value []byte) (fits bool) {
	doc, err := decode(ctx, value, bounds{MaxValueBytes, maxValueNameBytes, maxMemory})
	if err != nil || doc.isCrowded() {
		return false
	}
	defer func() {
		p.work = p.meter.work
		if cause := recover(); cause != nil {
			p.meter.work = maxWork
			p.work, fits = maxWork, false
		}
	}()
	p.meter.reset(ctx, doc.pathBytes, p.work)
	part, err := p.part(n.pointer)
	return err == nil && part.Validate(doc.root) == nil
}

// part compiles the schema at a pointer, with its references into the whole.
func (p *Probe) part(pointer string) (*jsonschema.Schema, error) {
	if compiled, done := p.compiled[pointer]; done {
		return compiled, nil
	}
	compiled, err := p.compiler.Compile(baseURL + "#" + fragment(pointer))
	if err != nil {
		return nil, fmt.Errorf("schema at %s: %w", pointer, err)
	}
	p.compiled[pointer] = compiled
	return compiled, nil
}

// fragment writes a JSON pointer as it stands in a URI.
func fragment(pointer string) string {
	tokens := strings.Split(pointer, "/")
	for i, token := range tokens {
		tokens[i] = url.PathEscape(token)
	}
	return strings.Join(tokens, "/")
}
