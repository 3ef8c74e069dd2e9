package tool

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
)

func TestParseArguments(t *testing.T) {
	deep := strings.Repeat(`{"a":`, MaxArgumentsDepth) + "1" + strings.Repeat("}", MaxArgumentsDepth)
	cases := []struct{ name, text, want, fault string }{
		{name: "an object", text: `{"b": [1, 2], "a": "x"}`, want: `{"b":[1, 2],"a":"x"}`},
		{name: "nothing", text: "", want: "{}"},
		{name: "white space", text: " \n", want: "{}"},
		{name: "digits are kept", text: `{"n": 12345678901234567890.10, "e": 1E400}`, want: `{"n":12345678901234567890.10,"e":1E400}`},
		{name: "as deep as allowed", text: deep, want: deep},
		{name: "one key in two objects", text: `{"a":{"k":1},"b":{"k":1},"c":[{"k":1},{"k":2}]}`, want: `{"a":{"k":1},"b":{"k":1},"c":[{"k":1},{"k":2}]}`},
		{name: "keys that differ by case", text: `{"a":1,"A":2}`, want: `{"a":1,"A":2}`},
		{name: "an array", text: `[1]`, fault: "an array"},
		{name: "a string", text: `"x"`, fault: "a string"},
		{name: "a number", text: `1`, fault: "a number"},
		{name: "null", text: `null`, fault: "null"},
		{name: "cut off", text: `{"a": 1`, fault: "too early"},
		{name: "an unquoted key", text: `{a: 1}`, fault: "invalid arguments: not JSON: want a name in double quotes, not 'a', at byte 1"},
		{name: "a trailing comma", text: `{"a": 1,}`, fault: "not JSON: want a name in double quotes, not '}', at byte 8"},
		{name: "text behind it", text: `{"a": 1} and more`, fault: "follows"},
		{name: "two objects", text: `{"a": 1}{"a": 2}`, fault: "follows"},
		{name: "a doubled key", text: `{"a":1,"a":2}`, fault: `"a" occurs twice`},
		{name: "a doubled key, escaped", text: `{"ab":1,"\u0061b":2}`, fault: `"ab" occurs twice`},
		{name: "a doubled key below", text: `{"x":[{"a":1,"b":{},"a":2}]}`, fault: `"a" occurs twice`},
		{name: "a key with an invisible character", text: `{"project_id\u200b":1}`, fault: `"project_id\u200b"`},
		{name: "a key with NUL", text: `{"project_id\u0000":1}`, fault: "cannot be seen"},
		{name: "too deep", text: `{"x":` + deep + `}`, fault: "deeper"},
		{name: "too long", text: `{"x":"` + strings.Repeat("x", MaxArgumentsBytes) + `"}`, fault: "over the limit"},
		{name: "not UTF-8", text: "{\"a\":\"\xff\"}", fault: "UTF-8"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			arguments, err := ParseArguments(c.text)
			if c.fault != "" {
				require.ErrorAs(t, err, new(*ArgumentsError))
				assert.ErrorContains(t, err, c.fault)
				return
			}
			require.NoError(t, err)
			text := noerr.Get(arguments.MarshalJSON())(t)
			assert.Equal(t, c.want, string(text))
		})
	}
}

func TestArgumentsWith(t *testing.T) {
	original := noerr.Get(ParseArguments(`{"a":1,"b":2}`))(t)
	changed := original.With("a", json.RawMessage(`"x"`)).With("c", json.RawMessage(`3`))
	text := noerr.Get(json.Marshal(changed))(t)
	assert.Equal(t, `{"a":"x","b":2,"c":3}`, string(text))
	assert.Equal(t, []string{"a", "b"}, original.Names(), "the original is untouched")
	value, ok := original.Get("a")
	assert.True(t, ok)
	assert.Equal(t, "1", string(value))
	_, ok = original.Get("A")
	assert.False(t, ok, "names are told apart by case")
	assert.Equal(t, 3, changed.Len())
	assert.Equal(t, []string{"b"}, changed.Without("a", "c", "A").Names())
	assert.Equal(t, 3, changed.Len(), "Without changes a copy")
}

func TestCanonicalArguments(t *testing.T) {
	canonical := func(text string) string {
		arguments := noerr.Get(ParseArguments(text))(t)
		return string(arguments.AppendCanonical(nil))
	}
	base := canonical(`{"a": [1, 2.0], "b": {"x": 1, "y": "p q"}}`)
	for name, c := range map[string]struct {
		text string
		same bool
	}{
		"another order of members":           {`{"b": {"x": 1, "y": "p q"}, "a": [1, 2.0]}`, true},
		"without space":                      {`{"a":[1,2.0],"b":{"x":1,"y":"p q"}}`, true},
		"more space":                         {"{\n\t\"a\" : [1 ,2.0]\r\n, \"b\": {\"x\":1,\"y\":\"p q\"}}", true},
		"space in a string":                  {`{"a": [1, 2.0], "b": {"x": 1, "y": "pq"}}`, false},
		"a number that is written otherwise": {`{"a": [1, 2], "b": {"x": 1, "y": "p q"}}`, false},
		"another order of elements":          {`{"a": [2.0, 1], "b": {"x": 1, "y": "p q"}}`, false},
		"a member less":                      {`{"a": [1, 2.0]}`, false},
		"a name that looks like two members": {`{"a:1,b": 1}`, false},
	} {
		assert.Equal(t, c.same, base == canonical(c.text), name)
	}
	assert.NotEqual(t, canonical(`{"a": 1, "b": 2}`), canonical(`{"a\":1,\"b": 2}`))
	assert.NotEqual(t, canonical(`{}`), canonical(`{"": null}`))
}
