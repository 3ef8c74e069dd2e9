package schema_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/schema"
)

func TestCompileReportsEveryProblem(t *testing.T) {
	cases := map[string]struct {
		source string
		want   []schema.Problem
	}{
		"not JSON":            {`{`, []schema.Problem{{"", "not JSON: it ends too early, at byte 1"}}},
		"not a schema":        {`5`, []schema.Problem{{"", "want a JSON Schema, which is an object; got integer"}}},
		"a key twice":         {`{"type":"object","type":"string"}`, []schema.Problem{{"type", `the name "type" occurs twice in one object; give it once`}}},
		"unknown type":        {`{"type":"strin"}`, []schema.Problem{{"type", `unknown type "strin"; want one of string, number, integer, boolean, object, array, null`}}},
		"empty enum":          {`{"properties":{"a":{"enum":[]}}}`, []schema.Problem{{"properties.a.enum", "an empty list allows nothing; list the allowed values or leave enum out"}}},
		"several at once":     {`{"required":"a","minLength":-1,"minimum":"x","title":4}`, []schema.Problem{{"minLength", "want a whole number from 0 to 2147483647, got -1"}, {"minimum", "want number, got string"}, {"required", "want array, got string"}, {"title", "want string, got number"}}},
		"no schema":           {`{"properties":{"a":5}}`, []schema.Problem{{"properties.a", "want a schema, got integer"}}},
		"text cut by a comma": {`{"description":"one","or two":null}`, []schema.Problem{{`["or two"]`, "a keyword without a value; put quotes around a text that holds a comma"}}},
		"misspelt keyword":    {`{"items":{"requird":["a"]}}`, []schema.Problem{{"items.requird", "unknown keyword; did you mean required?"}}},
		"a member beside properties": {`{"type":"object","properties":{"a":{}},"b":{"type":"string"},"items":{"c":{"enum":[1]},"x-c":{"type":"string"},"note":{"type":"remark"}}}`, []schema.Problem{
			{"b", "unknown keyword; write a member of the object under properties, as {type: object, properties: {b: …}}"},
			{"items.c", "unknown keyword; write a member of the object under properties, as {type: object, properties: {c: …}}"}}},
		"members by their types": {`{"type":"object","a":"string","b":"integer"}`, []schema.Problem{
			{"a", "unknown keyword; write a member of the object under properties, as {type: object, properties: {a: …}}"},
			{"b", "unknown keyword; write a member of the object under properties, as {type: object, properties: {b: …}}"}}},
		"unknown dialect":      {`{"$schema":"http://json-schema.org/draft-04/schema#"}`, []schema.Problem{{"$schema", `unsupported dialect "http://json-schema.org/draft-04/schema#"; leave $schema out for draft 2020-12, or name that of 2019-09, draft-07 or draft-06`}}},
		"an id twice":          {`{"$id":"https://example.com/a","properties":{"a":{"$id":"a"}}}`, []schema.Problem{{"properties.a.$id", `another schema has the $id "https://example.com/a", too`}}},
		"an id that names":     {`{"properties":{"a":{"$id":"x#a"}}}`, []schema.Problem{{"properties.a.$id", "want an address without #a; a name within it is for $anchor"}}},
		"an id of no address":  {`{"properties":{"a":{"$id":"%zz"}}}`, []schema.Problem{{"properties.a.$id", "want the address of a schema, a URI, such as item.json or urn:example:item"}}},
		"a long id":            {`{"properties":{"a":{"$id":"` + strings.Repeat("x", 2049) + `"}}}`, []schema.Problem{{"properties.a.$id", "the address is too long; shorten it"}}},
		"another draft within": {`{"properties":{"a":{"$id":"x","$schema":"http://json-schema.org/draft-07/schema#"}}}`, []schema.Problem{{"properties.a.$schema", "a schema within another one must be of the same draft; leave $schema out"}}},
		"a draft without id":   {`{"properties":{"a":{"$schema":"https://json-schema.org/draft/2020-12/schema"}}}`, []schema.Problem{{"properties.a.$schema", "$schema works at the top of a schema only, or beside an $id"}}},
		"elsewhere":            {`{"$ref":"https://example.com/a#b"}`, []schema.Problem{{"$ref", `"https://example.com/a#b" is outside of the schema: no schema in it has that $id, and none is loaded`}}},
		"elsewhere by its id":  {`{"properties":{"a":{"$id":"https://example.com/a","$ref":"#/$defs/b"}},"$defs":{"b":{}}}`, []schema.Problem{{"properties.a.$ref", `no schema stands at "#/$defs/b"`}}},
		"endless by an id":     {`{"$id":"https://example.com/a","$ref":"/b","$defs":{"b":{"$id":"b","$ref":"a"}}}`, []schema.Problem{{"", "the schema refers to itself without end"}}},
		"endless dynamically":  {`{"$dynamicAnchor":"n","$ref":"b","$defs":{"b":{"$id":"b","$dynamicAnchor":"n","$dynamicRef":"#n"}}}`, []schema.Problem{{"", "the schema refers to itself without end"}}},
		"dangling reference":   {`{"$ref":"#/$defs/a"}`, []schema.Problem{{"$ref", `no schema stands at "#/$defs/a"`}}},
		"dangling anchor":      {`{"$ref":"#a"}`, []schema.Problem{{"$ref", `no schema has the anchor "#a"`}}},
		"reference to data":    {`{"$ref":"#/default","default":{"enum":[]}}`, []schema.Problem{{"$ref", `no schema stands at "#/default"`}}},
		"an anchor twice":      {`{"$anchor":"a","not":{"$dynamicAnchor":"a"}}`, []schema.Problem{{"not.$dynamicAnchor", `another schema has the anchor "a", too`}}},
		"endless":              {`{"$ref":"#"}`, []schema.Problem{{"", "the schema refers to itself without end"}}},
		"endless inside":       {`{"items":{"if":true,"then":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[{"type":"string"},{"$dynamicRef":"#a"}],"$anchor":"a"}}}`, []schema.Problem{{"", "the schema refers to itself without end"}}},
		"format not a string":  {`{"format":1}`, []schema.Problem{{"format", "want a string, got integer"}}},
		"pattern not a string": {`{"pattern":1}`, []schema.Problem{{"pattern", "want a string, got integer"}}},
		"a bad anchor":         {`{"$anchor":"a b"}`, []schema.Problem{{"$anchor", "does not match pattern '^[A-Za-z_][-A-Za-z0-9._]*$'"}}},
		"no types":             {`{"type":[]}`, []schema.Problem{{"type", "an empty list allows nothing; name a type or leave type out"}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			compiled, err := schema.Compile([]byte(c.source))
			assert.Nil(t, compiled)
			var invalid *schema.Error
			require.ErrorAs(t, err, &invalid)
			assert.ErrorIs(t, err, schema.ErrSchema)
			assert.Equal(t, c.want, invalid.Problems)
		})
	}
}

