package gemini

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
	signed := dialecttest.Call("gemini-call-0", "weather", arguments)
	signed.Signature = "c2lnbmVk"
	return tool.ChatResponse{
		ID: "r-1", Model: "gemini-example", Content: "I look both up: café & <b>.",
		ToolCalls:     []tool.Call{signed, dialecttest.Call("fc_2", "clock", "{}")},
		ProviderItems: []tool.ProviderItem{{Type: "executableCode", Data: json.RawMessage(`{"executableCode":{"language":"PYTHON","code":"1"}}`)}},
		FinishReason:  tool.FinishToolCalls, Usage: tool.ChatUsage{PromptTokens: 42, CompletionTokens: 35, TotalTokens: 77},
	}
}

func TestAWholeResponseIsRead(t *testing.T) {
	response := noerr.Get(New().Response(dialecttest.Fixture(t, "parallel.json")))(t)
	assert.Equal(t, whole(`{"city": "Zürich", "days": 12345678901234567890}`), response)
}

// TestAnArrayOfResponsesIsRead: so streamGenerateContent answers without alt=sse.
func TestAnArrayOfResponsesIsRead(t *testing.T) {
	var documents []string
	for line := range strings.Lines(string(dialecttest.Fixture(t, "parallel.sse"))) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			documents = append(documents, data)
		}
	}
	response := noerr.Get(New().Response([]byte(" [" + strings.Join(documents, ",") + "]\n")))(t)
	assert.Equal(t, whole(`{"city":"Zürich","days":12345678901234567890}`), response)
}

// reply is a response with some parts.
func reply(finish string, parts ...string) string {
	return fmt.Sprintf(`{"candidates":[{"content":{"parts":[%s]},"finishReason":%q}]}`, strings.Join(parts, ","), finish)
}

func TestReasonsToStop(t *testing.T) {
	for finish, want := range map[string]tool.FinishReason{
		"STOP": tool.FinishStop, "MAX_TOKENS": tool.FinishLength, "SAFETY": tool.FinishContentFilter, "SPII": tool.FinishContentFilter,
		"RECITATION": tool.FinishContentFilter, "MALFORMED_FUNCTION_CALL": "MALFORMED_FUNCTION_CALL", "": "",
	} {
		response := noerr.Get(New().Response([]byte(reply(finish))))(t)
		assert.Equal(t, want, response.FinishReason)
		assert.Equal(t, []tool.Call{}, response.ToolCalls)
	}
	blocked := noerr.Get(New().Response([]byte(`{"promptFeedback":{"blockReason":"SAFETY"}}`)))(t)
	assert.Equal(t, tool.FinishContentFilter, blocked.FinishReason)
}

func TestOtherDocumentsAreRefused(t *testing.T) {
	for document, want := range map[string]string{
		``:                  "gemini response: is not JSON: it ends too early, at byte 0",
		`{`:                 "is not JSON",
		`[{}`:               "is not JSON",
		`[]`:                "it has neither candidates nor",
		`{}`:                "is not a response of generateContent",
		`3`:                 "is a JSON number; want an object",
		`{"candidates":{}}`: "candidates: is not a JSON array",
		`[{"candidates":[]},{"candidates":[{"content":{"parts":[{"text":1}]}}]}]`:            "[1].candidates[0].content.parts[0].text: is a JSON number; want a string",
		reply("STOP", `{"functionCall":{"args":{"a":1}}}`):                                   "candidates[0].content.parts[0].functionCall.name: is missing, and no call is open",
		reply("STOP", `{"functionCall":{"name":"f","willContinue":true}}`):                   `ended within the arguments of the call of "f" (finish reason "STOP")`,
		`{"error":{"code":503,"status":"UNAVAILABLE","message":"overloaded"}}`:               "error: the provider answered with UNAVAILABLE: overloaded",
		`[{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]}}]}]`: "gemini response: broke off: no finishReason came",
		`[{"error":{"status":"INTERNAL"}}]`:                                                  "[0].error: the provider answered with INTERNAL",
	} {
		_, err := New().Response([]byte(document))
		dialecttest.Refused(t, New(), err, want)
	}
}

