package lint

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		" { \"b\" : [ 1.50 , {} ] ,\n\"a\" : \"\\u00e9<\" , \"c\":null} ": `{"b":[1.50,{}],"a":"\u00e9<","c":null}`,
		`[]`: `[]`, ` 1e400 `: `1e400`, `"x"`: `"x"`, `{"\u0061\"":true}`: `{"a\"":true}`,
	} {
		v, err := Parse([]byte(text), 3, 9)
		require.NoError(t, err, text)
		assert.Equal(t, want, string(v.Append(nil)))
	}
	for text, fault := range map[string]string{
		``: "unexpected end", `{} {}`: "after top-level value", `[[[[]]]]`: "nested deeper than 3 levels", `[1,2,3,4,5,6,7,8,9]`: "more than 9 values",
		`{"x":{"a":1,"\u0061":2}}`: `"a" occurs twice`,
	} {
		assert.ErrorContains(t, noerr.Error(Parse([]byte(text), 3, 9)), fault, text)
	}
	v := noerr.Get(Parse([]byte(`{"t":["a","\u0062"],"n":1}`), 9, 9))(t)
	assert.True(t, v.IsObject() && v.Get("t").IsList() && v.Get("t").HasText("b") && v.Get("t").Elements()[0].HasText("a"))
	assert.True(t, v.Get("x") == nil && !v.Get("x").IsList() && !v.Get("n").HasText("1") && v.Get("n").Literal() == "1")
	v.Set("n", List(String("<")))
	v.Set("z", Object())
	v.Delete("t")
	assert.Equal(t, `{"n":["<"],"z":{}}`, string(v.Append(nil)))
}
