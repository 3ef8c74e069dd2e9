package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/dialecttest"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// whole is the expected response of both transcripts.
func whole(arguments string) tool.ChatResponse {
	return tool.ChatResponse{
		ID: "msg_011", Model: "claude-example", Content: "I look both up: café & <b>.",
		ToolCalls: []tool.Call{dialecttest.Call("toolu_01", "weather", arguments), dialecttest.Call("toolu_02", "clock", "{}")},
		ProviderItems: []tool.ProviderItem{
			{Type: "server_tool_use", ID: "srvtoolu_01", Data: json.RawMessage(`{"type":"server_tool_use","id":"srvtoolu_01","name":"web_search","input":{"query":"rain"}}`)},
			{Type: "web_search_tool_result", Data: json.RawMessage(`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_01","content":[]}`)},
		},
		FinishReason: tool.FinishToolCalls, Usage: tool.ChatUsage{PromptTokens: 4320, CompletionTokens: 55, TotalTokens: 4375},
	}
}

func TestAWholeMessageIsRead(t *testing.T) {
	response := noerr.Get(New().Response(dialecttest.Fixture(t, "parallel.json")))(t)
	assert.Equal(t, whole(`{"city": "Zürich", "days": 12345678901234567890}`), response)
}

func answer(content, stop string) string {
	return fmt.Sprintf(`{"type":"message","id":"m","content":[%s],"stop_reason":%q}`, content, stop)
}

func TestReasonsToStop(t *testing.T) {
	for stop, want := range map[string]tool.FinishReason{
		"end_turn": tool.FinishStop, "stop_sequence": tool.FinishStop, "max_tokens": tool.FinishLength,
		"model_context_window_exceeded": tool.FinishLength, "tool_use": tool.FinishToolCalls,
		"refusal": tool.FinishContentFilter, "pause_turn": "pause_turn", "": "",
	} {
		response := noerr.Get(New().Response([]byte(answer("", stop))))(t)
		assert.Equal(t, want, response.FinishReason)
		assert.Equal(t, []tool.Call{}, response.ToolCalls)
		stream, _ := noerr.Get2(events(reason(stop), messageStop))(t)
		assert.Equal(t, response.Remarks, stream.Response().Remarks)
		var remarks []string
		if stop == "pause_turn" {
			remarks = []string{"the provider paused a long turn (pause_turn): send the response back as it is, with these results, and the model goes on"}
		}
		assert.Equal(t, remarks, response.Remarks, stop)
	}
}

// TestACallThatWasCutSaysSo: a truncated call looks like one without arguments.
func TestACallThatWasCutSaysSo(t *testing.T) {
	one := `{"type":"tool_use","id":"a","name":"rm","input":{"path":"x"}}`
	two := `{"type":"tool_use","id":"b","name":"rm","input":{}}`
	for stop, want := range map[string]bool{"max_tokens": true, "refusal": true, "tool_use": false, "end_turn": false} {
		response := noerr.Get(New().Response([]byte(answer(one+","+two, stop))))(t)
		require.Len(t, response.ToolCalls, 2, stop)
		assert.Equal(t, []bool{false, want}, []bool{response.ToolCalls[0].Incomplete, response.ToolCalls[1].Incomplete}, stop)
		response = noerr.Get(New().Response([]byte(answer(one+","+two+`,{"type":"text","text":"."}`, stop))))(t)
		require.Len(t, response.ToolCalls, 2, stop)
		assert.False(t, response.ToolCalls[0].Incomplete || response.ToolCalls[1].Incomplete, "text follows, so they are whole")
	}
}

func TestMissingIDsAreMadeFromThePosition(t *testing.T) {
	anonymous := `{"type":"tool_use","name":"f","input":{}}`
	response := noerr.Get(New().Response([]byte(answer(`{"type":"text","text":""},`+anonymous+`,{"type":"tool_use","id":"call_3","name":"f"},`+anonymous, "tool_use"))))(t)
	assert.Equal(t, []tool.Call{dialecttest.Call("call_1", "f", "{}"), dialecttest.Call("call_3", "f", "{}"), dialecttest.Call("call_3_", "f", "{}")}, response.ToolCalls)
}

