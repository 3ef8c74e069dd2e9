package anthropic

import (
	"encoding/json"
	"math/rand/v2"
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

func TestRowS2_5EmptyListsAreWrittenAsSuch(t *testing.T) {
	results, err := New().Results(nil)
	require.NoError(t, err)
	assert.Equal(t, "[]", string(results))
	assert.Equal(t, "[]", dialecttest.Calls(t, New()))
}

func TestResultsWithoutAnIDAreRefused(t *testing.T) {
	_, err := New().Results([]tool.Record{record("a", tool.Result{}), record("", tool.Result{})})
	require.ErrorContains(t, err, "anthropic results: [1].id: is empty")
	_, err = dialect{}.Calls([]tool.Call{dialecttest.Call("", "f", "")})
	require.ErrorContains(t, err, "anthropic calls: [0].id: is empty")
}

// TestRowS2_4ResultsMatchTheirCalls: as many results as calls, whatever came of them, by id.
func TestRowS2_4ResultsMatchTheirCalls(t *testing.T) {
	response, err := New().Response(dialecttest.Fixture(t, "parallel.json"))
	require.NoError(t, err)
	records := make([]tool.Record, len(response.ToolCalls))
	for i, call := range response.ToolCalls {
		records[len(records)-1-i] = tool.Record{Call: call, Result: tool.Result{Success: i == 0, Output: call.Function.Name}}
	}
	written, err := New().Results(records)
	require.NoError(t, err)
	assert.Equal(t, `[{"type":"tool_result","tool_use_id":"toolu_02","content":[{"type":"text","text":"tool_failed"},{"type":"text","text":"clock"}],"is_error":true},`+
		`{"type":"tool_result","tool_use_id":"toolu_01","content":[{"type":"text","text":"weather"}]}]`, string(written))
}

func TestRowS2_6InvalidArgumentsMakeAValidDocument(t *testing.T) {
	for arguments, want := range map[string]string{
		``: `{}`, " \n": `{}`, `{"a": 1.0}`: `{"a":1.0}`, `{"a":`: `{"INVALID_JSON":"{\"a\":"}`,
		`[1]`: `{"INVALID_JSON":"[1]"}`, `null`: `{"INVALID_JSON":"null"}`, "\xff": `{"INVALID_JSON":"\ufffd"}`, `{}x`: `{"INVALID_JSON":"{}x"}`,
	} {
		assert.Equal(t, `[{"type":"tool_use","id":"a","name":"f","input":`+want+`}]`, dialecttest.Calls(t, New(), dialecttest.Call("a", "f", arguments)))
	}
}

// TestRowS2_2CallsSurviveTheWayBack: what is written for the provider reads as it was, but for
// space around the parts.
func TestRowS2_2CallsSurviveTheWayBack(t *testing.T) {
	values := []string{`"é😀\u00e9<&>\u2028"`, `1e400`, `12345678901234567890.10`, `[]`, `{"b":{},"a":null}`, `""`, `true`}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 2))
		var all []tool.Call
		for range random.IntN(6) {
			var members []string
			for n := range random.IntN(4) {
				members = append(members, `"k`+string(rune('a'+n))+`":`+values[random.IntN(len(values))])
			}
			all = append(all, dialecttest.Call("id_"+string(rune('a'+len(all))), "f", "{"+strings.Join(members, ",")+"}"))
		}
		response, err := New().Response([]byte(`{"type":"message","content":` + dialecttest.Calls(t, New(), all...) + `}`))
		require.NoError(t, err)
		require.Equal(t, append([]tool.Call{}, all...), response.ToolCalls)
	}
}
