package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/schema"
	"github.com/caisson-run/caisson/manifests"
)

// TestArgumentsAsPairs: the schema determines the type of a word's value, and words that cannot be pairs are refused.
func TestArgumentsAsPairs(t *testing.T) {
	parameters := noerr.Get(schema.Compile([]byte(`{
		"type": "object", "additionalProperties": false,
		"$defs": {"count": {"type": "integer"}, "self": {"properties": {"self": {"$ref": "#/$defs/self"}}}},
		"properties": {
			"name": {"type": "string"}, "count": {"$ref": "#/$defs/count"}, "ratio": {"type": "number"}, "loud": {"type": "boolean"},
			"tags": {"type": "array", "items": {"type": "string"}}, "more": {"type": ["object", "null"]}, "any": {},
			"either": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]}, "level": {"enum": ["low", 3]}, "wide": {"type": ["string", "integer"]},
			"self": {"$ref": "#/$defs/self"}, "never": false
		},
		"allOf": [{"properties": {"later": {"type": "integer"}}}]
	}`)))(t)
	aliases := []manifests.ParameterAlias{
		{Name: "number", Parameter: "count"}, {Name: "title", Parameter: "name"},
		{Name: "size", Parameter: "count", Values: []manifests.AliasValue{{Written: "all", Means: []byte("100")}, {Written: "1", Means: []byte("10")}}},
	}
	for _, test := range []struct {
		words []string
		want  string // or the error
	}{
		{[]string{"name=Ada"}, `{"name":"Ada"}`},
		{[]string{"name=12"}, `{"name":"12"}`},
		{[]string{"name=true"}, `{"name":"true"}`},
		{[]string{"name="}, `{"name":""}`},
		{[]string{"name=a=b <c> \"d\"\n"}, `{"name":"a=b <c> \"d\"\n"}`},
		{[]string{"count=3", "ratio=-1.5e3", "loud=true"}, `{"count":3,"ratio":-1.5e3,"loud":true}`},
		{[]string{"count=90071992547409931"}, `{"count":90071992547409931}`},
		{[]string{`tags=["a", "b"]`, `more={"a": 1}`}, `{"tags":["a", "b"],"more":{"a": 1}}`},
		{[]string{"more=null"}, `{"more":null}`},
		{[]string{"either=1"}, `{"either":1}`},
		{[]string{"level=low"}, `{"level":"low"}`},
		{[]string{"level=3"}, `{"level":3}`},
		{[]string{"level=high"}, `{"level":"high"}`}, // refused like any value that is not allowed
		{[]string{"wide=5"}, `{"wide":"5"}`},
		{[]string{"any=5"}, `{"any":"5"}`},
		{[]string{"self=5"}, `{"self":"5"}`},
		{[]string{"later=5"}, `{"later":5}`},
		{[]string{"nmae=5"}, `{"nmae":"5"}`},
		{[]string{"number=3", "title=3"}, `{"number":3,"title":"3"}`},
		{[]string{"size=all"}, `{"size":"all"}`}, // whose meaning the manifest has
		{[]string{"size=1"}, `{"size":"1"}`},
		{[]string{"size=3"}, `{"size":3}`},
		{[]string{"number=three"}, `probe: number: "three" is not a whole number`},
		{[]string{"size=most"}, `probe: size: "most" is not a whole number`},
		{[]string{"count=three"}, `probe: count: "three" is not a whole number`},
		{[]string{"count=1.5"}, `probe: count: "1.5" is not a whole number`},
		{[]string{"count="}, `probe: count: "" is not a whole number`},
		{[]string{"loud=yes"}, `probe: loud: "yes" is not true or false`},
		{[]string{"tags=a,b"}, `probe: tags: "a,b" is not a JSON array, such as [1, 2]`},
		{[]string{"more=[]"}, `probe: more: "[]" is not a JSON object, such as {"key": "value"}, or null`},
		{[]string{"either=x"}, `probe: either: "x" is not a whole number, or true or false`},
		{[]string{"never=1"}, `probe: never: "1" is not allowed, as no value is`},
		{[]string{"name=a", "name=b"}, `probe: name is given twice`},
	} {
		got, wrong := argumentsOf(t.Context(), &manifests.Manifest{Name: "probe", Parameters: parameters, ParameterAliases: aliases}, test.words)
		if wrong != nil {
			got = wrong.Error()
		}
		assert.Equal(t, test.want, got, "%q", test.words)
	}
}

func TestPairsAreNeitherJSONNorFiles(t *testing.T) {
	for _, test := range []struct {
		words []string
		pairs bool
		wrong int
	}{
		{nil, false, -1}, {[]string{`{"a": "b=c"}`}, false, -1}, {[]string{"@a=b.json"}, false, -1}, {[]string{"-"}, false, -1}, {[]string{`"a=b"`}, false, -1},
		{[]string{"[a=b]"}, false, -1}, {[]string{""}, false, -1}, {[]string{"3"}, false, -1}, {[]string{"null"}, false, -1}, {[]string{"{'a': 1}"}, false, -1},
		{[]string{"=b"}, false, 0}, {[]string{"text"}, false, 0}, {[]string{"a: b"}, false, 0},
		{[]string{"a=b"}, true, -1}, {[]string{"a={}", "b-c.d=e"}, true, -1},
		{[]string{"a=b", "text"}, true, 1}, {[]string{"{}", "{}"}, false, 1}, {[]string{"-", "a=b"}, true, 0},
	} {
		pairs, wrong := arePairs(test.words, false)
		assert.Equal(t, test.pairs, pairs, "%q", test.words)
		assert.Equal(t, test.wrong, wrong, "%q", test.words)
	}
	_, wrong := arePairs([]string{"text"}, true)
	assert.Equal(t, -1, wrong, "what the flag accepts is up to the executor")
}

// TestAttackManyReferences: a schema in which billions of paths lead to one place ends soon.
func TestAttackManyReferences(t *testing.T) {
	definitions := map[string]any{"4": map[string]any{"type": "object", "enum": []string{"found"}}}
	for i := range 4 {
		references := make([]any, 500)
		for j := range references {
			references[j] = map[string]any{"$ref": fmt.Sprintf("#/$defs/%d", i+1)}
		}
		definitions[strconv.Itoa(i)] = map[string]any{"anyOf": references}
	}
	text := noerr.Get(json.Marshal(map[string]any{
		"type": "object", "$defs": definitions, "anyOf": []any{map[string]any{"$ref": "#/$defs/0"}},
		"properties": map[string]any{"value": map[string]any{"$ref": "#/$defs/0"}},
	}))(t)
	parameters := noerr.Get(schema.Compile(text))(t)
	m := &manifests.Manifest{Name: "probe", Parameters: parameters, ModelParameters: text}
	began := time.Now()
	_, wrong := argumentsOf(t.Context(), m, []string{"nothing=1"})
	require.Nil(t, wrong)
	_, wrong = argumentsOf(t.Context(), m, []string{"value=1"})
	require.NotNil(t, wrong)
	valuesOf(t.Context(), m, "value")
	valuesOf(t.Context(), m, "nothing")
	assert.Less(t, time.Since(began), 10*time.Second)
}
