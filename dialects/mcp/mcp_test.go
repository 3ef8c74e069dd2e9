package mcp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/mcp"
	"github.com/caisson-run/caisson/tool"
)

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return text
}

func called(id, name, arguments string) tool.Call {
	return tool.Call{ID: id, Type: "function", Function: tool.Function{Name: name, Arguments: arguments}}
}

// TestRowS22DefinitionsBothWays: what a server offers is what a client reads.
func TestRowS22DefinitionsBothWays(t *testing.T) {
	tools, next, err := mcp.Offered(fixture(t, "tools.json"))
	require.NoError(t, err)
	assert.Equal(t, "page2", next)
	yes, no := true, false
	assert.Equal(t, []mcp.Tool{
		{
			Definition: tool.Definition{Name: "ledger_total", Description: "Adds up the entries of one account.",
				Parameters: json.RawMessage(`{"type": "object", "properties": {"account": {"type": "string"}, "since": {"type": "string", "format": "date"}}, "required": ["account"]}`)},
			Title: "Ledger total", Output: json.RawMessage(`{"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}`),
			Annotations: &mcp.Annotations{ReadOnly: &yes, OpenWorld: &no},
		},
		{Definition: tool.Definition{Name: "ledger.close", Parameters: json.RawMessage(`{"type": "object", "properties": {}, "additionalProperties": false}`)}},
	}, tools)

	offered, findings, err := mcp.Offer(tools, dialects.DefinitionOptions{Strict: true})
	require.NoError(t, err)
	assert.Empty(t, findings)
	assert.Equal(t, `[{"name":"ledger_total","title":"Ledger total","description":"Adds up the entries of one account.","inputSchema":{"type":"object","properties":{"account":{"type":"string"},"since":{"type":"string","format":"date"}},"required":["account"]},`+
		`"outputSchema":{"type":"object","properties":{"total":{"type":"number"}},"required":["total"]},"annotations":{"readOnlyHint":true,"openWorldHint":false}},`+
		`{"name":"ledger.close","inputSchema":{"type":"object","properties":{},"additionalProperties":false}}]`, string(offered))
	again, next, err := mcp.Offered([]byte(`{"tools":` + string(offered) + `}`))
	require.NoError(t, err)
	assert.Empty(t, next)
	assert.Len(t, again, 2)
}

func TestDefinitionsAreJudged(t *testing.T) {
	definitions := []tool.Definition{
		{Name: "a/b", Parameters: json.RawMessage(`{"anyOf":[{"required":["x"]}],"$ref":"#/$defs/x"}`)},
		{Name: "none", Description: "<d>"},
		{Name: "none", Parameters: json.RawMessage(`null`)},
	}
	for adapt, want := range map[bool]string{
		false: `[{"name":"a/b","inputSchema":{"anyOf":[{"required":["x"]}],"$ref":"#/$defs/x"}},{"name":"none","description":"<d>","inputSchema":{"type":"object","properties":{}}},{"name":"none","inputSchema":{"type":"object","properties":{}}}]`,
		true:  `[{"name":"a/b","inputSchema":{"type":"object","anyOf":[{"required":["x"]}],"$ref":"#/$defs/x","properties":{}}},{"name":"none","description":"<d>","inputSchema":{"type":"object","properties":{}}},{"name":"none","inputSchema":{"type":"object","properties":{}}}]`,
	} {
		offered, findings, err := mcp.New().Definitions(definitions, dialects.DefinitionOptions{Adapt: adapt})
		require.NoError(t, err)
		assert.Equal(t, want, string(offered))
		require.Len(t, findings, 4)
		for i, finding := range []dialects.Finding{
			{Tool: "a/b", Keyword: "name", Severity: dialects.Weakened},
			{Tool: "a/b", Path: "type", Keyword: "type", Severity: dialects.Refused, Adapted: adapt},
			{Tool: "a/b", Path: "properties", Keyword: "properties", Severity: dialects.Refused, Adapted: adapt},
			{Tool: "none", Keyword: "name", Severity: dialects.Refused},
		} {
			assert.NotEmpty(t, findings[i].Message)
			assert.NotEmpty(t, findings[i].Fix)
			finding.Message, finding.Fix = findings[i].Message, findings[i].Fix
			assert.Equal(t, finding, findings[i])
		}
	}
	_, _, err := mcp.New().Definitions([]tool.Definition{{Name: "a"}, {Name: "b", Parameters: json.RawMessage(`[]`)}}, dialects.DefinitionOptions{})
	assert.EqualError(t, err, "mcp definitions: [1].parameters: a tool's schema must be a JSON object")
	_, _, err = mcp.Offer([]mcp.Tool{{Output: json.RawMessage(`{`)}}, dialects.DefinitionOptions{})
	assert.EqualError(t, err, "mcp definitions: [0].output: is not JSON")
	offered, findings, err := mcp.New().Definitions(nil, dialects.DefinitionOptions{})
	require.NoError(t, err)
	assert.Equal(t, "[]", string(offered))
	assert.NotNil(t, findings)
}

