package anthropic

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects/internal/dialecttest"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// TestBlocksThatAreNotOursAreReported: they have the input that came in pieces, and are otherwise unchanged.
func TestBlocksThatAreNotOursAreReported(t *testing.T) {
	stream, pieces := noerr.Get2(events(
		started(0, `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`), addedArguments(0, quoted(`{"query": `)), addedArguments(0, quoted(`"rain"}`)), stopped(0),
		started(1, `{"type":"mcp_tool_use","id":"m","name":"roll","server_name":"dice","input":{}}`), stopped(1),
		started(2, `{"type":"server_tool_use","id":"h","name":"web_fetch","input":{}}`), addedArguments(2, quoted(`{"url":`)),
		reason("max_tokens"), messageStop))(t)
	want := []tool.ProviderItem{
		{Type: "server_tool_use", ID: "s", Data: json.RawMessage(`{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"rain"}}`)},
		{Type: "mcp_tool_use", ID: "m", Data: json.RawMessage(`{"type":"mcp_tool_use","id":"m","name":"roll","server_name":"dice","input":{}}`)},
		{Type: "server_tool_use", ID: "h", Data: json.RawMessage(`{"type":"server_tool_use","id":"h","name":"web_fetch","input":{}}`)},
	}
	assert.Equal(t, want, stream.Response().ProviderItems)
	var passed []tool.ProviderItem
	for _, piece := range pieces {
		if piece.ResponseType == tool.ResponseProviderItem {
			item := noerr.Decode[tool.ProviderItem](t, piece.Data)
			passed = append(passed, item)
		}
	}
	assert.Equal(t, want, passed)
	response := noerr.Get(New().Response([]byte(answer(`{"type":"container_upload","id":7,"name":["x"],"text":{}}`, "end_turn"))))(t)
	assert.Equal(t, []tool.ProviderItem{{Type: "container_upload", Data: json.RawMessage(`{"type":"container_upload","id":7,"name":["x"],"text":{}}`)}}, response.ProviderItems,
		"blocks of other types have other forms")
}

// TestWhatComesWithACallGoesBack: caller with the call, and toolset_name with the call and its result.
func TestWhatComesWithACallGoesBack(t *testing.T) {
	const with = `"caller":{"type":"code_execution_20260120","tool_id":"srv_1"},"toolset_name":"browser"`
	block := `{"type":"tool_use","id":"a","name":"f","input":{},` + with + `}`
	response := noerr.Get(New().Response([]byte(answer(block+`,{"type":"tool_use","id":"b","name":"f","input":{},"caller":null,"toolset_name":null}`, "tool_use"))))(t)
	_, pieces := noerr.Get2(events(started(0, block), stopped(0), reason("tool_use"), messageStop))(t)
	assert.Equal(t, response.ToolCalls[:1], dialecttest.Called(pieces))
	assert.Equal(t, `[`+block+`,{"type":"tool_use","id":"b","name":"f","input":{}}]`, dialecttest.Calls(t, New(), response.ToolCalls...))
	sent := noerr.Get(New().Results([]tool.Record{{Call: response.ToolCalls[0], Result: tool.Result{Success: true}}, {Call: response.ToolCalls[1], Result: tool.Result{Success: true}}}))(t)
	assert.Equal(t, `[{"type":"tool_result","tool_use_id":"a","toolset_name":"browser"},{"type":"tool_result","tool_use_id":"b"}]`, string(sent))
}

// TestDocumentsOfBlocks: a document may consist of texts and images; deeper it does not go.
func TestDocumentsOfBlocks(t *testing.T) {
	result := func(blocks string) []byte {
		return []byte(`{"type":"tool_result","tool_use_id":"a","content":[` + blocks + `]}`)
	}
	const image = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}`
	for blocks, want := range map[string]tool.Result{
		`{"type":"document","title":"d","source":{"type":"content","content":"x"}}`: {Success: true, Content: []tool.Content{{Type: "file", Name: "d", Text: "x"}}},
		`{"type":"document","source":{"type":"content","content":[{"type":"text","text":"x"},` + image + `]}}`: {
			Success: true, Output: "x", Content: []tool.Content{{Type: "image", MIMEType: "image/png", Data: []byte{0}}},
		},
		`{"type":"tool_reference", "tool_name":"f"}`:          {Success: true, Output: `{"type":"tool_reference","tool_name":"f"}`},
		`{"type":"browser_state","tabs":[{"url":"https:/"}]}`: {Success: true, Output: `{"type":"browser_state","tabs":[{"url":"https:/"}]}`},
	} {
		answers := noerr.Get(New().Answers(result(blocks)))(t)
		require.Len(t, answers.Outputs, 1)
		assert.Equal(t, want, answers.Outputs[0].Result)
	}
	for blocks, want := range map[string]string{
		`{"type":"document","source":{"type":"file","file_id":"f"}}`:                                                                         "names a file that the provider keeps",
		`{"type":"image","source":{"type":"content","content":[` + image + `]}}`:                                                             `want "base64" or "url" for an image`,
		`{"type":"document","source":{"type":"content","content":[{"type":"document","source":{"type":"content","content":[]}}]}}`:           `source.content[0].type: is "document"; want "text" or "image"`,
		`{"type":"document","source":{"type":"content","content":[{"type":"image","source":{"type":"content","content":[` + image + `]}}]}}`: `source.content[0].source.type: is "content"`,
	} {
		require.ErrorContains(t, noerr.Error(New().Answers(result(blocks))), want)
	}
}