func TestOtherDocumentsAreRefused(t *testing.T) {
	for document, want := range map[string]string{
		``:                      "anthropic response: is not JSON: it ends too early, at byte 0",
		`{`:                     "is not JSON",
		`[]`:                    "is a JSON array; want an object",
		`{}`:                    `is not a message`,
		`{"type":"completion"}`: `not type "completion"`,
		`{"type":"message"}`:    `is not a message`,
		`{"content":"text"}`:    "content: is not a JSON array",
		`{"content":[1]}`:       "content[0]: is a JSON number; want an object",
		`{"content":[{}]}`:      "content[0]: has no type",
		answer(`{"type":"tool_use","id":"a"}`, ""):                                    "content[0].name: is missing",
		answer(`{"type":"text"},{"type":"text","text":1}`, ""):                        "content[1].text: is a JSON number; want a string",
		`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`: "error: the provider answered with overloaded_error: Overloaded",
	} {
		_, err := New().Response([]byte(document))
		dialecttest.Refused(t, New(), err, want)
	}
}

func TestResponsesAreBounded(t *testing.T) {
	block := `{"type":"tool_use","name":"f"}`
	noerr.Get(New().Response([]byte(answer(strings.Repeat(block+",", wire.MaxCalls-1)+block, ""))))(t)
	require.ErrorContains(t, noerr.Error(New().Response([]byte(answer(strings.Repeat(block+",", wire.MaxCalls)+block, "")))), "more than 4096 calls")
	long := func(bytes int) string {
		return answer(`{"type":"tool_use","name":"f","input":"`+strings.Repeat("x", bytes-2)+`"}`, "")
	}
	noerr.Get(New().Response([]byte(long(wire.MaxArguments))))(t)
	require.ErrorContains(t, noerr.Error(New().Response([]byte(long(wire.MaxArguments+1)))), "content[0].input: has arguments of more than 1048576 bytes")
	require.ErrorContains(t, noerr.Error(New().Response(make([]byte, dialects.MaxDocument+1))), "more than 8388608")
	noerr.Get(New().Response([]byte(answer(strings.Repeat(`{"type":"x"},`, maxBlocks-1)+`{"type":"x"}`, ""))))(t)
	require.ErrorContains(t, noerr.Error(New().Response([]byte(answer(strings.Repeat(`{"type":"x"},`, maxBlocks)+`{"type":"x"}`, "")))), "content: has more than 16384 elements")
}

func record(id string, result tool.Result) tool.Record {
	return tool.Record{Call: dialecttest.Call(id, "f", "{}"), Result: result}
}

func TestResultsAreBlocks(t *testing.T) {
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
	written := noerr.Get(New().Results(records))(t)
	assert.Equal(t, strings.Join([]string{
		`[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"<4> & more"}]}`,
		`{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"denied: no such file"},{"type":"text","text":"partly"}],"is_error":true}`,
		`{"type":"tool_result","tool_use_id":"c"}`,
		`{"type":"tool_result","tool_use_id":"d","content":[{"type":"text","text":"tool_failed"}],"is_error":true}`,
		`{"type":"tool_result","tool_use_id":"e","content":[{"type":"text","text":"{\"n\": 1.0}"}]}`,
		`{"type":"tool_result","tool_use_id":"f","content":[{"type":"text","text":"one"}]}`,
		`{"type":"tool_result","tool_use_id":"g","content":[{"type":"text","text":"see"},` +
			`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"cG5n"}},` +
			`{"type":"image","source":{"type":"url","url":"https://example.com/a.gif"}},` +
			`{"type":"document","title":"report","source":{"type":"base64","media_type":"application/pdf","data":"JVBERg=="}},` +
			`{"type":"text","text":"[image: image/svg+xml, 5 bytes, not shown]"},` +
			`{"type":"text","text":"[link: Example, https://example.com]"}]}]`,
	}, ","), string(written))
}

const city = `{"type": "object", "properties": {"city": {"type": "string", "minLength": 1, "format": "city"}, "days": {"type": "integer", "maximum": 9}}, "required": ["city"]}`

func TestDefinitionsAreOffered(t *testing.T) {
	written, found := dialecttest.Offered(t, New(), false, dialecttest.Definition("weather", city), tool.Definition{Name: "clock"})
	assert.Empty(t, found)
	assert.Equal(t, `[{"name":"weather","description":"does <it>","input_schema":{"type":"object","properties":{"city":{"type":"string","minLength":1,"format":"city"},"days":{"type":"integer","maximum":9}},"required":["city"]}},`+
		`{"name":"clock","input_schema":{"type":"object","properties":{}}}]`, written)
	written, found = dialecttest.Offered(t, New(), true)
	assert.Equal(t, "[]", written)
	assert.Empty(t, found)
}