func TestOfferedRefuses(t *testing.T) {
	many := `{"tools":[` + strings.Repeat(`{"name":"a","inputSchema":{}},`, 4096) + `{"name":"a","inputSchema":{}}]}`
	for document, fault := range map[string]string{
		``: "is not JSON", `[]`: "want an object", `{}`: "tools: is missing", `{"tools":{}}`: "tools: is not a JSON array",
		`{"jsonrpc":"1","result":{}}`:                             "jsonrpc: is not",
		`{"jsonrpc":"2.0","id":1}`:                                "result: is missing",
		`{"jsonrpc":"2.0","error":{"code":-32601,"message":"m"}}`: "error: the server refused the request (-32601): m",
		`{"jsonrpc":"2.0","result":{"tools":[{}]}}`:               "result.tools[0].name: is missing",
		`{"tools":[{"name":"a"}]}`:                                "tools[0].inputSchema: is not a JSON object",
		`{"tools":[{"name":"a","inputSchema":true}]}`:             "tools[0].inputSchema: is not a JSON object",
		many: "tools[4096]: is one tool more than 4096",
	} {
		tools, _, err := mcp.Offered([]byte(document))
		assert.ErrorContains(t, err, fault)
		assert.Nil(t, tools)
	}
}

// TestRowS22Calls: requests in, one by one, in a batch and streamed.
func TestRowS22Calls(t *testing.T) {
	response, err := mcp.New().Response(fixture(t, "batch.json"))
	require.NoError(t, err)
	assert.Equal(t, tool.ChatResponse{FinishReason: tool.FinishToolCalls, ToolCalls: []tool.Call{
		called("7", "ledger_total", `{"account": "rent & heat", "limit": 12345678901234567890.50}`),
		called(`"7"`, "ledger.close", ""),
		called("c-9", "ledger.close", `["not an object"]`),
	}}, response)

	stream := mcp.New().Stream()
	var pieces []tool.StreamResponse
	for event, err := range dialects.Events(strings.NewReader(string(fixture(t, "messages.sse")))) {
		require.NoError(t, err)
		more, err := stream.Event(event.Name, event.Data)
		require.NoError(t, err)
		require.NotNil(t, more)
		pieces = append(pieces, more...)
	}
	more, err := stream.End()
	require.NoError(t, err)
	pieces = append(pieces, more...)
	wire, err := json.Marshal(pieces)
	require.NoError(t, err)
	assert.Equal(t, `[{"id":"","response_type":"tool_call","content":"","done":false,"knowledge_references":[],"tool_calls":[{"id":"7","type":"function","function":{"name":"ledger_total","arguments":"{\"account\":\"rent\"}"}}]},`+
		`{"id":"","response_type":"tool_call","content":"","done":false,"knowledge_references":[],"tool_calls":[{"id":"9","type":"function","function":{"name":"ledger.close","arguments":""}}]},`+
		`{"id":"","response_type":"complete","content":"","done":true,"knowledge_references":[],"tool_calls":[],"data":{"finish_reason":"tool_calls","usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}}]`, string(wire))
	assert.Len(t, stream.Response().ToolCalls, 2)

	more, err = stream.End()
	require.NoError(t, err)
	assert.Empty(t, more, "a second end adds nothing")
	_, err = stream.Event("", []byte(`{}`))
	assert.EqualError(t, err, "mcp stream: goes on after its end")
}

