package schema

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/keypath"
)

// Bounds on schemas and values.
const (
	// MaxSchemaBytes and MaxValueBytes are the maximum sizes of their JSON texts.
	MaxSchemaBytes = 256 << 10
	MaxValueBytes  = 8 << 20
	// MaxDepth is the maximum nesting depth of objects and arrays.
	MaxDepth = 64
	// maxValues is the maximum number of values in a text, including member names.
	maxValues = 1 << 19
	// Member names are limited too, far above what people and models write.
	maxSchemaNameBytes = 256
	maxValueNameBytes  = 1024
	// maxNumberBytes and maxExponent keep numbers cheap: 1e1000000000 as an exact fraction would exhaust memory.
	maxNumberBytes = 128
	maxExponent    = 400
)

// Schema is a compiled JSON Schema. Get one from [Compile]. It is immutable and safe for concurrent use.
type Schema struct {
	source json.RawMessage
	root   *Node
	later  func() *Node // compiles the root when it is needed; nil if root is set

	patterns int
}

// Patterns returns how large the schema's patterns are together, of at most [MaxPatterns]. It is 0 for [Known] ones.
func (s *Schema) Patterns() int { return s.patterns }

// Compile compiles a schema from JSON text. The package documentation lists the schemas that it rejects. The error is
// an [*Error] with all problems, or with the first one if the text is not JSON.
func Compile(source []byte) (*Schema, error) {
	c, _, root, err := compileText(source)
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, source); err != nil {
		return nil, schemaError(Problem{"", err.Error()})
	}
	return &Schema{source: compact.Bytes(), root: root, patterns: c.patterns}, nil
}

// compileText compiles a schema, and returns its value and its root as well. The error is an [*Error].
func compileText(source []byte) (*compiler, jsontext.Value, *Node, error) {
	var unending context.Context
	value, err := read(unending, string(source), MaxSchemaBytes, maxSchemaNameBytes)
	if err != nil {
		wrong := err.(*defect)
		return nil, value, nil, schemaError(Problem(*wrong))
	}
	c := &compiler{draft: draft2020, nodes: map[string]*Node{}, resources: map[string]*resource{}}
	root := c.compile(value)
	if len(c.problems) > 0 {
		return nil, value, nil, schemaError(c.problems...)
	}
	return c, value, root, nil
}

// Known returns the schema with this JSON, which [Schema.JSON] has returned before. It is compiled
// when it is first used. If it turns out not to compile, no value fits it.
func Known(source json.RawMessage) *Schema {
	return &Schema{source: source, later: sync.OnceValue(func() *Node {
		compiled, err := Compile(source)
		if err != nil {
			return &Node{never: true}
		}
		return compiled.root
	})}
}

// MarshalJSON returns the schema as [Schema.JSON] does.
func (s *Schema) MarshalJSON() ([]byte, error) { return s.source, nil }

// UnmarshalJSON sets the schema to the one that [Known] returns.
func (s *Schema) UnmarshalJSON(source []byte) error {
	*s = *Known(bytes.Clone(source))
	return nil
}

// JSON returns the schema as compact JSON, with its keys in the order of the source. The caller must not modify it.
func (s *Schema) JSON() json.RawMessage { return s.source }

// Structure returns the schema's root. The caller must not modify the nodes.
func (s *Schema) Structure() *Node {
	if s.later != nil {
		return s.later()
	}
	return s.root
}

// Validate validates a value, given as JSON text of at most [MaxValueBytes]. Numbers are compared exactly as written.
// The error is a [*ViolationError], also for a value that is not JSON, exceeds a limit or is too expensive to validate.
// Soon after ctx is done or its deadline has passed, Validate returns the error of ctx. A nil ctx is never done.
func (s *Schema) Validate(ctx context.Context, value []byte) error {
	v, err := readValue(ctx, string(value))
	if err != nil {
		return err
	}
	return s.validate(v, &evaluation{meter: newMeter(ctx, 0)})
}

// readValue is read for a value that is validated.
func readValue(ctx context.Context, text string) (jsontext.Value, error) {
	v, err := read(ctx, text, MaxValueBytes, maxValueNameBytes)
	if wrong, ok := err.(*defect); ok {
		err = violationError(Violation(*wrong))
	}
	return v, err
}

