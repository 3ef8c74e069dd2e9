package schema

import (
	"slices"
	"strconv"
	"strings"
)

// direct evaluates a schema of the plain kind that most tools have: no references, no
// alternatives, only properties and items inside each other. The validator prepares the
// explanation of an error with each evaluation, which costs more than the rest of a call.
// So direct decides only that a value fits; what it does not accept, the validator judges.
//
// It goes through the same steps with the same meter, so that a value that it accepts
// costs as much of the budget as it costs with the validator.
type direct struct {
	step       *step
	properties []property
	items      *direct // nil where items are not looked at
	// additional is for the members that are not among the properties. It is nil where
	// they are not looked at; closed says that there must be none.
	additional *direct
	closed     bool
}

// property is the schema of one member.
type property struct {
	name   string
	schema *direct
}

// directOf returns the direct form of a lowered schema, or nil if it has none.
func directOf(lowered any, steps []*step) *direct {
	keywords, _ := lowered.(map[string]any)
	mark, _ := keywords["format"].(string)
	number, err := strconv.Atoi(strings.TrimPrefix(mark, stepFormat))
	if err != nil || number < 0 || number >= len(steps) {
		return nil
	}
	d := &direct{step: steps[number]}
	for _, keyword := range keys(keywords) {
		if !d.take(keyword, keywords[keyword], steps) {
			return nil
		}
	}
	return d
}

// take adds a keyword; it returns false if the schema has no direct form with it.
func (d *direct) take(keyword string, value any, steps []*step) bool {
	switch keyword {
	case "format", "$schema", "$anchor", "$defs", "definitions":
		return true // the step is known already, and nothing refers to the others
	case "properties":
		named, _ := value.(map[string]any)
		for _, name := range keys(named) {
			schema := directOf(named[name], steps)
			if schema == nil {
				return false
			}
			d.properties = append(d.properties, property{name, schema})
		}
		return true
	case "items":
		d.items = directOf(value, steps)
		return d.items != nil
	case "additionalProperties":
		if allowed, isBool := value.(bool); isBool {
			d.closed = !allowed
			return true
		}
		d.additional = directOf(value, steps)
		return d.additional != nil
	}
	return false
}

// accepts reports whether a value certainly fits. It panics with [overBudget] where the
// validator would.
func (d *direct) accepts(m *meter, value any) bool {
	if d == nil {
		return false
	}
	m.enter(d.step, value)
	switch value := value.(type) {
	case map[string]any:
		if !d.acceptsMembers(m, value) {
			return false
		}
	case []any:
		if d.items == nil {
			break
		}
		for _, element := range value {
			if !d.items.accepts(m, element) {
				return false
			}
		}
	}
	if !d.step.accepts(m, value) {
		return false
	}
	m.leave(d.step, value)
	return true
}

func (d *direct) acceptsMembers(m *meter, object map[string]any) bool {
	known := 0
	for _, p := range d.properties {
		value, has := object[p.name]
		if !has {
			continue
		}
		known++
		if !p.schema.accepts(m, value) {
			return false
		}
	}
	if known == len(object) || d.additional == nil {
		return known == len(object) || !d.closed
	}
	for name, value := range object {
		if !d.isKnown(name) && !d.additional.accepts(m, value) {
			return false
		}
	}
	return true
}

// isKnown reports whether a name is among the properties, which are sorted.
func (d *direct) isKnown(name string) bool {
	_, found := slices.BinarySearchFunc(d.properties, name, func(p property, name string) int {
		return strings.Compare(p.name, name)
	})
	return found
}

// accepts reports whether a value passes what the step checks.
func (s *step) accepts(m *meter, value any) bool {
	if s.never || s.types != nil && !hasType(value, s.types) {
		return false
	}
	if len(s.checks) == 0 {
		return true
	}
	passed := true
	report := func(string, string) { passed = false }
	for _, made := range s.checks {
		made(m, value, report)
	}
	return passed
}
