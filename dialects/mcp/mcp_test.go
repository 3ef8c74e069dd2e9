package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/dialecttest"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/dialects/known"
	"github.com/caisson-run/caisson/dialects/mcp"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// TestDefinitionsBothWays: a client reads the definitions that a server offers.
func TestDefinitionsBothWays(t *testing.T) {
	tools, next := noerr.Get2(mcp.Offered(dialecttest.Fixture(t, "tools.json")))(t)
	assert.Equal(t, "page2", next)
	assert.Equal(t, []tool.Definition{
		{
			Name: "ledger_total", Label: "Ledger total", Description: "Adds up the entries of one account.",
			Parameters: json.RawMessage(`{"type": "object", "properties": {"account": {"type": "string"}, "since": {"type": "string", "format": "date"}}, "required": ["account"]}`),
			Result:     json.RawMessage(`{"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}`),
			Hints:      tool.Hints{ReadOnly: true},
		},
		{Name: "ledger.close", Parameters: json.RawMessage(`{"type": "object", "properties": {}, "additionalProperties": false}`)},
	}, tools)

	offered, findings := noerr.Get2(mcp.New().Definitions(tools, dialects.DefinitionOptions{Strict: true}))(t)
	assert.Empty(t, findings)
	assert.Equal(t, `[{"name":"ledger_total","title":"Ledger total","description":"Adds up the entries of one account.","inputSchema":{"type":"object","properties":{"account":{"type":"string"},"since":{"type":"string","format":"date"}},"required":["account"]},`+
		`"outputSchema":{"type":"object","properties":{"total":{"type":"number"}},"required":["total"]},"annotations":{"readOnlyHint":true}},`+
		`{"name":"ledger.close","inputSchema":{"type":"object","properties":{},"additionalProperties":false}}]`, string(offered))
	again, next := noerr.Get2(mcp.Offered([]byte(`{"tools":` + string(offered) + `}`)))(t)
	assert.Empty(t, next)
	assert.Len(t, again, 2)
}

// TestHintsAreAnnotations: once a tool has any annotation, clients assume the worst for the missing ones.
func TestHintsAreAnnotations(t *testing.T) {
	for _, c := range []struct {
		hints   tool.Hints
		written string
	}{
		{tool.Hints{}, ``},
		{tool.Hints{ReadOnly: true}, `,"annotations":{"readOnlyHint":true}`},
		{tool.Hints{Destructive: true}, `,"annotations":{"destructiveHint":true}`},
		{tool.Hints{Idempotent: true}, `,"annotations":{"destructiveHint":false,"idempotentHint":true}`},
		{tool.Hints{ReadOnly: true, Idempotent: true}, `,"annotations":{"readOnlyHint":true,"idempotentHint":true}`},
		{tool.Hints{Idempotent: true, Destructive: true}, `,"annotations":{"destructiveHint":true,"idempotentHint":true}`},
		{tool.Hints{ReadOnly: true, Destructive: true}, `,"annotations":{"readOnlyHint":true,"destructiveHint":true}`},
	} {
		offered, _ := noerr.Get2(mcp.New().Definitions([]tool.Definition{{Name: "a", Hints: c.hints}}, dialects.DefinitionOptions{}))(t)
		assert.Equal(t, `[{"name":"a","inputSchema":{"type":"object","properties":{}}`+c.written+`}]`, string(offered))
		read, _ := noerr.Get2(mcp.Offered([]byte(`{"tools":` + string(offered) + `}`)))(t)
		assert.Equal(t, c.hints, read[0].Hints)
	}
	for annotations, want := range map[string]tool.Definition{
		`{"openWorldHint":false}`:                         {Hints: tool.Hints{Destructive: true}},
		`{"title":"T","readOnlyHint":true}`:               {Label: "T", Hints: tool.Hints{ReadOnly: true}},
		`{"destructiveHint":null,"idempotentHint":false}`: {Hints: tool.Hints{Destructive: true}},
		`null`: {},
	} {
		read, _ := noerr.Get2(mcp.Offered([]byte(`{"tools":[{"name":"a","inputSchema":{},"outputSchema":null,"annotations":` + annotations + `}]}`)))(t)
		want.Name, want.Parameters = "a", json.RawMessage(`{}`)
		assert.Equal(t, want, read[0], annotations)
	}
}

func TestResultsThatAreNoObjectsAreNotOffered(t *testing.T) {
	for schema, offered := range map[string]bool{
		`{"type":"object"}`: true, `{"type":"array"}`: false, `{}`: false, `true`: false, `{"type":["object","null"]}`: false,
	} {
		written, findings := noerr.Get2(mcp.New().Definitions([]tool.Definition{{Name: "a", Result: json.RawMessage(schema)}}, dialects.DefinitionOptions{}))(t)
		assert.Equal(t, offered, strings.Contains(string(written), `"outputSchema":`+schema), schema)
		assert.Equal(t, offered, len(findings) == 0)
		assert.Equal(t, offered, strings.Contains(string(written), "outputSchema"))
	}
}

