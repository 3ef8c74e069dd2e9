package structured

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/tool"
)

func offer(t *testing.T, schema string, options dialects.DefinitionOptions) (Tool, []dialects.Finding) {
	t.Helper()
	tools, findings, err := Offer(wire.Reader{Op: "definitions", Dialect: "x"}, []tool.Definition{{Name: "f", Parameters: json.RawMessage(schema)}}, options)
	require.NoError(t, err)
	for _, finding := range findings {
		assert.Equal(t, "f", finding.Tool)
		assert.NotEmpty(t, finding.Message)
		assert.NotEmpty(t, finding.Fix)
	}
	return tools[0], findings
}

// brief shows findings: "properties.a.format refused", with a mark if it was adapted.
func brief(findings []dialects.Finding) []string {
	shown := []string{}
	for _, f := range findings {
		mark := ""
		if f.Adapted {
			mark = " adapted"
		}
		shown = append(shown, fmt.Sprintf("%s %s%s", f.Path, f.Severity, mark))
	}
	return shown
}

func property(schema string) string {
	return `{"type":"object","properties":{"a":` + schema + `},"required":["a"],"additionalProperties":false}`
}

func TestStrictSchemasThatAreTaken(t *testing.T) {
	for _, schema := range []string{
		`{"type":"string","minLength":1,"maxLength":9,"pattern":"^a"}`, `{"type":"string","format":"date-time"}`,
		`{"type":["string","null"],"enum":["a",null]}`, `{"type":"integer","minimum":1,"exclusiveMaximum":9,"multipleOf":2}`,
		`{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":3}`, `{"anyOf":[{"type":"string"},{"type":"null"}]}`,
		`{"$ref":"#/properties/a/b"}`, `{"title":"A","description":"b","type":"string","const":"x"}`,
		`{"type":"object","properties":{"b":{"type":"string"}},"required":["b"],"additionalProperties":false}`,
	} {
		offered, findings := offer(t, property(schema), dialects.DefinitionOptions{Strict: true})
		assert.Empty(t, findings, schema)
		assert.True(t, offered.Strict)
		assert.Equal(t, property(schema), string(offered.Parameters))
	}
}

func TestStrictSchemasAreAdapted(t *testing.T) {
	for name, test := range map[string]struct {
		given, adapted string // schemas of the property a
		found          []string
	}{
		"a format": {
			`{"type":"string","format":"uri"}`, `{"type":"string","description":"(format: uri)"}`,
			[]string{"properties.a.format refused"},
		},
		"a default": {
			`{"type":"integer","description":"How many.","default":10}`, `{"type":"integer","description":"How many. (default: 10)"}`,
			[]string{"properties.a.default weakened"},
		},
		"oneOf": {
			`{"oneOf":[{"type":"string"},{"type":"object","properties":{"b":{"type":"string"}},"required":["b"]}]}`,
			`{"anyOf":[{"type":"string"},{"type":"object","properties":{"b":{"type":"string"}},"required":["b"],"additionalProperties":false}]}`,
			[]string{"properties.a.oneOf refused", "properties.a.oneOf[1].additionalProperties refused"},
		},
		"allOf": {
			`{"allOf":[{"type":"object","properties":{"b":{"type":"string"}},"required":["b"]}]}`,
			`{"type":"object","properties":{"b":{"type":"string"}},"required":["b"],"additionalProperties":false}`,
			[]string{"properties.a.allOf refused"},
		},
		"a reference with a description": {
			`{"$ref":"#/properties/a/x","description":"b"}`, `{"description":"b","anyOf":[{"$ref":"#/properties/a/x"}]}`,
			[]string{"properties.a.$ref refused"},
		},
		"what only narrows": {
			`{"type":"array","items":{"type":"string"},"uniqueItems":true}`, `{"type":"array","items":{"type":"string"},"description":"(uniqueItems: true)"}`,
			[]string{"properties.a.uniqueItems refused"},
		},
		"keywords of others": {
			`{"type":"string","x-order":1,"deprecated":true}`, `{"type":"string"}`,
			[]string{"properties.a.x-order weakened", "properties.a.deprecated weakened"},
		},
		"unevaluated": {
			`{"type":"object","properties":{"b":{"type":"string"}},"required":["b"],"unevaluatedProperties":false}`,
			`{"type":"object","properties":{"b":{"type":"string"}},"required":["b"],"additionalProperties":false}`,
			[]string{"properties.a.unevaluatedProperties refused", "properties.a.additionalProperties refused"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			offered, findings := offer(t, property(test.given), dialects.DefinitionOptions{Strict: true})
			assert.Equal(t, property(test.given), string(offered.Parameters), "it is left alone")
			assert.Subset(t, brief(findings), test.found)
			assert.True(t, offered.Strict)

			offered, findings = offer(t, property(test.given), dialects.DefinitionOptions{Strict: true, Adapt: true})
			assert.JSONEq(t, property(test.adapted), string(offered.Parameters))
			assert.True(t, offered.Strict)
			for _, found := range brief(findings) {
				assert.True(t, strings.HasSuffix(found, " adapted"), found)
			}
			again, findings := offer(t, string(offered.Parameters), dialects.DefinitionOptions{Strict: true, Adapt: true})
			assert.Empty(t, findings, "an adapted schema needs no adapting")
			assert.Equal(t, string(offered.Parameters), string(again.Parameters))
		})
	}
}

