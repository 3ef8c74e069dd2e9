package schema

import (
	"context"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/caisson-run/caisson/manifests/internal/keypath"
)

// maxKnown bounds how many names or alternatives a message lists.
const maxKnown = 20

// maxReasonRunes bounds one of the alternatives of a message.
const maxReasonRunes = 300

// explainer turns the validator's tree of errors into flat sentences. The tree says
// where a keyword failed; the sentences are made from the keyword and the value.
//
// A tree may hold more errors than anybody reads, so explaining has a budget as well.
type explainer struct {
	schema   any
	value    any
	meter    *meter // looks at the context; its budget is another
	work     int
	patterns map[string]pattern
}

// What explaining costs, in the meter's units.
const (
	maxExplaining = maxWork / 8
	findingCost   = 64
)

func newExplainer(ctx context.Context, schema, value any) *explainer {
	return &explainer{schema: schema, value: value, meter: &meter{ctx: ctx}, patterns: map[string]pattern{}}
}

// spend pays for work, or reports that the budget is spent.
func (e *explainer) spend(work int) bool {
	e.work += work
	if e.work > maxExplaining {
		return false
	}
	e.meter.charge(work)
	return true
}

// finding is a violation with what lets several of them be told as one.
type finding struct {
	Violation
	// keyword failed, and wants is what it asks for, where that can be said alone:
	// "want " + wants.
	keyword, wants, got string
}

func (e *explainer) explain(err *jsonschema.ValidationError) *ViolationError {
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
	if len(violations) == 0 {
		violations = []Violation{{"", "does not fit the schema, in too many ways to tell"}}
	}
	return violationError(violations...)
}

// findings explains one error of the tree.
func (e *explainer) findings(err *jsonschema.ValidationError) []finding {
	if !e.spend(findingCost + (len(err.InstanceLocation)+len(err.AbsoluteKeywordLocation)+len(err.KeywordLocation))/4) {
		return nil
	}
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
			if isOwnType(err, cause) {
				return e.findings(cause) // a value of another type fails in other ways too
			}
			all = append(all, e.findings(cause)...)
		}
		return all
	default:
		return e.leaf(err, keyword)
	}
}

// isOwnType reports whether cause says that the value of group has the wrong type.
func isOwnType(group, cause *jsonschema.ValidationError) bool {
	return cause.Message == typeMismatch && cause.KeywordLocation == group.KeywordLocation+"/type"
}

