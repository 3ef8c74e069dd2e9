package mcp_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/dialecttest"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/dialects/mcp"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// TestResultsMatchRequestsByID: a failed call does not affect the other calls, and every answer
// has the id of its request, of the same JSON type.
func TestResultsMatchRequestsByID(t *testing.T) {
	response := noerr.Get(mcp.New().Response(dialecttest.Fixture(t, "batch.json")))(t)
	results := []tool.Result{
		{Success: true, Output: "12.50 in all", Data: json.RawMessage(`{"total": 12.50}`)},
		{Error: "no grant for /ledger", Kind: tool.Denied},
		{Error: "arguments must be an object", Kind: tool.InvalidArguments},
	}
	var records []tool.Record
	for i, call := range response.ToolCalls {
		records = append(records, tool.Record{Call: call, Result: results[i], Cached: i == 0, Skipped: i == 1})
	}
	written := noerr.Get(mcp.New().Results(records))(t)
	assert.Equal(t, `[{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","content":[{"type":"text","text":"12.50 in all"}],"structuredContent":{"total":12.50}}},`+
		`{"jsonrpc":"2.0","id":"7","result":{"resultType":"complete","content":[{"type":"text","text":"denied: no grant for /ledger"}],"isError":true}},`+
		`{"jsonrpc":"2.0","id":"c-9","result":{"resultType":"complete","content":[{"type":"text","text":"invalid_arguments: arguments must be an object"}],"isError":true}}]`, string(written))
}

