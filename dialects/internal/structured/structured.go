// Package structured knows what OpenAI takes of a tool's schema, with strict mode ("structured
// outputs") and without. Chat Completions and the Responses API have the same rules.
//
// The rules follow the guides "Function calling" and "Structured outputs" (supported schemas) as
// of 2026, and for what these leave open the requests that the API is known to refuse. Fine-tuned
// models take less: no lengths, patterns, formats and bounds. The rules are for the others.
package structured

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/exact"
	"github.com/caisson-run/caisson/dialects/internal/lint"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// names is what the names of functions may look like.
func names() lint.NameRule { return lint.NameRule{Most: 64, Extra: "_-"} }

// looseRules are the rules without strict mode, where a schema only tells the model what is
// wanted. What is refused is refused since the schema is malformed to the API.
func looseRules() lint.Rules {
	top := lint.Keyword{
		Severity: dialects.Refused, Message: "the request is refused: parameters may not have this keyword at the outermost level",
		Fix: "say it in the description, or put it into a property",
	}
	merged := top
	merged.Fix = "put the schemas together into one"
	return lint.Rules{
		ObjectRoot: lint.Keyword{
			Severity: dialects.Refused, Message: "the request is refused: parameters must be an object with properties",
			Fix: "say type: object, and list the properties",
		},
		Root: map[string]lint.Keyword{"anyOf": top, "oneOf": top, "enum": top, "not": top, "allOf": merged},
		Keywords: map[string]lint.Keyword{
			"type": {
				Severity: dialects.Refused, Message: "the request is refused: an array must say what its items are",
				Fix: "add items, with a type where the tool is to be strict", Taken: itemised,
			},
		},
	}
}

// formats are those that strict mode knows.
var formats = []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}

// strictRules are the rules of strict mode.
func strictRules() lint.Rules {
	rules := looseRules()
	rules.Keywords = strictKeywords(rules.Keywords["type"])
	rules.Others = lint.Keyword{
		Severity: dialects.Weakened, Message: "strict mode does not know the keyword, and some models refuse the request",
		Fix: "the keyword is left out", Dropped: true,
	}
	rules.Closed = lint.Keyword{
		Severity: dialects.Refused, Message: "strict mode refuses the request: each object must have additionalProperties: false",
		Fix: "additionalProperties: false is added where the object does not ask for free names",
	}
	rules.AllRequired = lint.Keyword{
		Severity: dialects.Refused, Message: "strict mode refuses the request: each property must be required",
		Fix: "it becomes required and may be null, which stands for leaving it out",
	}
	rules.Limits = lint.Limits{Depth: 10, Properties: 5000, Enum: 1000, Text: 120_000}
	return rules
}

// strictKeywords are those of strict mode, given what holds for type.
func strictKeywords(kind lint.Keyword) map[string]lint.Keyword {
	refused := func(fix string) lint.Keyword {
		return lint.Keyword{Severity: dialects.Refused, Message: "strict mode refuses the request: the keyword is not permitted", Fix: fix}
	}
	keywords := map[string]lint.Keyword{
		"type": kind,
		"format": {
			Severity: dialects.Refused, Message: "strict mode refuses the request: it knows only the formats " + strings.Join(formats, ", "),
			Fix: "the format is left out; say it in the description", Taken: lint.OneOf(formats...), Dropped: true,
		},
		"$ref": {
			Severity: dialects.Refused, Message: "strict mode refuses the request: a $ref must lead into the schema and stand alone",
			Fix: "put what stands beside it around it: anyOf: [{$ref: …}]", Taken: alone,
		},
		"allOf": refused("put the schemas together into one"),
		"oneOf": {Severity: dialects.Refused, Message: refused("").Message, Fix: "use anyOf", Inside: true},
	}
	for _, taken := range []string{
		"$schema", "title", "description", "required", "additionalProperties", "enum", "const", "pattern",
		"minLength", "maxLength", "minItems", "maxItems", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
	} {
		keywords[taken] = lint.Keyword{}
	}
	for _, holder := range []string{"properties", "items", "anyOf", "$defs", "definitions"} {
		keywords[holder] = lint.Keyword{
			Severity: dialects.Refused, Message: "strict mode refuses the request: each schema must be an object with a type",
			Fix: "say the type of each, or list its values as enum", Taken: typed, Inside: true,
		}
	}
	for _, narrowing := range lint.Narrowing() {
		dropped := refused("the keyword is left out; say it in the description")
		dropped.Dropped = true
		keywords[narrowing] = dropped
	}
	for _, shaping := range lint.Shaping() {
		keywords[shaping] = refused("write the cases as anyOf, or offer the tool without strict")
	}
	return keywords
}

