package schema

import (
	"fmt"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
)

// kindTypes are the types of the kinds of values.
var kindTypes = [...]Types{
	jsontext.Null: Null, jsontext.Bool: Boolean, jsontext.Number: Number, jsontext.String: String, jsontext.Array: Array,
	jsontext.Object: Object,
}

// evaluation applies schemas to values. With a report it collects all violations; without one it ends at the first.
type evaluation struct {
	meter
	collects bool             // integers that are not written in digits
	integers []jsontext.Value // that were found so far
	// scope are the resources that the validation has entered and not left, outermost first. Neighbours differ.
	scope []*resource
}

// fits reports whether a value fits a schema. It marks in seen what is evaluated, which counts only if it fits.
func (e *evaluation) fits(n *Node, v jsontext.Value, r *report, seen *marks) bool {
	e.charge(evaluationCost)
	if e.nesting++; e.nesting > maxNesting {
		panic(stopped{message: tooDeep})
	}
	before, entered := len(e.integers), len(e.scope)
	if n.within != nil && (entered == 0 || e.scope[entered-1] != n.within) {
		e.scope = append(e.scope, n.within)
	}
	fits := e.evaluate(n, v, r, seen)
	if !fits {
		e.integers = e.integers[:before] // a schema that does not apply has no say
	}
	e.scope = e.scope[:entered]
	e.nesting--
	return fits
}

func (e *evaluation) evaluate(n *Node, v jsontext.Value, r *report, seen *marks) bool {
	kind, digits := kindTypes[v.Kind()], true
	if kind == Number {
		kind, digits = typeOfNumber(v.Text())
	}
	switch {
	case n.never:
		e.report(r, finding{keyword: "false", message: "not allowed here; leave it out"})
		return false
	case n.allowed&kind == 0: // a value of another type fails in other ways, too
		if r != nil {
			e.report(r, wanting("type", strings.Join(n.typed, " or "), typeName(v)))
		}
		return false
	}
	if e.collects && !digits && kind == Integer && n.Types&Number == Integer {
		e.integers = append(e.integers, v)
	}
	if seen == nil && (n.unevaluatedProperties != nil || n.unevaluatedItems != nil) {
		seen = e.marks(v)
	}
	fits := e.check(n, v, kind, r)
	if fits || r != nil {
		switch kind {
		case Object:
			fits = e.object(n, v, r, seen) && fits
		case Array:
			fits = e.array(n, v, r, seen) && fits
		}
	}
	if fits || r != nil {
		fits = e.apply(n, v, r, seen) && fits
	}
	if seen != nil && (fits || r != nil) {
		fits = e.unevaluated(n, v, r, seen) && fits
	}
	return fits
}

func (e *evaluation) check(n *Node, v jsontext.Value, kind Types, r *report) bool {
	fits := true
	for i := range n.checks {
		c := &n.checks[i]
		if c.kinds&kind == 0 {
			continue
		}
		if e.charge(1); !c.passes(&e.meter, v) {
			if fits = false; r == nil {
				return false
			}
			e.report(r, c.finding(v))
		}
	}
	return fits
}

func (e *evaluation) object(n *Node, v jsontext.Value, r *report, seen *marks) bool {
	if n.Properties == nil && n.required == nil && n.patterns == nil && n.Additional == nil && n.names == nil {
		return true
	}
	fits, required, i := true, 0, 0
	for key, value := range v.Members() {
		e.charge(memberCost)
		name := key.String()
		if required < len(n.Required) && n.Required[name] {
			required++
		}
		known, fit := e.member(n, name, key, value, r)
		if known {
			seen.mark(i)
		}
		if fits = fits && fit; !fits && r == nil {
			return false
		}
		i++
	}
	if required == len(n.Required) {
		return fits
	}
	if r != nil {
		e.missing(n.required, v, r, "required, but missing")
	}
	return false
}

// member checks one member. It is known if a schema other than that of its name applies.
func (e *evaluation) member(n *Node, name string, key, value jsontext.Value, r *report) (known, fits bool) {
	inside := r.member(name)
	fits = n.names == nil || e.name(n.names, key, inside)
	if p := n.Properties[name]; p != nil {
		known, fits = true, e.fits(p, value, inside, nil) && fits
	}
	for _, p := range n.patterns {
		if e.matches(p.pattern, name) {
			known, fits = true, e.fits(p.node, value, inside, nil) && fits
		}
	}
	switch {
	case known || n.Additional == nil:
		return known, fits
	case n.Additional.never:
		e.unknown(n, inside)
		return true, false
	default:
		return true, e.fits(n.Additional, value, inside, nil) && fits
	}
}

func (e *evaluation) array(n *Node, v jsontext.Value, r *report, seen *marks) bool {
	fits := true
	if n.Prefix != nil || n.Items != nil {
		for i, element := range v.Elements() {
			inner := n.Items
			if i < len(n.Prefix) {
				inner = n.Prefix[i]
			}
			if inner == nil {
				break
			}
			if n.closedList && i >= len(n.Prefix) {
				e.report(r, finding{keyword: "additionalItems", message: "has too many items"})
				fits = false
				break
			}
			seen.mark(i)
			if fits = e.fits(inner, element, r.element(i), nil) && fits; !fits && r == nil {
				return false
			}
		}
	}
	if n.unique && (fits || r != nil) {
		if first, second, found := e.duplicates(v); found {
			e.report(r,
				finding{keyword: "uniqueItems", message: fmt.Sprintf("items at index %d and %d are equal", first, second)})
			fits = false
		}
	}
	if n.contains != nil && (fits || r != nil) {
		fits = e.contains(n, v, r, seen) && fits
	}
	return fits
}