func TestResults(t *testing.T) {
	for _, c := range []struct {
		name   string
		result tool.Result
		want   string
	}{
		{"nothing to say", tool.Result{Success: true}, `"result":{"resultType":"complete","content":[]}`},
		{"no such tool", tool.Result{Error: "there is no x", Kind: tool.UnknownTool}, `"error":{"code":-32602,"message":"unknown_tool: there is no x"}`},
		{"the host failed", tool.Result{Error: "id 5", Kind: tool.Internal}, `"error":{"code":-32603,"message":"internal: id 5"}`},
		{"failed with output", tool.Result{Output: "half", Kind: tool.Deadline}, `"result":{"resultType":"complete","content":[{"type":"text","text":"deadline"},{"type":"text","text":"half"}],"isError":true}`},
		{"data that is no object", tool.Result{Success: true, Data: json.RawMessage(` [1.0] `)}, `"result":{"resultType":"complete","content":[{"type":"text","text":"[1.0]"}]}`},
		{"output that is the data", tool.Result{Success: true, Output: "{\"a\":1}\n", Data: json.RawMessage(`{"a":1}`)},
			`"result":{"resultType":"complete","content":[{"type":"text","text":"{\"a\":1}\n"}],"structuredContent":{"a":1}}`},
		{"parts", tool.Result{Success: true, Content: []tool.Content{
			{Type: "text"}, {Type: "image", Data: []byte{1}, MIMEType: "image/png"}, {Type: "image", Data: []byte{1}},
			{Type: "image", URL: "https://example.com/a.png"}, {Type: "link", URL: "https://example.com", Name: "n"},
			{Type: "file", Data: []byte{1}, Name: "a b.bin"}, {Type: "file", Data: []byte{1}, MIMEType: "audio/wav"},
			{Type: "file", Text: "t", URL: "x:y"}, {Type: "file", Text: "t", MIMEType: "text/csv"}, {Type: "link", Name: "lost"},
		}}, `"result":{"resultType":"complete","content":[{"type":"text","text":""},{"type":"image","data":"AQ==","mimeType":"image/png"},{"type":"image","data":"AQ==","mimeType":"application/octet-stream"},` +
			`{"type":"resource_link","mimeType":"","uri":"https://example.com/a.png","name":"https://example.com/a.png"},{"type":"resource_link","uri":"https://example.com","name":"n"},` +
			`{"type":"resource","resource":{"uri":"result:///content/5/a%20b.bin","blob":"AQ=="}},{"type":"audio","data":"AQ==","mimeType":"audio/wav"},` +
			`{"type":"resource","resource":{"uri":"x:y","text":"t"}},{"type":"resource","resource":{"uri":"result:///content/8/","mimeType":"text/csv","text":"t"}},{"type":"text","text":"[link: lost]"}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			written := noerr.Get(mcp.New().Results([]tool.Record{{Call: dialecttest.Call("1", "x", ""), Result: c.result}}))(t)
			want := strings.ReplaceAll(c.want, `"mimeType":"",`, "")
			assert.Equal(t, `[{"jsonrpc":"2.0","id":1,`+want+`}]`, string(written))
		})
	}
	assert.EqualError(t, noerr.Error(mcp.New().Results([]tool.Record{{}, {Result: tool.Result{Success: true, Data: json.RawMessage(`{`)}}})), "mcp results: [1].result.data: is not JSON")
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		document string
		id       string
		want     tool.Result
	}{
		{`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"structuredContent":{"n":1.0}}}`, "7",
			tool.Result{Success: true, Output: "a", Data: json.RawMessage(`{"n":1.0}`), Content: []tool.Content{{Type: "text", Text: "b"}}}},
		{`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a"},{"type":"text","text":"{\"n\": 1.0}"}],"structuredContent":{"n":1.0}}}`, "7",
			tool.Result{Success: true, Output: "a", Data: json.RawMessage(`{"n":1.0}`)}},
		{`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"{\"n\":1.0}"}],"structuredContent":{"n": 1.0}}}`, "7",
			tool.Result{Success: true, Data: json.RawMessage(`{"n": 1.0}`)}},
		{`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"{ \"n\": 1.0 }"}],"structuredContent":{"n":1.0}}}`, "7",
			tool.Result{Success: true, Output: `{ "n": 1.0 }`, Data: json.RawMessage(`{"n":1.0}`)}},
		{`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"{\"success\":false,\"kind\":\"internal\"}"}]}}`, "7",
			tool.Result{Success: true, Output: `{"success":false,"kind":"internal"}`}},
		{`{"jsonrpc":"2.0","id":"x","result":{"resultType":"complete","content":[{"type":"text","text":"why"}],"isError":true}}`, "x", tool.Result{Error: "why", Kind: tool.ToolFailed}},
		{`{"jsonrpc":"2.0","id":"x","result":{}}`, "x", tool.Result{Success: true}},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown tool"}}`, "1", tool.Result{Error: "Unknown tool", Kind: tool.UnknownTool}},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"down"}}`, "1", tool.Result{Error: "down", Kind: tool.Internal}},
		{`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"image","data":"AQ==","mimeType":"image/png"},{"type":"audio","data":"AQ==","mimeType":"audio/wav"},` +
			`{"type":"resource_link","uri":"u","name":"n"},{"type":"resource","resource":{"uri":"u","text":"t"}}]}}`, "1",
			tool.Result{Success: true, Content: []tool.Content{{Type: "image", Data: []byte{1}, MIMEType: "image/png"}, {Type: "file", Data: []byte{1}, MIMEType: "audio/wav"},
				{Type: "link", URL: "u", Name: "n"}, {Type: "file", URL: "u", Text: "t"}}}},
	} {
		id, result, err := mcp.Answer([]byte(c.document))
		require.NoError(t, err, c.document)
		assert.Equal(t, c.id, id)
		assert.Equal(t, c.want, result)
	}
	answered := func(result string) string { return `{"jsonrpc":"2.0","id":1,"result":` + result + `}` }
	for document, fault := range map[string]string{
		``: "is not JSON", `{}`: "jsonrpc: is not", `{"jsonrpc":"2.0","result":{}}`: "id: is missing", `{"jsonrpc":"2.0","id":1}`: "result: is missing, and so is error",
		answered(`[]`): "result: is a JSON array",
		answered(`{"resultType":"input_required"}`):                                                          `result.resultType: is "input_required"`,
		answered(`{"content":{}}`):                                                                           "result.content: is not a JSON array",
		answered(`{"content":[{"type":"text"}]}`):                                                            "result.content[0].text: is missing",
		answered(`{"content":[{"type":"hologram"}]}`):                                                        `the type is "hologram"`,
		answered(`{"content":[{"type":"resource"}]}`):                                                        `the type is "resource"`,
		answered(`{"content":[{"type":"image","data":"*"}]}`):                                                "result.content[0]: ",
		answered(`{"content":[` + strings.Repeat(`{"type":"audio"},`, wire.MaxParts) + `{"type":"audio"}]}`): "has more than 4096 elements",
		strings.Repeat(" ", 8<<20) + "{}":                                                                    "bytes, more than 8388608",
	} {
		id, result, err := mcp.Answer([]byte(document))
		require.ErrorContains(t, err, fault)
		assert.Empty(t, id)
		assert.Zero(t, result)
	}
}

// TestRoundTrips: calls come back from their requests as they were, and results that
// the protocol has a place for from their answers.
func TestRoundTrips(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	for range 2000 {
		call := dialecttest.Call(pick("call_1", "7", "-1.5e3", `"7"`, `"\"q\""`, "ü <&>", "007", "1 ", "NaN", `""`),
			pick("a", "b.c"), pick(`{}`, `{"n":1.0,"s":"<\u0041>"}`, `{"a":{"b":[null]},"a":2}`))
		request := noerr.Get(mcp.Request(call))(t)
		response := noerr.Get(mcp.New().Response(request))(t)
		require.Equal(t, []tool.Call{call}, response.ToolCalls)

		result := tool.Result{Success: random.IntN(2) == 0}
		if result.Success {
			result.Output = pick("done", "two\nlines", "\u2028<&>")
			result.Content = []tool.Content{{Type: "image", Data: []byte(pick("a", "bc")), MIMEType: "image/png"}, {Type: "link", URL: "u:v", Name: "n"}}
		} else {
			result.Error, result.Kind = pick("went wrong", "x"), tool.ToolFailed
		}
		answers := noerr.Get(mcp.New().Results([]tool.Record{{Call: call, Result: result}}))(t)
		id, back := noerr.Get2(mcp.Answer(answers[1 : len(answers)-1]))(t)
		require.Equal(t, call.ID, id)
		require.Equal(t, result, back)
	}
}

// FuzzResponse: a call that was read can be requested again, with the same id and name.
func FuzzResponse(f *testing.F) {
	f.Add(dialecttest.Fixture(f, "batch.json"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"\"7","method":"tools/call","params":{"name":"a","arguments":{"b":1e400}}}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		response, err := mcp.New().Response(document)
		if err != nil {
			require.Zero(t, response)
			return
		}
		require.NotNil(t, response.ToolCalls)
		for _, call := range response.ToolCalls {
			request := noerr.Get(mcp.Request(call))(t)
			again := noerr.Get(mcp.New().Response(request))(t)
			require.Equal(t, call.ID, again.ToolCalls[0].ID)
			require.Equal(t, call.Function.Name, again.ToolCalls[0].Function.Name)
		}
	})
}

// FuzzAnswer: an answer that was read can be written as a result, with the same id.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"resource","resource":{"uri":"u","blob":"AQ=="}}],"structuredContent":[1],"isError":true}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"x"}}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		id, result, err := mcp.Answer(document)
		if err != nil {
			return
		}
		written := noerr.Get(mcp.New().Results([]tool.Record{{Call: tool.Call{ID: id}, Result: result}}))(t)
		require.True(t, json.Valid(written))
		back, _ := noerr.Get2(mcp.Answer(written[1 : len(written)-1]))(t)
		require.Equal(t, id, back)
	})
}

// FuzzOffered: tools that were read can be offered, and are then read as the same.
func FuzzOffered(f *testing.F) {
	f.Add(dialecttest.Fixture(f, "tools.json"))
	f.Fuzz(func(t *testing.T, document []byte) {
		tools, _, err := mcp.Offered(document)
		if err != nil {
			require.Nil(t, tools)
			return
		}
		offered, _, err := mcp.New().Definitions(tools, dialects.DefinitionOptions{})
		if err != nil {
			return // a schema over the bounds
		}
		again, _ := noerr.Get2(mcp.Offered([]byte(`{"tools":` + string(offered) + `}`)))(t)
		require.Len(t, again, len(tools))
		for i := range again {
			require.Equal(t, tools[i].Name, again[i].Name)
		}
	})
}