// alternatives explains why none of several schemas fits.
func (e *explainer) alternatives(err *jsonschema.ValidationError) []finding {
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
		if len(wants) <= maxKnown {
			wants = appendNew(wants, first.wants)
		}
		if len(reasons) <= maxKnown {
			reasons = appendNew(reasons, clipRunes(at(first.Path, first.Message), maxReasonRunes))
		}
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
func (e *explainer) leaf(err *jsonschema.ValidationError, keyword string) []finding {
	path, value := e.locate(err.InstanceLocation)
	if name, isName := e.propertyName(err); isName {
		message := "the name " + show(name) + " is not allowed"
		if reason := e.nameReason(err, keyword, name); reason != "" {
			message += ": " + reason
		}
		return []finding{{Violation: Violation{path, message}, keyword: "propertyNames"}}
	}
	if err.Message == notAllowedMessage {
		return []finding{e.notAllowed(path, keyword)}
	}
	want, found := e.keyword(err.AbsoluteKeywordLocation)
	if !found && keyword != "minContains" {
		return []finding{{Violation: Violation{path, plainMessage(err.Message)}, keyword: keyword}}
	}
	switch keyword {
	case "required":
		return e.missing(path, value, want)
	case "additionalProperties":
		parent, _ := e.keyword(parentLocation(err.AbsoluteKeywordLocation))
		return e.unknownNames(path, value, parent)
	}
	if f, isPlain := plainFinding(path, keyword, want, value); isPlain {
		return []finding{f}
	}
	if name, isName := want.(string); isName && strings.Contains(err.AbsoluteKeywordLocation, "/depend") {
		return []finding{{Violation: Violation{keypath.Key(path, name), "missing; it is required beside the others"}, keyword: "required"}}
	}
	return []finding{{Violation: Violation{path, otherMessage(keyword, want, err.Message)}, keyword: keyword}}
}

// nameReason says why a name is not allowed, or "" where nothing more can be said.
func (e *explainer) nameReason(err *jsonschema.ValidationError, keyword, name string) string {
	if err.Message == notAllowedMessage {
		return ""
	}
	if want, found := e.keyword(err.AbsoluteKeywordLocation); found {
		if f, isPlain := plainFinding("", keyword, want, name); isPlain {
			return f.Message
		}
	}
	return plainMessage(err.Message)
}

// plainFinding explains the keywords that need no more than what they want and what
// they got.
func plainFinding(path, keyword string, want, value any) (finding, bool) {
	switch keyword {
	case "type":
		return wanting(path, keyword, typesText(want), typeName(value)), true
	case "enum":
		return wanting(path, keyword, oneOfText(want), show(value)), true
	case "const":
		return wanting(path, keyword, show(want), show(value)), true
	}
	message := sizeMessage(keyword, want, value)
	return finding{Violation: Violation{path, message}, keyword: keyword}, message != ""
}

func wanting(path, keyword, wants, got string) finding {
	return finding{Violation{path, "want " + wants + ", got " + got}, keyword, wants, got}
}

// notAllowed explains a value that the schema false refuses.
func (e *explainer) notAllowed(path, keyword string) finding {
	message := "not allowed here; leave it out"
	if keyword == "additionalProperties" || keyword == "unevaluatedProperties" {
		message = "unknown " + nameKind(path) + "; leave it out"
	}
	return finding{Violation: Violation{path, message}, keyword: keyword}
}

// missing lists the required names that a value does not have.
func (e *explainer) missing(path string, value, required any) []finding {
	object, _ := value.(map[string]any)
	var all []finding
	for _, name := range texts(required) {
		if _, has := object[name]; has {
			continue
		}
		if !e.spend(findingCost + len(path) + len(name)) {
			break
		}
		all = append(all, finding{Violation: Violation{keypath.Key(path, name), "missing; it is required"}, keyword: "required"})
	}
	return all
}

// unknownNames lists the names of a value that its schema does not know.
func (e *explainer) unknownNames(path string, value, schema any) []finding {
	keywords, _ := schema.(map[string]any)
	known, _ := keywords["properties"].(map[string]any)
	hint := "; leave it out"
	if names := keys(keywords["properties"]); len(names) > 0 {
		hint = " (known: " + strings.Join(clipList(names), ", ") + ")"
	}
	object, _ := value.(map[string]any)
	var all []finding
	for name := range object {
		if _, isKnown := known[name]; isKnown || e.matchesAny(keywords["patternProperties"], name) {
			continue
		}
		if !e.spend(findingCost + len(path) + len(name) + len(hint)/4) {
			break
		}
		inner := keypath.Key(path, name)
		all = append(all, finding{Violation: Violation{inner, "unknown " + nameKind(inner) + hint}, keyword: "additionalProperties"})
	}
	return all
}

// matchesAny reports whether a name matches one of the patterns.
func (e *explainer) matchesAny(patterns any, name string) bool {
	sources, _ := patterns.(map[string]any)
	for source := range sources {
		pattern := e.namePattern(source)
		if !e.spend(matchCost(len(name), pattern.steps)) {
			return false
		}
		if pattern.Regexp != nil && e.meter.matches(pattern, name) {
			return true
		}
	}
	return false
}

func (e *explainer) namePattern(source string) pattern {
	known, compiled := e.patterns[source]
	if !compiled {
		known, _ = compilePattern(source)
		e.patterns[source] = known
		e.spend(8 * known.steps)
	}
	return known
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
func (e *explainer) propertyName(err *jsonschema.ValidationError) (string, bool) {
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
func (e *explainer) locate(location string) (string, any) {
	tokens, _ := parsePointer(location)
	var path []byte
	value := e.value
	for _, token := range tokens {
		next, isElement, found := descend(value, token)
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
func (e *explainer) keyword(location string) (any, bool) {
	url, pointer, _ := strings.Cut(location, "#")
	tokens, valid := parsePointer(pointer)
	if url != baseURL || !valid {
		return nil, false
	}
	value := e.schema
	for _, token := range tokens {
		next, _, found := descend(value, token)
		if !found {
			return nil, false
		}
		value = next
	}
	return value, true
}
