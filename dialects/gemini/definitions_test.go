package gemini

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

func definition(name, schema string) tool.Definition {
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

const city = `{"type": "object", "properties": {"city": {"type": "string", "format": "city"}}, "required": ["city"]}`

func TestRowS2_2DefinitionsAreOffered(t *testing.T) {
	for _, options := range []dialects.DefinitionOptions{{}, {Strict: true}, {Adapt: true}} {
		written, found := offered(t, options, definition("weather", city), tool.Definition{Name: "clock"})
		assert.Empty(t, found)
		assert.Equal(t, `[{"functionDeclarations":[{"name":"weather","description":"does <it>",`+
			`"parametersJsonSchema":{"type":"object","properties":{"city":{"type":"string","format":"city"}},"required":["city"]}},{"name":"clock"}]}]`, written)
	}
	written, found := offered(t, dialects.DefinitionOptions{Strict: true, Adapt: true})
	assert.Equal(t, "[]", written)
	assert.Empty(t, found)
}

// TestWhatIsTakenOfASchema: for each schema of a property what is said of it, and what Adapt
// makes of it.
func TestWhatIsTakenOfASchema(t *testing.T) {
	for schema, want := range map[string][2]string{
		`{"type":"string","title":"A","description":"b"}`:                  {"", ""},
		`{"type":["integer","null"],"minimum":1,"maximum":9,"enum":[1,2]}`: {"", ""},
		`{"type":"array","prefixItems":[{"type":"string"}],"minItems":1}`:  {"", ""},
		`{"type":"object","additionalProperties":{"type":"string"}}`:       {"", ""},
		`{"anyOf":[{"type":"string"},{"type":"null"}]}`:                    {"", ""},
		`{"$ref":"#/$defs/x"}`:                                {"", ""},
		`{"type":"string","minLength":1}`:                     {"weakened minLength", `{"type":"string","description":"(minLength: 1)"}`},
		`{"type":"string","pattern":"^a$","description":"b"}`: {"weakened pattern", `{"type":"string","description":"b (pattern: ^a$)"}`},
		`{"type":"integer","exclusiveMinimum":0}`:             {"weakened exclusiveMinimum", `{"type":"integer","minimum":1}`},
		`{"type":"number","exclusiveMaximum":0.5}`:            {"weakened exclusiveMaximum", `{"type":"number","description":"(exclusiveMaximum: 0.5)"}`},
		`{"const":"a"}`:                                       {"weakened const", `{"enum":["a"]}`},
		`{"const":true}`:                                      {"weakened const", `{"description":"(const: true)"}`},
		`{"enum":["a",null]}`:                                 {"weakened enum", `{"description":"(enum: [\"a\",null])"}`},
		`{"oneOf":[{"type":"string"},{"const":1}]}`:           {"weakened oneOf,weakened const", `{"anyOf":[{"type":"string"},{"enum":[1]}]}`},
		`{"allOf":[{"type":"string"},{"minLength":2}]}`:       {"weakened allOf,weakened minLength", `{"type":"string","description":"(minLength: 2)"}`},
		`{"allOf":[{"type":"string"},{"type":"integer"}]}`:    {"weakened allOf", `{"description":"(allOf: [{\"type\":\"string\"},{\"type\":\"integer\"}])"}`},
		`{"$ref":"#/$defs/x","description":"b"}`:              {"refused $ref", `{"$ref":"#/$defs/x"}`},
		`{"not":{"type":"string"}}`:                           {"weakened not", `{"description":"(not: {\"type\":\"string\"})"}`},
		`{"$comment":"a","type":"string"}`:                    {"weakened $comment", `{"type":"string"}`},
	} {
		wrapped := func(property string) string {
			return `{"type":"object","properties":{"p":` + property + `},"$defs":{"x":{"type":"string"}}}`
		}
		written, findings, err := New().Definitions([]tool.Definition{definition("f", wrapped(schema))}, dialects.DefinitionOptions{})
		require.NoError(t, err)
		assert.Contains(t, string(written), wrapped(schema))
		said := []string{}
		for _, f := range findings {
			said = append(said, fmt.Sprintf("%s %s", f.Severity, f.Keyword))
		}
		assert.Equal(t, want[0], strings.Join(said, ","), schema)
		adapted, findings, err := New().Definitions([]tool.Definition{definition("f", wrapped(schema))}, dialects.DefinitionOptions{Adapt: true})
		require.NoError(t, err)
		for _, f := range findings {
			assert.True(t, f.Adapted, schema)
		}
		if want[1] == "" {
			want[1] = schema
		}
		assert.Contains(t, string(adapted), wrapped(want[1]))
	}
}

func TestReferencesElsewhereStay(t *testing.T) {
	_, found := offered(t, dialects.DefinitionOptions{Adapt: true}, definition("f", `{"type":"object","properties":{"p":{"$ref":"https://example.com/x"}}}`))
	assert.Equal(t, "f refused $ref properties.p.$ref", found)
}

func TestNamesAndRoot(t *testing.T) {
	_, found := offered(t, dialects.DefinitionOptions{}, definition("a.b:c-d_e", city), definition("9a", city), definition("a b", `{"type":"array"}`), definition("9a", city),
		definition(strings.Repeat("a", 129), city))
	assert.Equal(t, strings.Join([]string{
		"9a refused name ", "a b refused name ", "a b refused type type", "a b refused properties properties", "9a refused name ", "9a refused name ",
		strings.Repeat("a", 129) + " refused name ",
	}, "\n"), found)
}

func TestASchemaThatIsNoneIsRefused(t *testing.T) {
	_, _, err := New().Definitions([]tool.Definition{{Name: "a"}, definition("b", `[1]`)}, dialects.DefinitionOptions{})
	var typed *dialects.Error
	require.ErrorAs(t, err, &typed)
	assert.Equal(t, "[1].parameters", typed.Path)
	assert.Equal(t, dialects.Gemini, typed.Dialect)
}
