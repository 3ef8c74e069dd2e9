package dialects_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/tool"
)

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

		{"", ""}, {"data: [DONE]\n\n", ""}, {"hello", ""}, {data(`"choices"`, `[{"choices":[]}]`, `{`, `{"type":"error","error":{}}`), ""},
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

func FuzzDetectStream(f *testing.F) {
	f.Add([]byte("event: message_start\ndata: {\"type\":\"message_start\"}\n\n"))
	f.Add([]byte(`[{"candidates":[]}]`))
	f.Fuzz(func(t *testing.T, document []byte) {
		name, ok := dialects.DetectStream(document)
		if ok {
			require.Contains(t, dialects.Names(), name)
		} else {
			require.Empty(t, name)
		}
	})
}
