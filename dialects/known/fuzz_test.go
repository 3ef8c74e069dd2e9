package known_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/dialecttest"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/dialects/known"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// sound fails unless what a dialect has read can be passed on, and the failure is of the one type.
func sound(t *testing.T, d dialects.Dialect, response tool.ChatResponse, err error) {
	t.Helper()
	require.True(t, err != nil || response.ToolCalls != nil)
	if err != nil {
		var typed *dialects.Error
		require.ErrorAs(t, err, &typed)
		require.NotEmpty(t, typed.Message)
		return
	}
	for _, call := range response.ToolCalls {
		require.NotEmpty(t, call.ID)
		require.NotEmpty(t, call.Function.Name)
		require.LessOrEqual(t, len(call.Function.Arguments), wire.MaxArguments)
	}
	shown := dialecttest.Calls(t, d, response.ToolCalls...)
	require.True(t, json.Valid([]byte(shown)))
	if openAI := d.Name() == dialects.OpenAI || d.Name() == dialects.Responses; openAI && !strings.Contains(shown, "\ufffd") {
		again := noerr.Get(d.Response(fmt.Appendf(nil, responses[d.Name()], shown)))(t)
		require.Equal(t, completed(response.ToolCalls), again.ToolCalls)
	}
}

// completed returns the calls as a response that was not cut off has them.
func completed(calls []tool.Call) []tool.Call {
	calls = slices.Clone(calls)
	for i := range calls {
		calls[i].Incomplete = false
	}
	return calls
}

// fixtures adds the documents of all dialects that have a name like this.
func fixtures(f *testing.F, pattern string) {
	names := noerr.Get(filepath.Glob("../*/testdata/" + pattern))(f)
	require.NotEmpty(f, names)
	for _, name := range names {
		text := noerr.Get(os.ReadFile(name))(f)
		f.Add(text)
	}
}

// FuzzResponse: no document makes a dialect panic, and the response that it reads can be passed on.
func FuzzResponse(f *testing.F) {
	for _, pattern := range []string{"weather.json", "parallel.json", "batch.json"} {
		fixtures(f, pattern)
	}
	for _, seed := range []string{
		`{"choices":[{"message":{"tool_calls":[{"function":{"name":"a","arguments":"{"}}]}}]}`,
		`{"id":"c","choices":[{"index":0,"message":{"content":[{"text":"a"}],"tool_calls":[{"index":1,"custom":{"input":"\ud83d"}}]},"finish_reason":"length"}]}`,
		`{"error":{"message":"no"}}`, `{"error":{"code":7}}`, `{"object":"response","output":[{"type":"function_call","name":"a"}]}`,
		`{"status":"incomplete","output":[{"type":"function_call","status":"completed","call_id":"a","name":"f","arguments":"{}"},{"type":"custom_tool_call","call_id":"b","name":"g","input":"x"},` +
			`{"type":"function_call","status":"incomplete","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call","call_id":"d","name":"f","arguments":""},` +
			`{"type":"function_call","status":"completed","call_id":"e","name":"f","arguments":"oops"},{"type":"custom_tool_call","call_id":"f","name":"g","input":"rm -r /tmp"}]}`,
		`{"type":"message","role":"assistant","content":[{"type":"tool_use","name":"a","input":[1]}]}`,
		`{"content":[{"type":"tool_use","name":"f","input":"{"},{"type":"text","text":"\ud83d"}]}`,
		`[{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a"}}]}}]}]`,
		`[{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","willContinue":true}},{"functionCall":{"partialArgs":[{"jsonPath":"$.a[0]","stringValue":"\u2028"}]}}]},"finishReason":"STOP"}]}]`,
		`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}]`,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"a\"}}\n[{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}]\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		for _, d := range known.Dialects() {
			response, err := d.Response(document)
			sound(t, d, response, err)
		}
		if response, d, err := known.Read(document); d != nil {
			sound(t, d, response, err)
		}
	})
}

// FuzzStream: no transcript makes a dialect panic, and the calls of a stream are those that its pieces
// hold.
func FuzzStream(f *testing.F) {
	fixtures(f, "*.sse")
	for _, seed := range []string{
		dialecttest.Data(`{"choices":[{"delta":{"tool_calls":[{"id":"a","custom":{"name":"\ud83d","input":"\ud83d"}}]},"finish_reason":"length"}]}`),
		"event: error\ndata: {}\n\n",
		dialecttest.Data(
			`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"","call_id":"","name":"f","arguments":""}}`,
			`{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"","delta":"\\ud83d"}`,
			`{"type":"response.function_call_arguments.delta","output_index":1,"item_id":"x","delta":""}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"x","call_id":"a","name":"f","arguments":"{}","status":"completed"}}`,
			`{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}`),
		"event: response.incomplete\ndata: {\"response\":{\"output\":[{\"type\":\"function_call\",\"call_id\":\"d\",\"name\":\"f\",\"arguments\":\"\"},{\"type\":\"custom_tool_call\",\"call_id\":\"f\",\"name\":\"g\",\"input\":\"rm\"}]}}\n\n",
		dialecttest.Data(
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"\u007b\ud83d"}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"","name":"f","input":{}}}`,
			`{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}`, `{"type":"message_stop"}`),
		dialecttest.Data(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`, ``, `{"jsonrpc":"2.0","method":"x"}`),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, transcript []byte) {
		for _, d := range known.Dialects() {
			stream, pieces, err := dialecttest.Feed(d, string(transcript))
			response := stream.Response()
			require.NotNil(t, response.ToolCalls)
			sound(t, d, response, err)
			for _, piece := range pieces {
				require.NotNil(t, piece.ToolCalls)
				require.NotNil(t, piece.KnowledgeReferences)
				require.True(t, piece.Data == nil || json.Valid(piece.Data))
			}
			if d.Name() != dialects.Anthropic { // whose texts are in the order of the blocks
				require.Equal(t, response.Content, dialecttest.Said(pieces))
			}
			if err == nil {
				require.ElementsMatch(t, response.ToolCalls, dialecttest.Called(pieces))
				require.True(t, pieces[len(pieces)-1].Done)
			}
		}
	})
}
