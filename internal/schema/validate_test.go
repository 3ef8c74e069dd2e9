package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/tool"
)

func compile(t testing.TB, source string) *schema.Schema {
	t.Helper()
	compiled := must(schema.Compile([]byte(source)))
	return compiled
}

func TestValidateTellsAModelWhatToDo(t *testing.T) {
	cases := map[string]struct{ schema, value, want string }{
		"missing":             {`{"required":["url","b"]}`, `{"b":1}`, `url: required, but missing`},
		"type":                {`{"properties":{"count":{"type":"integer"}}}`, `{"count":"1"}`, `count: want integer, got string`},
		"fraction":            {`{"properties":{"count":{"type":"integer"}}}`, `{"count":1.5}`, `count: want integer, got number`},
		"several types":       {`{"type":["string","null"]}`, `1`, `want string or null, got integer`},
		"enum":                {`{"properties":{"mode":{"enum":["a","b",3]}}}`, `{"mode":"c"}`, `mode: want one of "a", "b", 3, got "c"`},
		"const":               {`{"properties":{"mode":{"const":"a"}}}`, `{"mode":1}`, `mode: want "a", got 1`},
		"unknown":             {`{"properties":{"url":{},"mode":{}},"additionalProperties":false}`, `{"colour":1}`, `colour: unknown parameter (known: mode, url)`},
		"unknown below":       {`{"items":{"properties":{"a":{}},"additionalProperties":false}}`, `[{"b":1}]`, `[0].b: unknown key (known: a)`},
		"unknown, none known": {`{"additionalProperties":false}`, `{"a":1}`, `a: unknown parameter; leave it out`},
		"not matched":         {`{"patternProperties":{"^x":{}},"additionalProperties":false}`, `{"x1":1,"y":2}`, `y: unknown parameter; leave it out`},
		"unevaluated":         {`{"allOf":[{"properties":{"a":{"type":"string"}}}],"unevaluatedProperties":false}`, `{"a":1,"b":2}`, `a: want string, got integer; b: unknown parameter; leave it out`},
		"minimum":             {`{"minimum":1}`, `0`, `must be at least 1, got 0`},
		"maximum":             {`{"maximum":2.50}`, `3`, `must be at most 2.50, got 3`},
		"exclusive":           {`{"exclusiveMinimum":1,"exclusiveMaximum":1}`, `1`, `must be less than 1, got 1; must be more than 1, got 1`},
		"multiple":            {`{"multipleOf":0.1}`, `0.35`, `must be a multiple of 0.1, got 0.35`},
		"short":               {`{"minLength":2}`, `"é"`, `must have at least 2 characters, has 1`},
		"long":                {`{"maxItems":1}`, `[1,2]`, `must have at most 1 item, has 2`},
		"keys":                {`{"maxProperties":1}`, `{"a":1,"b":1}`, `must have at most 1 key, has 2`},
		"same items":          {`{"uniqueItems":true}`, `[1,2,1.0]`, `items at index 0 and 2 are equal`},
		"contains":            {`{"contains":{"type":"string"}}`, `[1]`, `does not have enough items of the wanted form`},
		"contains too often":  {`{"contains":{"type":"string"},"maxContains":1}`, `["a","b"]`, `has too many items of the form that is limited to 1`},
		"pattern":             {`{"properties":{"u":{"pattern":"^https:"}}}`, `{"u":"http:"}`, `u: must match the pattern "^https:"`},
		"name":                {`{"propertyNames":{"pattern":"^a"}}`, `{"b":1}`, `b: the name "b" is not allowed: does not match the pattern`},
		"short name":          {`{"propertyNames":{"minLength":2}}`, `{"b":1}`, `b: the name "b" is not allowed: must have at least 2 characters, has 1`},
		"listed name":         {`{"propertyNames":{"enum":["a"]}}`, `{"b":1}`, `b: the name "b" is not allowed: want "a", got "b"`},
		"no name":             {`{"propertyNames":false}`, `{"b":1}`, `b: the name "b" is not allowed`},
		"type before others":  {`{"type":"object","const":1,"oneOf":[{"required":["a"]},{"required":["b"]}],"$ref":"#/$defs/a","$defs":{"a":{"type":"object","not":{}}}}`, `"x"`, `want object, got string`},
		"type of a member":    {`{"required":["b"],"properties":{"a":{"type":"string"}}}`, `{"a":1}`, `a: want string, got integer; b: required, but missing`},
		"odd names":           {`{"properties":{"a/b~c %":{"items":{"type":"string"}}}}`, `{"a/b~c %":["x",1]}`, `["a/b~c %"][1]: want string, got integer`},
		"not":                 {`{"not":{"type":"string"}}`, `"x"`, `has a form that is not allowed`},
		"false":               {`{"properties":{"a":false}}`, `{"a":1}`, `a: not allowed here; leave it out`},
		"together":            {`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `b: required beside the others, but missing`},
		"any of types":        {`{"anyOf":[{"type":"string"},{"type":"null"}]}`, `1`, `want string or null, got integer`},
		"any with one match":  {`{"anyOf":[{"type":"string"},{"type":"object","required":["p"]}]}`, `{}`, `p: required, but missing`},
		"any, mixed":          {`{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`, `fits none of the allowed forms (a: required, but missing | b: required, but missing)`},
		"one of, two":         {`{"oneOf":[{"minimum":1},{"minimum":2}]}`, `3`, `fits more than one of the allowed forms; it must fit exactly one`},
		"through references":  {`{"properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"$ref":"#/$defs/c"},"c":{"type":"string"}}}`, `{"a":1}`, `a: want string, got integer`},
		"if then":             {`{"if":{"required":["a"]},"then":{"required":["b"]}}`, `{"a":1}`, `b: required, but missing`},
		"tuple":               {`{"prefixItems":[{"type":"string"}],"items":false}`, `[1,2]`, `[0]: want string, got integer; [1]: not allowed here; leave it out`},
		"draft 7 tuple":       {`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{}],"additionalItems":false}`, `[1,2]`, `has too many items`},
		"draft 7 dependency":  {`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"]}}`, `{"a":2}`, `b: required beside the others, but missing`},
		"syntax":              {`{}`, `{"a":}`, `not JSON: want a value, not '}', at byte 5`},
		"twice":               {`{}`, `{"a":{"b":1,"b":2}}`, `a.b: the name "b" occurs twice in one object; give it once`},
		"number":              {`{"type":"integer"}`, `[1,1e1000001]`, `[1]: the number 1e1000001 is too large`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := compile(t, c.schema).Validate(t.Context(), []byte(c.value))
			var violation *schema.ViolationError
			require.ErrorAs(t, err, &violation)
			assert.ErrorIs(t, err, schema.ErrValue)
			assert.Equal(t, c.want, err.Error())
		})
	}
}

func TestValidateComparesDigits(t *testing.T) {
	big := compile(t, `{"const":9007199254740993}`)
	require.NoError(t, big.Validate(t.Context(), []byte(`9007199254740993`)))
	require.Error(t, big.Validate(t.Context(), []byte(`9007199254740992`)))
	bounded := compile(t, `{"type":"integer","maximum":9007199254740992}`)
	require.Error(t, bounded.Validate(t.Context(), []byte(`9007199254740993`)))
	require.NoError(t, bounded.Validate(t.Context(), []byte(`1.0`)))
}

func TestValidateReportsAtMost32(t *testing.T) {
	err := compile(t, `{"items":{"type":"string"}}`).Validate(t.Context(), []byte(`[1`+strings.Repeat(",1", 99)+`]`))
	var violation *schema.ViolationError
	require.ErrorAs(t, err, &violation)
	assert.Len(t, violation.Violations, 32)
	assert.Equal(t, 68, violation.More)
	assert.Contains(t, err.Error(), "and 68 more")
}

func TestValidateShowsNoAddress(t *testing.T) {
	compiled := compile(t, `{"$id":"https://secret.example/x","$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"anyOf":[{"type":"string"},{"required":["x"]}]}}}`)
	err := compiled.Validate(t.Context(), []byte(`{}`))
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "://")
	assert.NotContains(t, err.Error(), "$defs")
}

func TestValidateConcurrently(t *testing.T) {
	compiled := compile(t, `{"type":"object","properties":{"n":{"type":"integer","minimum":0},"s":{"pattern":"^a+$"}},"required":["n"]}`)
	var group sync.WaitGroup
	for worker := range 32 {
		group.Go(func() {
			for i := range 50 {
				good := compiled.Validate(t.Context(), fmt.Appendf(nil, `{"n":%d,"s":"aaa"}`, worker*i))
				bad := compiled.Validate(t.Context(), fmt.Appendf(nil, `{"n":%d,"s":"b"}`, -1-i))
				assert.NoError(t, good)
				assert.EqualError(t, bad, fmt.Sprintf(`n: must be at least 0, got %d; s: must match the pattern "^a+$"`, -1-i))
			}
		})
	}
	group.Wait()
}

func TestValidateALargeValue(t *testing.T) {
	rows := compile(t, `{"properties":{"rows":{"items":{
		"type":"object","required":["id"],"additionalProperties":false,
		"properties":{"id":{"type":"integer","minimum":0},"name":{"type":"string","maxLength":100,"pattern":"^row [0-9]{1,9}$"},"tags":{"items":{"type":"string"}}}
	}}}}`)
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, `,{"id":%d,"name":"row %d","tags":["a","b"]}`, i, i)
	}
	require.NoError(t, rows.Validate(t.Context(), []byte(`{"rows":[`+b.String()[1:]+`]}`)))
}

