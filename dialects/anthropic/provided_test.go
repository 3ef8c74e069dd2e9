package anthropic

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects/internal/dialecttest"
	"github.com/caisson-run/caisson/tool"
)

// TestBlocksThatAreNotOursAreReported: with the input that came in pieces, and otherwise as they are.
func TestBlocksThatAreNotOursAreReported(t *testing.T) {
	stream, pieces, err := events(
		started(0, `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`), addedArguments(0, quoted(`{"query": `)), addedArguments(0, quoted(`"rain"}`)), stopped(0),
		started(1, `{"type":"mcp_tool_use","id":"m","name":"roll","server_name":"dice","input":{}}`), stopped(1),
		started(2, `{"type":"server_tool_use","id":"h","name":"web_fetch","input":{}}`), addedArguments(2, quoted(`{"url":`)),
		reason("max_tokens"), messageStop)
	require.NoError(t, err)
	want := []tool.ProviderItem{
		{Type: "server_tool_use", ID: "s", Data: json.RawMessage(`{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"rain"}}`)},
		{Type: "mcp_tool_use", ID: "m", Data: json.RawMessage(`{"type":"mcp_tool_use","id":"m","name":"roll","server_name":"dice","input":{}}`)},
		{Type: "server_tool_use", ID: "h", Data: json.RawMessage(`{"type":"server_tool_use","id":"h","name":"web_fetch","input":{}}`)},
	}
	assert.Equal(t, want, stream.Response().ProviderItems)
	var passed []tool.ProviderItem
	for _, piece := range pieces {
		if piece.ResponseType == tool.ResponseProviderItem {
			var item tool.ProviderItem
			require.NoError(t, json.Unmarshal(piece.Data, &item))
			passed = append(passed, item)
		}
	}
	assert.Equal(t, want, passed)
	response, err := New().Response([]byte(answer(`{"type":"container_upload","id":7,"name":["x"],"text":{}}`, "end_turn")))
	require.NoError(t, err)
	assert.Equal(t, []tool.ProviderItem{{Type: "container_upload", Data: json.RawMessage(`{"type":"container_upload","id":7,"name":["x"],"text":{}}`)}}, response.ProviderItems,
		"blocks of other types have other forms")
}

// TestWhatComesWithACallGoesBack: caller with the call, and toolset_name with the call and its result.
func TestWhatComesWithACallGoesBack(t *testing.T) {
	const with = `"caller":{"type":"code_execution_20260120","tool_id":"srv_1"},"toolset_name":"browser"`
	block := `{"type":"tool_use","id":"a","name":"f","input":{},` + with + `}`
	response, err := New().Response([]byte(answer(block+`,{"type":"tool_use","id":"b","name":"f","input":{},"caller":null,"toolset_name":null}`, "tool_use")))
	require.NoError(t, err)
	_, pieces, err := events(started(0, block), stopped(0), reason("tool_use"), messageStop)
	require.NoError(t, err)
	assert.Equal(t, response.ToolCalls[:1], dialecttest.Called(pieces))
	assert.Equal(t, `[`+block+`,{"type":"tool_use","id":"b","name":"f","input":{}}]`, dialecttest.Calls(t, New(), response.ToolCalls...))
	sent, err := New().Results([]tool.Record{{Call: response.ToolCalls[0], Result: tool.Result{Success: true}}, {Call: response.ToolCalls[1], Result: tool.Result{Success: true}}})
	require.NoError(t, err)
	assert.Equal(t, `[{"type":"tool_result","tool_use_id":"a","toolset_name":"browser"},{"type":"tool_result","tool_use_id":"b"}]`, string(sent))
}
