package lint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/wire"
)

// The limits of a schema.
const (
	MaxDepth    = 64 // of containers within containers
	MaxValues   = 20_000
	MaxFindings = 4096
)

// Check reports what the rules refuse or weaken in the schema of a tool's parameters, in one pass. It
// returns the schema with the changes that the rules require, or unchanged. The findings have no Tool.
//
// An absent schema (empty, null) means no parameters: {"type":"object","properties":{}}. Check fails
// with a [*dialects.Error], without a Dialect, for a schema that is not a JSON object or exceeds the bounds.
func Check(schema json.RawMessage, rules Rules) (json.RawMessage, []dialects.Finding, error) {
	fail := func(message string, cause error) (json.RawMessage, []dialects.Finding, error) {
		return nil, nil, &dialects.Error{Op: "definitions", Path: "parameters", Message: message, Err: cause}
	}
	schema = bytes.TrimSpace(schema)
	if wire.Absent(schema) {
		schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	root, err := Parse(schema, MaxDepth, MaxValues)
	if err != nil {
		return fail("the schema cannot be read", err)
	}
	if !root.IsObject() {
		return fail("a tool's schema must be a JSON object", nil)
	}
	c := checker{rules: &rules}
	c.objectRoot(root)
	c.schema(root, nil, 0)
	if rules.NotRecursive.Severity != "" {
		r := newReferences(root)
		if r.visit(root); r.cycle != "" {
			c.report(&place{step: pathOf(r.cycle)}, "$ref", rules.NotRecursive, false)
		}
	}
	c.limits()
	if len(c.findings) > MaxFindings {
		return fail(fmt.Sprintf("the schema has more than %d findings", MaxFindings), nil)
	}
	if c.changed {
		schema = root.Append(nil)
	}
	return schema, c.findings, nil
}

type checker struct {
	rules    *Rules
	findings []dialects.Finding
	changed  bool
	counted  Limits // the size of the schema so far
}

// report adds a finding. adapted says that the schema was changed.
func (c *checker) report(at *place, keyword string, rule Keyword, adapted bool) {
	c.changed = c.changed || adapted
	if c.full() {
		return // there are too many, and Check fails
	}
	c.findings = append(c.findings, dialects.Finding{
		Path: at.String(), Keyword: keyword, Severity: rule.Severity, Message: rule.Message, Fix: rule.Fix, Adapted: adapted,
	})
}

func (c *checker) full() bool { return len(c.findings) > MaxFindings }

// against returns the rule that a schema's keyword breaks; the zero value for none.
func (c *checker) against(schema *Value, keyword string, root bool) Keyword {
	rule, known := c.rules.Root[keyword]
	if !known || !root {
		if rule, known = c.rules.Keywords[keyword]; !known {
			rule = c.rules.Others
		}
	}
	if rule.Severity == "" || rule.Taken != nil && rule.Taken(schema, keyword) {
		return Keyword{}
	}
	return rule
}

// schema checks a schema and those within it. objects is the number of objects around it.
func (c *checker) schema(schema *Value, at *place, objects int) {
	if !schema.IsObject() || c.full() {
		return // true and false have no keywords; anything else is not a schema
	}
	if describesObject(schema) {
		objects++
		c.counted.Depth = max(c.counted.Depth, objects)
	}
	var inside []Member
	for _, m := range slices.Clone(schema.Members()) {
		c.count(m)
		rule := c.against(schema, m.Name, at == nil)
		if rule.Severity == "" || rule.Inside {
			inside = append(inside, m)
		}
		if rule.Severity == "" {
			continue
		}
		c.report(at.member(m.Name), m.Name, rule, rule.Dropped)
		if rule.Dropped {
			schema.Delete(m.Name)
		}
	}
	c.closed(schema, at)
	optional := c.allRequired(schema, at)
	for _, m := range inside {
		if m.Name == "properties" {
			c.propertyNames(at.member(m.Name), m.Value)
		}
		each(m, at, func(child *Value, at *place) { c.schema(child, at, objects) })
	}
	properties := schema.Get("properties").Members()
	for _, i := range optional {
		properties[i].Value = orNull(properties[i].Value)
	}
}

func (c *checker) propertyNames(at *place, properties *Value) {
	for _, p := range properties.Members() {
		if fault := c.rules.Property.fault(p.Name); fault != "" {
			c.report(at.member(p.Name), "properties", c.rules.Property.verdict("the property's name "+fault), false)
		}
	}
}

func (c *checker) objectRoot(root *Value) {
	rule := c.rules.ObjectRoot
	if rule.Severity == "" {
		return
	}
	if kind, _ := root.Get("type").Text(); kind != "object" {
		c.report((*place)(nil).member("type"), "type", rule, false)
	}
	if root.Get("properties") == nil {
		c.report((*place)(nil).member("properties"), "properties", rule, false)
	}
}

// count adds a keyword to the size of the schema.
func (c *checker) count(keyword Member) {
	switch keyword.Name {
	case "properties", "$defs", "definitions":
		for _, m := range keyword.Value.Members() {
			c.counted.Text += len(m.Name)
		}
		if keyword.Name == "properties" {
			c.counted.Properties += len(keyword.Value.Members())
		}
	case "enum":
		c.counted.Enum += len(keyword.Value.Elements())
		for _, e := range keyword.Value.Elements() {
			text, _ := e.Text()
			c.counted.Text += len(text)
		}
	case "const":
		text, _ := keyword.Value.Text()
		c.counted.Text += len(text)
	}
}

func (c *checker) limits() {
	for _, l := range []struct {
		keyword    string
		has, limit int
		what       string
	}{
		{"properties", c.counted.Depth, c.rules.Limits.Depth, "objects are nested %d levels deep, where %d are allowed"},
		{"properties", c.counted.Properties, c.rules.Limits.Properties, "there are %d properties, where %d are allowed"},
		{"enum", c.counted.Enum, c.rules.Limits.Enum, "there are %d values in enums, where %d are allowed"},
		{"enum", c.counted.Text, c.rules.Limits.Text, "names and values have %d bytes, where %d are allowed"},
	} {
		if l.limit > 0 && l.has > l.limit {
			c.report(nil, l.keyword, Keyword{
				Severity: dialects.Refused,
				Message:  "the request is refused: " + fmt.Sprintf(l.what, l.has, l.limit),
				Fix:      "make the schema smaller, or split the tool",
			}, false)
		}
	}
}
