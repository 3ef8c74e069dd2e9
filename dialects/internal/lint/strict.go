package lint

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/tool"
)

// Offer writes the JSON array of what offer returns for each tool. It also returns the findings: those of
// offer, with the tools' names added, and those about the names. An error from offer need not say which tool
// it is about.
func Offer[T any](
	reader wire.Reader, definitions []tool.Definition, names NameRule,
	offer func(d *tool.Definition) (T, []dialects.Finding, error),
) (json.RawMessage, []dialects.Finding, error) {
	findings, taken := []dialects.Finding{}, make(map[string]bool, len(definitions))
	written, err := wire.List(reader, definitions, func(d *tool.Definition) (T, error) {
		found := names.name(d.Name)
		if taken[d.Name] {
			found = append(found, dialects.Finding{
				Keyword: "name", Severity: dialects.Refused, Message: "the request is refused: two tools have this name",
				Fix: "offer one of them under another name",
			})
		}
		taken[d.Name] = true
		offered, more, err := offer(d)
		for _, finding := range append(found, more...) {
			finding.Tool = d.Name
			findings = append(findings, finding)
		}
		return offered, err
	})
	if err != nil {
		return nil, nil, err
	}
	return written, findings, nil
}

// Parameters returns a tool's schema as it is offered, the findings, and whether the provider enforces the
// schema. If strict is set, the schema is changed to what the strict rules require; if they still refuse it,
// it is offered unchanged and not strict.
func Parameters(
	schema json.RawMessage, strict bool, strictRules, looseRules Rules,
) (json.RawMessage, []dialects.Finding, bool, error) {
	var reasons []dialects.Finding
	if strict {
		held, findings, err := Check(schema, strictRules)
		if reasons = unheld(findings); err != nil || len(reasons) == 0 {
			return held, findings, err == nil, err
		}
	}
	offered, findings, err := Check(schema, looseRules)
	return offered, append(reasons, findings...), false, err
}

// unheld returns the findings that prevent strict mode, as findings about that.
func unheld(findings []dialects.Finding) []dialects.Finding {
	var reasons []dialects.Finding
	for _, f := range findings {
		if f.Severity != dialects.Refused || f.Adapted {
			continue
		}
		f.Severity, f.Adapted = dialects.Weakened, true
		f.Message = "this tool's schema is not enforced: " + f.Message
		f.Fix = "the tool is offered without strict; to have it strict, " + f.Fix
		reasons = append(reasons, f)
	}
	return reasons
}

func describesObject(schema *Value) bool {
	return schema.Get("type").HasText("object") || schema.Get("properties").IsObject()
}

// closed adds additionalProperties: false to an object.
func (c *checker) closed(schema *Value, at *place) {
	additional, rule := schema.Get("additionalProperties"), c.rules.Closed
	if rule.Severity == "" || !describesObject(schema) || additional.Literal() == "false" {
		return
	}
	free := additional != nil && additional.Literal() != "true" || schema.Get("patternProperties") != nil ||
		len(schema.Get("properties").Members()) == 0 && (additional != nil || at != nil)
	if !free {
		schema.Set("additionalProperties", Literal("false"))
	}
	c.report(at.member("additionalProperties"), "additionalProperties", rule, !free)
}

// allRequired makes every property required, and returns the indexes of those that the caller must make nullable.
func (c *checker) allRequired(schema *Value, at *place) []int {
	rule := c.rules.AllRequired
	if rule.Severity == "" {
		return nil
	}
	required := map[string]bool{}
	for _, e := range schema.Get("required").Elements() {
		if text, ok := e.Text(); ok {
			required[text] = true
		}
	}
	properties, all, optional := schema.Get("properties").Members(), []*Value{}, []int{}
	for i, p := range properties {
		all = append(all, String(p.Name))
		if !required[p.Name] {
			optional = append(optional, i)
		}
	}
	if len(optional) == 0 {
		return nil
	}
	rule.Message += fmt.Sprintf(" (not required: %s", jsontext.Quote(properties[optional[0]].Name))
	if more := len(optional) - 1; more > 0 {
		rule.Message += fmt.Sprintf(" and %d more", more)
	}
	rule.Message += ")"
	if len(required) > len(all)-len(optional) { // some required names have no schema
		c.report(at.member("required"), "required", rule, false)
		return nil
	}
	schema.Set("required", List(all...))
	c.report(at.member("required"), "required", rule, true)
	return optional
}

// orNull returns a schema that also accepts null. It may change the given one.
func orNull(schema *Value) *Value {
	null, isNull := Literal("null"), Object(Member{Name: "type", Value: String("null")})
	hasAny := func(names ...string) bool {
		return slices.ContainsFunc(schema.Members(), func(m Member) bool { return slices.Contains(names, m.Name) })
	}
	switch branches := schema.Get("anyOf"); {
	case branches.IsList() &&
		!hasAny("type", "enum", "const", "properties", "items", "$ref", "$dynamicRef", "allOf", "oneOf", "if"):
		if !slices.ContainsFunc(branches.Elements(), func(b *Value) bool { return b.Get("type").HasText("null") }) {
			schema.Set("anyOf", with(branches, isNull))
		}
		return schema
	case !schema.IsObject() || hasAny("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "not"):
		return Object(Member{Name: "anyOf", Value: List(schema, isNull)})
	}
	if kind := schema.Get("type"); kind != nil && !kind.HasText("null") {
		schema.Set("type", with(kind, String("null")))
	}
	if value := schema.Get("const"); value != nil && schema.Get("enum") == nil {
		schema.Delete("const")
		schema.Set("enum", List(value))
	}
	if enum := schema.Get("enum"); enum.IsList() &&
		!slices.ContainsFunc(enum.Elements(), func(e *Value) bool { return e.Literal() == "null" }) {
		schema.Set("enum", with(enum, null))
	}
	return schema
}

// with returns a list with another element. A value that is not a list becomes the first element.
func with(list, element *Value) *Value {
	if !list.IsList() {
		return List(list, element)
	}
	return List(append(slices.Clone(list.Elements()), element)...)
}
