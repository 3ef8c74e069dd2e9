package decode_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/jsontext"
	"github.com/caisson-run/caisson/internal/jsontext/decode"
	"github.com/caisson-run/caisson/internal/noerr"
)

// values is a variable of each type that has a reader.
type values struct {
	text          string
	yes           bool
	number        float64
	integer       int
	raw, document json.RawMessage
	list          []string
	byName        map[string]string
}

func read(t *testing.T, text string) (values, error) {
	t.Helper()
	doc := noerr.Get(jsontext.Parse(text, jsontext.Limits{}))(t)
	v := values{byName: map[string]string{}}
	err := decode.Object(doc.Root(), decode.Members{
		"text": decode.Text(&v.text), "yes": decode.Bool(&v.yes), "number": decode.Number(&v.number, 1.5), "integer": decode.Integer(&v.integer, 10),
		"raw": decode.Raw(&v.raw), "document": decode.RawObject(&v.document), "list": decode.Texts(&v.list, 2),
		"by_name": decode.Map(func(name string, value jsontext.Value) error {
			var text string
			err := decode.Object(value, decode.Members{"is": decode.Text(&text)}, "is")
			v.byName[name] = text
			return err
		}),
		"empty": func(v jsontext.Value) error { return decode.Object(v, nil) },
	}, "text")
	return v, err
}

func TestObject(t *testing.T) {
	got := noerr.Get(read(t, `{"t\u0065xt":"\u00e9","yes":true,"number":1.5,"integer":1e1,"raw":[ 1 ],"document":{ },"list":["a","b"],"by_name":{"x":{"is":"y"}},"empty":{}}`))(t)
	assert.Equal(t, values{"é", true, 1.5, 10, json.RawMessage(`[ 1 ]`), json.RawMessage(`{ }`), []string{"a", "b"}, map[string]string{"x": "y"}}, got)
	got = noerr.Get(read(t, `{"text":"","raw":null,"list":[]}`))(t)
	assert.Nil(t, got.raw)
	assert.Equal(t, []string{}, got.list)
}

func TestWrongValues(t *testing.T) {
	for text, want := range map[string]string{
		`[]`: "must be an object", `{}`: "text is missing", `{"text":null}`: "text must be a string", `{"yes":1}`: "yes must be true or false",
		`{"number":"1"}`: "number must be a number from 0 to 1.5", `{"number":1.6}`: "number must be a number from 0 to 1.5", `{"number":-1}`: "number must be a number from 0 to 1.5",
		`{"integer":1.5}`: "integer must be an integer from 0 to 10", `{"integer":11}`: "integer must be an integer from 0 to 10", `{"integer":1e999}`: "integer must be an integer from 0 to 10",
		`{"document":null}`: "document must be an object", `{"list":{}}`: "list must be an array", `{"list":["a",1]}`: "list[1] must be a string",
		`{"list":["a","b","c"]}`: "list has 3 elements, over the limit of 2", `{"by_name":[]}`: "by_name must be an object",
		`{"by_name":{"x":{}}}`: "by_name.x.is is missing", `{"by_name":{"x":{"Is":"y"}}}`: "by_name.x.Is is unknown; the members are is",
		`{"empty":{"a":1}}`: "empty.a is unknown; the object has no members",
		`{"Text":"a"}`:      "Text is unknown; the members are by_name, document, empty, integer, list, number, raw, text, yes",
	} {
		_, err := read(t, text)
		var wrong *decode.Error
		require.ErrorAs(t, err, &wrong, text)
		assert.EqualError(t, err, want, text)
	}
}
