package wire

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/internal/noerr"
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
		`{`:                   "openai response: doc: is not JSON: it ends too early, at byte 1",
		`{"a":}`:              `openai response: doc: is not JSON: '}' does not belong there, at byte 5`,
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
	assert.EqualError(t, Each(reader, "a", json.RawMessage(`{}`), 3, visit), "openai response: a: is not a JSON array")
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
	}{}), `openai response: a.b: is ambiguous: the name "id" occurs twice in one object`)
}

func TestSumsStopAtTheLargestNumber(t *testing.T) {
	assert.Equal(t, int64(5), Sum[int64](2, -7, 3))
	assert.Equal(t, int64(math.MaxInt64), Sum[int64](math.MaxInt64, math.MaxInt64, 1))
}

func TestMentionsSayWhatIsNotShown(t *testing.T) {
	assert.Equal(t, "plain", Mention(&tool.Content{Type: "text", Text: "plain", Name: "ignored"}))
	assert.Equal(t, "see [file: a.bin, application/zip, 3 bytes, not shown]",
		Mention(&tool.Content{Type: "file", Text: "see", Name: "a.bin", MIMEType: "application/zip", Data: []byte("abc")}))
}

func TestFailuresSayWhy(t *testing.T) {
	for want, result := range map[string]tool.Result{
		"denied: no": {Error: "no", Kind: tool.Denied}, "no": {Error: "no"}, "denied": {Kind: tool.Denied}, "tool_failed": {},
		"denied: files /a: no":        {Error: "denied: files /a: no", Kind: tool.Denied},
		"invalid arguments: not JSON": {Error: "invalid arguments: not JSON", Kind: tool.InvalidArguments},
	} {
		assert.Equal(t, want, Failure(&result))
	}
}

func TestAnswersAreGathered(t *testing.T) {
	r := Reader{Op: "answers", Dialect: "x"}
	sort := func(r Reader, answers *Answers, element *json.RawMessage) error {
		switch string(*element) {
		case `"named"`:
			return answers.AddNamed(r, dialects.NamedOutput{Tool: r.Path})
		case `"approval"`:
			return answers.AddApproval(r, tool.Approval{CallID: r.Path})
		case `"output"`:
			return answers.Add(r, tool.Answer{CallID: r.Path})
		}
		return r.Fail("", "is strange")
	}
	found, err := ReadAnswers(r, []byte(`["named","output","approval","output"]`), "under", sort)
	require.NoError(t, err)
	assert.Equal(t, dialects.Answers{
		Outputs: []tool.Answer{{CallID: "[1]"}, {CallID: "[3]"}}, Named: []dialects.NamedOutput{{Tool: "[0]"}}, Approvals: []tool.Approval{{CallID: "[2]"}},
	}, found)
	found = noerr.Get(ReadAnswers(r, []byte(`[]`), "under", sort))(t)
	assert.Equal(t, dialects.Answers{Outputs: []tool.Answer{}, Named: []dialects.NamedOutput{}, Approvals: []tool.Approval{}}, found)

	// Answers of all kinds count.
	most := strings.Repeat(`"named","output","approval","output",`, MaxCalls/4)
	noerr.Get(ReadAnswers(r, []byte("["+strings.TrimSuffix(most, ",")+"]"), "under", sort))(t)
	for _, last := range []string{`"named"`, `"output"`, `"approval"`} {
		found, err = ReadAnswers(r, []byte("["+most+last+"]"), "under", sort)
		require.EqualError(t, err, "x answers: [4096]: is one answer too many; there can be 4096")
		assert.Empty(t, found)
	}
	found, err = ReadAnswers(r, []byte(`["output",{}]`), "under", sort)
	require.EqualError(t, err, "x answers: [1]: is strange")
	assert.Empty(t, found, "all or nothing")

	for document, want := range map[string]string{`{"under":["output"]}`: "under[0]", `"output"`: "", `["output"]`: "[0]"} {
		found = noerr.Get(ReadAnswers(r, []byte(document), "under", sort))(t)
		assert.Equal(t, want, found.Outputs[0].CallID)
	}
	for _, document := range []string{`{"under":["output"],"type":"x"}`, `{"under":null}`, `{"under":1}`, `{"under":["output"],"under":["output"]}`} {
		_, err = ReadAnswers(r, []byte(document), "under", sort)
		require.Error(t, err, document)
	}
}

