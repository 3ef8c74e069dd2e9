package structured

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/dialecttest"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// offer returns a tool with a schema as it is offered, and its findings: "properties.p.format
// refused", with a mark if the schema was adapted.
func offer(t *testing.T, schema string, strict bool) (Tool, string) {
	t.Helper()
	var offered Tool
	_, findings := noerr.Get2(Offer(wire.Reader{}, []tool.Definition{dialecttest.Definition("f", schema)}, strict, func(t Tool) any {
		offered = t
		return nil
	}))(t)
	var shown []string
	for _, f := range findings {
		assert.Equal(t, "f", f.Tool)
		assert.NotEmpty(t, f.Message)
		assert.NotEmpty(t, f.Fix)
		line := fmt.Sprintf("%s %s", f.Path, f.Severity)
		if f.Adapted {
			line += " adapted"
		}
		shown = append(shown, line)
	}
	return offered, strings.Join(shown, "\n")
}

func TestStrictSchemas(t *testing.T) {
	for schema, want := range map[string]struct{ offered, found string }{ // of the property p
		`{"type":"string","minLength":1,"maxLength":9,"pattern":"^a"}`:                                         {},
		`{"type":"string","format":"date-time"}`:                                                               {},
		`{"type":["string","null"],"enum":["a",null]}`:                                                         {},
		`{"type":"integer","minimum":1,"exclusiveMaximum":9,"multipleOf":2}`:                                   {},
		`{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":3}`:                                 {},
		`{"anyOf":[{"type":"string"},{"type":"null"}]}`:                                                        {},
		`{"$ref":"#/properties/a/b"}`:                                                                          {},
		`{"title":"A","description":"b","type":"string","const":"x"}`:                                          {},
		`{"type":"object","properties":{"b":{"type":"string"}},"required":["b"],"additionalProperties":false}`: {},
		`{"type":"string","format":"uri"}`:                                                                     {`{"type":"string"}`, "properties.p.format refused adapted"},
		`{"type":"integer","description":"How many.","default":10}`:                                            {`{"type":"integer","description":"How many."}`, "properties.p.default weakened adapted"},
		`{"type":"array","items":{"type":"string"},"uniqueItems":true}`:                                        {`{"type":"array","items":{"type":"string"}}`, "properties.p.uniqueItems refused adapted"},
		`{"type":"string","x-order":1,"deprecated":true}`:                                                      {`{"type":"string"}`, "properties.p.x-order weakened adapted\nproperties.p.deprecated weakened adapted"},
		`{"type":"object","properties":{"b":{"type":"string","enum":["x"]}}}`: {
			`{"type":"object","properties":{"b":{"type":["string","null"],"enum":["x",null]}},"additionalProperties":false,"required":["b"]}`,
			"properties.p.additionalProperties refused adapted\nproperties.p.required refused adapted"},
	} {
		if want.offered == "" {
			want.offered = schema
		}
		offered, found := offer(t, dialecttest.With(schema), true)
		assert.Equal(t, dialecttest.With(want.offered), string(offered.Parameters))
		assert.Equal(t, want.found, found, schema)
		assert.True(t, offered.Strict)
	}
}

// TestWhatCannotBeStrictIsOfferedWithout: the request is taken, and the schema still tells the model.
func TestWhatCannotBeStrictIsOfferedWithout(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","additionalProperties":{"type":"string"}}`, `{"type":"object","patternProperties":{"^x":{"type":"string"}}}`,
		`{"type":"object","properties":{},"if":{},"then":{}}`, `true`, `{}`,
		`{"description":"anything"}`, `{"anyOf":[{"type":"string"},{}]}`, `{"type":"array","items":{"minLength":1}}`,
		`{"$ref":"https://example.com/schema.json"}`, `{"$ref":"#/properties/a","minLength":2}`, `{"$ref":"#/properties/p/x","description":"b"}`,
		`{"type":"array","items":{"type":"string"},"prefixItems":[{"type":"string"}]}`,
		`{"allOf":[{"type":"string"}]}`, `{"oneOf":[{"type":"string"}]}`, `{"type":"object","unevaluatedProperties":false,"properties":{}}`,
	} {
		offered, found := offer(t, dialecttest.With(schema), true)
		assert.False(t, offered.Strict, schema)
		assert.Equal(t, dialecttest.With(schema), string(offered.Parameters))
		require.NotEmpty(t, found)
		for line := range strings.Lines(found) {
			assert.Contains(t, line, " weakened adapted", schema)
		}
	}
	_, findings := noerr.Get2(Offer(wire.Reader{}, []tool.Definition{dialecttest.Definition("f", dialecttest.With(`{"anyOf":[{"oneOf":[{}]},{}],"format":"uri"}`))}, true, func(Tool) any { return nil }))(t)
	require.Len(t, findings, 2, "all that is in the way is said at once")
	for _, f := range findings {
		assert.Contains(t, f.Message, "this tool's schema is not enforced: strict mode refuses the request: ")
	}
}