func TestStrictDefinitions(t *testing.T) {
	written, found := dialecttest.Offered(t, New(), true, dialecttest.Definition("weather", city))
	assert.ElementsMatch(t, []string{
		"weather refused additionalProperties additionalProperties adapted",
		"weather refused minLength properties.city.minLength adapted",
		"weather refused format properties.city.format adapted",
		"weather refused maximum properties.days.maximum adapted",
	}, strings.Split(found, "\n"))
	assert.Equal(t, `[{"name":"weather","description":"does <it>","input_schema":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"],"additionalProperties":false},"strict":true}]`, written)
}

func TestWhatStrictTakes(t *testing.T) {
	const adapted, without = "refused %s properties.p.%[1]s adapted", "weakened %s properties.p.%[1]s adapted"
	for schema, want := range map[string]struct{ keyword, found string }{
		`{"type":"string","format":"uuid"}`:                              {},
		`{"type":"string","pattern":"^[a-z]{2,3}$"}`:                     {},
		`{"type":"string","pattern":"\\bword"}`:                          {"pattern", adapted},
		`{"type":"string","pattern":"(?=x)"}`:                            {"pattern", adapted},
		`{"type":"string","pattern":"(a)\\1"}`:                           {"pattern", adapted},
		`{"type":"array","items":{"type":"string"},"minItems":1}`:        {},
		`{"type":"array","items":{"type":"string"},"minItems":2}`:        {"minItems", adapted},
		`{"type":"array","items":{"type":"string"},"maxItems":2}`:        {"maxItems", adapted},
		`{"type":["string","null"],"enum":["a",null,1,true]}`:            {},
		`{"enum":[{"a":1}]}`:                                             {"enum", without},
		`{"const":"a","default":"a"}`:                                    {},
		`{"anyOf":[{"type":"string"},{"type":"null"}]}`:                  {},
		`{"oneOf":[{"type":"string"},{"type":"null"}]}`:                  {"oneOf", without},
		`{"allOf":[{"type":"string"}]}`:                                  {},
		`{"allOf":[{"$ref":"#/$defs/x"}]}`:                               {"allOf", without},
		`{"$ref":"https://example.com/schema.json"}`:                     {"$ref", without},
		`{"type":"object","properties":{},"additionalProperties":false}`: {},
		`{"type":"object","properties":{}}`:                              {"additionalProperties", without},
		`{"type":"object","additionalProperties":{"type":"string"}}`:     {"additionalProperties", without},
		`{"not":{"type":"string"}}`:                                      {"not", adapted},
		`{"if":{"type":"string"}}`:                                       {"if", without},
	} {
		schema = dialecttest.With(schema)
		written, found := dialecttest.Offered(t, New(), true, dialecttest.Definition("f", schema))
		if want.keyword != "" {
			want.found = "f " + fmt.Sprintf(want.found, want.keyword)
		}
		assert.Equal(t, want.found, found, schema)
		offered := strings.Contains(written, `"strict":true`)
		assert.NotEqual(t, strings.Contains(found, "weakened"), offered, "what cannot be strict is offered without")
		assert.Equal(t, strings.Contains(found, "refused"), !strings.Contains(written, schema), "and as it is")
	}
	_, found := dialecttest.Offered(t, New(), true, dialecttest.Definition("f", dialecttest.With(`{"$ref":"#"}`)))
	assert.Equal(t, "f weakened $ref adapted", found, "a schema that refers to itself")
}

func TestNoMoreThanTwentyToolsAreStrict(t *testing.T) {
	var definitions []tool.Definition
	for n := range 22 {
		definitions = append(definitions, dialecttest.Definition(fmt.Sprint("f", n), dialecttest.With(`{"type":"string"}`)))
	}
	written, found := dialecttest.Offered(t, New(), true, definitions...)
	assert.Equal(t, "f20 refused strict adapted\nf21 refused strict adapted", found)
	assert.Equal(t, 20, strings.Count(written, `"strict":true`))
}

func TestRootAndNames(t *testing.T) {
	_, found := dialecttest.Offered(t, New(), false, dialecttest.Definition("a.b", `{"anyOf":[]}`), dialecttest.Definition("f", dialecttest.With("{}")),
		dialecttest.Definition("f", `{"type":"object","properties":{"a b":{}}}`))
	assert.Equal(t, strings.Join([]string{
		"a.b refused name", "a.b refused type type", "a.b refused properties properties", "a.b refused anyOf anyOf",
		"f refused name", "f refused properties properties.a b",
	}, "\n"), found)
}
