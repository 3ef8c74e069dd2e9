package schema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/schema"
)

func structure(t testing.TB, source string) *schema.Node {
	t.Helper()
	return compile(t, source).Structure()
}

func TestTypeOf(t *testing.T) {
	for text, want := range map[string]schema.Types{
		`null`: schema.Null, `true`: schema.Boolean, `false`: schema.Boolean, `"1"`: schema.String, `[]`: schema.Array, `{}`: schema.Object,
		`1`: schema.Integer, `-1.0`: schema.Integer, `15e-1`: schema.Fraction, `150e-1`: schema.Integer, `0.5`: schema.Fraction, `1e999`: schema.Fraction,
	} {
		assert.Equal(t, want, schema.TypeOf(text), text)
	}
	assert.True(t, schema.AnyType.Has(schema.Number))
	assert.False(t, schema.Integer.Has(schema.Number))
}

func TestStructure(t *testing.T) {
	root := structure(t, `{
		"type":["object","array"], "required":["a"], "additionalProperties":{"type":"null"}, "patternProperties":{"^x":{}},
		"properties":{"a":{"type":"integer","minimum":1.0,"maximum":2,"exclusiveMinimum":0,"exclusiveMaximum":3,"default":{"<":1.50}},"b":{"$ref":"#/$defs/d~1%25"},"c":false},
		"prefixItems":[true], "items":{"$ref":"#"}, "allOf":[{"const":1}], "anyOf":[{"enum":["x",0.5]},{}], "oneOf":[{"$ref":"#name"}],
		"$defs":{"d/%":{"type":"string"},"n":{"$anchor":"name","type":"boolean"}}}`)
	assert.Equal(t, schema.Object|schema.Array, root.Types)
	assert.Equal(t, map[string]bool{"a": true}, root.Required)
	assert.True(t, root.Patterned)
	assert.Equal(t, schema.Null, root.Additional.Types)
	a := root.Properties["a"]
	assert.Equal(t, []string{"1.0", "2", "0", "3"}, []string{a.Minimum, a.Maximum, a.ExclusiveMinimum, a.ExclusiveMaximum})
	assert.Equal(t, `{"<":1.50}`, string(a.Default))
	assert.Equal(t, schema.Integer, a.Types)
	assert.Equal(t, schema.String, root.Properties["b"].Also[0].Types)
	assert.Zero(t, root.Properties["c"].Types)
	assert.Len(t, root.Prefix, 1)
	assert.Same(t, root, root.Items.Also[0])
	assert.Equal(t, schema.Integer, root.Also[0].Types)
	require.Len(t, root.Unions, 2)
	assert.False(t, root.Unions[0].ExactlyOne)
	assert.Equal(t, schema.String|schema.Fraction, root.Unions[0].Branches[0].Types)
	assert.True(t, root.Unions[1].ExactlyOne)
	assert.Equal(t, schema.Boolean, root.Unions[1].Branches[0].Also[0].Types)
}

// TestStructureOfOldDrafts: what a keyword means depends on the draft.
func TestStructureOfOldDrafts(t *testing.T) {
	root := structure(t, draft7+`"properties":{"r":{"$ref":"#/definitions/i","type":"string"}},"definitions":{"i":{"type":"integer"}},
		"items":[{"type":"null"}],"additionalItems":{"type":"boolean"},"prefixItems":[{"type":"object"}]}`)
	assert.Equal(t, schema.AnyType, root.Properties["r"].Types)
	assert.Equal(t, schema.Integer, root.Properties["r"].Also[0].Types)
	require.Len(t, root.Prefix, 1)
	assert.Equal(t, schema.Null, root.Prefix[0].Types)
	assert.Equal(t, schema.Boolean, root.Items.Types)

	plain := structure(t, draft7+`"items":{"type":"null"},"additionalItems":{"type":"boolean"}}`)
	assert.Empty(t, plain.Prefix)
	assert.Equal(t, schema.Null, plain.Items.Types)

	newer := structure(t, `{"items":{"type":"null"},"additionalItems":{"type":"boolean"}}`)
	assert.Equal(t, schema.Null, newer.Items.Types)
}