func TestStoredResults(t *testing.T) {
	for text, want := range map[string]tool.Result{
		`{"success":true}`: {Success: true},
		" {\"output\": \"<4>\", \"success\": true,\n\"data\": [1.0], \"content\": [{\"type\":\"image\",\"data\":\"AQ==\",\"mime_type\":\"image/png\"}]}\n": {
			Success: true, Output: "<4>", Data: json.RawMessage(`[1.0]`), Content: []tool.Content{{Type: "image", Data: []byte{1}, MIMEType: "image/png"}},
		},
		`{"success":false}`: {Kind: tool.ToolFailed},
		`{"success":false,"error":"no","kind":"denied"}`:   {Error: "no", Kind: tool.Denied},
		`{"success":false,"error":"no","output":"partly"}`: {Error: "no", Output: "partly", Kind: tool.ToolFailed},
	} {
		stored, ok := Stored([]byte(text))
		assert.True(t, ok, text)
		assert.Equal(t, want, stored, text)
	}
	for _, text := range []string{
		``, ` `, `4`, `"{}"`, `[]`, `[{"success":true}]`, `{}`, `{"output":"4"}`, `{"success":"true"}`, `{"success":null}`, `{"success":1}`,
		`{"Success":true}`, `{"success":true,"Output":"4"}`, `{"success":true,"success":true}`, `{"success":true,"temperature":4}`,
		`{"success":true} {}`, `{"success":true`, `{"success":true,"kind":"denied"}`, `{"success":true,"error":"no"}`, `{"success":false,"kind":"strange"}`,
		`{"success":true,"content":[{"kind":"a"}]}`, `{"success":true,"data":}`,
	} {
		_, ok := Stored([]byte(text))
		assert.False(t, ok, text)
	}
}

func TestOutcomes(t *testing.T) {
	image := tool.Content{Type: "image", URL: "https://example.com/a.png"}
	text := func(said string) tool.Content { return tool.Content{Type: "text", Text: said} }
	for name, c := range map[string]struct {
		parts  []tool.Content
		failed bool
		want   tool.Result
	}{
		"nothing":               {nil, false, tool.Result{Success: true}},
		"a text":                {[]tool.Content{text(""), text("a")}, false, tool.Result{Success: true, Output: "a"}},
		"texts":                 {[]tool.Content{text("a"), text("b"), image, text("c")}, false, tool.Result{Success: true, Output: "a", Content: []tool.Content{text("b"), image, text("c")}}},
		"an image first":        {[]tool.Content{image, text("a")}, false, tool.Result{Success: true, Content: []tool.Content{image, text("a")}}},
		"a result":              {[]tool.Content{text(`{"success":true,"output":"a"}`)}, false, tool.Result{Success: true, Output: "a"}},
		"a result among texts":  {[]tool.Content{text(`{"success":true}`), text("a")}, false, tool.Result{Success: true, Output: `{"success":true}`, Content: []tool.Content{text("a")}}},
		"a failed result":       {[]tool.Content{text(`{"success":false,"kind":"deadline"}`)}, true, tool.Result{Kind: tool.Deadline}},
		"a success that failed": {[]tool.Content{text(`{"success":true}`)}, true, tool.Result{Error: `{"success":true}`, Kind: tool.ToolFailed}},
		"failed":                {nil, true, tool.Result{Kind: tool.ToolFailed}},
		"failed with a reason":  {[]tool.Content{text("no"), text("partly"), text("more")}, true, tool.Result{Error: "no", Kind: tool.ToolFailed, Output: "partly", Content: []tool.Content{text("more")}}},
		"as it is written":      {[]tool.Content{text("tool_failed: no")}, true, tool.Result{Error: "no", Kind: tool.ToolFailed}},
		"without a reason":      {[]tool.Content{text("tool_failed"), text("partly")}, true, tool.Result{Kind: tool.ToolFailed, Output: "partly"}},
		"a kind in a text":      {[]tool.Content{text("denied: no")}, true, tool.Result{Error: "denied: no", Kind: tool.ToolFailed}},
	} {
		var outcome Outcome
		for _, part := range c.parts {
			outcome.Part(part)
		}
		assert.Equal(t, c.want, outcome.Result(c.failed), name)
	}
}

