package gemini

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/dialects/internal/dialecttest"
	"github.com/caisson-run/caisson/tool"
)

const city = `{"type": "object", "properties": {"city": {"type": "string", "format": "city"}}, "required": ["city"]}`

func TestRowS2_2DefinitionsAreOffered(t *testing.T) {
	for _, strict := range []bool{false, true} {
		written, found := dialecttest.Offered(t, New(), strict, dialecttest.Definition("weather", city), tool.Definition{Name: "clock"})
		assert.Empty(t, found)
		assert.Equal(t, `[{"functionDeclarations":[{"name":"weather","description":"does <it>",`+
			`"parametersJsonSchema":{"type":"object","properties":{"city":{"type":"string","format":"city"}},"required":["city"]}},{"name":"clock"}]}]`, written)
	}
	written, found := dialecttest.Offered(t, New(), true)
	assert.Equal(t, "[]", written)
	assert.Empty(t, found)
}

// TestWhatIsTakenOfASchema: for each schema of a property what is said of it.
func TestWhatIsTakenOfASchema(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"string","title":"A","description":"b"}`:                  "",
		`{"type":["integer","null"],"minimum":1,"maximum":9,"enum":[1,2]}`: "",
		`{"type":"array","prefixItems":[{"type":"string"}],"minItems":1}`:  "",
		`{"type":"object","additionalProperties":{"type":"string"}}`:       "",
		`{"anyOf":[{"type":"string"},{"type":"null"}]}`:                    "",
		`{"$ref":"#/$defs/x"}`:                                "",
		`{"type":"string","minLength":1}`:                     "weakened minLength properties.p.minLength",
		`{"type":"string","pattern":"^a$","description":"b"}`: "weakened pattern properties.p.pattern",
		`{"type":"integer","exclusiveMinimum":0}`:             "weakened exclusiveMinimum properties.p.exclusiveMinimum",
		`{"const":"a"}`:                                       "weakened const properties.p.const",
		`{"enum":["a",null]}`:                                 "weakened enum properties.p.enum",
		`{"oneOf":[{"type":"string"},{"const":1}]}`:           "weakened oneOf properties.p.oneOf\nf weakened const properties.p.oneOf[1].const",
		`{"allOf":[{"type":"string"},{"minLength":2}]}`:       "weakened allOf properties.p.allOf\nf weakened minLength properties.p.allOf[1].minLength",
		`{"$ref":"#/$defs/x","description":"b"}`:              "refused $ref properties.p.$ref",
		`{"$ref":"https://example.com/x"}`:                    "refused $ref properties.p.$ref",
		`{"$ref":"#"}`:                                        "weakened $ref",
		`{"not":{"type":"string"}}`:                           "weakened not properties.p.not",
		`{"$comment":"a","type":"string"}`:                    "weakened $comment properties.p.$comment",
	} {
		schema = `{"type":"object","properties":{"p":` + schema + `},"$defs":{"x":{"type":"string"}}}`
		written, found := dialecttest.Offered(t, New(), true, dialecttest.Definition("f", schema))
		assert.Contains(t, written, schema)
		assert.Equal(t, want, strings.TrimPrefix(found, "f "), schema)
	}
}

func TestNamesAndRoot(t *testing.T) {
	long := strings.Repeat("a", 129)
	_, found := dialecttest.Offered(t, New(), false, dialecttest.Definition("a.b:c-d_e", city), dialecttest.Definition("9a", city),
		dialecttest.Definition("a b", `{"type":"array"}`), dialecttest.Definition("9a", city), dialecttest.Definition(long, city))
	assert.Equal(t, strings.Join([]string{
		"9a refused name", "a b refused name", "a b refused type type", "a b refused properties properties", "9a refused name", "9a refused name", long + " refused name",
	}, "\n"), found)
}