const draft7 = `{"$schema":"http://json-schema.org/draft-07/schema#",`

func TestProbe(t *testing.T) {
	var probe schema.Probe
	root := structure(t, `{"properties":{"%":{"$ref":"#/properties/~1"},"/":{"type":"array","items":{"$ref":"#/$defs/x y"}}},"$defs":{"x y":{"type":"integer","maximum":3}},"anyOf":[{"minProperties":1},{"required":["/"]}]}`)
	for _, c := range []struct {
		node  *schema.Node
		value string
		fits  bool
	}{
		{root, `{"%":[1]}`, true}, {root, `{"%":[4]}`, false}, {root, `{}`, false},
		{root.Properties["%"], `[1,2]`, true}, {root.Properties["%"], `[4]`, false},
		{root.Properties["/"].Items, `3`, true}, {root.Properties["/"].Items, `"3"`, false},
		{root.Unions[0].Branches[0], `{"a":1}`, true}, {root.Unions[0].Branches[1], `{"a":1}`, false},
		{root, `{"a":1,"a":2}`, false}, {root, `{`, false},
	} {
		assert.Equal(t, c.fits, probe.Fits(t.Context(), c.node, c.value), c.value)
	}
}

// TestProbeHasOneBudget: many checks together cost no more than one validation.
func TestProbeHasOneBudget(t *testing.T) {
	var probe schema.Probe
	root := structure(t, `{"items":{"allOf":[{},{},{},{},{},{},{},{},{},{}]}}`)
	value := "[1" + strings.Repeat(",1", 10_000) + "]"
	require.True(t, probe.Fits(t.Context(), root, value))
	for range 100 {
		probe.Fits(t.Context(), root, value)
	}
	assert.False(t, probe.Fits(t.Context(), root, value))
	assert.False(t, probe.Fits(t.Context(), root, "1"), "the budget is spent")
	probe = schema.Probe{}
	assert.True(t, probe.Fits(t.Context(), root, value))
}

// FuzzStructure: a value that fits a schema has one of the types and the members that its
// structure tells of, and a probe of the root judges as Validate does.
func FuzzStructure(f *testing.F) {
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
		var probe schema.Probe
		root := compiled.Structure()
		fits := compiled.Validate(t.Context(), value) == nil
		require.Equal(t, fits, probe.Fits(t.Context(), root, string(value)))
		if !fits {
			return
		}
		var text json.RawMessage
		require.NoError(t, json.Unmarshal(value, &text))
		require.True(t, root.Types.Has(schema.TypeOf(string(text))), "%s has no type of %b", text, root.Types)
		for _, also := range root.Also {
			require.True(t, probe.Fits(t.Context(), also, string(value)))
		}
		for _, u := range root.Unions {
			count := 0
			for _, branch := range u.Branches {
				if probe.Fits(t.Context(), branch, string(value)) {
					count++
				}
			}
			require.True(t, count == 1 || count > 1 && !u.ExactlyOne)
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(value, &object) == nil {
			for name, inner := range object {
				if property := root.Properties[name]; property != nil {
					require.True(t, probe.Fits(t.Context(), property, string(inner)), name)
				}
			}
		}
	})
}

func TestValuesAreThoseOfEnumAndConst(t *testing.T) {
	for source, want := range map[string]string{
		`{"enum":["a", 1.50,null]}`: `["a",1.50,null]`, `{"const":{"a":[]}}`: `[{"a":[]}]`, `{"type":"boolean","minimum":1}`: `[]`, `true`: `[]`,
		`{"$id":"https://example.com/a","$ref":"b","$defs":{"b":{"$id":"b","enum":[1]}}}`: `[1]`,
	} {
		root := compile(t, source).Structure()
		values := root.Values()
		for _, also := range root.Also {
			values = append(values, also.Values()...)
		}
		var texts []string
		for _, value := range values {
			texts = append(texts, string(value))
		}
		assert.Equal(t, want, "["+strings.Join(texts, ",")+"]", source)
	}
}
