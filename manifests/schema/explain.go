package schema

import (
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/caisson-run/caisson/manifests/internal/keypath"
)

// maxKnown bounds how many names or alternatives a message lists.
const maxKnown = 20

// explainer turns the validator's tree of errors into flat sentences. The tree says
// where a keyword failed; the sentences are made from the keyword and the value.
type explainer struct {
	schema any
	value  any
}

// finding is a violation with what lets several of them be told as one.
type finding struct {
	Violation
	// keyword failed, and wants is what it asks for, where that can be said alone:
	// "want " + wants.
	keyword, wants, got string
}

func (e explainer) explain(err *jsonschema.ValidationError) []Violation {
	findings := e.findings(err)
	reported := map[string]bool{}
	for _, f := range findings {
		reported[f.Path] = reported[f.Path] || f.keyword != "unevaluatedProperties"
	}
	var violations []Violation
	for _, f := range findings {
		// A key whose value is wrong counts as one that no schema has looked at.
		if f.keyword == "unevaluatedProperties" && reported[f.Path] {
			continue
		}
		violations = append(violations, f.Violation)
	}
	return violations
}

// findings explains one error of the tree.
func (e explainer) findings(err *jsonschema.ValidationError) []finding {
	keyword := lastToken(err.AbsoluteKeywordLocation)
	switch {
	case err.Message == "anyOf failed" && len(err.Causes) > 0:
		return e.alternatives(err)
	case err.Message == "oneOf failed" && len(err.Causes) > 0:
		return e.alternatives(err)
	case keyword == "minContains" && strings.HasPrefix(err.Message, "valid must be"):
		return e.leaf(err, keyword)
	case len(err.Causes) > 0:
		var all []finding
		for _, cause := range err.Causes {
			all = append(all, e.findings(cause)...)
		}
		return all
	default:
		return e.leaf(err, keyword)
	}
}

// alternatives explains why none of several schemas fits.
func (e explainer) alternatives(err *jsonschema.ValidationError) []finding {
	path, got := e.locate(err.InstanceLocation)
	var wants, reasons []string
	var ofRightType [][]finding
	simple := true
	for _, cause := range err.Causes {
		branch := e.findings(cause)
		if len(branch) == 0 {
			continue
		}
		first := branch[0]
		if len(branch) > 1 || first.Path != path || first.wants == "" {
			simple = false
		}
		wants = appendNew(wants, first.wants)
		reasons = appendNew(reasons, at(first.Path, first.Message))
		if first.keyword != "type" || first.Path != path {
			ofRightType = append(ofRightType, branch)
		}
	}
	if simple && len(wants) > 0 {
		f := wanting(path, "anyOf", strings.Join(clipList(wants), " or "), typeName(got))
		return []finding{f}
	}
	if len(ofRightType) == 1 {
		return ofRightType[0]
	}
	return []finding{{Violation: Violation{path, "fits none of the allowed forms (" + strings.Join(clipList(reasons), " | ") + ")"}, keyword: "anyOf"}}
}

// leaf explains an error without causes.
func (e explainer) leaf(err *jsonschema.ValidationError, keyword string) []finding {
	path, value := e.locate(err.InstanceLocation)
	if name, isName := e.propertyName(err); isName {
		return []finding{{Violation: Violation{path, fmt.Sprintf("the name %s is not allowed: %s", show(name), plainMessage(err.Message))}, keyword: "propertyNames"}}
	}
	if err.Message == "not allowed" {
		return []finding{e.notAllowed(path, keyword)}
	}
	want, found := e.keyword(err.AbsoluteKeywordLocation)
	if !found && keyword != "minContains" {
		return []finding{{Violation: Violation{path, plainMessage(err.Message)}, keyword: keyword}}
	}
	parent, _ := e.keyword(parentLocation(err.AbsoluteKeywordLocation))
	switch keyword {
	case "required":
		return missing(path, value, want)
	case "additionalProperties":
		return unknownNames(path, value, parent)
	case "type":
		return []finding{wanting(path, keyword, typesText(want), typeName(value))}
	case "enum":
		return []finding{wanting(path, keyword, oneOfText(want), show(value))}
	case "const":
		return []finding{wanting(path, keyword, show(want), show(value))}
	}
	if message := sizeMessage(keyword, want, value); message != "" {
		return []finding{{Violation: Violation{path, message}, keyword: keyword}}
	}
	if name, isName := want.(string); isName && strings.Contains(err.AbsoluteKeywordLocation, "/depend") {
		return []finding{{Violation: Violation{keypath.Key(path, name), "missing; it is required beside the others"}, keyword: "required"}}
	}
	return []finding{{Violation: Violation{path, otherMessage(keyword, want, err.Message)}, keyword: keyword}}
}