func TestRowS25NoCallsAreAList(t *testing.T) {
	response, err := mcp.New().Response([]byte(`[]`))
	require.NoError(t, err)
	assert.Equal(t, tool.ChatResponse{ToolCalls: []tool.Call{}, FinishReason: tool.FinishStop}, response)
	written, err := mcp.New().Results(nil)
	require.NoError(t, err)
	assert.Equal(t, "[]", string(written))
	written, err = mcp.New().Results([]tool.Record{{Result: tool.Result{Success: true}}})
	require.NoError(t, err)
	assert.Equal(t, `[{"jsonrpc":"2.0","id":"","result":{"resultType":"complete","content":[]}}]`, string(written))
	stream := mcp.New().Stream()
	assert.NotNil(t, stream.Response().ToolCalls)
	pieces, err := stream.Event("message", nil)
	require.NoError(t, err)
	assert.NotNil(t, pieces)
	pieces, err = stream.End()
	require.NoError(t, err)
	assert.Contains(t, string(pieces[0].Data), `"finish_reason":"stop"`)
}

// TestRowS26Refusals has documents that cannot be read, and what is said about them.
func TestRowS26Refusals(t *testing.T) {
	request := func(rest string) string { return `{"jsonrpc":"2.0","id":1,"method":"tools/call"` + rest + `}` }
	many := `[` + strings.Repeat(request(`,"params":{"name":"a"}`)+",", dialects.MaxCalls) + request(`,"params":{"name":"a"}`) + `]`
	for _, c := range []struct{ document, fault string }{
		{``, "is not JSON: unexpected end"}, {`{`, "is not JSON"}, {`5`, "is a JSON number; want an object"}, {`null`, "jsonrpc: is not"},
		{`[[]]`, "[0]: is a JSON array; want an object"},
		{`{"method":"tools/call"}`, `jsonrpc: is not "2.0"`},
		{`{"jsonrpc":"2.0","id":1,"result":{}}`, `method: is ""; want "tools/call"`},
		{`{"jsonrpc":"2.0","method":"notifications/x"}`, `method: is "notifications/x"`},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `[0].method: is "ping"`},
		{`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"a"}}`, "id: is missing"},
		{`{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"a"}}`, "id: is missing, or neither"},
		{`{"jsonrpc":"2.0","id":[1],"method":"tools/call","params":{"name":"a"}}`, "id: is missing, or neither"},
		{request(``), "params.name: is missing"}, {request(`,"params":[]`), "params: is a JSON array; want an object"},
		{request(`,"params":{"name":1}`), "params.name: is a JSON number; want a string"},
		{request(`,"params":{"name":"a","arguments":"` + strings.Repeat("x", dialects.MaxArguments) + `"}`), "params.arguments: has more than 1048576 bytes"},
		{many, "[4096]: is one call more than 4096"},
		{strings.Repeat(" ", dialects.MaxDocument) + request(``), "has more than 8388608 bytes"},
	} {
		response, err := mcp.New().Response([]byte(c.document))
		var refusal *dialects.Error
		require.ErrorAs(t, err, &refusal, "%.80s", c.document)
		assert.ErrorContains(t, err, c.fault)
		assert.Equal(t, "mcp", refusal.Dialect)
		assert.Zero(t, response)
	}

	stream := mcp.New().Stream()
	_, first := stream.Event("", []byte(request(``)))
	require.ErrorContains(t, first, "mcp stream: params.name: is missing")
	_, err := stream.Event("", []byte(request(`,"params":{"name":"a"}`)))
	assert.Equal(t, first, err)
	_, err = stream.End()
	assert.Equal(t, first, err)

	stream = mcp.New().Stream()
	for range dialects.MaxDocument >> 20 {
		_, err = stream.Event("", []byte(strings.Repeat(" ", 1<<20)))
		require.NoError(t, err)
	}
	_, err = stream.Event("", []byte(" "))
	assert.ErrorContains(t, err, "has more than 8388608 bytes")
	stream = mcp.New().Stream()
	for range dialects.MaxCalls {
		_, err = stream.Event("", []byte(request(`,"params":{"name":"a"}`)))
		require.NoError(t, err)
	}
	_, err = stream.Event("", []byte(request(`,"params":{"name":"a"}`)))
	assert.ErrorContains(t, err, "has more than 4096 calls")
}
