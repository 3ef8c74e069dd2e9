package schema

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// keywordsOfAll are keywords of all kinds, some of them older or misspelt.
var keywordsOfAll = strings.Fields(`type enum const required properties $defs definitions patternProperties additionalProperties items additionalItems
	prefixItems anyOf oneOf allOf not if then else contains minContains propertyNames dependentSchemas dependentRequired dependencies
	minLength maxLength minItems maxItems minProperties maxProperties minimum maximum exclusiveMinimum exclusiveMaximum multipleOf
	pattern format title description default examples deprecated readOnly writeOnly uniqueItems $comment $ref $dynamicRef $recursiveRef
	$id $anchor $dynamicAnchor $recursiveAnchor contentEncoding unevaluatedItems unevaluatedProperties minimun x-mine`)

var valuesOfAll = strings.Fields(`null true false 0 1 -1 1.0 1.5 1e2 1E2 -0 0.0 00x "" "a" "string" "str\u0069ng" "null" "any" "#/$defs/a" "(" [] [1] ["a"] ["a","a"] ["a","\u0061"]
	["a",1] ["string"] ["string","null"] ["string","string"] [{}] [true,false] [[]] {} {"a":{}} {"a":true} {"a":1} {"a":["b"]} {"(":{}}`)

// TestCommonForms: whatever is taken for a common form, the library allows.
func TestCommonForms(t *testing.T) {
	g := generator{rand.New(rand.NewPCG(5, 6))}
	common, rare := 0, 0
	for range 40_000 {
		keywords := map[string]string{}
		for range 1 + g.IntN(3) {
			keywords[g.pick(keywordsOfAll...)] = g.pick(valuesOfAll...)
		}
		var members []string
		for keyword, value := range keywords {
			members = append(members, fmt.Sprintf("%q:%s", keyword, value))
		}
		source := "{" + strings.Join(members, ",") + "}"
		v, err := read(t.Context(), source, MaxSchemaBytes, maxSchemaNameBytes)
		if err != nil {
			continue
		}
		c := &compiler{draft: draft(g.IntN(len(metaSchemas)))}
		meta, err := jsonschema.Compile(metaSchemas[c.draft])
		require.NoError(t, err)
		if !c.isCommon(v) {
			rare++
			continue
		}
		common++
		require.NoError(t, meta.Validate(c.form(v)), source)
	}
	assert.Greater(t, common, 1000)
	assert.Greater(t, rare, 2000)
}

// TestUsualSchemasAreCommon: the library, which takes most of the time, is not asked about them.
func TestUsualSchemasAreCommon(t *testing.T) {
	for source, common := range map[string]bool{
		`{"type":"object","properties":{"path":{}},"required":["path"],"additionalProperties":false}`:        true,
		`{"type":"string","minLength":1,"maxLength":4096,"description":"Where.","default":"a","format":"x"}`: true,
		`{"type":"array","items":{},"minItems":1,"uniqueItems":true}`:                                        true,
		`{"anyOf":[{},{}],"enum":[1,"b"],"minimum":0.5,"$ref":"#/$defs/a","$defs":{"a":{}}}`:                 true,
		`{"type":["string","null"]}`: false,
		`{"pattern":"^a"}`:           false,
		`{"minLength":-1}`:           false,
		`{"required":["a","a"]}`:     false,
		`{"properties":[]}`:          false,
	} {
		v, err := read(t.Context(), source, MaxSchemaBytes, maxSchemaNameBytes)
		require.NoError(t, err)
		assert.Equal(t, common, (&compiler{draft: draft2020}).isCommon(v), source)
		assert.False(t, (&compiler{draft: draft7}).isCommon(v), "what older drafts allow is not written down here: %s", source)
	}
}
