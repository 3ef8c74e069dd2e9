package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/testsize"
)

func list(element string, count int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", count), ",") + "]"
}

func numbered(format string, count int) string {
	var b strings.Builder
	for i := range count {
		fmt.Fprintf(&b, ","+format, i)
	}
	return b.String()[1:]
}

// TestMeterEndsProducts multiplies inputs that are harmless by themselves.
func TestMeterEndsProducts(t *testing.T) {
	text, names := strings.Repeat("a", 100_000), "{"+numbered(`"n%d":1`, 10_000)+"}"
	products := map[string]struct{ schema, value string }{
		"schemas by elements":      {`{"items":{"allOf":` + list("true", 2000) + `}}`, list("1", 2000)},
		"constants by elements":    {`{"items":{"anyOf":[` + strings.Repeat(`{"const":"`+strings.Repeat("x", 100)+`"},`, 1000) + `{}]}}`, list(`"y"`, 5000)},
		"compared by schemas":      {`{"items":{"allOf":` + list(`{"const":"`+text[:4000]+`"}`, 50) + `}}`, list(`"`+text[:4000]+`"`, 2000)},
		"unique by schemas":        {`{"allOf":` + list(`{"uniqueItems":true}`, 2000) + `}`, `["` + text + `","` + text + `b"]`},
		"sorted by schemas":        {`{"allOf":` + list(`{"uniqueItems":true}`, 2000) + `}`, "[" + names + "]"},
		"lengths by schemas":       {`{"allOf":` + list(`{"minLength":1}`, 2000) + `}`, `"` + strings.Repeat(text, 2) + `"`},
		"escapes by schemas":       {`{"allOf":` + list(`{"minLength":1}`, 2000) + `}`, `"` + strings.Repeat(`\u00e9`, 20_000) + `"`},
		"patterns by schemas":      {`{"allOf":` + list(`{"pattern":"a$"}`, 500) + `}`, `"` + text + `"`},
		"name patterns by schemas": {`{"allOf":` + list(`{"patternProperties":{"b{20}":true}}`, 500) + `}`, names},
		"members by schemas":       {`{"allOf":` + list(`{"properties":{"n1":true}}`, 1000) + `}`, names},
		"required by schemas":      {`{"allOf":` + list(`{"required":["n1"]}`, 1000) + `}`, names},
		"dependents by members":    {`{"dependentRequired":{` + numbered(`"n%d":["n2"]`, 5000) + `}}`, names},
		"unevaluated by schemas":   {`{"allOf":` + list(`{"unevaluatedProperties":true}`, 1000) + `}`, names},
		"marks by schemas":         {`{"unevaluatedItems":true,"allOf":` + list(`{"allOf":[{}]}`, 900) + `}`, list("1", 100_000)},
		"contains by schemas":      {`{"allOf":` + list(`{"contains":{"type":"number"}}`, 1000) + `}`, list("1", 10_000)},
		"fractions by schemas":     {`{"items":{"allOf":` + list(`{"multipleOf":1e-300}`, 100) + `}}`, list("1e300", 100)},
	}
	for _, name := range testsize.Sample(slices.Sorted(maps.Keys(products)), 8) {
		c := products[name]
		t.Run(name, func(t *testing.T) {
			compiled, err := Compile([]byte(c.schema))
			require.NoError(t, err)
			require.EqualError(t, compiled.Validate(t.Context(), []byte(c.value)), tooMuchWork)
		})
	}
}

// TestMeterLetsPass holds what ordinary tools take in and give back.
func TestMeterLetsPass(t *testing.T) {
	for name, c := range map[string]struct{ schema, value string }{
		"numbers":           {`{"items":{"type":"integer"}}`, list("12345", 250_000)},
		"rows":              {`{"items":{"type":"object","required":["id"],"additionalProperties":false,"properties":{"id":{"type":"integer"},"name":{"type":"string","maxLength":20},"kind":{"enum":["a","b","c"]}}}}`, list(`{"id":1,"name":"one","kind":"b"}`, 50_000)},
		"one of two forms":  {`{"items":{"anyOf":[{"const":"a"},{"type":"string"}]}}`, list(`"b"`, 20_000)},
		"the last contains": {`{"contains":{"const":"a"}}`, `["a",` + list(`"b"`, 50_000)[1:]},
		"a large text":      {`{"type":"string","minLength":1}`, `"` + strings.Repeat("a", 8_000_000) + `"`},
		"many members":      {`{"additionalProperties":{"type":"integer"}}`, "{" + numbered(`"n%d":1`, 250_000) + "}"},
	} {
		t.Run(name, func(t *testing.T) {
			compiled, err := Compile([]byte(c.schema))
			require.NoError(t, err)
			require.NoError(t, compiled.Validate(t.Context(), []byte(c.value)))
		})
	}
}

// TestExplanationsEnd also for values with a huge number of violations.
func TestExplanationsEnd(t *testing.T) {
	for name, c := range map[string]struct{ schema, value string }{
		"elements":               {`{"items":{"type":"string"}}`, list("1", 500_000)},
		"alternatives":           {`{"items":{"anyOf":` + list(`{"const":"x"}`, 1000) + `}}`, list(`"y"`, 10_000)},
		"the last after a lot":   {`{"allOf":[{"items":{"allOf":` + list("true", 2000) + `}},{"maxItems":1}]}`, list("1", 1200)},
		"paths":                  {`{"additionalProperties":{"$ref":"#"},"items":{"type":"string"}}`, strings.Repeat(`{"`+strings.Repeat("n", 1000)+`":`, 50) + list("1", 10_000) + strings.Repeat("}", 50)},
		"alternatives in others": {strings.Replace(strings.ReplaceAll(doublingOf(16), "allOf", "anyOf"), `"d16":{}`, `"d16":false`, 1), `1`},
	} {
		t.Run(name, func(t *testing.T) {
			compiled, err := Compile([]byte(c.schema))
			require.NoError(t, err)
			var violation *ViolationError
			require.ErrorAs(t, compiled.Validate(t.Context(), []byte(c.value)), &violation)
			require.NotEmpty(t, violation.Violations)
		})
	}
}