// BenchmarkArguments reads arguments of 64 KiB, checks them and writes them for the tool, and reports the time that
// json.Valid takes for the same text.
func BenchmarkArguments(b *testing.B) {
	rows := compile(b, `{"type":"object","required":["rows"],"additionalProperties":false,"properties":{"rows":{"type":"array","items":{"type":["object","string"],
		"required":["id"],"additionalProperties":false,"properties":{"id":{"type":"integer"},"name":{"type":"string"},"tags":{"items":{"type":"string"}},"ok":{"type":"boolean"}}}}}}`)
	for name, row := range map[string]string{
		"rows": `{"id":12345,"name":"a row of a table","tags":["one","two"],"ok":true}`, "texts": `"` + strings.Repeat(`a line of a program\n`, 100) + `"`,
	} {
		text := `{"rows":[` + strings.TrimSuffix(strings.Repeat(row+",", 64<<10/len(row)), ",") + "]}"
		b.Run(name+"/valid", func(b *testing.B) {
			for b.Loop() {
				json.Valid([]byte(text))
			}
		})
		b.Run(name+"/all", func(b *testing.B) {
			for b.Loop() {
				arguments, err := tool.ParseArguments(text)
				require.NoError(b, err)
				written, err := arguments.MarshalJSON()
				require.NoError(b, err)
				require.NoError(b, rows.Validate(b.Context(), written))
			}
		})
	}
}

// must returns the result of a step that does not fail.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// errOf returns the error of a call whose result does not matter.
func errOf[T any](_ T, err error) error { return err }
