package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/tool"
)

func definitionOf(name, schema string) tool.Definition {
	return tool.Definition{Name: name, Description: "does <it>", Parameters: json.RawMessage(schema)}
}

func offered(t *testing.T, options dialects.DefinitionOptions, definitions ...tool.Definition) (string, string) {
	t.Helper()
	written, findings, err := New().Definitions(definitions, options)
	require.NoError(t, err)
	again, _, err := New().Definitions(definitions, options)
	require.NoError(t, err)
	require.Equal(t, string(written), string(again))
	require.NotNil(t, findings)
	var said []string
	for _, f := range findings {
		assert.NotEmpty(t, f.Message)
		assert.NotEmpty(t, f.Fix)
		line := fmt.Sprintf("%s %s %s %s", f.Tool, f.Severity, f.Keyword, f.Path)
		if f.Adapted {
			line += " adapted"
		}
		said = append(said, line)
	}
	return string(written), strings.Join(said, "\n")
}

const city = `{"type": "object", "properties": {"city": {"type": "string", "minLength": 1, "format": "city"}, "days": {"type": "integer", "maximum": 9}}, "required": ["city"]}`

func TestRowS2_2DefinitionsAreOffered(t *testing.T) {
	written, found := offered(t, dialects.DefinitionOptions{}, definitionOf("weather", city), tool.Definition{Name: "clock"})
	assert.Empty(t, found)
	assert.Equal(t, `[{"name":"weather","description":"does <it>","input_schema":{"type":"object","properties":{"city":{"type":"string","minLength":1,"format":"city"},"days":{"type":"integer","maximum":9}},"required":["city"]}},`+
		`{"name":"clock","input_schema":{"type":"object","properties":{}}}]`, written)
	written, found = offered(t, dialects.DefinitionOptions{Strict: true, Adapt: true})
	assert.Equal(t, "[]", written)
	assert.Empty(t, found)
}

func TestStrictDefinitions(t *testing.T) {
	_, found := offered(t, dialects.DefinitionOptions{Strict: true}, definitionOf("weather", city))
	assert.ElementsMatch(t, []string{
		"weather refused additionalProperties additionalProperties",
		"weather refused minLength properties.city.minLength",
		"weather refused format properties.city.format",
		"weather refused maximum properties.days.maximum",
	}, strings.Split(found, "\n"))
	written, found := offered(t, dialects.DefinitionOptions{Strict: true, Adapt: true}, definitionOf("weather", city))
	assert.Equal(t, 4, strings.Count(found, " adapted"), found)
	assert.Equal(t, `[{"name":"weather","description":"does <it>","input_schema":{"type":"object","properties":{"city":{"type":"string","description":"(minLength: 1) (format: city)"},"days":{"type":"integer","description":"(maximum: 9)"}},"required":["city"],"additionalProperties":false},"strict":true}]`, written)
}

func property(schema string) string {
	return `{"type":"object","properties":{"p":` + schema + `},"additionalProperties":false}`
}

