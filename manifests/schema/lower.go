package schema

import "strconv"

// lowerer makes of a vetted schema the one that the validator compiles. It keeps the
// keywords that apply schemas and refer to them, and turns the others into steps.
type lowerer struct {
	draft   draft
	anchors int
	steps   []*step
}

// lower returns the schema for the validator and its steps. The schema must fit that of
// its draft.
func lower(form any, d draft, anchors int) (any, []*step, error) {
	l := &lowerer{draft: d, anchors: anchors}
	lowered, err := l.schema(form)
	return lowered, l.steps, err
}

func (l *lowerer) schema(node any) (any, error) {
	s := &step{}
	mark := stepFormat + strconv.Itoa(len(l.steps))
	l.steps = append(l.steps, s)
	keywords, isObject := node.(map[string]any)
	if !isObject {
		s.never = node == false
		return map[string]any{"format": mark}, nil
	}
	var err error
	if s.checks, err = checksOf(keywords, l.draft); err != nil {
		return nil, err
	}
	if types, given := keywords["type"]; given {
		if s.types = texts(types); types != nil && len(s.types) == 0 {
			s.types = texts([]any{types})
		}
	}
	lowered := map[string]any{"format": mark}
	for keyword, value := range keywords {
		s.weigh(keyword, value, l.anchors)
		if err := l.keyword(lowered, keyword, value); err != nil {
			return nil, err
		}
	}
	if s.applies {
		s.wrappers++ // what holds several errors together
	}
	if s.closed {
		s.known, _ = keywords["properties"].(map[string]any)
	}
	return lowered, nil
}

func (l *lowerer) keyword(lowered map[string]any, keyword string, value any) (err error) {
	_, isList := value.([]any)
	switch kindOf(keyword) {
	case oneSchema:
		_, isBool := value.(bool)
		switch {
		case isBool && (keyword == "additionalProperties" || keyword == "additionalItems"):
			lowered[keyword] = value // the validator evaluates nothing here
		case isList:
			lowered[keyword], err = l.list(value)
		default:
			lowered[keyword], err = l.schema(value)
		}
	case schemaList:
		lowered[keyword], err = l.list(value)
	case schemaMap:
		lowered[keyword], err = l.named(value)
	case referring, identifying:
		lowered[keyword] = value
	default:
		switch keyword {
		case "minContains", "maxContains", "$anchor", "$dynamicAnchor", "$recursiveAnchor":
			lowered[keyword] = value
		}
	}
	return err
}

func (l *lowerer) list(value any) (any, error) {
	elements, _ := value.([]any)
	lowered := make([]any, len(elements))
	for i, element := range elements {
		var err error
		if lowered[i], err = l.schema(element); err != nil {
			return nil, err
		}
	}
	return lowered, nil
}

func (l *lowerer) named(value any) (any, error) {
	elements, _ := value.(map[string]any)
	lowered := make(map[string]any, len(elements))
	for name, element := range elements {
		if _, isList := element.([]any); isList {
			continue // names that depend on another one, which a check looks for
		}
		var err error
		if lowered[name], err = l.schema(element); err != nil {
			return nil, err
		}
	}
	return lowered, nil
}

// weigh adds what the validator does for one keyword.
func (s *step) weigh(keyword string, value any, anchors int) {
	applies := true
	switch keyword {
	case "properties", "dependentSchemas", "dependencies", "prefixItems":
		s.lookups += members(value)
	case "patternProperties":
		for _, source := range keys(value) {
			if program, err := programOf(source); err == nil {
				s.nameSteps += stepsOf(program)
			}
		}
	case "allOf":
		s.lookups += members(value)
		s.wrappers += members(value)
	case "anyOf", "oneOf":
		s.lookups += members(value)
		s.wrappers++
		s.silent = s.silent || keyword == "oneOf"
	case "not":
		s.wrappers++
		s.silent = true
	case "contains", "additionalItems":
		s.wrappers += 2
		s.silentItems = true
	case "additionalProperties":
		s.closed = value == false
	case "then", "else", "$ref", "$recursiveRef":
		s.wrappers++
	case "$dynamicRef":
		s.wrappers++
		s.anchors = anchors
	case "items", "propertyNames", "unevaluatedItems", "unevaluatedProperties":
	default:
		applies = false
	}
	s.applies = s.applies || applies
}
