package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// work returns what the validation of a value is charged, and its error.
func work(t *testing.T, source, value string) (int, error) {
	t.Helper()
	compiled, err := Compile([]byte(source))
	require.NoError(t, err)
	err = compiled.Validate(t.Context(), []byte(value))
	used := <-compiled.idle
	return used.meter.work, err
}

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

// TestMeterCharges pairs validations of which the second makes the validator do more in
// one respect. Each respect is one that an attacker can multiply.
func TestMeterCharges(t *testing.T) {
	long, longer := strings.Repeat("n", 10), strings.Repeat("n", 250)
	type validation struct{ schema, value string }
	cases := map[string]struct {
		small, large validation
		atLeast      int // how much more the second is charged
	}{
		"elements": {
			validation{`{"items":{}}`, list("1", 10)}, validation{`{"items":{}}`, list("1", 1000)}, 990 * (evaluationCost + memberCost)},
		"elements of another type": {
			validation{`{"items":{"type":"integer"}}`, list("1", 1000)}, validation{`{"items":{"type":"string"}}`, list("1", 1000)}, 1000 * errorCost},
		"elements that are not allowed": {
			validation{`{"items":true}`, list("1", 1000)}, validation{`{"items":false}`, list("1", 1000)}, 1000 * errorCost},
		"schemas that are true": {
			validation{`{"allOf":` + list("true", 2) + `}`, list("1", 1000)}, validation{`{"allOf":` + list("true", 500) + `}`, list("1", 1000)}, 498 * 1000 * memberCost},
		"errors in contains": {
			validation{`{"contains":{"const":"a"}}`, list(`"a"`, 1000)}, validation{`{"contains":{"const":"a"}}`, list(`"b"`, 1000)}, 1000 * errorCost},
		"errors of not": {
			validation{`{"items":{}}`, list("1", 1000)}, validation{`{"items":{"not":{}}}`, list("1", 1000)}, 1000 * errorCost},
		"bytes of a constant": {
			validation{`{"items":{"const":"a"}}`, list(`"a"`, 100)}, validation{`{"items":{"const":"` + strings.Repeat("a", 4000) + `"}}`, list(`"`+strings.Repeat("a", 4000)+`"`, 100)}, 100 * 3900 / bytesPerUnit},
		"values of a constant": {
			validation{`{"items":{"const":[1]}}`, list(`[1]`, 100)}, validation{`{"items":{"const":` + list("1", 400) + `}}`, list(list("1", 400), 100)}, 100 * 399 * elementCost},
		"bytes under a pattern": {
			validation{`{"items":{"pattern":"a*b"}}`, list(`"a"`, 100)}, validation{`{"items":{"pattern":"a*b"}}`, list(`"`+strings.Repeat("a", 1000)+`"`, 100)}, 100 * 999 / matchesPerUnit},
		"size of a pattern": {
			validation{`{"items":{"pattern":"a{1}"}}`, list(`"aaaa"`, 100)}, validation{`{"items":{"pattern":"a{900}"}}`, list(`"aaaa"`, 100)}, 100 * 899 / matchesPerUnit},
		"patterns of names": {
			validation{`{"patternProperties":{"a":true}}`, "{" + numbered(`"n%d":1`, 200) + "}"}, validation{`{"patternProperties":{"a{900}":true}}`, "{" + numbered(`"n%d":1`, 200) + "}"}, 4 * 190 * 899 / matchesPerUnit},
		"names in the schema": {
			validation{`{"items":{"not":{}},"properties":{"` + long + `":{}}}`, list("1", 1000)}, validation{`{"items":{"not":{}},"properties":{"` + longer + `":{}}}`, list("1", 1000)}, 1000 * 240 / 8},
		"names in the value": {
			validation{`{"properties":{"a":{"items":{"not":{}}}}}`, `{"a":` + list("1", 100) + `,"` + long + `":1}`}, validation{`{"properties":{"a":{"items":{"not":{}}}}}`, `{"a":` + list("1", 100) + `,"` + longer + `":1}`}, 100 * 240 / 8},
		"unknown names": {
			validation{`{"additionalProperties":false}`, `{"a":1}`}, validation{`{"additionalProperties":false}`, "{" + numbered(`"n%d":1`, 1000) + "}"}, 999 * namedCost},
		"required names": {
			validation{`{"required":["a"]}`, `{"a":1}`}, validation{`{"required":["a",` + numbered(`"n%d"`, 1000) + `]}`, `{"a":1}`}, 1000},
		"dependent names": {
			validation{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`}, validation{`{"dependentRequired":{"a":[` + numbered(`"n%d"`, 1000) + `]}}`, `{"a":1}`}, 999 * errorCost},
		"names of properties": {
			validation{`{"properties":{"a":true}}`, `{}`}, validation{`{"properties":{` + numbered(`"n%d":true`, 1000) + `}}`, `{}`}, 999},
		"elements to be unique": {
			validation{`{"uniqueItems":true}`, "[" + numbered("%d", 10) + "]"}, validation{`{"uniqueItems":true}`, "[" + numbered("%d", 1000) + "]"}, 990 * (2*memberCost + elementCost)},
		"bytes to be unique": {
			validation{`{"uniqueItems":true}`, `["a",1]`}, validation{`{"uniqueItems":true}`, `["` + strings.Repeat("a", 100_000) + `",1]`}, 99_999 / bytesPerUnit},
		"exact fractions": {
			validation{`{"items":{"multipleOf":2}}`, list("2", 100)}, validation{`{"items":{"multipleOf":2}}`, list("2e300", 100)}, 100 * 300},
		"characters": {
			validation{`{"minLength":1}`, `"a"`}, validation{`{"minLength":1}`, `"` + strings.Repeat("a", 100_000) + `"`}, 99_999 / bytesPerUnit},
		"references in draft 7": {
			validation{`{"definitions":{"a":{}},"items":{"$ref":"#/definitions/a"}}`, list("1", 1000)}, validation{draft7Start + `"definitions":{"a":{}},"items":{"$ref":"#/definitions/a"}}`, list("1", 1000)}, 0},
		"anchors": {
			validation{`{"items":{"$dynamicRef":"#a"},"$defs":{"a":{"$dynamicAnchor":"a"}}}`, list("1", 100)}, validation{`{"items":{"$dynamicRef":"#a"},"$defs":{"a":{"$dynamicAnchor":"a"},` + numbered(`"n%d":{"$dynamicAnchor":"n%[1]d"}`, 1000) + `}}`, list("1", 100)}, 100 * 1000 / 8},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			small, _ := work(t, c.small.schema, c.small.value)
			large, _ := work(t, c.large.schema, c.large.value)
			assert.GreaterOrEqual(t, large, small+c.atLeast)
		})
	}
}

const draft7Start = `{"$schema":"http://json-schema.org/draft-07/schema#",`

// TestMeterEndsProducts multiplies what is harmless by itself.
func TestMeterEndsProducts(t *testing.T) {
	text := strings.Repeat("a", 100_000)
	for name, c := range map[string]struct{ schema, value string }{
		"schemas by elements":     {`{"allOf":` + list("true", 2000) + `}`, list("1", 2000)},
		"constants by elements":   {`{"items":{"anyOf":` + list(`{"const":"`+strings.Repeat("x", 100)+`"}`, 1000) + `}}`, list(`"y"`, 1000)},
		"unique by schemas":       {`{"allOf":` + list(`{"uniqueItems":true}`, 2000) + `}`, list(`"`+text+`"`, 2)},
		"lengths by schemas":      {`{"allOf":` + list(`{"minLength":1}`, 2000) + `}`, `"` + text + `"`},
		"patterns by schemas":     {`{"allOf":` + list(`{"pattern":"b"}`, 500) + `}`, `"` + text + `"`},
		"name patterns by schema": {`{"allOf":` + list(`{"patternProperties":{"b{20}":true}}`, 500) + `}`, "{" + numbered(`"n%d":1`, 1000) + "}"},
		"required by elements":    {`{"items":{"required":["a",` + numbered(`"n%d"`, 2000) + `]}}`, list(`{}`, 5000)},
		"properties by elements":  {`{"items":{"properties":{` + numbered(`"n%d":true`, 2000) + `}}}`, list(`{}`, 5000)},
		"fractions by schemas":    {`{"items":{"allOf":` + list(`{"multipleOf":1e-300}`, 100) + `}}`, list("1e300", 100)},
		"paths by elements":       {`{"additionalProperties":{"$ref":"#"},"items":{"type":"string"}}`, strings.Repeat(`{"`+strings.Repeat("n", 1000)+`":`, 50) + list("1", 1000) + strings.Repeat("}", 50)},
	} {
		t.Run(name, func(t *testing.T) {
			charged, err := work(t, c.schema, c.value)
			require.ErrorIs(t, err, ErrValue)
			assert.EqualError(t, err, tooMuchWork)
			assert.Less(t, charged, 2*maxWork, "nothing large is done before it is paid for")
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
	} {
		t.Run(name, func(t *testing.T) {
			charged, err := work(t, c.schema, c.value)
			require.NoError(t, err)
			assert.LessOrEqual(t, charged, maxWork)
		})
	}
}
