package gemini

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects/internal/dialecttest"
	"github.com/caisson-run/caisson/tool"
)

func record(id string, result tool.Result) tool.Record {
	return tool.Record{Call: dialecttest.Call(id, "f", "{}"), Result: result}
}

func TestRowS2_2ResultsAreParts(t *testing.T) {
	records := []tool.Record{
		record("a", tool.Result{Success: true, Output: "<4> & more"}),
		record("b", tool.Result{Error: "no such file", Kind: tool.Denied, Output: "partly"}),
		record("c", tool.Result{Success: true}),
		record("d", tool.Result{}),
		record("e", tool.Result{Success: true, Output: `{"n": 1.0}`, Data: json.RawMessage(`{"n":1.0}`)}),
		record("f", tool.Result{Success: true, Output: "one", Data: json.RawMessage(`{"n":12345678901234567890}`)}),
		record("g", tool.Result{Success: true, Data: json.RawMessage(`{"broken`)}),
		record("h", tool.Result{Success: true, Content: []tool.Content{
			{Type: "text", Text: "see"}, {Type: "image", Data: []byte("png"), MIMEType: "image/png", Name: "chart"},
			{Type: "image", URL: "https://example.com/a.gif", MIMEType: "image/gif"},
		}}),
	}
	records[0].Cached, records[0].Source = true, "0199"
	written, err := New().Results(records)
	require.NoError(t, err)
	assert.Equal(t, strings.Join([]string{
		`[{"functionResponse":{"id":"a","name":"f","response":{"output":"<4> & more"}}}`,
		`{"functionResponse":{"id":"b","name":"f","response":{"output":"partly","error":"denied: no such file"}}}`,
		`{"functionResponse":{"id":"c","name":"f","response":{"output":""}}}`,
		`{"functionResponse":{"id":"d","name":"f","response":{"error":"tool_failed"}}}`,
		`{"functionResponse":{"id":"e","name":"f","response":{"output":{"n":1.0}}}}`,
		`{"functionResponse":{"id":"f","name":"f","response":{"output":{"text":"one","data":{"n":12345678901234567890}}}}}`,
		`{"functionResponse":{"id":"g","name":"f","response":{"output":"{\"broken"}}}`,
		`{"functionResponse":{"id":"h","name":"f","response":{"output":{"content":["see","[image: image/gif, https://example.com/a.gif]"]}},` +
			`"parts":[{"inlineData":{"mimeType":"image/png","data":"cG5n","displayName":"chart"}}]}}]`,
	}, ","), string(written))
}

// TestRowS2_4ResultsMatchTheirCalls: by id, or by name and order where there were none.
func TestRowS2_4ResultsMatchTheirCalls(t *testing.T) {
	one := `{"functionCall":{"name":"f","args":{}}}`
	response, err := New().Response([]byte(reply("STOP", one, one, `{"functionCall":{"id":"x","name":"g"}}`, one)))
	require.NoError(t, err)
	records := make([]tool.Record, len(response.ToolCalls))
	for i, call := range response.ToolCalls {
		records[len(records)-1-i] = tool.Record{Call: call, Result: tool.Result{Success: true, Output: call.ID}}
	}
	written, err := New().Results(records)
	require.NoError(t, err)
	assert.Equal(t, `[{"functionResponse":{"name":"f","response":{"output":"gemini-call-0"}}},`+
		`{"functionResponse":{"id":"x","name":"g","response":{"output":"x"}}},`+
		`{"functionResponse":{"name":"f","response":{"output":"gemini-call-1"}}},`+
		`{"functionResponse":{"name":"f","response":{"output":"gemini-call-3"}}}]`, string(written))
	assert.Equal(t, `[{"functionCall":{"name":"f","args":{}}},{"functionCall":{"id":"x","name":"g","args":{}}}]`,
		dialecttest.Calls(t, New(), response.ToolCalls[0], response.ToolCalls[2]))
}

func TestRowS2_6InvalidArgumentsMakeAValidDocument(t *testing.T) {
	for arguments, want := range map[string]string{
		``: `{}`, `{"a": 1.0}`: `{"a":1.0}`, `{"a":`: `{"INVALID_JSON":"{\"a\":"}`, `[1]`: `{"INVALID_JSON":"[1]"}`, "\xff": `{"INVALID_JSON":"\ufffd"}`,
	} {
		assert.Equal(t, `[{"functionCall":{"id":"a","name":"f","args":`+want+`}}]`, dialecttest.Calls(t, New(), dialecttest.Call("a", "f", arguments)))
	}
}
