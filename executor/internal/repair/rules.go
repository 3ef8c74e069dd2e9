package repair

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// Rule names what made a change.
type Rule string

// The rules; the package documentation says what they do.
const (
	CastNumber   Rule = "cast_number"
	CastBoolean  Rule = "cast_boolean"
	ParseJSON    Rule = "parse_json"
	WrapArray    Rule = "wrap_array"
	Unwrap       Rule = "unwrap"
	Clamp        Rule = "clamp"
	DropNull     Rule = "drop_null"
	Default      Rule = "default"
	TolerantJSON Rule = "tolerant_json"
	Alias        Rule = "alias"
)

// absent records a value that is not there.
const absent = "null"

// castString returns a string's text as a number or a boolean, where no string is allowed, and the rule.
func castString(v jsontext.Value, allowed schema.Types) (Rule, string) {
	if v.Kind() != jsontext.String || allowed.Has(schema.String) {
		return "", ""
	}
	switch said := v.String(); {
	case said == "true" || said == "false":
		if allowed.Has(schema.Boolean) {
			return CastBoolean, said
		}
	case isNumber(said) && allowed.Has(schema.TypeOf(said)):
		return CastNumber, said
	}
	return "", ""
}

// isNumber reports whether a text is a JSON number and nothing else.
func isNumber(text string) bool {
	return text != "" && (text[0] == '-' || '0' <= text[0] && text[0] <= '9') &&
		text[len(text)-1] > ' ' && json.Valid([]byte(text))
}

// openString returns the repaired object or array that a string holds where one is wanted. No string inside it is
// opened: if one would have to be, this one is not changed.
func (w *walk) openString(at *spot, v jsontext.Value, p place) (string, bool) {
	const containers = schema.Object | schema.Array
	if v.Kind() != jsontext.String || p.types.Has(schema.String) || p.types&containers == 0 {
		return "", false
	}
	said := strings.TrimSpace(v.String())
	if said == "" || said[0] != '{' && said[0] != '[' || !p.types.Has(schema.TypeOf(said)) || !isValue(said) {
		return "", false
	}
	if at.opened {
		w.again = true
		return v.Text(), true
	}
	before := w.mark()
	w.note(at, ParseJSON, v.Text(), said)
	inner, ok := w.read(said)
	if !ok {
		return v.Text(), true
	}
	result := w.value(at.open(), inner, p)
	if w.again {
		w.again = false
		w.back(before)
		return v.Text(), true
	}
	return result, true
}

// isValue reports whether a text is one JSON value that arguments may hold.
func isValue(text string) bool {
	_, err := tool.ParseArguments(`{"value":` + text + `}`)
	return err == nil && json.Valid([]byte(text)) // and not one value followed by another member
}

// wrapArray returns the array of one element that a value becomes where nothing but an
// array is allowed and the value fits as its element. A text that begins as an array does
// is not changed: it is one that was cut off, or that is almost JSON.
func (w *walk) wrapArray(at *spot, v jsontext.Value, p place) (string, bool) {
	kind := v.Kind()
	if p.types&^schema.Null != schema.Array || kind == jsontext.Array || kind == jsontext.Null {
		return "", false
	}
	if strings.HasPrefix(strings.TrimSpace(v.String()), "[") {
		return "", false
	}
	before := w.mark()
	w.note(at, WrapArray, v.Text(), "["+v.Text()+"]")
	inside := w.element(p, 0)
	element := w.value(at.element(0), v, inside)
	if !w.fits(element, inside.nodes...) {
		w.back(before)
		return "", false
	}
	return "[" + element + "]", true
}

// dropNull reports whether to leave out a member that is null, which is neither allowed nor required.
func (w *walk) dropNull(at *spot, name, text string, p, inner place) bool {
	if !w.rules || text != "null" || inner.types.Has(schema.Null) || !p.declares(name) || p.requires(name) {
		return false
	}
	w.note(at.member(name), DropNull, text, absent)
	return true
}

// unwrap returns the arguments inside an object whose only member is a wrapper. names are those of the tool.
func (w *walk) unwrap(v jsontext.Value, root place, names []string) jsontext.Value {
	if v.Len() != 1 {
		return v
	}
	for key, inner := range v.Members() {
		name := key.String()
		wrapper := slices.Contains([]string{"arguments", "input", "parameters"}, name) || slices.Contains(names, name)
		if !wrapper || inner.Kind() != jsontext.Object || w.isParameter(root, name) {
			return v
		}
		for other := range inner.Members() {
			isAlias := func(a manifests.ParameterAlias) bool { return a.Name == other.String() }
			if !w.isParameter(root, other.String()) && !slices.ContainsFunc(w.aliases, isAlias) {
				return v
			}
		}
		renamed, repairs, err := rename(inner, w.aliases)
		if err != nil {
			return v
		}
		w.note(&spot{}, Unwrap, v.Text(), inner.Text())
		v = inner
		for _, r := range repairs {
			w.add(r)
		}
		if len(repairs) == 0 {
			return v
		}
		if opened, ok := w.read(renamed); ok {
			v = opened
		}
	}
	return v
}

// isParameter reports whether a model may set a member of the arguments.
func (w *walk) isParameter(root place, name string) bool {
	return !w.reserved(name) && root.declares(name)
}

// choose repairs a value for the one union that it does not fit, if all alternatives come to the same value.
func (w *walk) choose(at *spot, text string, p place) string {
	unfit := slices.DeleteFunc(slices.Clone(p.unions), func(u schema.Union) bool { return w.holds(u, text) })
	if len(unfit) != 1 {
		return text
	}
	v, ok := w.read(text)
	if !ok {
		return text
	}
	defer func(fill bool) { w.fill = fill }(w.fill)
	w.fill = false // whether an alternative applies must not depend on what is filled in
	chosen := ""
	var repairs []tool.Repair
	for _, branch := range unfit[0].Branches {
		before := w.mark()
		candidate := w.value(at, v, w.branch(p, branch))
		made := slices.Clone(w.repairs[before.repairs:])
		w.back(before)
		if w.over || slices.ContainsFunc(p.unions, func(u schema.Union) bool { return !w.holds(u, candidate) }) {
			continue
		}
		if chosen != "" && chosen != candidate {
			return text
		}
		if chosen == "" {
			chosen, repairs = candidate, made
		}
	}
	if chosen == "" {
		return text
	}
	for _, r := range repairs {
		w.record += len(r.From) + len(r.To) + visitWork
	}
	w.repairs = append(w.repairs, repairs...)
	return chosen
}

// holds reports whether a value certainly fits a union.
func (w *walk) holds(u schema.Union, text string) bool {
	count := 0
	for _, branch := range u.Branches {
		if w.fits(text, branch) {
			count++
		}
	}
	return count == 1 || count > 1 && !u.ExactlyOne
}
