package schema_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/schema"
)

var schemaSeeds = []string{
	`{}`, `true`, `false`, `null`, `[]`, `{"type":"object","properties":{"url":{"type":"string"}},"required":["url"]}`,
	`{"$ref":"#/$defs/a","$defs":{"a":{"enum":["x",1,null]}}}`, `{"$ref":"file:///etc/passwd"}`, `{"minLength":1e10000000}`,
	`{"anyOf":[{"type":"string"},{"items":{"$ref":"#"}}],"not":{"const":3}}`, `{"pattern":"^(a+)+$","patternProperties":{"[":1}}`,
	`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"],"c":{"$ref":"#"}},"items":[true,false]}`,
	`{"$id":"urn:x","$anchor":"a","$dynamicAnchor":"b","$dynamicRef":"#b","unevaluatedProperties":{"$ref":"#a"}}`,
	`{"if":{"propertyNames":{"maxLength":1}},"then":false,"dependentRequired":{"a":["b"]},"contains":{},"minContains":2,"uniqueItems":true}`,
	`{"properties":{"%":{"$ref":"#/properties/%25"},"~/":{"multipleOf":0.01}}}`, `{"a":1,"a":2}`, "\xff", `{"type":["object","null"],"prefixItems":[{"minimum":1}]}`,
}

var valueSeeds = []string{`{}`, `{"url":"x"}`, `[]`, `[1,2,[3,[4]]]`, `"aaaa"`, `1e400`, `-0.0`, `{"a":1,"b":{"c":[null,true]}}`, `{"a":1,"a":2}`, `1e1000001`, `{"%":1,"~/":0.015}`, `"\ud800"`, `{`}

func FuzzCompile(f *testing.F) {
	for _, seed := range schemaSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		compiled, err := schema.Compile(source)
		if err != nil {
			var invalid *schema.Error
			require.ErrorAs(t, err, &invalid)
			require.NotEmpty(t, invalid.Problems)
			for _, p := range invalid.Problems {
				assert.NotEmpty(t, p.Message)
				assert.True(t, utf8.ValidString(p.Message))
				assert.NotContains(t, p.Message, "caisson:")
			}
			return
		}
		assert.True(t, json.Valid(compiled.JSON()))
		again, err := schema.Compile(compiled.JSON())
		require.NoError(t, err, "a compiled schema compiles from its own JSON")
		assert.Equal(t, compiled.JSON(), again.JSON())
	})
}

func FuzzValidate(f *testing.F) {
	for _, source := range schemaSeeds {
		for _, value := range valueSeeds {
			f.Add([]byte(source), []byte(value))
		}
	}
	f.Fuzz(func(t *testing.T, source, value []byte) {
		compiled, err := schema.Compile(source)
		if err != nil {
			return
		}
		first := compiled.Validate(t.Context(), value)
		second := compiled.Validate(t.Context(), value)
		require.Equal(t, first == nil, second == nil, "a validation leaves no state")
		doc, err := jsontext.Parse(string(value), jsontext.Limits{Values: 1 << 20})
		if err == nil && utf8.Valid(value) {
			_, err := compiled.FindIntegers(t.Context(), written{string(value), doc})
			require.Equal(t, first, err, "a value that was parsed already fits as its text does")
		}
		if first == nil {
			assert.True(t, json.Valid(value))
			require.NoError(t, err)
			integers, err := compiled.FindIntegers(t.Context(), written{string(value), doc})
			require.NoError(t, err)
			unparsed, err := compiled.FindIntegers(t.Context(), written{text: string(value)})
			require.NoError(t, err)
			plain, err := integers.InDigits()
			same, unparsedErr := unparsed.InDigits()
			require.Equal(t, plain, same)
			require.Equal(t, err, unparsedErr)
			if err == nil && plain != nil {
				integers, err := compiled.FindIntegers(t.Context(), written{text: string(plain)})
				require.NoError(t, err, "an integer in digits is the same integer")
				again, err := integers.InDigits()
				require.NoError(t, err)
				assert.Nil(t, again)
			}
			return
		}
		var violation *schema.ViolationError
		require.True(t, errors.As(first, &violation))
		require.NotEmpty(t, violation.Violations)
		for _, v := range violation.Violations {
			assert.NotEmpty(t, v.Message)
		}
		assert.False(t, strings.Contains(first.Error(), "caisson:"))
	})
}