func TestDefinitionsAreJudged(t *testing.T) {
	definitions := []tool.Definition{
		{Name: "a/b", Parameters: json.RawMessage(`{"anyOf":[{"required":["x"]}],"$ref":"#/$defs/x"}`)},
		{Name: "none", Description: "<d>"},
		{Name: "none", Parameters: json.RawMessage(`null`)},
	}
	written, found := dialecttest.Offered(t, mcp.New(), true, definitions...)
	assert.Equal(t, `[{"name":"a/b","inputSchema":{"anyOf":[{"required":["x"]}],"$ref":"#/$defs/x"}},{"name":"none","description":"<d>","inputSchema":{"type":"object","properties":{}}},{"name":"none","inputSchema":{"type":"object","properties":{}}}]`, written)
	assert.Equal(t, "a/b weakened name\na/b refused type type\na/b refused properties properties\nnone refused name", found)
	assert.EqualError(t, noerr.Error2(mcp.New().Definitions([]tool.Definition{{Name: "a"}, {Name: "b", Parameters: json.RawMessage(`[]`)}}, dialects.DefinitionOptions{})), "mcp definitions: [1].parameters: a tool's schema must be a JSON object")
	assert.EqualError(t, noerr.Error2(mcp.New().Definitions([]tool.Definition{{Name: "a", Result: json.RawMessage(`{`)}}, dialects.DefinitionOptions{})), "mcp definitions: [0].result: is not JSON")
	offered, findings := noerr.Get2(mcp.New().Definitions(nil, dialects.DefinitionOptions{}))(t)
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
		many: "tools: has more than 4096 elements",
	} {
		tools, _, err := mcp.Offered([]byte(document))
		assert.ErrorContains(t, err, fault)
		assert.Nil(t, tools)
	}
}