func TestAllIsSaidAtOnce(t *testing.T) {
	_, findings := offer(t, `{"type":"object","properties":{"a":{},"b":{"type":"string","format":"uri"}},"required":["a","b"],"additionalProperties":false}`, dialects.DefinitionOptions{Strict: true})
	assert.Equal(t, []string{"properties refused", "properties.b.format refused"}, brief(findings))
}

func TestOptionalPropertiesMayBeNull(t *testing.T) {
	offered, findings := offer(t, `{"type":"object","properties":{"a":{"type":"string","enum":["x"]},"b":{"type":"string"}},"required":["b"]}`,
		dialects.DefinitionOptions{Strict: true, Adapt: true})
	assert.JSONEq(t, `{"type":"object","properties":{"a":{"type":["string","null"],"enum":["x",null]},"b":{"type":"string"}},"required":["a","b"],"additionalProperties":false}`,
		string(offered.Parameters))
	assert.Equal(t, []string{"additionalProperties refused adapted", "required refused adapted"}, brief(findings))
}

// TestWhatCannotBeStrictIsOfferedWithout: the request is taken, and the schema still tells the model.
func TestWhatCannotBeStrictIsOfferedWithout(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","additionalProperties":{"type":"string"}}`, `{"type":"object","patternProperties":{"^x":{"type":"string"}}}`,
		`{"type":"array","prefixItems":[{"type":"string"}]}`, `{"type":"object","properties":{},"if":{},"then":{}}`, `true`, `{}`,
		`{"description":"anything"}`, `{"anyOf":[{"type":"string"},{}]}`, `{"type":"array","items":{"minLength":1}}`,
		`{"$ref":"https://example.com/schema.json"}`, `{"$ref":"#/properties/a","minLength":2}`,
		`{"allOf":[{"type":"string"},{"type":"integer"}]}`,
	} {
		strict, findings := offer(t, property(schema), dialects.DefinitionOptions{Strict: true})
		assert.True(t, strict.Strict, "only Adapt changes what was asked for")
		assert.NotEmpty(t, findings, schema)

		offered, findings := offer(t, property(schema), dialects.DefinitionOptions{Strict: true, Adapt: true})
		assert.False(t, offered.Strict, schema)
		assert.JSONEq(t, property(schema), string(offered.Parameters))
		require.NotEmpty(t, findings)
		for _, finding := range findings {
			assert.Equal(t, dialects.Weakened, finding.Severity, schema)
			assert.True(t, finding.Adapted)
			assert.Contains(t, finding.Message, "the model is not held to this tool's schema")
		}
	}
}

func TestWithoutStrictLittleIsRefused(t *testing.T) {
	free := property(`{"type":"object","patternProperties":{"^x":{"oneOf":[{"format":"uri","default":1}]}}}`)
	offered, findings := offer(t, free, dialects.DefinitionOptions{Adapt: true})
	assert.Empty(t, findings)
	assert.JSONEq(t, free, string(offered.Parameters))

	for name, test := range map[string]struct {
		given, adapted string
		found          []string
	}{
		"no schema":    {``, `{"type":"object","properties":{}}`, []string{}},
		"no type":      {`{}`, `{"type":"object","properties":{}}`, []string{"type refused adapted", "properties refused adapted"}},
		"bare arrays":  {property(`{"type":["array","null"]}`), property(`{"type":["array","null"],"items":{}}`), []string{"properties.a.type refused adapted"}},
		"anyOf at top": {`{"type":"object","properties":{},"anyOf":[{"required":["a"]}]}`, `{"type":"object","properties":{},"description":"(anyOf: [{\"required\":[\"a\"]}])"}`, []string{"anyOf refused adapted"}},
		"allOf at top": {`{"type":"object","allOf":[{"properties":{"a":{"type":"string"}}}]}`, `{"type":"object","properties":{"a":{"type":"string"}}}`, []string{"properties refused adapted", "allOf refused adapted"}},
	} {
		t.Run(name, func(t *testing.T) {
			offered, findings := offer(t, test.given, dialects.DefinitionOptions{Adapt: true})
			assert.JSONEq(t, test.adapted, string(offered.Parameters))
			assert.ElementsMatch(t, test.found, brief(findings))
			assert.False(t, offered.Strict)
		})
	}
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
		deep = property(deep)
	}
	for name, schema := range map[string]string{
		"properties": wide, "depth": deep,
		"enum": property(`{"type":"integer","enum":[` + strings.Repeat("1,", 1000) + `1]}`),
		"text": property(`{"type":"string","const":"` + strings.Repeat("x", 120_000) + `"}`),
	} {
		_, findings := offer(t, schema, dialects.DefinitionOptions{Strict: true})
		require.Len(t, findings, 1, name)
		assert.Equal(t, dialects.Refused, findings[0].Severity)
	}
}