func wanting(path, keyword, wants, got string) finding {
	return finding{Violation{path, "want " + wants + ", got " + got}, keyword, wants, got}
}

// notAllowed explains a value that the schema false refuses.
func (e explainer) notAllowed(path, keyword string) finding {
	message := "not allowed here; leave it out"
	if keyword == "additionalProperties" || keyword == "unevaluatedProperties" {
		message = "unknown " + nameKind(path) + "; leave it out"
	}
	return finding{Violation: Violation{path, message}, keyword: keyword}
}

// missing lists the required names that a value does not have.
func missing(path string, value, required any) []finding {
	object, _ := value.(map[string]any)
	names, _ := required.([]any)
	var all []finding
	for _, name := range names {
		text, _ := name.(string)
		if _, has := object[text]; !has {
			all = append(all, finding{Violation: Violation{keypath.Key(path, text), "missing; it is required"}, keyword: "required"})
		}
	}
	return all
}

// unknownNames lists the names of a value that its schema does not know.
func unknownNames(path string, value, schema any) []finding {
	keywords, _ := schema.(map[string]any)
	known, _ := keywords["properties"].(map[string]any)
	patterns := keys(keywords["patternProperties"])
	var all []finding
	for _, name := range keys(value) {
		if _, isKnown := known[name]; isKnown || matchesAny(patterns, name) {
			continue
		}
		inner := keypath.Key(path, name)
		message := "unknown " + nameKind(inner)
		if names := keys(keywords["properties"]); len(names) > 0 {
			message += " (known: " + strings.Join(clipList(names), ", ") + ")"
		} else {
			message += "; leave it out"
		}
		all = append(all, finding{Violation: Violation{inner, message}, keyword: "additionalProperties"})
	}
	return all
}

// nameKind is what a model calls a name: a parameter at the top, a key below.
func nameKind(path string) string {
	if strings.ContainsAny(path, ".[") {
		return "key"
	}
	return "parameter"
}

// propertyName returns the name that failed, if the error is about a name and not
// about the value that the name has.
func (e explainer) propertyName(err *jsonschema.ValidationError) (string, bool) {
	tokens, _ := parsePointer(err.KeywordLocation)
	for i := 0; i < len(tokens); i++ {
		switch {
		case tokens[i] == "propertyNames":
			name := lastToken("#" + err.InstanceLocation)
			return name, true
		case kindOf(tokens[i]) == schemaMap, kindOf(tokens[i]) == schemaList:
			i++
		}
	}
	return "", false
}

// locate returns the readable path of an instance location, and the value there.
func (e explainer) locate(location string) (string, any) {
	tokens, _ := parsePointer(location)
	var path []byte
	value := e.value
	for _, token := range tokens {
		next, isElement, found := step(value, token)
		if !found {
			break // the location of a name ends in the name
		}
		if isElement {
			path = append(append(append(path, '['), token...), ']')
		} else {
			path = keypath.AppendKey(path, token)
		}
		value = next
	}
	return string(path), value
}

// keyword returns what the schema has at an absolute keyword location.
func (e explainer) keyword(location string) (any, bool) {
	url, pointer, _ := strings.Cut(location, "#")
	tokens, valid := parsePointer(pointer)
	if url != baseURL || !valid {
		return nil, false
	}
	value := e.schema
	for _, token := range tokens {
		next, _, found := step(value, token)
		if !found {
			return nil, false
		}
		value = next
	}
	return value, true
}