func TestLinks(t *testing.T) {
	for link, want := range map[string]tool.Content{
		"https://example.com/a.png":                        {Type: "image", URL: "https://example.com/a.png"},
		"data:image/png;base64,AQ==":                       {Type: "image", Data: []byte{1}, MIMEType: "image/png"},
		"data:IMAGE/PNG;name=\"a\";base64,AQ==":            {Type: "image", Data: []byte{1}, MIMEType: "image/png"},
		"data:image/svg+xml;charset=utf-8;base64,PHN2Zz4=": {Type: "image", Data: []byte("<svg>"), MIMEType: "image/svg+xml"},
	} {
		part, err := Linked(reader, "at", link, tool.Content{Type: "image"})
		require.NoError(t, err, link)
		assert.Equal(t, want, part)
	}
	for link, want := range map[string]string{
		"": "openai response: at: is missing", "data:image/png,abc": "is not a data URL with base64", "data:image/png;base64": "is not a data URL with base64",
		"data:image/png;base64,*": "is not a data URL with base64", "data:;base64,AQ==": "without a MIME type",
	} {
		assert.ErrorContains(t, noerr.Error(Linked(reader, "at", link, tool.Content{})), want, link)
	}
}

// TestWhatIsWrittenIsUTF8: arguments and data are passed on as they came, which may be anything.
func TestWhatIsWrittenIsUTF8(t *testing.T) {
	written := noerr.Get(Encode(map[string]any{"a": "\xff", "b": json.RawMessage("{\"\xc3\":\"\xed\xa0\xbd<&>\"}")}))(t)
	assert.True(t, utf8.Valid(written))
	assert.True(t, json.Valid(written))
	assert.Equal(t, "{\"a\":\"\\ufffd\",\"b\":{\"\uFFFD\":\"\uFFFD<&>\"}}", string(written))
}

func TestInputsOfCalls(t *testing.T) {
	for _, c := range []struct{ kind, arguments, want string }{
		{"", ` {"a": 1} `, `{"a": 1}`}, {tool.FunctionCall, ``, `{}`}, {tool.FunctionCall, `[1]`, `{"INVALID_JSON":"[1]"}`},
		{tool.LocalShellCall, `{"command":["ls"]}`, `{"command":["ls"]}`},
		{tool.CustomCall, `{"a": 1}`, `{"input":"{\"a\": 1}"}`}, {tool.CustomCall, ``, `{"input":""}`},
	} {
		assert.Equal(t, c.want, string(Input(&tool.Call{Type: c.kind, Function: tool.Function{Arguments: c.arguments}})))
	}
}

func FuzzStored(f *testing.F) {
	f.Add([]byte(`{"success":false,"error":"no","kind":"denied","data":{"a":1e400},"content":[{"type":"image","data":"AQ=="}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		stored, ok := Stored(text)
		if !ok {
			require.Empty(t, stored.Content)
			return
		}
		require.Equal(t, stored.Success, stored.Kind == "")
		written := noerr.Get(json.Marshal(stored))(t)
		again, ok := Stored(written)
		require.True(t, ok)
		twice := noerr.Get(json.Marshal(again))(t)
		require.Equal(t, string(written), string(twice))
	})
}