func TestWhatStrictTakes(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"string","format":"uuid"}`:                              "",
		`{"type":"string","pattern":"^[a-z]{2,3}$"}`:                     "",
		`{"type":"string","pattern":"\\bword"}`:                          "pattern",
		`{"type":"string","pattern":"(?=x)"}`:                            "pattern",
		`{"type":"string","pattern":"(a)\\1"}`:                           "pattern",
		`{"type":"array","items":{"type":"string"},"minItems":1}`:        "",
		`{"type":"array","items":{"type":"string"},"minItems":2}`:        "minItems",
		`{"type":"array","items":{"type":"string"},"maxItems":2}`:        "maxItems",
		`{"type":["string","null"],"enum":["a",null,1,true]}`:            "",
		`{"enum":[{"a":1}]}`:                                             "enum",
		`{"const":"a","default":"a"}`:                                    "",
		`{"anyOf":[{"type":"string"},{"type":"null"}]}`:                  "",
		`{"oneOf":[{"type":"string"},{"type":"null"}]}`:                  "oneOf",
		`{"allOf":[{"type":"string"}]}`:                                  "",
		`{"allOf":[{"$ref":"#/$defs/x"}]}`:                               "allOf",
		`{"$ref":"https://example.com/schema.json"}`:                     "$ref",
		`{"type":"object","properties":{},"additionalProperties":false}`: "",
		`{"type":"object","properties":{}}`:                              "additionalProperties",
		`{"not":{"type":"string"}}`:                                      "not",
	} {
		_, findings, err := New().Definitions([]tool.Definition{definitionOf("f", property(schema))}, dialects.DefinitionOptions{Strict: true})
		require.NoError(t, err)
		keywords := []string{}
		for _, f := range findings {
			assert.Equal(t, dialects.Refused, f.Severity)
			keywords = append(keywords, f.Keyword)
		}
		assert.Equal(t, want, strings.Join(keywords, " "), schema)
	}
	recursive := `{"type":"object","properties":{"next":{"$ref":"#"}},"additionalProperties":false}`
	_, found := offered(t, dialects.DefinitionOptions{Strict: true}, definitionOf("f", recursive))
	assert.Contains(t, found, "refused")
}

// TestAToolThatCannotBeStrictIsOfferedWithout, and the findings say so.
func TestAToolThatCannotBeStrictIsOfferedWithout(t *testing.T) {
	free := property(`{"type":"object","additionalProperties":{"type":"string"}}`)
	written, found := offered(t, dialects.DefinitionOptions{Strict: true, Adapt: true}, definitionOf("f", free))
	assert.Equal(t, "f weakened additionalProperties properties.p.additionalProperties adapted", found)
	assert.Equal(t, `[{"name":"f","description":"does <it>","input_schema":`+free+`}]`, written)
	written, found = offered(t, dialects.DefinitionOptions{Strict: true}, definitionOf("f", free))
	assert.Equal(t, "f refused additionalProperties properties.p.additionalProperties", found)
	assert.Contains(t, written, `"strict":true`)
}

func TestNoMoreThanTwentyToolsAreStrict(t *testing.T) {
	var definitions []tool.Definition
	for n := range 22 {
		definitions = append(definitions, definitionOf(fmt.Sprint("f", n), property(`{"type":"string"}`)))
	}
	written, found := offered(t, dialects.DefinitionOptions{Strict: true, Adapt: true}, definitions...)
	assert.Equal(t, "f20 refused strict  adapted\nf21 refused strict  adapted", found)
	assert.Equal(t, 20, strings.Count(written, `"strict":true`))
	written, found = offered(t, dialects.DefinitionOptions{Strict: true}, definitions...)
	assert.Equal(t, "f20 refused strict \nf21 refused strict ", found)
	assert.Equal(t, 22, strings.Count(written, `"strict":true`))
}

func TestRootAndNames(t *testing.T) {
	_, found := offered(t, dialects.DefinitionOptions{}, definitionOf("a.b", `{"anyOf":[]}`), definitionOf("f", property("{}")), definitionOf("f", `{"type":"object","properties":{"a b":{}}}`))
	assert.Equal(t, strings.Join([]string{
		"a.b refused name ", "a.b refused type type", "a.b refused properties properties", "a.b refused anyOf anyOf",
		"f refused name ", "f refused properties properties.a b",
	}, "\n"), found)
	written, _ := offered(t, dialects.DefinitionOptions{Adapt: true}, definitionOf("f", `{"oneOf":[{"required":["a"]}],"properties":{"a":{}}}`),
		definitionOf("g", `{"type":"object","allOf":[{"properties":{"a":{"type":"string"}}}]}`))
	assert.Contains(t, written, `"input_schema":{"type":"object","properties":{"a":{}},"description":"(oneOf: [{\"required\":[\"a\"]}])"}`)
	assert.Contains(t, written, `"input_schema":{"type":"object","properties":{"a":{"type":"string"}}}`)
}

func TestASchemaThatIsNoneIsRefused(t *testing.T) {
	for _, strict := range []bool{false, true} {
		_, _, err := New().Definitions([]tool.Definition{{Name: "a"}, definitionOf("b", `[1]`)}, dialects.DefinitionOptions{Strict: strict})
		var typed *dialects.Error
		require.ErrorAs(t, err, &typed)
		assert.Equal(t, "[1].parameters", typed.Path)
		assert.Equal(t, dialects.Anthropic, typed.Dialect)
	}
}