// TestCallsAreRead: requests in, one by one, in a batch and streamed.
func TestCallsAreRead(t *testing.T) {
	response := noerr.Get(mcp.New().Response(dialecttest.Fixture(t, "batch.json")))(t)
	assert.Equal(t, tool.ChatResponse{FinishReason: tool.FinishToolCalls, ToolCalls: []tool.Call{
		dialecttest.Call("7", "ledger_total", `{"account": "rent & heat", "limit": 12345678901234567890.50}`),
		dialecttest.Call(`"7"`, "ledger.close", ""),
		dialecttest.Call("c-9", "ledger.close", `["not an object"]`),
	}, ProviderItems: []tool.ProviderItem{
		{Type: "notifications/progress", Data: json.RawMessage(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3,"progress":1}}`)},
	}}, response)

	stream, pieces := noerr.Get2(dialecttest.Feed(mcp.New(), string(dialecttest.Fixture(t, "messages.sse"))))(t)
	wire := noerr.Get(json.Marshal(pieces))(t)
	item := func(item string) string {
		return `{"id":"","response_type":"provider_item","content":"","done":false,"knowledge_references":[],"tool_calls":[],"data":` + item + `},`
	}
	assert.Equal(t, `[`+item(`{"type":"notifications/progress","data":{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3,"progress":1}}}`)+
		`{"id":"","response_type":"tool_call","content":"","done":false,"knowledge_references":[],"tool_calls":[{"id":"7","type":"function","function":{"name":"ledger_total","arguments":"{\"account\":\"rent\"}"}}]},`+
		item(`{"type":"ping","id":"8","waiting":true,"data":{"jsonrpc":"2.0","id":8,"method":"ping"}}`)+
		`{"id":"","response_type":"tool_call","content":"","done":false,"knowledge_references":[],"tool_calls":[{"id":"9","type":"function","function":{"name":"ledger.close","arguments":""}}]},`+
		`{"id":"","response_type":"complete","content":"","done":true,"knowledge_references":[],"tool_calls":[],"data":{"finish_reason":"tool_calls","usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}}]`, string(wire))
	assert.Len(t, stream.Response().ToolCalls, 2)

	more := noerr.Get(stream.End())(t)
	assert.Empty(t, more, "a second end adds nothing")
	assert.EqualError(t, noerr.Error(stream.Event("", []byte(`{}`))), "mcp stream: continues after its end")
}

// TestABatchMayBeStreamed: the revision 2025-03-26 lets clients send several messages as one.
func TestABatchMayBeStreamed(t *testing.T) {
	stream, pieces := noerr.Get2(dialecttest.Feed(mcp.New(), dialecttest.Data(string(dialecttest.Fixture(t, "batch.json")), `[]`)))(t)
	whole := noerr.Get(mcp.New().Response(dialecttest.Fixture(t, "batch.json")))(t)
	assert.Equal(t, whole, stream.Response())
	assert.Equal(t, whole.ToolCalls, dialecttest.Called(pieces))
	assert.ErrorContains(t, noerr.Error(mcp.New().Stream().Event("", []byte(`[{"jsonrpc":"2.0"},{}]`))), "mcp stream: [1].jsonrpc: is not")
}

// TestMessagesOnLines: the stdio transport has one message on each line. Calls are read even if other messages
// surround them, and a client waits for the answer to a request.
func TestMessagesOnLines(t *testing.T) {
	lines := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{}}}

{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":"b"}}` + "\r\n" +
		`[{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"c"}}] {"jsonrpc":"2.0","id":"s","result":{}}
`
	response := noerr.Get(mcp.New().Response([]byte(lines)))(t)
	assert.Equal(t, []tool.Call{dialecttest.Call("1", "a", "{}"), dialecttest.Call(`"1"`, "b", ""), dialecttest.Call("3", "c", "")}, response.ToolCalls)
	for i, item := range response.ProviderItems {
		response.ProviderItems[i].Data = nil
		assert.True(t, json.Valid(item.Data))
	}
	assert.Equal(t, []tool.ProviderItem{{Type: "initialize", ID: "0", Waiting: true}, {Type: "notifications/initialized"}, {Type: "ping", ID: "2", Waiting: true}, {Type: "response", ID: "s"}}, response.ProviderItems)
	detected, ok := known.Detect([]byte(lines))
	assert.True(t, ok)
	assert.Equal(t, mcp.New(), detected)

	answers := noerr.Get(mcp.New().Answers([]byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"x"}]}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/progress"}` + "\n" + `{"jsonrpc":"2.0","id":"1","result":{"content":[]}}`)))(t)
	assert.Equal(t, []tool.Answer{{CallID: "1", Result: tool.Result{Success: true, Output: "x"}}, {CallID: `"1"`, Result: tool.Result{Success: true}}}, answers.Outputs)
}

// TestBrokenMessagesAreRefused checks the errors for documents that cannot be read.
func TestBrokenMessagesAreRefused(t *testing.T) {
	request := func(rest string) string { return `{"jsonrpc":"2.0","id":1,"method":"tools/call"` + rest + `}` }
	many := `[` + strings.Repeat(request(`,"params":{"name":"a"}`)+",", wire.MaxCalls) + request(`,"params":{"name":"a"}`) + `]`
	for _, c := range []struct{ document, fault string }{
		{``, "is not JSON: it ends too early, at byte 0"}, {`{`, "is not JSON"}, {`5`, "is a JSON number; want an object"}, {`null`, "jsonrpc: is not"},
		{`[[]]`, "[0]: is a JSON array; want an object"},
		{`{"method":"tools/call"}`, `jsonrpc: is not "2.0"`},
		{`{"jsonrpc":"2.0","id":1,"result":{}}`, `method: is missing; want "tools/call"`},
		{`{"jsonrpc":"2.0","method":"notifications/x"}`, `method: is "notifications/x"`},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `[0].method: is "ping"`},
		{request(`,"params":{"name":"a"}`) + "\n{", "[1]: is not JSON"}, {request(`,"params":{"name":"a"}`) + "\n" + request(``), "[1].params.name: is missing"},
		{request(`,"params":{"name":"a"}`) + "\n[" + request(``) + "]", "[1][0].params.name: is missing"},
		{strings.Repeat("{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n", 65_537), "has more than 65536 elements"},
		{`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"a"}}`, "id: is missing"},
		{`{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"a"}}`, "id: is missing, or neither"},
		{`{"jsonrpc":"2.0","id":[1],"method":"tools/call","params":{"name":"a"}}`, "id: is missing, or neither"},
		{request(``), "params.name: is missing"}, {request(`,"params":[]`), "params: is a JSON array; want an object"},
		{request(`,"params":{"name":1}`), "params.name: is a JSON number; want a string"},
		{request(`,"params":{"name":"a","arguments":"` + strings.Repeat("x", wire.MaxArguments) + `"}`), "params.arguments: has arguments of more than 1048576 bytes"},
		{many, "[4096]: is one call too many; a batch may have 4096"},
		{strings.Repeat(" ", dialects.MaxDocument) + request(``), "bytes, more than 8388608"},
	} {
		response, err := mcp.New().Response([]byte(c.document))
		dialecttest.Refused(t, mcp.New(), err, c.fault)
		assert.Zero(t, response)
	}

	stream, _, err := dialecttest.Feed(mcp.New(), dialecttest.Data(request(``)))
	dialecttest.Broken(t, mcp.New(), stream, err, "mcp stream: params.name: is missing")
	assert.ErrorContains(t, noerr.Error2(dialecttest.Until(mcp.New(), func(int) string { return strings.Repeat(" ", 1<<20) })), "has more than 8388608 bytes")
	_, calls, err := dialecttest.Until(mcp.New(), func(int) string { return request(`,"params":{"name":"a"}`) })
	assert.ErrorContains(t, err, "is one call too many; a batch may have 4096")
	assert.Equal(t, wire.MaxCalls, calls)
}