func (e *evaluation) contains(n *Node, v jsontext.Value, r *report, seen *marks) bool {
	count := 0
	for i, element := range v.Elements() {
		if e.fits(n.contains, element, nil, nil) {
			if count++; n.containsCounts {
				seen.mark(i)
			}
		}
	}
	if count < n.minContains {
		e.report(r, finding{keyword: "minContains", message: "does not have enough items of the wanted form"})
		return false
	}
	if n.maxContains >= 0 && count > n.maxContains {
		e.report(r,
			finding{keyword: "maxContains",
				message: fmt.Sprintf("has too many items of the form that is limited to %d", n.maxContains)})
		return false
	}
	return true
}

// apply applies the schemas that are for the same value.
func (e *evaluation) apply(n *Node, v jsontext.Value, r *report, seen *marks) bool {
	fits := true
	also := func(inner *Node) bool {
		fits = e.same(inner, v, r, seen) && fits
		return fits || r != nil
	}
	for _, inner := range n.Also {
		if !also(inner) {
			return false
		}
	}
	for _, d := range n.dynamic {
		if !also(e.dynamicTarget(d)) {
			return false
		}
	}
	for _, u := range n.Unions {
		if fits = e.union(u, v, r, seen) && fits; !fits && r == nil {
			return false
		}
	}
	if n.not != nil && e.same(n.not, v, nil, nil) {
		e.report(r, finding{keyword: "not", message: "has a form that is not allowed"})
		fits = false
	}
	if branch := n.otherwise; n.condition != nil {
		if e.same(n.condition, v, nil, seen) {
			branch = n.then
		}
		if branch != nil && !also(branch) {
			return false
		}
	}
	for _, d := range n.dependents {
		e.charge(1 + v.Len()/8)
		switch {
		case v.Get(d.name).Kind() == 0:
		case d.node != nil:
			if !also(d.node) {
				return false
			}
		case e.missing(d.others, v, r, "required beside the others, but missing"):
			fits = false
		}
	}
	return fits
}

// dynamicTarget returns the schema to which a dynamic reference leads in the current scope.
func (e *evaluation) dynamicTarget(d dynamicReference) *Node {
	e.charge(1 + len(e.scope)/8)
	for _, outer := range e.scope {
		if target := outer.dynamic[d.name]; target != nil {
			return target
		}
	}
	return d.initial
}

// same applies a schema to the value that another one is applied to.
func (e *evaluation) same(n *Node, v jsontext.Value, r *report, seen *marks) bool {
	if seen == nil {
		return e.fits(n, v, r, nil)
	}
	inner := e.marks(v)
	fits := e.fits(n, v, r, inner)
	if fits {
		seen.add(inner)
	}
	return fits
}

// union applies anyOf or oneOf. All branches that a value fits determine its evaluated members and elements.
func (e *evaluation) union(u Union, v jsontext.Value, r *report, seen *marks) bool {
	count := 0
	for _, branch := range u.Branches {
		if e.same(branch, v, nil, seen) {
			count++
		}
		if count > 1 && u.ExactlyOne || count == 1 && !u.ExactlyOne && seen == nil {
			break
		}
	}
	switch {
	case count == 0:
		e.alternatives(u, v, r)
	case count > 1 && u.ExactlyOne:
		e.report(r, finding{keyword: "oneOf", message: "fits more than one of the allowed forms; it must fit exactly one"})
	default:
		return true
	}
	return false
}

// unevaluated applies schemas to what no other schema of the value has looked at.
func (e *evaluation) unevaluated(n *Node, v jsontext.Value, r *report, seen *marks) bool {
	fits, i := true, 0
	if n.unevaluatedProperties != nil {
		for key, value := range v.Members() {
			switch inside := r.member(key.String()); {
			case seen.has(i):
			case n.unevaluatedProperties.never:
				e.report(inside, unknownName(inside, "unevaluatedProperties", "; leave it out"))
				fits = false
			default:
				fits = e.fits(n.unevaluatedProperties, value, inside, nil) && fits
			}
			i++
		}
	}
	if n.unevaluatedItems != nil {
		for i, element := range v.Elements() {
			if !seen.has(i) {
				fits = e.fits(n.unevaluatedItems, element, r.element(i), nil) && fits
			}
		}
	}
	seen.all = seen.all || i > 0 || n.unevaluatedItems != nil && v.Kind() == jsontext.Array
	return fits
}

// marks says which members or elements of a value were evaluated. A nil one takes no marks.
type marks struct {
	all bool
	of  []bool
}

func (e *evaluation) marks(v jsontext.Value) *marks {
	e.charge(1 + v.Len()/8)
	return &marks{of: make([]bool, v.Len())}
}

func (m *marks) mark(i int) {
	if m != nil {
		m.of[i] = true
	}
}

func (m *marks) has(i int) bool { return m.all || m.of[i] }

func (m *marks) add(others *marks) {
	m.all = m.all || others.all
	for i, marked := range others.of {
		m.of[i] = m.of[i] || marked
	}
}