// itemised returns whether a schema that allows arrays says what is in them.
func itemised(schema *exact.Value, keyword string) bool {
	return !schema.Get(keyword).HasText("array") || schema.Get("items") != nil || schema.Get("prefixItems") != nil
}

// typed returns whether each schema that a keyword holds says what it is the schema of.
func typed(schema *exact.Value, keyword string) bool {
	held := schema.Get(keyword)
	switch {
	case held.IsList():
		return lint.Each(hasType)(schema, keyword)
	case keyword == "items":
		return hasType(held)
	}
	return !slices.ContainsFunc(held.Members(), func(m exact.Member) bool { return !hasType(m.Value) })
}

func hasType(schema *exact.Value) bool {
	return slices.ContainsFunc(schema.Members(), func(m exact.Member) bool {
		return slices.Contains([]string{"type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf"}, m.Name)
	})
}

// alone returns whether a $ref leads into its own document and has nothing beside it.
func alone(schema *exact.Value, keyword string) bool {
	return lint.Internal(schema, keyword) && len(schema.Members()) == 1
}

// Tool is a tool as it is offered.
type Tool struct {
	Type        string // as in [tool.Definition], never empty
	Name        string
	Description string
	Parameters  json.RawMessage // of a function
	Strict      bool            // the model is held to Parameters
	Format      Format          // of a custom tool
}

// Format bounds the text of a custom tool. Written is the whole of it; nil for any text.
type Format struct {
	Written    json.RawMessage `json:"-"`
	Type       string          `json:"type"`
	Syntax     string          `json:"syntax"`
	Definition string          `json:"definition"`
}

// Offer returns how tools are offered, and the findings. Tools of the given types are offered as such,
// all others as functions.
func Offer(reader wire.Reader, definitions []tool.Definition, strict bool, types ...string) ([]Tool, []dialects.Finding, error) {
	tools := make([]Tool, len(definitions))
	findings, err := lint.Tools(reader, definitions, names(), func(i int, d *tool.Definition) (found []dialects.Finding, err error) {
		offered := &tools[i]
		*offered = Tool{Type: tool.FunctionCall, Name: d.Name, Description: d.Description}
		switch isKnown := slices.Contains(types, d.Type); {
		case isKnown && d.Type == tool.CustomCall:
			offered.Type = d.Type
			return offered.custom(d.Format)
		case isKnown && d.Name == tool.LocalShellCall:
			offered.Type = d.Type
			return localShell(d), nil
		case isKnown:
			found = append(found, dialects.Finding{
				Keyword: "name", Severity: dialects.Weakened, Adapted: true,
				Message: "the tool is not offered as the local shell, whose calls come back under the name local_shell",
				Fix:     "it is offered as a function; name it local_shell",
			})
		}
		var more []dialects.Finding
		offered.Parameters, more, offered.Strict, err = lint.Parameters(d.Parameters, strict, strictRules(), looseRules())
		return append(found, more...), err
	})
	return tools, findings, err
}

// custom takes the format of a custom tool, and reports what is wrong with it.
func (t *Tool) custom(written json.RawMessage) ([]dialects.Finding, error) {
	f := &t.Format
	if wire.Absent(written) {
		return nil, nil
	}
	if err := (wire.Reader{}).Into("format", written, f); err != nil {
		return nil, err
	}
	f.Written = written
	if f.Type == "text" || f.Type == "grammar" && f.Definition != "" && slices.Contains([]string{"lark", "regex"}, f.Syntax) {
		return nil, nil
	}
	return []dialects.Finding{{
		Keyword: "format", Severity: dialects.Refused,
		Message: "the request is refused: a custom tool takes text, or text by a grammar",
		Fix:     `write {"type":"text"}, or {"type":"grammar","syntax":"lark","definition":"…"} with the syntax lark or regex`,
	}}, nil
}

// localShell reports what is lost of a tool that is offered as the local shell, which has no members.
func localShell(d *tool.Definition) []dialects.Finding {
	if d.Description == "" {
		return nil
	}
	return []dialects.Finding{{
		Keyword: "description", Severity: dialects.Weakened,
		Message: "the description is left out: models know the local shell without",
		Fix:     "say in the instructions what the model must know of this shell",
	}}
}
