package anthropic

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/dialects/internal/dialecttest"
	"github.com/caisson-run/caisson/tool"
)

const city = `{"type": "object", "properties": {"city": {"type": "string", "minLength": 1, "format": "city"}, "days": {"type": "integer", "maximum": 9}}, "required": ["city"]}`

func TestRowS2_2DefinitionsAreOffered(t *testing.T) {
	written, found := dialecttest.Offered(t, New(), false, dialecttest.Definition("weather", city), tool.Definition{Name: "clock"})
	assert.Empty(t, found)
	assert.Equal(t, `[{"name":"weather","description":"does <it>","input_schema":{"type":"object","properties":{"city":{"type":"string","minLength":1,"format":"city"},"days":{"type":"integer","maximum":9}},"required":["city"]}},`+
		`{"name":"clock","input_schema":{"type":"object","properties":{}}}]`, written)
	written, found = dialecttest.Offered(t, New(), true)
	assert.Equal(t, "[]", written)
	assert.Empty(t, found)
}

func TestStrictDefinitions(t *testing.T) {
	written, found := dialecttest.Offered(t, New(), true, dialecttest.Definition("weather", city))
	assert.ElementsMatch(t, []string{
		"weather refused additionalProperties additionalProperties adapted",
		"weather refused minLength properties.city.minLength adapted",
		"weather refused format properties.city.format adapted",
		"weather refused maximum properties.days.maximum adapted",
	}, strings.Split(found, "\n"))
	assert.Equal(t, `[{"name":"weather","description":"does <it>","input_schema":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"],"additionalProperties":false},"strict":true}]`, written)
}

func TestWhatStrictTakes(t *testing.T) {
	const adapted, without = "refused %s properties.p.%[1]s adapted", "weakened %s properties.p.%[1]s adapted"
	for schema, want := range map[string]struct{ keyword, found string }{
		`{"type":"string","format":"uuid"}`:                              {},
		`{"type":"string","pattern":"^[a-z]{2,3}$"}`:                     {},
		`{"type":"string","pattern":"\\bword"}`:                          {"pattern", adapted},
		`{"type":"string","pattern":"(?=x)"}`:                            {"pattern", adapted},
		`{"type":"string","pattern":"(a)\\1"}`:                           {"pattern", adapted},
		`{"type":"array","items":{"type":"string"},"minItems":1}`:        {},
		`{"type":"array","items":{"type":"string"},"minItems":2}`:        {"minItems", adapted},
		`{"type":"array","items":{"type":"string"},"maxItems":2}`:        {"maxItems", adapted},
		`{"type":["string","null"],"enum":["a",null,1,true]}`:            {},
		`{"enum":[{"a":1}]}`:                                             {"enum", without},
		`{"const":"a","default":"a"}`:                                    {},
		`{"anyOf":[{"type":"string"},{"type":"null"}]}`:                  {},
		`{"oneOf":[{"type":"string"},{"type":"null"}]}`:                  {"oneOf", without},
		`{"allOf":[{"type":"string"}]}`:                                  {},
		`{"allOf":[{"$ref":"#/$defs/x"}]}`:                               {"allOf", without},
		`{"$ref":"https://example.com/schema.json"}`:                     {"$ref", without},
		`{"type":"object","properties":{},"additionalProperties":false}`: {},
		`{"type":"object","properties":{}}`:                              {"additionalProperties", without},
		`{"type":"object","additionalProperties":{"type":"string"}}`:     {"additionalProperties", without},
		`{"not":{"type":"string"}}`:                                      {"not", adapted},
		`{"if":{"type":"string"}}`:                                       {"if", without},
	} {
		schema = dialecttest.With(schema)
		written, found := dialecttest.Offered(t, New(), true, dialecttest.Definition("f", schema))
		if want.keyword != "" {
			want.found = "f " + fmt.Sprintf(want.found, want.keyword)
		}
		assert.Equal(t, want.found, found, schema)
		offered := strings.Contains(written, `"strict":true`)
		assert.NotEqual(t, strings.Contains(found, "weakened"), offered, "what cannot be strict is offered without")
		assert.Equal(t, strings.Contains(found, "refused"), !strings.Contains(written, schema), "and as it is")
	}
	_, found := dialecttest.Offered(t, New(), true, dialecttest.Definition("f", dialecttest.With(`{"$ref":"#"}`)))
	assert.Equal(t, "f weakened $ref adapted", found, "a schema that refers to itself")
}

func TestNoMoreThanTwentyToolsAreStrict(t *testing.T) {
	var definitions []tool.Definition
	for n := range 22 {
		definitions = append(definitions, dialecttest.Definition(fmt.Sprint("f", n), dialecttest.With(`{"type":"string"}`)))
	}
	written, found := dialecttest.Offered(t, New(), true, definitions...)
	assert.Equal(t, "f20 refused strict adapted\nf21 refused strict adapted", found)
	assert.Equal(t, 20, strings.Count(written, `"strict":true`))
}

func TestRootAndNames(t *testing.T) {
	_, found := dialecttest.Offered(t, New(), false, dialecttest.Definition("a.b", `{"anyOf":[]}`), dialecttest.Definition("f", dialecttest.With("{}")),
		dialecttest.Definition("f", `{"type":"object","properties":{"a b":{}}}`))
	assert.Equal(t, strings.Join([]string{
		"a.b refused name", "a.b refused type type", "a.b refused properties properties", "a.b refused anyOf anyOf",
		"f refused name", "f refused properties properties.a b",
	}, "\n"), found)
}
