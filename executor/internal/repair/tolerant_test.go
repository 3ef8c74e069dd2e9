package repair_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor/internal/repair"
	"github.com/caisson-run/caisson/tool"
)

var tolerantReads = []struct{ name, source, want string }{
	{"single quotes", `{'a': 'b'}`, `{"a":"b"}`},
	{"quotes in quotes", `{'a': 'say "hi", it\'s \u0041'}`, `{"a":"say \"hi\", it's \u0041"}`},
	{"names without quotes", `{a: 1, $b_2: 2, c-d: 3}`, `{"a":1,"$b_2":2,"c-d":3}`},
	{"trailing commas", `{"a": [1, 2,], }`, `{"a":[1,2]}`},
	{"comments", "{// one\n\"a\": /* two */ 1, # three\n}", `{"a":1}`},
	{"Python", `{'a': True, 'b': False, 'c': None, 'd': [true, false, null]}`, `{"a":true,"b":false,"c":null,"d":[true,false,null]}`},
	{"a code fence", "```json\n{\"a\": 1}\n```", `{"a":1}`},
	{"a code fence alone", " ```\n{}\n```\n", `{}`},
	{"missing brackets", `{"a": {"b": [1, {"c": "d"`, `{"a":{"b":[1,{"c":"d"}]}}`},
	{"missing brackets behind a number", "{\"a\": 1 ", `{"a":1}`},
	{"digits", `{a: 12345678901234567890.10, b: -1E+2}`, `{"a":12345678901234567890.10,"b":-1E+2}`},
	{"line breaks in strings", "{'a': \"x\n\ty\"}", `{"a":"x\n\ty"}`},
	{"slashes in strings", `{'a': "http://x/*y*/#z"}`, `{"a":"http://x/*y*/#z"}`},
	{"nothing", `{ /* nothing */ }`, `{}`},
}

var tolerantRefuses = []struct{ name, source string }{
	{"an opening bracket alone", `{`},
	{"a comma at the end", `{"a": 1,`},
	{"a number at the end", `{"a": 12`},
	{"a string without end", `{"a": "b`},
	{"a name without a value", `{"a":`},
	{"a bracket of another kind", `{"a": [1}`},
	{"a missing bracket in the middle", `{"a": [1, "b": 2}`},
	{"a missing comma", `{"a": 1 "b": 2}`},
	{"two commas", `{"a": 1,, "b": 2}`},
	{"a comma at the start", `{,}`},
	{"words without quotes", `{"a": yes}`},
	{"words in another spelling", `{"a": TRUE}`},
	{"a number as a name", `{1: 2}`},
	{"numbers of other languages", `{"a": 0x1F, "b": +1}`},
	{"a leading zero", `{"a": 01 }`},
	{"escapes of other languages", `{'a': '\x41'}`},
	{"half an escape", `{'a': '\u12'}`},
	{"a control character", "{'a': '\x00'}"},
	{"a comment without end", `{"a": 1 /*`},
	{"a code fence without end", "```json\n{\"a\": 1}"},
	{"text before", `Here: {"a": 1}`},
	{"text behind", `{'a': 1} and more`},
	{"two objects", `{'a': 1}{'b': 2}`},
	{"an array", `['a']`},
	{"a string", `'a'`},
	{"a doubled key", `{'a': 1, a: 2}`},
	{"a key that cannot be seen", "{'a\u200b': 1}"},
	{"not UTF-8", "{'a': '\xff'}"},
	{"valid JSON that is refused", `{"a":1,"a":2}`},
	{"too deep", strings.Repeat(`{a:`, tool.MaxArgumentsDepth+1) + "{}"},
	{"too long", `{a:'` + strings.Repeat("x", tool.MaxArgumentsBytes) + `'}`},
	{"white space", " "},
}

func tolerantSeeds() []string {
	var seeds []string
	for _, c := range tolerantReads {
		seeds = append(seeds, c.source)
	}
	for _, c := range tolerantRefuses {
		if len(c.source) < 1000 {
			seeds = append(seeds, c.source)
		}
	}
	return append(seeds, `"{\"a\":1}"`, `"{"`, `""`, `null`, `{"a":"\ud800"}`)
}

func TestTolerant(t *testing.T) {
	for _, c := range tolerantReads {
		t.Run(c.name, func(t *testing.T) {
			arguments, repairs, ok := repair.Text(c.source, true)
			require.True(t, ok)
			assert.Equal(t, c.want, text(t, arguments))
			require.Len(t, repairs, 1)
			assert.Equal(t, string(repair.TolerantJSON), repairs[0].Rule)
			assert.Empty(t, repairs[0].Path)
			assert.JSONEq(t, string(mustQuote(t, c.source)), string(repairs[0].From))
			assert.Equal(t, c.want, string(repairs[0].To))
			_, _, ok = repair.Text(c.source, false)
			assert.False(t, ok, "it is an option")
		})
	}
	for _, c := range tolerantRefuses {
		t.Run(c.name, func(t *testing.T) {
			_, repairs, ok := repair.Text(c.source, true)
			assert.False(t, ok)
			assert.Empty(t, repairs)
		})
	}
}

func TestTextInAString(t *testing.T) {
	arguments, repairs, ok := repair.Text(` "{\"a\": 1.50}" `, false)
	require.True(t, ok)
	assert.Equal(t, `{"a":1.50}`, text(t, arguments))
	assert.Equal(t, ` parse_json: "{\"a\": 1.50}" -> {"a":1.50}`, changes(repairs))
	for _, source := range []string{`"\"{}\""`, `"[]"`, `""`, `" "`, `"{\"a\":1,\"a\":2}"`, `"x"`, `1`, `null`, `[]`, `{"a":1,"a":2}`, `"{}`} {
		_, _, ok := repair.Text(source, true)
		assert.False(t, ok, source)
	}
}
