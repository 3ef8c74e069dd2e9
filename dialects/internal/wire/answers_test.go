package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/tool"
)

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
	found, err = ReadAnswers(r, []byte(`[]`), "under", sort)
	require.NoError(t, err)
	assert.Equal(t, dialects.Answers{Outputs: []tool.Answer{}, Named: []dialects.NamedOutput{}, Approvals: []tool.Approval{}}, found)

	// All that there are count, of whichever kind.
	most := strings.Repeat(`"named","output","approval","output",`, dialects.MaxCalls/4)
	_, err = ReadAnswers(r, []byte("["+strings.TrimSuffix(most, ",")+"]"), "under", sort)
	require.NoError(t, err)
	for _, last := range []string{`"named"`, `"output"`, `"approval"`} {
		found, err = ReadAnswers(r, []byte("["+most+last+"]"), "under", sort)
		require.EqualError(t, err, "x answers: [4096]: is one answer too many; there can be 4096")
		assert.Empty(t, found)
	}
	found, err = ReadAnswers(r, []byte(`["output",{}]`), "under", sort)
	require.EqualError(t, err, "x answers: [1]: is strange")
	assert.Empty(t, found, "all or nothing")

	for document, want := range map[string]string{`{"under":["output"]}`: "under[0]", `"output"`: "", `["output"]`: "[0]"} {
		found, err = ReadAnswers(r, []byte(document), "under", sort)
		require.NoError(t, err)
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
		_, err := Linked(reader, "at", link, tool.Content{})
		assert.ErrorContains(t, err, want, link)
	}
}

// TestWhatIsWrittenIsUTF8: arguments and data are passed on as they came, which may be anything.
func TestWhatIsWrittenIsUTF8(t *testing.T) {
	written, err := Encode(map[string]any{"a": "\xff", "b": json.RawMessage("{\"\xc3\":\"\xed\xa0\xbd<&>\"}")})
	require.NoError(t, err)
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
		written, err := json.Marshal(stored)
		require.NoError(t, err)
		again, ok := Stored(written)
		require.True(t, ok)
		twice, err := json.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, string(written), string(twice))
	})
}
