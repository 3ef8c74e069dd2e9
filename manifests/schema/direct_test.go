package schema

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDirectForms(t *testing.T) {
	for source, has := range map[string]bool{
		`{}`:    true,
		`true`:  true,
		`false`: true,
		`{"type":"object","properties":{"a":{"type":"string","maxLength":3},"b":true},"required":["a"],"additionalProperties":false}`: true,
		`{"items":{"items":{"enum":[1,2]}},"$defs":{"unused":{"not":{}}},"$anchor":"a"}`:                                              true,
		draft7Start + `"items":{"type":"integer"},"definitions":{"unused":{"not":{}}},"additionalProperties":{"minimum":1}}`:          true,
		draft7Start + `"items":[{"type":"integer"}]}`:                                                                                 false,
		draft7Start + `"dependencies":{"a":["b"],"b":{"required":["c"]}}}`:                                                            false,
		`{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{}}}`:                                                                  false,
		`{"items":{"anyOf":[{"type":"string"},{"type":"null"}]}}`:                                                                     false,
		`{"additionalProperties":{"not":{}}}`:                                                                                         false,
		`{"patternProperties":{"^a":{}}}`:                                                                                             false,
		`{"prefixItems":[{}]}`:                                                                                                        false,
		`{"propertyNames":{"maxLength":3}}`:                                                                                           false,
		`{"unevaluatedProperties":false}`:                                                                                             false,
		`{"contains":{},"minContains":2}`:                                                                                             false,
		`{"if":{},"then":false}`:                                                                                                      false,
		`{"dependentSchemas":{"a":{"required":["b"]}}}`:                                                                               false,
	} {
		compiled, err := Compile([]byte(source))
		require.NoError(t, err, source)
		assert.Equal(t, has, compiled.plan.direct != nil, source)
	}
}

// FuzzDirect: the direct form accepts what the validator accepts, at the same charge, and
// changes nothing about how the rest is refused.
func FuzzDirect(f *testing.F) {
	schemas := []string{
		`{}`, `true`, `false`, `{"type":["integer","null"]}`, `{"$anchor":"x","items":false}`, `{"additionalProperties":false}`, `{"minContains":3}`,
		`{"type":"object","properties":{"a":{"type":"string","maxLength":2},"b":{"items":{"type":"integer","minimum":1}}},"required":["a"],"additionalProperties":false}`,
		`{"properties":{"a":true,"b":false,"c":{}},"additionalProperties":{"enum":["x",1.0,{"k":null}]},"minProperties":1,"dependentRequired":{"a":["c"]}}`,
		`{"items":{"properties":{"a":{"const":{"b":[1]}}},"required":["a","b"]},"uniqueItems":true,"maxItems":3}`,
		draft7Start + `"items":{"multipleOf":0.1,"pattern":"^1"},"additionalProperties":{"pattern":"^a+$","minLength":1},"dependencies":{"a":["b"]}}`,
		draft7Start + `"items":{"items":{"type":"number"}},"properties":{"a":{"additionalProperties":false}},"definitions":{"z":{}}}`,
	}
	values := []string{
		`{}`, `[]`, `null`, `1`, `1.0`, `"a"`, `{"a":"xy","b":[1,2]}`, `{"a":"xyz","b":[0,"1"]}`, `{"a":1,"c":2}`, `{"d":"x","c":{}}`, `{"a":{"b":1}}`,
		`[1,1]`, `[[1,2.5],["x"]]`, `[{"a":{"b":[1.0]},"b":1}]`, `[0.3,"11"]`, `{"x":"aa","y":"b"}`, `{"a":"a","b":"a"}`, `{"a":"a"}`,
	}
	for _, source := range schemas {
		for _, value := range values {
			f.Add([]byte(source), []byte(value))
		}
	}
	f.Fuzz(func(t *testing.T, source, value []byte) {
		compiled, err := Compile(source)
		if err != nil || compiled.plan.direct == nil {
			return
		}
		doc, err := decode(t.Context(), value, bounds{MaxValueBytes, maxValueNameBytes, maxMemory})
		if err != nil {
			return
		}
		v := <-compiled.idle
		got := v.validate(t.Context(), doc)
		charged := v.meter.work
		v.direct = nil
		want := v.validate(t.Context(), doc)
		require.Equal(t, want, got)
		if want == nil {
			require.Equal(t, v.meter.work, charged)
			v.meter.reset(t.Context(), doc.pathBytes, 0)
			require.True(t, compiled.plan.direct.accepts(v.meter, doc.root), "nothing that fits is left to the validator")
		}
	})
}

// TestDirectIsMetered: a list that is too long for the validator is too long without it.
func TestDirectIsMetered(t *testing.T) {
	for _, count := range []int{250_000, 500_000} {
		compiled, err := Compile([]byte(`{"items":{"type":"integer"}}`))
		require.NoError(t, err)
		doc, err := decode(t.Context(), []byte(list("1", count)), bounds{MaxValueBytes, maxValueNameBytes, maxMemory})
		require.NoError(t, err)
		v := <-compiled.idle
		got := v.validate(t.Context(), doc)
		require.NotNil(t, v.direct)
		v.direct = nil
		require.Equal(t, v.validate(t.Context(), doc), got)
		require.Equal(t, count < 300_000, got == nil)
	}
}
