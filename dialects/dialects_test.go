package dialects_test

import (
	"errors"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/tool"
)

func TestErrorSaysWhereAndWhy(t *testing.T) {
	cause := errors.New("cause")
	for want, err := range map[string]*dialects.Error{
		"openai response: choices[0]: wrong: cause": {Op: "response", Dialect: "openai", Path: "choices[0]", Message: "wrong", Err: cause},
		"events: wrong":        {Op: "events", Message: "wrong"},
		"gemini stream: cause": {Op: "stream", Dialect: "gemini", Err: cause},
	} {
		assert.Equal(t, want, err.Error())
		assert.Equal(t, err.Err != nil, errors.Is(err, cause))
	}
}

func TestDetect(t *testing.T) {
	for _, c := range []struct{ document, want string }{
		{`{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"x"}}]}`, dialects.OpenAI},
		{` {"choices":[]}`, dialects.OpenAI},
		{`{"id":"r","object":"response","status":"completed","output":[]}`, dialects.Responses},
		{`{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn"}`, dialects.Anthropic},
		{`{"candidates":[{"content":{"parts":[{"text":"x"}],"role":"model"}}]}`, dialects.Gemini},
		{`{"promptFeedback":{"blockReason":"SAFETY"}}`, dialects.Gemini},
		{` [ {"candidates":[]},{}]`, dialects.Gemini},
		{`[{"jsonrpc":"2.0","id":1,"method":"tools/call"}]`, dialects.MCP},
		{"\uFEFF\r\n{\"choices\":[]}", dialects.OpenAI},
		{`{"choices":[],"Candidates":[],"JSONRPC":"2.0"}`, dialects.OpenAI},
		{`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`, dialects.MCP},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`, dialects.MCP},

		{``, ""}, {` `, ""}, {`null`, ""}, {`"choices"`, ""}, {`[]`, ""}, {`[`, ""}, {`[[{"choices":[]}]]`, ""}, {`[{"choices":[]}`, ""},
		{`{}`, ""}, {`{"choices":{}}`, ""}, {`{"choices":[]`, ""}, {`{"choices":[]} {}`, ""}, {`{"jsonrpc":"1.0"}`, ""},
		{`{"type":"message","role":"user","content":[]}`, ""},

		{`{"error":{"message":"x","type":"invalid_request_error"}}`, dialects.OpenAI}, {`{"error":"x"}`, dialects.OpenAI},
		{`{"type":"error","error":{"type":"overloaded_error","message":"x"}}`, dialects.Anthropic},
		{`{"error":{"code":503,"status":"UNAVAILABLE","message":"x"}}`, dialects.Gemini}, {`[{"error":{"status":"UNAVAILABLE"}}]`, dialects.Gemini},
		{`{"error":null}`, ""}, {`{"type":"error","message":"x"}`, ""}, {`[{"error":{"message":"x"}}]`, ""},
		{`{"type":"function","function":{"name":"f"},"error":{"message":"x"}}`, ""},

		{`{"choices":[],"candidates":[]}`, ""},
		{`[{"choices":[]}]`, ""}, {`[{"object":"response","output":[]}]`, ""}, {`[{"type":"message","role":"assistant","content":[]}]`, ""},
		{`{"Choices":[]}`, ""}, {`{"choices":[],"choices":[]}`, ""},
		{`{"choices":[` + strings.Repeat(" ", dialects.MaxDocument) + `]}`, ""},
	} {
		name, ok := dialects.Detect([]byte(c.document))
		assert.Equal(t, c.want, name, "%.100s", c.document)
		assert.Equal(t, c.want != "", ok, "%.100s", c.document)
	}
}

func TestDetectStream(t *testing.T) {
	data := func(documents ...string) string { return "data: " + strings.Join(documents, "\n\ndata: ") + "\n\n" }
	for _, c := range []struct{ transcript, want string }{
		{data(`{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{}}]}`, `[DONE]`), dialects.OpenAI},
		{": keep-alive\n\ndata: {\"choices\":[]}", dialects.OpenAI},
		{data(`{"type":"response.created","response":{}}`), dialects.Responses},
		{"event: response.in_progress\r\ndata: {\"response\":{}}\r\n\r\n", dialects.Responses},
		{"event: ping\ndata: {\"type\":\"ping\"}\n\nevent: message_start\ndata: {\"type\":\"message_start\"}\n\n", dialects.Anthropic},
		{"event: content_block_delta\ndata: {\"index\":0}", dialects.Anthropic},
		{data(`{"candidates":[{"content":{}}]}`), dialects.Gemini}, {data(`{"promptFeedback":{}}`), dialects.Gemini}, {data(`{"usageMetadata":{}}`), dialects.Gemini},
		{"\uFEFF" + `[{"candidates":[]},{"usageMetadata":{}}]`, dialects.Gemini},
		{data(``, `{"jsonrpc":"2.0","method":"notifications/initialized"}`), dialects.MCP},

		{data(`{"type":"error","error":{}}`), dialects.Anthropic}, {data(`{"error":{"message":"x"}}`), dialects.OpenAI},
		{data(`{"type":"error","code":"server_error","message":"x"}`), dialects.Responses}, {"event: error\ndata: {\"message\":\"x\"}", dialects.Responses},

		{"", ""}, {"data: [DONE]\n\n", ""}, {"hello", ""}, {data(`"choices"`, `[{"choices":[]}]`, `{`, `{"type":"thread.error"}`), ""},
		{data(`{"Choices":[]}`), ""}, {data(`{"choices":[],"choices":[]}`), ""},
		{data(`{"choices":[],"candidates":[]}`, `{"choices":[]}`), ""},
		{`{"choices":[]}`, ""}, {`{"candidates":[]}`, ""}, {`[{"jsonrpc":"2.0"}]`, ""}, {`[{"choices":[]}]`, ""}, {`[{"candidates":[]}`, ""},
		{data(strings.Repeat("x", dialects.MaxDocument)), ""},
		{"data: " + strings.Repeat("x", dialects.MaxEvent-8), ""},
	} {
		name, ok := dialects.DetectStream([]byte(c.transcript))
		assert.Equal(t, c.want, name, "%.100s", c.transcript)
		assert.Equal(t, c.want != "", ok, "%.100s", c.transcript)
	}
}

// TestTheLastEventNeedsNoBlankLine: shells and editors take away what ends a text.
func TestTheLastEventNeedsNoBlankLine(t *testing.T) {
	for _, end := range []string{"", "\n", "\r", "\r\n", "\n\n", "\r\n\r\n", "\n\n\n"} {
		var read []string
		for event, err := range dialects.Transcript([]byte("data: a\n\nevent: e\ndata: b" + end)) {
			require.NoError(t, err)
			read = append(read, event.Name+":"+string(event.Data))
		}
		assert.Equal(t, []string{":a", "e:b"}, read, "%q", end)
	}
}

func TestAnswersAreGivenToTheirCalls(t *testing.T) {
	action := func(kind tool.ActionType, ours, id, name string) tool.Action {
		return tool.Action{Type: kind, CallID: ours, Call: tool.Call{ID: id, Function: tool.Function{Name: name}}}
	}
	output := func(text string) tool.Result { return tool.Result{Success: true, Output: text} }
	pending := []tool.Action{
		action(tool.NeedsApproval, "0", "c0", "f"), action(tool.NeedsOutput, "1", "c1", "f"), action(tool.NeedsOutput, "2", "c2", "g"),
		action(tool.NeedsOutput, "3", "c3", "f"), action(tool.NeedsOutput, "4", "c4", "f"), action(tool.NeedsOutput, "5", "c5", "f"),
	}
	given := dialects.Answers{
		Outputs:   []tool.Answer{{CallID: "c3", Result: output("three")}, {CallID: "4", Result: output("four")}},
		Named:     []dialects.NamedOutput{{"f", output("one")}, {"f", output("five")}, {"g", output("two")}, {"f", output("none")}, {"h", output("strange")}},
		Approvals: []tool.Approval{{CallID: "0"}},
	}
	assert.Equal(t, dialects.Answers{
		Outputs: []tool.Answer{
			{CallID: "c3", Result: output("three")}, {CallID: "4", Result: output("four")}, {CallID: "1", Result: output("one")},
			{CallID: "5", Result: output("five")}, {CallID: "2", Result: output("two")}, {CallID: "f", Result: output("none")}, {CallID: "h", Result: output("strange")},
		},
		Named:     []dialects.NamedOutput{},
		Approvals: []tool.Approval{{CallID: "0"}},
	}, given.For(pending))
	assert.Len(t, given.Outputs, 2, "it is left as it was")
	assert.Len(t, given.Named, 5)
	none := dialects.Answers{Outputs: []tool.Answer{}}
	assert.Equal(t, none, none.For(pending))
}

func FuzzDetect(f *testing.F) {
	f.Add([]byte(`[{"candidates":[{"content":{}}],"promptFeedback":null}]`))
	f.Add([]byte(`{"object":"response","output":[],"type":"message","role":"assistant","content":[]}`))
	f.Add([]byte("event: message_start\ndata: {\"type\":\"message_start\"}\n\n"))
	f.Add([]byte(`[{"candidates":[]}]`))
	f.Fuzz(func(t *testing.T, document []byte) {
		for _, detect := range []func([]byte) (string, bool){dialects.Detect, dialects.DetectStream} {
			if name, ok := detect(document); ok {
				require.Contains(t, dialects.Names(), name)
			} else {
				require.Empty(t, name)
			}
		}
	})
}

// TestDependsOnTheStandardLibrary reads the imports of this package and of those below it.
func TestDependsOnTheStandardLibrary(t *testing.T) {
	const module = "github.com/caisson-run/caisson/"
	read := 0
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range syntax.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			first, _, _ := strings.Cut(imported, "/")
			own, within := strings.CutPrefix(imported, module)
			if within {
				assert.True(t, own == "tool" || own == "internal/jsontext" || own == "dialects" || strings.HasPrefix(own, "dialects/"), "%s imports %s", name, imported)
			} else {
				assert.NotContains(t, first, ".", "%s imports %s", name, imported)
			}
			read++
		}
		return nil
	})
	require.NoError(t, err)
	assert.Greater(t, read, 20, "the imports must be found")
}
