package anthropic

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

func TestRowS2_2ResultsAreBlocks(t *testing.T) {
	png := tool.Content{Type: "image", Data: []byte("png"), MIMEType: "image/png", Name: "chart"}
	records := []tool.Record{
		record("a", tool.Result{Success: true, Output: "<4> & more"}),
		record("b", tool.Result{Error: "no such file", Kind: tool.Denied, Output: "partly"}),
		record("c", tool.Result{Success: true}),
		record("d", tool.Result{}),
		record("e", tool.Result{Success: true, Output: `{"n": 1.0}`, Data: json.RawMessage(`{"n":1.0}`)}),
		record("f", tool.Result{Success: true, Output: "one", Data: json.RawMessage(`{"n":12345678901234567890}`)}),
		record("g", tool.Result{Success: true, Output: " ", Content: []tool.Content{
			{Type: "text", Text: "see"}, png,
			{Type: "image", URL: "https://example.com/a.gif", MIMEType: "image/gif"},
			{Type: "file", Data: []byte("%PDF"), MIMEType: "application/pdf", Name: "report"},
			{Type: "image", Data: []byte("<svg>"), MIMEType: "image/svg+xml"},
			{Type: "link", URL: "https://example.com", Name: "Example"},
		}}),
	}
	records[0].Cached, records[0].Source = true, "0199"
	written, err := New().Results(records)
	require.NoError(t, err)
	assert.Equal(t, strings.Join([]string{
		`[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"<4> & more"}]}`,
		`{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"denied: no such file"},{"type":"text","text":"partly"}],"is_error":true}`,
		`{"type":"tool_result","tool_use_id":"c"}`,
		`{"type":"tool_result","tool_use_id":"d","content":[{"type":"text","text":"tool_failed"}],"is_error":true}`,
		`{"type":"tool_result","tool_use_id":"e","content":[{"type":"text","text":"{\"n\": 1.0}"}]}`,
		`{"type":"tool_result","tool_use_id":"f","content":[{"type":"text","text":"one"},{"type":"text","text":"{\"n\":12345678901234567890}"}]}`,
		`{"type":"tool_result","tool_use_id":"g","content":[{"type":"text","text":"see"},` +
			`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"cG5n"}},` +
			`{"type":"image","source":{"type":"url","url":"https://example.com/a.gif"}},` +
			`{"type":"document","title":"report","source":{"type":"base64","media_type":"application/pdf","data":"JVBERg=="}},` +
			`{"type":"text","text":"[image: image/svg+xml, 5 bytes, not shown]"},` +
			`{"type":"text","text":"[link: Example, https://example.com]"}]}]`,
	}, ","), string(written))
}

func TestRowS2_6InvalidArgumentsMakeAValidDocument(t *testing.T) {
	for arguments, want := range map[string]string{
		``: `{}`, " \n": `{}`, `{"a": 1.0}`: `{"a":1.0}`, `{"a":`: `{"INVALID_JSON":"{\"a\":"}`,
		`[1]`: `{"INVALID_JSON":"[1]"}`, `null`: `{"INVALID_JSON":"null"}`, "\xff": `{"INVALID_JSON":"\ufffd"}`, `{}x`: `{"INVALID_JSON":"{}x"}`,
	} {
		assert.Equal(t, `[{"type":"tool_use","id":"a","name":"f","input":`+want+`}]`, dialecttest.Calls(t, New(), dialecttest.Call("a", "f", arguments)))
	}
}