func TestCompileNamesUnsupportedPatterns(t *testing.T) {
	for _, source := range []string{`{"pattern":"(?=a)b"}`, `{"patternProperties":{"(a)\\1":true}}`} {
		_, err := schema.Compile([]byte(source))
		require.ErrorIs(t, err, schema.ErrSchema)
		assert.ErrorContains(t, err, "no lookahead and no backreferences")
	}
}

func TestCompileAccepts(t *testing.T) {
	for name, source := range map[string]string{
		"true":                      `true`,
		"everything by name":        `{"properties":{"enum":{"const":{"enum":[]}},"$ref":{"type":"string"},"pattern":{"type":"integer"},"$id":true},"default":{"enum":[]}}`,
		"draft 6":                   `{"$schema":"http://json-schema.org/draft-06/schema#","items":[{"type":"string"}]}`,
		"draft 7 with definitions":  `{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/a","definitions":{"a":{"type":"string"}}}`,
		"draft 7 with a chain":      `{"$schema":"http://json-schema.org/draft-07/schema","$ref":"#/definitions/a","definitions":{"a":{"$ref":"#/definitions/b"},"b":true}}`,
		"draft 2019-09":             `{"$schema":"https://json-schema.org/draft/2019-09/schema","properties":{"child":{"$recursiveRef":"#"}}}`,
		"an id":                     `{"$id":"https://example.com/s.json","$ref":"#/$defs/a%20b","$defs":{"a b":{}}}`,
		"anchors":                   `{"$ref":"#a","$defs":{"x":{"$anchor":"a"}}}`,
		"recursion":                 `{"properties":{"child":{"$ref":"#"}}}`,
		"odd names":                 `{"properties":{"a%b/c~d":{"items":{"type":"string"}},"z":{"$ref":"#/properties/a%25b~1c~0d/items"}}}`,
		"keywords of other systems": `{"nullable":true,"example":3,"x-order":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, errOf(schema.Compile([]byte(source))))
		})
	}
}

func TestJSONKeepsOrderAndDigits(t *testing.T) {
	compiled := must(schema.Compile([]byte("{ \"required\": [\"b\"],\n \"properties\": {\"b\": {\"maximum\": 1.50}, \"a\": {\"const\": \"<é>\"}} }")))
	assert.Equal(t, `{"required":["b"],"properties":{"b":{"maximum":1.50},"a":{"const":"<é>"}}}`, string(compiled.JSON()))
}

func TestCompileBounds(t *testing.T) {
	nested := func(n int) string {
		return strings.Repeat(`{"items":`, n) + "true" + strings.Repeat("}", n)
	}
	require.NoError(t, errOf(schema.Compile([]byte(nested(schema.MaxDepth)))))
	assert.ErrorContains(t, errOf(schema.Compile([]byte(nested(schema.MaxDepth+1)))), "nested deeper than 64 levels")

	many := func(n int) string { return `{"allOf":[` + strings.Repeat("true,", n-2) + `true]}` }
	require.NoError(t, errOf(schema.Compile([]byte(many(schema.MaxSubschemas)))))
	assert.ErrorContains(t, errOf(schema.Compile([]byte(many(schema.MaxSubschemas+1)))), "more than 2048 schemas")

	assert.ErrorContains(t, errOf(schema.Compile([]byte(`{"title":"`+strings.Repeat("x", schema.MaxSchemaBytes)+`"}`))), "over the limit of 262144")
	assert.ErrorContains(t, errOf(schema.Compile([]byte(`{"`+strings.Repeat("x", 257)+`":1}`))), "a name is 257 bytes long")
	assert.ErrorContains(t, errOf(schema.Compile([]byte(`{"pattern":"(a{1000})(b{1000})(c{1000})(d{1000})(e{1000})"}`))), "the pattern is too large")
	require.NoError(t, errOf(schema.Compile([]byte(`{"const":"`+strings.Repeat("x", 4090)+`"}`))))
	assert.ErrorContains(t, errOf(schema.Compile([]byte(`{"properties":{"a":{"enum":["b","`+strings.Repeat("x", 4097)+`"]}}}`))), "properties.a.enum[1]: the value is over the limit of 4096 bytes")
	var invalid *schema.Error
	_, err := schema.Compile([]byte(`{"allOf":[` + strings.Repeat(`5,`, 1000) + `5]}`))
	require.ErrorAs(t, err, &invalid)
	assert.Len(t, invalid.Problems, 100)
	assert.ErrorContains(t, errOf(schema.Compile([]byte{'"', 0xff, '"'})), "not valid UTF-8")
}

func TestErrorIsOneLine(t *testing.T) {
	_, err := schema.Compile([]byte(`{"enum":[],"type":"x"}`))
	assert.False(t, strings.Contains(err.Error(), "\n"))
	assert.True(t, errors.Is(err, schema.ErrSchema))
}
