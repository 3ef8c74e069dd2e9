package schema_test

import (
	"cmp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/schema"
)

// written is a value that has been parsed, or has not.
type written struct {
	text   string
	parsed *jsontext.Document
}

func (w written) MarshalJSON() ([]byte, error) { return []byte(w.text), nil }
func (w written) Document() *jsontext.Document { return w.parsed }

func TestIntegersInDigits(t *testing.T) {
	const integer = `{"type":"integer"}`
	tests := map[string]struct{ schema, value, want string }{
		"digits":                      {integer, `3`, `3`},
		"a fraction of zero":          {integer, `3.0`, `3`},
		"an exponent":                 {integer, `3e0`, `3`},
		"all zeros are there":         {integer, ` 120E+3 `, ` 120000 `},
		"a negative exponent":         {integer, `-2000e-1`, `-200`},
		"a leading zero":              {integer, `0.003e4`, `30`},
		"zero":                        {integer, `-0.0e7`, `0`},
		"beyond 64 bits":              {integer, `-12345678901234567890123.0`, `-12345678901234567890123`},
		"as long as numbers may be":   {integer, `1e127`, `1` + strings.Repeat("0", 127)},
		"a number":                    {`{"type":"number"}`, `3.0`, `3.0`},
		"either":                      {`{"type":["integer","number"]}`, `3.0`, `3.0`},
		"anything":                    {`{}`, `{"a":[1.0]}`, `{"a":[1.0]}`},
		"or null":                     {`{"type":["integer","null"]}`, `3.0`, `3`},
		"of a list":                   {`{"enum":[1,2.0,"a"]}`, `2.0`, `2`},
		"the others stay":             {`{"properties":{"n":{"type":"integer"},"x":{"type":"number"}}}`, `{ "x" : 1.0, "n":1.0, "s":"1.0 \" 2e0","y":1e2}`, `{ "x" : 1.0, "n":1, "s":"1.0 \" 2e0","y":1e2}`},
		"elements":                    {`{"prefixItems":[{"type":"integer"},{}],"items":{"type":"integer"}}`, `[1.0,2.0,3.0,4.0]`, `[1,2.0,3,4]`},
		"names that match a pattern":  {`{"patternProperties":{"^n":{"type":"integer"}}}`, `{"n1":1e1,"m":1e1}`, `{"n1":10,"m":1e1}`},
		"a reference":                 {`{"properties":{"n":{"$ref":"#/$defs/n"},"inner":{"$ref":"#"}},"$defs":{"n":{"type":"integer"}}}`, `{"n":1.0,"inner":{"n":2.0}}`, `{"n":1,"inner":{"n":2}}`},
		"an optional object":          {`{"anyOf":[{"type":"object","properties":{"n":{"type":"integer"}}},{"type":"null"}]}`, `{"n":1.0}`, `{"n":1}`},
		"not what does not apply":     {`{"oneOf":[{"properties":{"k":{"const":"a"},"n":{"type":"integer"}}},{"properties":{"k":{"const":"b"}}}]}`, `{"n":1.0,"k":"b"}`, `{"n":1.0,"k":"b"}`},
		"not what is not allowed":     {`{"not":{"properties":{"n":{"type":"integer"},"k":{"const":"a"}}}}`, `{"n":1.0,"k":"b"}`, `{"n":1.0,"k":"b"}`},
		"a condition":                 {`{"if":{"required":["k"]},"then":{"properties":{"n":{"type":"integer"}}}}`, `{"n":1.0,"k":1}`, `{"n":1,"k":1}`},
		"found by several schemas":    {`{"type":"integer","allOf":[{"type":"integer"},{"minimum":1}]}`, `5.0`, `5`},
		"with unevaluated properties": {`{"allOf":[{"properties":{"n":{"type":"integer"}}}],"unevaluatedProperties":{"type":"integer"}}`, `{"n":1.0,"m":2.0}`, `{"n":1,"m":2}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := compile(t, test.schema)
			integers, err := s.FindIntegers(t.Context(), written{text: test.value})
			require.NoError(t, err)
			plain, err := integers.InDigits()
			require.NoError(t, err)
			assert.Equal(t, test.want != test.value, plain != nil)
			assert.Equal(t, test.want, string(cmp.Or(string(plain), test.value)))
		})
	}
}

func TestIntegersInDigitsRefuses(t *testing.T) {
	s := compile(t, `{"properties":{"l":{"items":{"type":"integer"}}}}`)
	for value, want := range map[string]string{
		`{"l":[1.0,1e128]}`:       "l[1]: the integer 1e128 has 129 digits, over the limit of 128",
		`{"l":[1e400]}`:           "l[0]: the number 1e400 is too large",
		`{"l":[1e-999999999999]}`: "l[0]: the number 1e-999999999999 has an exponent that is out of range",
		`{"l":[1.5]}`:             "l[0]: want integer, got number",
		`{"l":[` + strings.Repeat("1e120,", 1<<17) + `1.0]}`: "with its integers in digits it is over the limit of 8388608 bytes",
	} {
		integers, err := s.FindIntegers(t.Context(), written{text: value})
		if err == nil {
			_, err = integers.InDigits()
		}
		var violation *schema.ViolationError
		require.ErrorAs(t, err, &violation)
		assert.EqualError(t, err, want)
	}
}

// TestParsedBeyondTheLimits: that a value was parsed with wider limits does not let it in.
func TestParsedBeyondTheLimits(t *testing.T) {
	s := compile(t, `{"type":"object"}`)
	for value, want := range map[string]string{
		`{"` + strings.Repeat("n", 1025) + `":1}`:                "a name is 1025 bytes long, over the limit of 1024",
		`{"n":` + strings.Repeat("1", 129) + `}`:                 "n: a number has 129 characters, over the limit of 128",
		`{"n":1e400}`:                                            "n: the number 1e400 is too large",
		`{"n":[` + strings.Repeat("1,", 1<<19) + `1]}`:           "n: too many values; make it smaller",
		`{"n":"` + strings.Repeat("long", 2<<20) + `"}`:          "8388616 bytes are over the limit of 8388608",
		`{"` + strings.Repeat(`\u0041`, 200) + `":` + `"short"}`: "",
	} {
		doc, err := jsontext.Parse(value, jsontext.Limits{Values: 2 << 20})
		require.NoError(t, err)
		_, err = s.FindIntegers(t.Context(), written{value, doc})
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, want)
		require.Equal(t, s.Validate(t.Context(), []byte(value)), err)
	}
}
