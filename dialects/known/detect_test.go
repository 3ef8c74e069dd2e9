package known

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/internal/noerr"
)

func TestDetect(t *testing.T) {
	for _, c := range []struct{ document, want string }{
		{`{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"x"}}]}`, dialects.OpenAI},
		{` {"choices":[]}`, dialects.OpenAI},
		{`{"id":"r","object":"response","status":"completed","output":[]}`, dialects.Responses},
		{`{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn"}`, dialects.Anthropic},
		{`{"candidates":[{"content":{"parts":[{"text":"x"}],"role":"model"}}]}`, dialects.Gemini},
		{`{"promptFeedback":{"blockReason":"SAFETY"}}`, dialects.Gemini},
		{`{"candidates":null,"prompt_feedback":{"block_reason":"SAFETY"}}`, dialects.Gemini},
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
		name, ok := detectWhole([]byte(c.document))
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
		{"data: " + strings.Repeat("x", dialects.MaxDocument-8), ""},
	} {
		name, ok := detectStream([]byte(c.transcript))
		assert.Equal(t, c.want, name, "%.100s", c.transcript)
		assert.Equal(t, c.want != "", ok, "%.100s", c.transcript)
	}
}

func FuzzDetect(f *testing.F) {
	f.Add([]byte(`[{"candidates":[{"content":{}}],"promptFeedback":null}]`))
	f.Add([]byte(`{"object":"response","output":[],"type":"message","role":"assistant","content":[]}`))
	f.Add([]byte("event: message_start\ndata: {\"type\":\"message_start\"}\n\n"))
	f.Add([]byte(`[{"candidates":[]}]`))
	f.Fuzz(func(t *testing.T, document []byte) {
		for _, detect := range []func([]byte) (string, bool){detectWhole, detectStream} {
			if name, ok := detect(document); ok {
				require.Contains(t, dialects.Names(), name)
			} else {
				require.Empty(t, name)
			}
		}
	})
}

// TestStreamsThatAreWrittenAreDetected: streams that package responses writes are detected as its dialect.
func TestStreamsThatAreWrittenAreDetected(t *testing.T) {
	written := noerr.Get(filepath.Glob("../responses/testdata/events_*.sse"))(t)
	require.NotEmpty(t, written)
	for _, path := range written {
		document := noerr.Get(os.ReadFile(path))(t)
		name, _ := detectStream(document)
		assert.Equal(t, dialects.Responses, name, path)
	}
}
