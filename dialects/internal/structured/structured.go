// Package structured has OpenAI's rules for the schemas of tools, with strict mode ("structured outputs")
// and without. Chat Completions and the Responses API have the same rules.
//
// The rules follow the guides "Function calling" and "Structured outputs" (supported schemas) as of 2026
// and, for what these leave open, requests that the API is known to refuse. Fine-tuned models accept less:
// no lengths, patterns, formats and bounds. These rules are for all other models.
package structured

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/lint"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

// oneSchema says what to write in place of a schema for each position of an array.
const oneSchema = "write one schema for all items, with anyOf if they differ, and minItems and maxItems; or an " +
	"object with a property for each"

// looseRules are the rules without strict mode, where a schema is only a description for the model. They
// refuse schemas that are malformed to the API.
func looseRules() lint.Rules {
	const topLevel = "parameters may not have this keyword at the outermost level"
	bound := lint.Refused("it must be a number", "write the bound itself: exclusiveMinimum: 0").Only(lint.Number)
	top := lint.Refused(topLevel, "say it in the description, or put it into a property")
	return lint.Rules{
		ObjectRoot: lint.Refused("parameters must be an object with properties", "say type: object, and list the properties"),
		Root: map[string]lint.Keyword{
			"$id": {}, "anyOf": top, "oneOf": top, "enum": top, "not": top,
			"allOf": lint.Refused(topLevel, "merge the schemas into one"),
		},
		Keywords: map[string]lint.Keyword{
			"type": lint.Refused("an array must have a schema for its items",
				"add items, with a type where the tool is to be strict").Only(itemised),
			"items":            lint.Refused("items must be one schema, not a list", oneSchema).Only(lint.Single),
			"exclusiveMinimum": bound, "exclusiveMaximum": bound,
			"$id": lint.Weakened(lint.NestedID, lint.PointersOnly),
		},
	}
}

// strictly returns the rule for a keyword that makes strict mode refuse the request.
func strictly(message, fix string) lint.Keyword {
	return lint.Keyword{Severity: dialects.Refused, Message: "strict mode refuses the request: " + message, Fix: fix}
}

func strictRules() lint.Rules {
	const notPermitted = "the keyword is not permitted"
	formats := []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
	rules := looseRules()
	rules.Keywords["format"] = strictly("it knows only the formats "+strings.Join(formats, ", "),
		"the format is left out; say it in the description").
		Only(lint.OneOf(formats...)).Drop()
	rules.Keywords["$ref"] = strictly("a $ref must refer to the same schema and stand alone",
		"wrap it to combine it with other keywords: anyOf: [{$ref: …}]").Only(isPlainRef)
	rules.Keywords["$id"] = strictly(lint.NestedID, lint.PointersOnly)
	rules.Keywords["$dynamicRef"] = strictly(notPermitted, lint.PointersOnly)
	rules.Keywords["$recursiveRef"] = rules.Keywords["$dynamicRef"]
	rules.Keywords["allOf"] = strictly(notPermitted, "merge the schemas into one")
	rules.Keywords["oneOf"] = strictly(notPermitted, "use anyOf").Enter()
	for _, accepted := range []string{
		"$schema", "title", "description", "required", "additionalProperties", "enum", "const", "pattern",
		"minLength", "maxLength", "minItems", "maxItems", "multipleOf", "minimum", "maximum",
	} {
		rules.Keywords[accepted] = lint.Keyword{}
	}
	for _, holder := range []string{"properties", "anyOf", "$defs", "definitions"} {
		rules.Keywords[holder] = strictly("each schema must be an object with a type",
			"say the type of each, or list its values as enum").Only(typed).Enter()
	}
	rules.Keywords["items"] = strictly("items must be one schema, an object with a type", oneSchema).Only(typed).Enter()
	for _, narrowing := range lint.Narrowing() {
		rules.Keywords[narrowing] = strictly(notPermitted, "the keyword is left out; say it in the description").Drop()
	}
	for _, shaping := range lint.Shaping() {
		rules.Keywords[shaping] = strictly(notPermitted, "write the cases as anyOf, or offer the tool without strict")
	}
	rules.Others = lint.Weakened("strict mode does not know the keyword, and some models refuse the request",
		"the keyword is left out").Drop()
	rules.Root["$id"] = rules.Others
	rules.Closed = strictly("each object must have additionalProperties: false",
		"additionalProperties: false is added unless the object allows arbitrary names")
	rules.AllRequired = strictly("each property must be required",
		"it becomes required and nullable; null stands for omitting it")
	rules.Limits = lint.Limits{Depth: 10, Properties: 5000, Enum: 1000, Text: 120_000}
	return rules
}

