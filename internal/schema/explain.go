package schema

import (
	"context"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/keypath"
)

// maxKnown bounds how many names or alternatives a message lists.
const maxKnown = 20

// maxReasonRunes bounds one of the alternatives of a message.
const maxReasonRunes = 300

// explain says why a value does not fit a schema, as far as the budget of a validation allows.
func explain(ctx context.Context, root *Node, v jsontext.Value) error {
	var found []finding
	e := evaluation{meter: newMeter(ctx, 0)}
	if _, err := e.run(func() { e.fits(root, v, &report{found: &found}, nil) }); err != nil {
		return err
	}
	reported := map[string]bool{}
	for _, f := range found {
		reported[f.path] = reported[f.path] || f.keyword != "unevaluatedProperties"
	}
	var violations []Violation
	for _, f := range found {
		// A key whose value is wrong counts as one that no schema has looked at.
		if f.keyword != "unevaluatedProperties" || !reported[f.path] {
			violations = append(violations, Violation{f.path, f.message})
		}
	}
	if len(violations) == 0 {
		violations = []Violation{{"", "does not fit the schema, in too many ways to tell"}}
	}
	return violationError(violations...)
}

// report collects the violations at one place of a value. A nil one collects nothing.
type report struct {
	found  *[]finding
	parent *report
	name   string // of a member
	index  int    // of an element; -1 for a member
}

func (r *report) member(name string) *report { return r.inside(name, -1) }

func (r *report) element(index int) *report { return r.inside("", index) }

func (r *report) inside(name string, index int) *report {
	if r == nil {
		return nil
	}
	return &report{r.found, r, name, index}
}

// fork returns a report for the same place with a separate list.
func (r *report) fork() *report {
	inner := *r
	inner.found = new([]finding)
	return &inner
}

func (r *report) path() string {
	switch {
	case r.parent == nil:
		return ""
	case r.index < 0:
		return keypath.Key(r.parent.path(), r.name)
	default:
		return keypath.Index(r.parent.path(), r.index)
	}
}

// finding is a violation with the keyword that failed and, where it can be stated separately, the wanted value.
type finding struct {
	path, message  string
	keyword, wants string
}

func wanting(keyword, wants, got string) finding {
	return finding{"", "want " + wants + ", got " + got, keyword, wants}
}

// report adds a finding at the place of a report, unless there is a path in it already.
func (e *evaluation) report(r *report, f finding) {
	if r == nil {
		return
	}
	if f.path == "" {
		f.path = r.path()
	}
	e.charge(findingCost + len(f.path)/2)
	*r.found = append(*r.found, f)
}

func (e *evaluation) alternatives(u Union, v jsontext.Value, r *report) {
	if r == nil {
		return
	}
	path := r.path()
	var wants, reasons []string
	var ofRightType [][]finding
	simple := true
	for _, branch := range u.Branches {
		inner := r.fork()
		e.fits(branch, v, inner, nil)
		found := *inner.found
		if len(found) == 0 {
			continue
		}
		first := found[0]
		if len(found) > 1 || first.path != path || first.wants == "" {
			simple = false
		}
		if len(wants) <= maxKnown {
			wants = appendNew(wants, first.wants)
		}
		if len(reasons) <= maxKnown {
			reasons = appendNew(reasons, clipRunes(at(first.path, first.message), maxReasonRunes))
		}
		if first.keyword != "type" || first.path != path {
			ofRightType = append(ofRightType, found)
		}
	}
	switch {
	case simple && len(wants) > 0:
		e.report(r, wanting("anyOf", strings.Join(clipList(wants), " or "), typeName(v)))
	case len(ofRightType) == 1:
		*r.found = append(*r.found, ofRightType[0]...)
	default:
		e.report(r, finding{keyword: "anyOf", message: "fits none of the allowed forms (" +
			strings.Join(clipList(reasons), " | ") + ")"})
	}
}

// missing reports the names that an object does not have, and whether there are any.
func (e *evaluation) missing(names []string, v jsontext.Value, r *report, message string) bool {
	some := false
	for _, name := range names {
		e.charge(1 + v.Len()/8)
		if v.Get(name).Kind() == 0 {
			some = true
			e.report(r.member(name), finding{keyword: "required", message: message})
		}
	}
	return some
}

// name applies propertyNames to a name.
func (e *evaluation) name(n *Node, key jsontext.Value, r *report) bool {
	if r == nil {
		return e.fits(n, key, nil, nil)
	}
	inner := r.fork()
	fits := e.fits(n, key, inner, nil)
	for _, f := range *inner.found {
		message := "the name " + show(key) + " is not allowed"
		switch f.keyword {
		case "false":
		case "pattern":
			message += ": does not match the pattern"
		default:
			message += ": " + f.message
		}
		e.report(r, finding{keyword: "propertyNames", message: message})
	}
	return fits
}

// unknown reports a member that additionalProperties does not allow.
func (e *evaluation) unknown(n *Node, r *report) {
	if r == nil {
		return
	}
	hint := "; leave it out"
	if len(n.known) > 0 {
		hint = " (known: " + strings.Join(clipList(n.known), ", ") + ")"
	}
	e.charge(len(hint) / 4)
	e.report(r, unknownName(r, "additionalProperties", hint))
}

func unknownName(r *report, keyword, hint string) finding {
	if r == nil {
		return finding{}
	}
	path := r.path()
	kind := "parameter" // which is what a model calls a name at the top
	if strings.ContainsAny(path, ".[") {
		kind = "key"
	}
	return finding{path: path, keyword: keyword, message: "unknown " + kind + hint}
}

func appendNew(list []string, text string) []string {
	if text == "" || slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}

func clipList(list []string) []string {
	if len(list) <= maxKnown {
		return list
	}
	return append(slices.Clone(list[:maxKnown]), moreText(len(list)-maxKnown))
}