func TestACallThatWasCutSaysSo(t *testing.T) {
	response := noerr.Get(New().Response([]byte(reply("MAX_TOKENS", `{"functionCall":{"name":"f","args":{}}}`,
		`{"functionCall":{"name":"g","partialArgs":[{"jsonPath":"$.a","numberValue":1}],"willContinue":true}}`))))(t)
	assert.Equal(t, []tool.Call{dialecttest.Call("gemini-call-0", "f", "{}"), dialecttest.Half(dialecttest.Call("gemini-call-1", "g", `{"a":1}`))}, response.ToolCalls)
	assert.Equal(t, tool.FinishLength, response.FinishReason)
}

func TestResponsesAreBounded(t *testing.T) {
	one := `{"functionCall":{"name":"f"}}`
	many := func(count int) []byte { return []byte(reply("STOP", strings.Repeat(one+",", count-1)+one)) }
	noerr.Get(New().Response(many(wire.MaxCalls)))(t)
	require.ErrorContains(t, noerr.Error(New().Response(many(wire.MaxCalls+1))), "more than 4096 calls")
	long := func(bytes int) []byte {
		return []byte(reply("STOP", `{"functionCall":{"name":"f","args":"`+strings.Repeat("x", bytes-2)+`"}}`))
	}
	noerr.Get(New().Response(long(wire.MaxArguments)))(t)
	require.ErrorContains(t, noerr.Error(New().Response(long(wire.MaxArguments+1))), "functionCall.args: has arguments of more than 1048576 bytes")
	noerr.Get(New().Response([]byte(reply("STOP", strings.Repeat("{},", maxParts-1)+"{}"))))(t)
	require.ErrorContains(t, noerr.Error(New().Response([]byte(reply("STOP", strings.Repeat("{},", maxParts)+"{}")))), "parts: has more than 65536 elements")
	require.ErrorContains(t, noerr.Error(New().Response(make([]byte, dialects.MaxDocument+1))), "more than 8388608")
}

func record(id string, result tool.Result) tool.Record {
	return tool.Record{Call: dialecttest.Call(id, "f", "{}"), Result: result}
}

func TestResultsAreParts(t *testing.T) {
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
	written := noerr.Get(New().Results(records))(t)
	assert.Equal(t, strings.Join([]string{
		`[{"functionResponse":{"id":"a","name":"f","response":{"output":"<4> & more"}}}`,
		`{"functionResponse":{"id":"b","name":"f","response":{"output":"partly","error":"denied: no such file"}}}`,
		`{"functionResponse":{"id":"c","name":"f","response":{"output":""}}}`,
		`{"functionResponse":{"id":"d","name":"f","response":{"error":"tool_failed"}}}`,
		`{"functionResponse":{"id":"e","name":"f","response":{"output":{"n":1.0}}}}`,
		`{"functionResponse":{"id":"f","name":"f","response":{"output":"one"}}}`,
		`{"functionResponse":{"id":"g","name":"f","response":{"output":"{\"broken"}}}`,
		`{"functionResponse":{"id":"h","name":"f","response":{"output":{"content":["see","[image: image/gif, https://example.com/a.gif]"]}},` +
			`"parts":[{"inlineData":{"mimeType":"image/png","data":"cG5n","displayName":"chart"}}]}}]`,
	}, ","), string(written))
}

// TestResultsMatchTheirCalls: by id, or by name and order where there were none.
func TestResultsMatchTheirCalls(t *testing.T) {
	one := `{"functionCall":{"name":"f","args":{}}}`
	response := noerr.Get(New().Response([]byte(reply("STOP", one, one, `{"functionCall":{"id":"x","name":"g"}}`, one))))(t)
	records := make([]tool.Record, len(response.ToolCalls))
	for i, call := range response.ToolCalls {
		records[len(records)-1-i] = tool.Record{Call: call, Result: tool.Result{Success: true, Output: call.ID}}
	}
	written := noerr.Get(New().Results(records))(t)
	assert.Equal(t, `[{"functionResponse":{"name":"f","response":{"output":"gemini-call-0"}}},`+
		`{"functionResponse":{"id":"x","name":"g","response":{"output":"x"}}},`+
		`{"functionResponse":{"name":"f","response":{"output":"gemini-call-1"}}},`+
		`{"functionResponse":{"name":"f","response":{"output":"gemini-call-3"}}}]`, string(written))
	assert.Equal(t, `[{"functionCall":{"name":"f","args":{}}},{"functionCall":{"id":"x","name":"g","args":{}}}]`,
		dialecttest.Calls(t, New(), response.ToolCalls[0], response.ToolCalls[2]))
}