// validate is Validate for a value that was read.
func (s *Schema) validate(v jsontext.Value, e *evaluation) error {
	fits := false
	message, err := e.run(func() { fits = e.fits(s.Structure(), v, nil, nil) })
	switch {
	case err != nil || fits:
		return err
	case message != "":
		return violationError(Violation{"", message})
	}
	return explain(e.ctx, s.Structure(), v)
}

// Probe validates values against nodes of a schema. All of them share the budget of one validation.
// The zero value is ready to use. It is not safe for concurrent use.
type Probe struct{ work int }

// Fits reports whether a value, given as JSON text, matches the schema of a node. It returns false once the budget is
// spent or ctx is done. References that depend on how a validation got to the node are resolved as if it began there.
func (p *Probe) Fits(ctx context.Context, n *Node, value string) (fits bool) {
	v, err := read(ctx, value, MaxValueBytes, maxValueNameBytes)
	if err != nil {
		return false
	}
	e := evaluation{meter: newMeter(ctx, p.work)}
	message, err := e.run(func() { fits = e.fits(n, v, nil, nil) })
	p.work = e.work
	return fits && message == "" && err == nil
}

// defect is a problem of a JSON text, at a path inside it.
type defect Problem

func (d *defect) Error() string { return at(d.Path, d.Message) }

// read parses one JSON value within limits: UTF-8 without duplicate keys. The error is a *defect, or that of ctx.
func read(ctx context.Context, text string, maxBytes, maxNameBytes int) (jsontext.Value, error) {
	if len(text) > maxBytes {
		return jsontext.Value{}, &defect{"", fmt.Sprintf("%d bytes are over the limit of %d", len(text), maxBytes)}
	}
	if err := ended(ctx); err != nil {
		return jsontext.Value{}, err
	}
	if !utf8.ValidString(text) {
		return jsontext.Value{}, &defect{"", "the text is not valid UTF-8"}
	}
	checkName := func(name string) error {
		if len(name) > maxNameBytes {
			return fmt.Errorf("a name is %d bytes long, over the limit of %d", len(name), maxNameBytes)
		}
		return nil
	}
	doc, err := jsontext.Read(ctx, text,
		jsontext.Limits{Depth: MaxDepth, Values: maxValues, Name: checkName, Number: checkNumber})
	if unread, ok := errors.AsType[*jsontext.Error](err); ok {
		return jsontext.Value{}, describe(text, unread, maxNameBytes)
	}
	if err != nil {
		return jsontext.Value{}, err
	}
	return doc.Root(), nil
}

// describe explains why a text was rejected. Invalid JSON takes precedence.
func describe(text string, unread *jsontext.Error, maxNameBytes int) *defect {
	if fault := jsontext.FaultIn(text); fault != nil {
		return &defect{"", "not JSON: " + fault.Error()}
	}
	message := unread.Error()
	switch unread.Err {
	case jsontext.ErrRepeated:
		message += "; give it once"
	case jsontext.ErrDepth:
		message = fmt.Sprintf("nested deeper than %d levels", MaxDepth)
	case jsontext.ErrValues:
		message = "too many values; make it smaller"
	}
	return &defect{pathOf(unread.Path, maxNameBytes), message}
}

// pathOf returns a path without names over the limit.
func pathOf(steps []jsontext.Step, maxNameBytes int) string {
	path := ""
	for _, step := range steps {
		switch {
		case step.Index >= 0:
			path = keypath.Index(path, step.Index)
		case len(step.Name) <= maxNameBytes:
			path = keypath.Key(path, step.Name)
		}
	}
	return path
}

func checkNumber(literal string) error {
	if len(literal) > maxNumberBytes {
		return fmt.Errorf("a number has %d characters, over the limit of %d", len(literal), maxNumberBytes)
	}
	at := max(strings.IndexByte(literal, 'e'), strings.IndexByte(literal, 'E')) // faster than IndexAny
	if at < 0 {
		return nil // that many digits are less than the largest number
	}
	value, err := strconv.ParseFloat(literal, 64)
	if err != nil || math.IsInf(value, 0) {
		return fmt.Errorf("the number %s is too large", literal)
	}
	exponent, err := strconv.Atoi(literal[at+1:])
	if err != nil || exponent > maxExponent || exponent < -maxExponent {
		return fmt.Errorf("the number %s has an exponent that is out of range", literal)
	}
	return nil
}