// itemised returns whether a schema that allows arrays has one for their items.
func itemised(schema *lint.Value, keyword string) bool {
	return !schema.Get(keyword).HasText("array") || schema.Get("items") != nil
}

// typed returns whether each schema in a keyword's value has a type.
func typed(schema *lint.Value, keyword string) bool {
	held := schema.Get(keyword)
	switch {
	case keyword == "items":
		return hasType(held)
	case held.IsList():
		return lint.Each(hasType)(schema, keyword)
	}
	return !slices.ContainsFunc(held.Members(), func(m lint.Member) bool { return !hasType(m.Value) })
}

func hasType(schema *lint.Value) bool {
	return slices.ContainsFunc(schema.Members(), func(m lint.Member) bool {
		return slices.Contains([]string{"type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf"}, m.Name)
	})
}

// isPlainRef reports whether a $ref refers to the same document and is the only keyword.
func isPlainRef(schema *lint.Value, keyword string) bool {
	return lint.Internal(schema, keyword) && len(schema.Members()) == 1
}

// Tool is a tool in the form in which it is offered.
type Tool struct {
	Type        string // as in [tool.Definition], never empty
	Name        string
	Description string
	Parameters  json.RawMessage // of a function
	Strict      bool            // the provider enforces Parameters
	Format      Format          // of a custom tool
}

// Format constrains the text of a custom tool. Written is all of it as written; nil if any text is allowed.
type Format struct {
	Written    json.RawMessage `json:"-"`
	Type       string          `json:"type"`
	Syntax     string          `json:"syntax"`
	Definition string          `json:"definition"`
}

// Offer writes the JSON array of what write returns for each tool, and returns it with the findings. Tools
// of the given types are offered as such, and all other tools as functions.
func Offer[T any](
	reader wire.Reader, definitions []tool.Definition, strict bool, write func(t Tool) T, types ...string,
) (json.RawMessage, []dialects.Finding, error) {
	names := lint.NameRule{Most: 64, Extra: "_-"}
	return lint.Offer(reader, definitions, names, func(d *tool.Definition) (T, []dialects.Finding, error) {
		offered, found, err := newTool(d, strict, types)
		return write(offered), found, err
	})
}

func newTool(d *tool.Definition, strict bool, types []string) (offered Tool, found []dialects.Finding, err error) {
	offered = Tool{Type: tool.FunctionCall, Name: d.Name, Description: d.Description}
	switch isKnown := slices.Contains(types, d.Type); {
	case isKnown && d.Type == tool.CustomCall:
		offered.Type = d.Type
		found, err = offered.custom(d.Format)
		return offered, found, err
	case isKnown && d.Name == tool.LocalShellCall:
		offered.Type = d.Type
		return offered, localShell(d), nil
	case isKnown:
		found = append(found, dialects.Finding{
			Keyword: "name", Severity: dialects.Weakened, Adapted: true,
			Message: "the tool is not offered as the local shell, whose calls come back under the name local_shell",
			Fix:     "it is offered as a function; name it local_shell",
		})
	}
	parameters, more, held, err := lint.Parameters(d.Parameters, strict, strictRules(), looseRules())
	offered.Parameters, offered.Strict = parameters, held
	return offered, append(found, more...), err
}

// custom takes the format of a custom tool, and reports its faults.
func (t *Tool) custom(written json.RawMessage) ([]dialects.Finding, error) {
	f := &t.Format
	if wire.Absent(written) {
		return nil, nil
	}
	if err := (wire.Reader{}).Into("format", written, f); err != nil {
		return nil, err
	}
	f.Written = written
	if f.Type == "text" || f.Type == "grammar" && f.Definition != "" &&
		slices.Contains([]string{"lark", "regex"}, f.Syntax) {
		return nil, nil
	}
	return []dialects.Finding{{
		Keyword: "format", Severity: dialects.Refused,
		Message: "the request is refused: a custom tool takes text, optionally with a grammar",
		Fix: `write {"type":"text"}, or {"type":"grammar","syntax":"lark","definition":"…"} ` +
			`with the syntax lark or regex`,
	}}, nil
}

// localShell reports the loss of the description when a tool is offered as the local shell, which has no members.
func localShell(d *tool.Definition) []dialects.Finding {
	if d.Description == "" {
		return nil
	}
	return []dialects.Finding{{
		Keyword: "description", Severity: dialects.Weakened,
		Message: "the description is left out: models know the local shell anyway",
		Fix:     "say in the instructions what the model must know about this shell",
	}}
}