// TestTuplesAreRefused: neither form of them is taken, in strict mode or without.
func TestTuplesAreRefused(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"array","items":[{"type":"string"},{"type":"integer"}]}`:                 "properties.p.items",
		`{"type":"array","items":[]}`:                                                     "properties.p.items",
		`{"type":["array","null"],"items":{"type":"array","items":[{"type":"string"}]}}`:  "properties.p.items.items",
		`{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}]}`:           "properties.p.type",
		`{"type":"array","prefixItems":[{"type":"string"}],"minItems":1,"maxItems":1}`:    "properties.p.type",
		`{"anyOf":[{"type":"null"},{"type":"array","prefixItems":[{"type":"string"}]}]}`:  "properties.p.anyOf[1].type",
		`{"type":"integer","minimum":1,"exclusiveMinimum":true}`:                          "properties.p.exclusiveMinimum",
		`{"type":"array","items":{"type":"number","maximum":1,"exclusiveMaximum":false}}`: "properties.p.items.exclusiveMaximum",
	} {
		_, found := offer(t, dialecttest.With(schema), false)
		assert.Equal(t, want+" refused", found, schema)
		offered, found := offer(t, dialecttest.With(schema), true)
		assert.False(t, offered.Strict, schema)
		assert.Contains(t, found, want+" weakened adapted\n", schema)
		assert.True(t, strings.HasSuffix(found, want+" refused"), found)
	}
}

func TestWithoutStrictLittleIsRefused(t *testing.T) {
	for schema, want := range map[string]string{
		dialecttest.With(`{"type":"object","patternProperties":{"^x":{"oneOf":[{"format":"uri","default":1}]}}}`): "",
		`{}`: "type refused\nproperties refused", dialecttest.With(`{"type":["array","null"]}`): "properties.p.type refused",
		`{"type":"object","properties":{},"anyOf":[{"required":["a"]}]}`: "anyOf refused",
		`{"type":"object","allOf":[{"properties":{}}]}`:                  "properties refused\nallOf refused",
	} {
		offered, found := offer(t, schema, false)
		assert.Equal(t, schema, string(offered.Parameters))
		assert.Equal(t, want, found)
		assert.False(t, offered.Strict)
	}
	offered, _ := offer(t, "", false)
	assert.Equal(t, `{"type":"object","properties":{}}`, string(offered.Parameters))
}

func TestStrictSchemasHaveBounds(t *testing.T) {
	var properties, names []string
	for i := range 5001 {
		names = append(names, fmt.Sprintf(`"p%d"`, i))
		properties = append(properties, names[i]+`:{"type":"null"}`)
	}
	wide := `{"type":"object","properties":{` + strings.Join(properties, ",") + `},"required":[` + strings.Join(names, ",") + `],"additionalProperties":false}`
	deep := `{"type":"string"}`
	for range 11 {
		deep = dialecttest.With(deep)
	}
	for name, schema := range map[string]string{
		"properties": wide, "depth": deep,
		"enum": dialecttest.With(`{"type":"integer","enum":[` + strings.Repeat("1,", 1000) + `1]}`),
		"text": dialecttest.With(`{"type":"string","const":"` + strings.Repeat("x", 120_000) + `"}`),
	} {
		offered, found := offer(t, schema, true)
		assert.Equal(t, " weakened adapted", found, name)
		assert.False(t, offered.Strict)
	}
}

// TestToolsAreFunctionsUnlessTheirTypeIsKnown: a provider that does not know a type is offered the
// tool with the same parameters.
func TestToolsAreFunctionsUnlessTheirTypeIsKnown(t *testing.T) {
	parameters := json.RawMessage(dialecttest.With(`{"type":"string"}`))
	definitions := []tool.Definition{
		{Name: "patch", Type: tool.CustomCall, Format: json.RawMessage(`{"type":"text"}`), Parameters: parameters},
		{Name: "local_shell", Type: tool.LocalShellCall, Parameters: parameters},
		{Name: "note", Type: "prose", Parameters: parameters},
	}
	for _, test := range []struct{ known, want []string }{
		{nil, []string{"function", "function", "function"}},
		{[]string{tool.CustomCall}, []string{"custom", "function", "function"}},
		{[]string{tool.CustomCall, tool.LocalShellCall}, []string{"custom", "local_shell", "function"}},
	} {
		var tools []Tool
		_, findings := noerr.Get2(Offer(wire.Reader{}, definitions, true, func(offered Tool) any {
			tools = append(tools, offered)
			return nil
		}, test.known...))(t)
		assert.Equal(t, []dialects.Finding{}, findings)
		var types []string
		for _, offered := range tools {
			types = append(types, offered.Type)
			isFunction := offered.Type == tool.FunctionCall
			assert.Equal(t, isFunction, offered.Parameters != nil)
			assert.Equal(t, isFunction, offered.Strict)
			assert.Equal(t, offered.Type == tool.CustomCall, offered.Format.Written != nil)
		}
		assert.Equal(t, test.want, types)
	}
}
