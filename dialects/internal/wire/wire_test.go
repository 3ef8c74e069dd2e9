package wire

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/tool"
)

var reader = Reader{Op: "response", Dialect: "openai"}

func TestErrorsNameTheirPart(t *testing.T) {
	var into struct {
		A struct {
			B bool
			C []int
			D string
		}
	}
	for text, want := range map[string]string{
		`{`:                   "openai response: doc: is not JSON: unexpected end of JSON input",
		`1`:                   "openai response: doc: is a JSON number; want an object",
		`{"A":1}`:             "openai response: doc.A: is a JSON number; want an object",
		`{"A":{"B":"x"}}`:     "openai response: doc.A.B: is a JSON string; want true or false",
		`{"A":{"C":{}}}`:      "openai response: doc.A.C: is a JSON object; want an array",
		`{"A":{"C":["x"]}}`:   "openai response: doc.A.C: is a JSON string; want an integer",
		`{"A":{"D":[]}}`:      "openai response: doc.A.D: is a JSON array; want a string",
		`{"A":{"D":"plain"}}`: "",
	} {
		err := reader.Into("doc", []byte(text), &into)
		if want == "" {
			assert.NoError(t, err)
			continue
		}
		assert.EqualError(t, err, want)
	}
	cause := errors.New("cause")
	assert.ErrorIs(t, reader.Within("[1]", cause), cause)
	assert.EqualError(t, reader.Within("[1]", &dialects.Error{Op: "x", Path: "y", Message: "m"}), "openai response: [1].y: m")
}

func TestEachElementIsVisited(t *testing.T) {
	var seen []string
	visit := func(r Reader, element *json.RawMessage) error {
		seen = append(seen, r.Path+string(*element))
		if r.Path == "a[2]" {
			return errors.New("enough")
		}
		return nil
	}
	require.NoError(t, Each(reader, "a", nil, 3, visit))
	require.NoError(t, Each(reader, "a", json.RawMessage("null"), 3, visit))
	require.NoError(t, Each(reader, "a", json.RawMessage(` [1.0, {"b": []}]`), 3, visit))
	assert.Equal(t, []string{"a[0]1.0", `a[1]{"b": []}`}, seen)
	assert.EqualError(t, Each(reader, "a", json.RawMessage(`[1,2,3,4]`), 3, visit), "enough")
	assert.EqualError(t, Each(reader, "a", json.RawMessage(`{}`), 3, visit), "openai response: a: is not a JSON array, as it must be")
	assert.EqualError(t, Each(reader, "a", json.RawMessage(`[1,2]`), 1, visit), "openai response: a: has more than 1 elements")
	for _, broken := range []string{`[`, `[1`, `[1,`, `[1 2]`, `[}`} {
		assert.ErrorContains(t, Each(reader, "a", json.RawMessage(broken), 3, visit), "openai response: a: is not JSON", broken)
	}
}

func TestDocuments(t *testing.T) {
	var visited []string
	visit := func(r Reader, element json.RawMessage) error {
		visited = append(visited, r.Path+string(element))
		return nil
	}
	for _, document := range []string{"[1, {}]", "\uFEFF \n{\"a\": 1}\n", "5", " [] "} {
		require.NoError(t, reader.Elements([]byte(document), visit), document)
	}
	assert.Equal(t, []string{"[0]1", "[1]{}", `{"a": 1}`, "5"}, visited)
	for document, want := range map[string]string{
		"": "openai response: is not JSON", "[1": "is not JSON", "{} {}": "is not JSON", "\uFEFF\uFEFF{}": "is not JSON",
		strings.Repeat(" ", 8<<20) + "1": "has 8388609 bytes, more than 8388608",
	} {
		assert.ErrorContains(t, reader.Elements([]byte(document), visit), want)
	}
	assert.ErrorContains(t, reader.Into("a.b", []byte(`{"id":1,"id":2}`), &struct {
		ID int `json:"id"`
	}{}), `openai response: a.b: has a member twice: "id" stands twice in one object`)
}

func TestSumsStopAtTheLargestNumber(t *testing.T) {
	assert.Equal(t, int64(5), Sum(2, -7, 3))
	assert.Equal(t, int64(math.MaxInt64), Sum(math.MaxInt64, math.MaxInt64, 1))
}

func TestMentionsSayWhatIsNotShown(t *testing.T) {
	assert.Equal(t, "plain", Mention(&tool.Content{Type: "text", Text: "plain", Name: "ignored"}))
	assert.Equal(t, "see [file: a.bin, application/zip, 3 bytes, not shown]",
		Mention(&tool.Content{Type: "file", Text: "see", Name: "a.bin", MIMEType: "application/zip", Data: []byte("abc")}))
}

func TestFailuresSayWhy(t *testing.T) {
	for want, result := range map[string]tool.Result{
		"denied: no": {Error: "no", Kind: tool.Denied}, "no": {Error: "no"}, "denied": {Kind: tool.Denied}, "tool_failed": {},
	} {
		assert.Equal(t, want, Failure(&result))
	}
}
