package repair

import (
	"encoding/json"
	"strings"

	"github.com/caisson-run/caisson/manifests/schema"
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
)

// cast is a value as another type.
type cast struct {
	rule Rule
	text json.RawMessage
}

// castScalar returns what a value is as a type that is allowed, or nil if its own type is
// allowed or it has no other.
func castScalar(text json.RawMessage, allowed schema.Types) *cast {
	kind := schema.TypeOf(text)
	switch {
	case allowed.Has(kind):
		return nil
	case kind == schema.String:
		return castString(unquote(text), allowed)
	}
	return nil
}

func castString(said string, allowed schema.Types) *cast {
	if said == "true" || said == "false" {
		if allowed.Has(schema.Boolean) {
			return &cast{CastBoolean, json.RawMessage(said)}
		}
		return nil
	}
	literal := json.RawMessage(said)
	if isNumber(said) && allowed.Has(schema.TypeOf(literal)) {
		return &cast{CastNumber, literal}
	}
	return nil
}

// isNumber reports whether a text is a JSON number and nothing else.
func isNumber(text string) bool {
	return text != "" && (text[0] == '-' || '0' <= text[0] && text[0] <= '9') &&
		text[len(text)-1] > ' ' && json.Valid([]byte(text))
}

// openString returns what a string becomes that holds an object or an array where one is
// wanted. What is in it is repaired, but no string inside is opened: if one would have to
// be, this one is left as it is.
func (w *walk) openString(at *spot, text json.RawMessage, p place) (json.RawMessage, bool) {
	const containers = schema.Object | schema.Array
	if text[0] != '"' || p.types.Has(schema.String) || p.types&containers == 0 {
		return nil, false
	}
	inner := strings.TrimSpace(unquote(text))
	if inner == "" || inner[0] != '{' && inner[0] != '[' || !p.types.Has(schema.TypeOf(json.RawMessage(inner))) {
		return nil, false
	}
	if !isValue(inner) {
		return nil, false
	}
	if at.opened {
		w.again = true
		return text, true
	}
	before := w.mark()
	w.note(at, ParseJSON, text, json.RawMessage(inner))
	result := w.value(at.open(), json.RawMessage(inner), p)
	if w.again {
		w.again = false
		w.back(before)
		return text, true
	}
	return result, true
}

// isValue reports whether a text is one JSON value that arguments may hold.
func isValue(text string) bool {
	_, err := tool.ParseArguments(`{"value":` + text + `}`)
	return err == nil && json.Valid([]byte(text)) // and not one value with another member behind it
}

// wrapArray returns the array of one element that a value becomes where nothing but an
// array is allowed and the value fits as its element. A text that begins as an array does
// is left alone: it is one that was cut off, or that is almost JSON.
func (w *walk) wrapArray(at *spot, text json.RawMessage, p place) (json.RawMessage, bool) {
	kind := schema.TypeOf(text)
	if p.types&^schema.Null != schema.Array || kind == schema.Array || kind == schema.Null {
		return nil, false
	}
	if kind == schema.String && strings.HasPrefix(strings.TrimSpace(unquote(text)), "[") {
		return nil, false
	}
	before := w.mark()
	w.note(at, WrapArray, text, array([]json.RawMessage{text}))
	inside := w.element(p, 0)
	element := w.value(at.element(0), text, inside)
	if !w.fits(inside, element) {
		w.back(before)
		return nil, false
	}
	return array([]json.RawMessage{element}), true
}

// dropNull reports whether a member is left out because it is null, which is neither
// allowed nor required.
func (w *walk) dropNull(at *spot, m member, p, inner place) bool {
	if !w.rules || string(m.text) != "null" || inner.types.Has(schema.Null) || !p.declares(m.name) || p.requires(m.name) {
		return false
	}
	w.note(at.member(m.name), DropNull, m.text, absent())
	return true
}

// absent stands in the record for a value that is not there.
func absent() json.RawMessage { return json.RawMessage("null") }
