package lint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/caisson-run/caisson/dialects"
)

// Check looks at a schema once and says what the rules refuse or weaken, in the order in which
// it is found. Where adapt is set, it returns the schema changed as far as the rules can;
// otherwise the schema as it is. The findings have no Tool: the caller fills it in.
//
// An absent schema (empty, null) is that of a tool without arguments: {"type":"object",
// "properties":{}}. It fails with a [*dialects.Error], without a Dialect, where the schema is
// not a JSON object, or is over the bounds.
func Check(schema json.RawMessage, rules Rules, adapt bool) (json.RawMessage, []dialects.Finding, error) {
	schema = bytes.TrimSpace(schema)
	if len(schema) == 0 || string(schema) == "null" {
		schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	root, err := Parse(schema)
	if err != nil {
		return nil, nil, &dialects.Error{Op: "definitions", Message: "the schema cannot be read", Err: err}
	}
	if !root.IsObject() {
		return nil, nil, &dialects.Error{Op: "definitions", Message: "a tool's schema must be a JSON object"}
	}
	c := checker{rules: &rules, adapt: adapt, left: MaxValues}
	if c.references, err = newReferences(root, schema, &rules); err != nil {
		return nil, nil, err
	}
	c.root(root)
	if len(c.findings) > MaxFindings {
		return nil, nil, &dialects.Error{Op: "definitions", Message: fmt.Sprintf("there is more to say of the schema than %d findings", MaxFindings)}
	}
	if adapt {
		schema = root.JSON()
	}
	return schema, c.findings, nil
}

// Refuses returns whether anything that is Refused was not adapted.
func Refuses(findings []dialects.Finding) bool {
	return slices.ContainsFunc(findings, func(f dialects.Finding) bool { return f.Severity == dialects.Refused && !f.Adapted })
}

// Unheld returns what keeps a tool's schema from being strict, for a tool that is offered without:
// the findings that are Refused and were not adapted. because leads over to what each of them says.
func Unheld(findings []dialects.Finding, because string) []dialects.Finding {
	var reasons []dialects.Finding
	for _, f := range findings {
		if f.Severity != dialects.Refused || f.Adapted {
			continue
		}
		f.Severity, f.Adapted = dialects.Weakened, true
		f.Message = "the model is not held to this tool's schema" + because + f.Message
		f.Fix = "the tool is offered without strict; to have it strict, " + f.Fix
		reasons = append(reasons, f)
	}
	return reasons
}

// checker goes through one schema.
type checker struct {
	rules      *Rules
	adapt      bool
	references *references
	left       int // values that references may still bring
	findings   []dialects.Finding
	counted    Limits // what the schema has so far
}

// spot is a schema, and how it was come by.
type spot struct {
	schema  *Value
	at      *place
	objects int      // around it
	from    []*Value // what the references around it refer to
}

func (s spot) isRoot() bool { return s.at == nil }

// pending is a change that waits until the schemas within the schema were looked at.
type pending struct {
	finding int
	keyword string // without which there is nothing to do; empty for what is always done
	adapt   Adaptation
}

func (c *checker) root(root *Value) {
	c.objectRoot(root)
	c.schema(spot{schema: root})
	if c.flattens() {
		c.definitions(root)
	}
	c.limits()
}

// report adds a finding and returns its place in the list.
func (c *checker) report(at *place, keyword string, rule Keyword) int {
	if len(c.findings) > MaxFindings {
		return MaxFindings // the list is thrown away
	}
	c.findings = append(c.findings, dialects.Finding{
		Path: at.String(), Keyword: keyword, Severity: rule.Severity, Message: rule.Message, Fix: rule.Fix,
	})
	return len(c.findings) - 1
}

func (c *checker) full() bool { return len(c.findings) > MaxFindings }

// rule returns what holds for a keyword.
func (c *checker) rule(keyword string, root bool) Keyword {
	if rule, ok := c.rules.Root[keyword]; ok && root {
		return rule
	}
	if rule, ok := c.rules.Keywords[keyword]; ok {
		return rule
	}
	if c.flattened(keyword) {
		return Keyword{}
	}
	return c.rules.Others
}

// flattened returns whether a keyword belongs to references, which have rules of their own.
func (c *checker) flattened(keyword string) bool {
	return c.rules.Flat.Severity != "" && (keyword == "$ref" || keyword == "$defs" || keyword == "definitions")
}

// against returns how a schema's keyword is judged; the zero value if there is nothing against it.
func (c *checker) against(s spot, keyword string) Keyword {
	rule := c.rule(keyword, s.isRoot())
	if rule.Severity == "" || rule.Taken != nil && rule.Taken(s.schema, keyword) {
		return Keyword{}
	}
	return rule
}

// schema looks at one schema and at those within it.
func (c *checker) schema(s spot) {
	if !s.schema.IsObject() {
		c.boolean(s)
		return
	}
	s.from = c.expand(s, s.from)
	s.from = c.first(s)
	waiting := c.keywords(s)
	waiting = append(waiting, c.closed(s)...)
	waiting = append(waiting, c.allRequired(s)...)
	if describesObject(s.schema) {
		s.objects++
		c.counted.Depth = max(c.counted.Depth, s.objects)
	}
	c.inside(s)
	if !c.adapt || c.full() {
		return
	}
	for _, p := range waiting {
		gone := p.keyword != "" && s.schema.Get(p.keyword) == nil // an earlier change took it along
		c.findings[p.finding].Adapted = gone || p.adapt(s.schema, p.keyword)
	}
}

// boolean looks at the schemas true and false. What is no schema at all is not judged: whoever
// wrote the schema has had it checked.
func (c *checker) boolean(s spot) {
	literal := s.schema.Literal()
	if rule := c.rules.Booleans; rule.Severity != "" && (literal == "true" || literal == "false") {
		finding := c.report(s.at, literal, rule)
		if c.adapt && rule.Adapt != nil && !c.full() {
			c.findings[finding].Adapted = rule.Adapt(s.schema, "")
		}
	}
}

// first does what comes before everything else, and returns what the schema then comes from.
func (c *checker) first(s spot) []*Value {
	for again := true; again && !c.full(); {
		again = false
		for _, m := range slices.Clone(s.schema.members) {
			rule := c.against(s, m.Name)
			if !rule.First || s.schema.Get(m.Name) == nil {
				continue
			}
			finding := c.report(s.at.member(m.Name), m.Name, rule)
			if !c.adapt || rule.Adapt == nil || c.full() {
				continue
			}
			from := s.from
			for i, branch := range m.Value.Elements() {
				if branch.IsObject() {
					from = c.expand(spot{schema: branch, at: s.at.member(m.Name).element(i)}, from)
				}
			}
			if rule.Adapt(s.schema, m.Name) {
				c.findings[finding].Adapted = true
				s.from = c.expand(s, from)
				again = true
			}
		}
	}
	return s.from
}

// keywords judges the keywords of a schema.
func (c *checker) keywords(s spot) []pending {
	var waiting []pending
	for _, m := range s.schema.members {
		c.count(m)
		rule := c.against(s, m.Name)
		if rule.Severity == "" || rule.First || c.full() {
			continue
		}
		finding := c.report(s.at.member(m.Name), m.Name, rule)
		if rule.Adapt != nil {
			waiting = append(waiting, pending{finding, m.Name, rule.Adapt})
		}
	}
	return waiting
}

// inside looks at the schemas within a schema, unless they go with a keyword that is not taken.
func (c *checker) inside(s spot) {
	for _, m := range s.schema.members {
		if c.flattens() && c.flattened(m.Name) && s.isRoot() {
			continue
		}
		if rule := c.against(s, m.Name); rule.Severity != "" && !rule.Inside {
			continue
		}
		if m.Name == "properties" {
			c.propertyNames(s.at.member(m.Name), m.Value)
		}
		each(m, s.at, func(child *Value, at *place) {
			if !c.full() {
				c.schema(spot{schema: child, at: at, objects: s.objects, from: s.from})
			}
		})
	}
}

func (c *checker) propertyNames(at *place, properties *Value) {
	for _, p := range properties.Members() {
		if fault := c.rules.Property.fault(p.Name); fault != "" {
			verdict := c.rules.Property.verdict("the property's name " + fault)
			verdict.Fix = "name it with " + c.rules.Property.allowed()
			c.report(at.member(p.Name), "properties", verdict)
		}
	}
}