const city = `{"type": "object", "properties": {"city": {"type": "string", "format": "city"}}, "required": ["city"]}`

func TestDefinitionsAreOffered(t *testing.T) {
	for _, strict := range []bool{false, true} {
		written, found := dialecttest.Offered(t, New(), strict, dialecttest.Definition("weather", city), tool.Definition{Name: "clock"})
		assert.Empty(t, found)
		assert.Equal(t, `[{"functionDeclarations":[{"name":"weather","description":"does <it>",`+
			`"parametersJsonSchema":{"type":"object","properties":{"city":{"type":"string","format":"city"}},"required":["city"]}},{"name":"clock"}]}]`, written)
	}
	written, found := dialecttest.Offered(t, New(), true)
	assert.Equal(t, "[]", written)
	assert.Empty(t, found)
}

// TestWhatIsTakenOfASchema checks the findings for schemas of a property.
func TestWhatIsTakenOfASchema(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"string","title":"A","description":"b"}`:                  "",
		`{"type":["integer","null"],"minimum":1,"maximum":9,"enum":[1,2]}`: "",
		`{"type":"array","prefixItems":[{"type":"string"}],"minItems":1}`:  "",
		`{"type":"object","additionalProperties":{"type":"string"}}`:       "",
		`{"anyOf":[{"type":"string"},{"type":"null"}]}`:                    "",
		`{"$ref":"#/$defs/x"}`:                                "",
		`{"type":"string","minLength":1}`:                     "weakened minLength properties.p.minLength",
		`{"type":"string","pattern":"^a$","description":"b"}`: "weakened pattern properties.p.pattern",
		`{"type":"integer","exclusiveMinimum":0}`:             "weakened exclusiveMinimum properties.p.exclusiveMinimum",
		`{"const":"a"}`:                                       "weakened const properties.p.const",
		`{"enum":["a",null]}`:                                 "weakened enum properties.p.enum",
		`{"oneOf":[{"type":"string"},{"const":1}]}`:           "weakened oneOf properties.p.oneOf\nf weakened const properties.p.oneOf[1].const",
		`{"allOf":[{"type":"string"},{"minLength":2}]}`:       "weakened allOf properties.p.allOf\nf weakened minLength properties.p.allOf[1].minLength",
		`{"$ref":"#/$defs/x","description":"b"}`:              "refused $ref properties.p.$ref",
		`{"$ref":"https://example.com/x"}`:                    "refused $ref properties.p.$ref",
		`{"$ref":"#"}`:                                        "weakened $ref",
		`{"not":{"type":"string"}}`:                           "weakened not properties.p.not",
		`{"$comment":"a","type":"string"}`:                    "weakened $comment properties.p.$comment",
	} {
		schema = `{"type":"object","properties":{"p":` + schema + `},"$defs":{"x":{"type":"string"}}}`
		written, found := dialecttest.Offered(t, New(), true, dialecttest.Definition("f", schema))
		assert.Contains(t, written, schema)
		assert.Equal(t, want, strings.TrimPrefix(found, "f "), schema)
	}
}

func TestNamesAndRoot(t *testing.T) {
	long := strings.Repeat("a", 129)
	_, found := dialecttest.Offered(t, New(), false, dialecttest.Definition("a.b:c-d_e", city), dialecttest.Definition("9a", city),
		dialecttest.Definition("a b", `{"type":"array"}`), dialecttest.Definition("9a", city), dialecttest.Definition(long, city))
	assert.Equal(t, strings.Join([]string{
		"9a refused name", "a b refused name", "a b refused type type", "a b refused properties properties", "9a refused name", "9a refused name", long + " refused name",
	}, "\n"), found)
}
