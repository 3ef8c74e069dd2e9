package known_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/dialecttest"
	"github.com/caisson-run/caisson/dialects/known"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

func TestDialectsAreNamed(t *testing.T) {
	var names []string
	for _, d := range known.Dialects() {
		names = append(names, d.Name())
		same := noerr.Get(known.ByName(d.Name()))(t)
		assert.Equal(t, d, same)
	}
	assert.Equal(t, dialects.Names(), names)
	_, ok := known.Detect([]byte(`{"hello":1}`))
	assert.False(t, ok)
	assert.EqualError(t, noerr.Error2(known.Read([]byte(`{"hello":1}`))), "response: the document is in none of the dialects openai, responses, anthropic, gemini, mcp")
	assert.EqualError(t, noerr.Error2(known.Read([]byte(strings.Repeat(" ", dialects.MaxDocument)+`{"choices":[]}`))), "response: the document has 8388622 bytes, more than 8388608")
	assert.EqualError(t, noerr.Error(known.ByName("OpenAI\n")), `choice: there is no dialect "OpenAI�"; want one of openai, responses, anthropic, gemini, mcp`)
}

// TestTranscriptsOfEveryDialect: what each provider sends, whole and streamed, is detected, and read as the same
// response.
func TestTranscriptsOfEveryDialect(t *testing.T) {
	for name, document := range map[string]string{
		dialects.OpenAI: "openai/testdata/weather", dialects.Responses: "responses/testdata/weather",
		dialects.Anthropic: "anthropic/testdata/parallel", dialects.Gemini: "gemini/testdata/parallel",
	} {
		t.Run(name, func(t *testing.T) {
			read := func(kind string) tool.ChatResponse {
				text := noerr.Get(os.ReadFile(filepath.Join("..", document+kind)))(t)
				for _, variant := range []string{string(text), "\uFEFF" + string(text), strings.TrimSpace(string(text)), strings.ReplaceAll(string(text), "\n", "\r\n")} {
					response, dialect := noerr.Get2(known.Read([]byte(variant)))(t)
					assert.Equal(t, name, dialect.Name())
					again := noerr.Get(known.ReadIn(dialect, []byte(variant)))(t)
					assert.Equal(t, response, again)
				}
				response, _ := noerr.Get2(known.Read(text))(t)
				return response
			}
			whole, streamed := read(".json"), read(".sse")
			require.NotEmpty(t, whole.ToolCalls)
			require.Len(t, streamed.ToolCalls, len(whole.ToolCalls))
			for i, call := range whole.ToolCalls {
				if call.Type == tool.CustomCall {
					continue
				}
				assert.JSONEq(t, call.Function.Arguments, streamed.ToolCalls[i].Function.Arguments)
				streamed.ToolCalls[i].Function.Arguments = call.Function.Arguments
			}
			assert.Equal(t, whole, streamed)
		})
	}
	response, dialect := noerr.Get2(known.Read([]byte("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"a\"}}")))(t)
	assert.Equal(t, dialects.MCP, dialect.Name())
	assert.Len(t, response.ToolCalls, 1)
}

// TestAStreamThatBrokeOffIsNoResponse: half of the calls would pass for all of them.
func TestAStreamThatBrokeOffIsNoResponse(t *testing.T) {
	for name, transcript := range map[string]string{
		dialects.OpenAI:    `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}`,
		dialects.Responses: `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"i","call_id":"a","name":"f","arguments":"{}","status":"completed"}}`,
		dialects.Anthropic: `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}`,
		dialects.Gemini:    `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]}}]}`,
	} {
		response, dialect, err := known.Read([]byte("data: " + transcript + "\n\n"))
		require.ErrorContains(t, err, "broke off", name)
		assert.Equal(t, name, dialect.Name())
		assert.Empty(t, response)
	}
}

// TestNamesAreExact: a member whose name differs in case is ignored, since a program that inspected the document
// before ignored it too. A duplicate is refused.
func TestNamesAreExact(t *testing.T) {
	for _, c := range []struct{ name, document string }{
		{dialects.OpenAI, `{"choices":[{"message":{"tool_calls":[{"id":"c","type":"function","function":{"name":"safe","Name":"rm","arguments":"{}","ARGUMENTS":"[]"}}],"Tool_Calls":[{"function":{"name":"rm"}}]},"Message":{}}],"CHOICES":[]}`},
		{dialects.Responses, `{"object":"response","status":"completed","output":[{"type":"function_call","call_id":"c","name":"safe","NAME":"rm","arguments":"{}","Arguments":"[]"}],"Output":[{"type":"function_call","name":"rm"}]}`},
		{dialects.Anthropic, `{"type":"message","role":"assistant","content":[{"type":"tool_use","id":"c","name":"safe","Name":"rm","input":{},"Input":[]}],"Content":[],"Stop_Reason":"refusal"}`},
		{dialects.Gemini, `{"candidates":[{"content":{"parts":[{"functionCall":{"id":"c","name":"safe","Name":"rm","args":{},"ARGS":[]},"FunctionCall":{"name":"rm"}}]}}],"Candidates":[]}`},
		{dialects.MCP, `{"jsonrpc":"2.0","id":"c","ID":"d","method":"tools/call","params":{"name":"safe","Name":"rm","arguments":{},"Arguments":[]},"Params":{"name":"rm"}}`},
	} {
		response, dialect, err := known.Read([]byte(c.document))
		require.NoError(t, err, c.name)
		assert.Equal(t, c.name, dialect.Name())
		assert.Equal(t, []tool.Call{dialecttest.Call("c", "safe", "{}")}, response.ToolCalls, c.name)

		twice := strings.Replace(c.document, `"name":"safe"`, `"name":"safe","name":"rm"`, 1)
		_, _, err = known.Read([]byte(twice))
		require.ErrorContains(t, err, `"name" occurs twice`, c.name)
	}
}

// TestEmptyInEveryDialect: an empty list is written as an empty array, never null.
func TestEmptyInEveryDialect(t *testing.T) {
	for _, d := range known.Dialects() {
		for _, strict := range []bool{false, true} {
			definitions, _ := dialecttest.Offered(t, d, strict)
			assert.Equal(t, "[]", definitions, d.Name())
		}
		results := noerr.Get(d.Results(nil))(t)
		assert.Equal(t, "[]", string(results), d.Name())
		assert.Equal(t, "[]", dialecttest.Calls(t, d), d.Name())
		response := noerr.Get(d.Response(fmt.Appendf(nil, responses[d.Name()], "[]")))(t)
		assert.Equal(t, []tool.Call{}, response.ToolCalls, d.Name())
		stream := d.Stream()
		assert.NotNil(t, stream.Response().ToolCalls, d.Name())
		pieces := noerr.Get(stream.Event("message", nil))(t)
		assert.NotNil(t, pieces, d.Name())
	}
}

// TestWhatCannotBeWrittenIsRefused: the element and its member are named.
func TestWhatCannotBeWrittenIsRefused(t *testing.T) {
	for name, member := range map[string]string{dialects.OpenAI: "id", dialects.Responses: "id", dialects.Anthropic: "id", dialects.Gemini: "function.name"} {
		d := noerr.Get(known.ByName(name))(t)
		require.ErrorContains(t, noerr.Error(d.Results([]tool.Record{{Call: dialecttest.Call("a", "f", "")}, {}})), name+" results: [1]."+member+": is empty")
		require.ErrorContains(t, noerr.Error(d.Calls([]tool.Call{dialecttest.Call("a", "f", ""), {}})), name+" calls: [1]."+member+": is empty")
	}
	for _, d := range known.Dialects() {
		for _, schema := range []string{`[1]`, `{`, `5`} {
			_, _, err := d.Definitions([]tool.Definition{{Name: "a"}, dialecttest.Definition("b", schema)}, dialects.DefinitionOptions{Strict: true})
			var typed *dialects.Error
			require.ErrorAs(t, err, &typed)
			assert.Equal(t, "[1].parameters", typed.Path)
			assert.Equal(t, d.Name(), typed.Dialect)
		}
	}
}

// TestInvalidArgumentsMakeAValidDocument: a model sees its own arguments again, even if they are not JSON.
func TestInvalidArgumentsMakeAValidDocument(t *testing.T) {
	for name, written := range map[string]string{
		dialects.Anthropic: `[{"type":"tool_use","id":"a","name":"f","input":%s}]`,
		dialects.Gemini:    `[{"functionCall":{"id":"a","name":"f","args":%s}}]`,
		dialects.MCP:       `[{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"f","arguments":%s}}]`,
	} {
		d := noerr.Get(known.ByName(name))(t)
		for arguments, want := range map[string]string{
			``: `{}`, " \n": `{}`, " {\"a\": 1.0}\n": `{"a":1.0}`, `{"a":`: `{"INVALID_JSON":"{\"a\":"}`,
			`[1]`: `{"INVALID_JSON":"[1]"}`, `null`: `{"INVALID_JSON":"null"}`, "\xff": `{"INVALID_JSON":"\ufffd"}`, `{}x`: `{"INVALID_JSON":"{}x"}`,
		} {
			assert.Equal(t, fmt.Sprintf(written, want), dialecttest.Calls(t, d, dialecttest.Call("a", "f", arguments)))
		}
	}
}

// TestEveryResultHasItsRequest: each dialect writes one answer for each record, which
// names the record's id.
func TestEveryResultHasItsRequest(t *testing.T) {
	records := []tool.Record{
		{Call: tool.Call{ID: "first", Type: "function", Function: tool.Function{Name: "add", Arguments: "{}"}}, Result: tool.Result{Error: "no", Kind: tool.Denied}},
		{Call: tool.Call{ID: "second", Type: "function", Function: tool.Function{Name: "list", Arguments: "{"}}, Result: tool.Result{Success: true, Output: "out"}, Cached: true, Source: "x"},
		{Call: tool.Call{ID: "third", Type: "function", Function: tool.Function{Name: "list"}}, Result: tool.Result{Success: true}, Skipped: true},
	}
	for _, d := range known.Dialects() {
		t.Run(d.Name(), func(t *testing.T) {
			written := noerr.Get(d.Results(records))(t)
			answers := noerr.Decode[[]json.RawMessage](t, written)
			require.Len(t, answers, len(records))
			for i, record := range records {
				assert.Contains(t, string(answers[i]), `"`+record.ID+`"`)
			}
		})
	}
}

// TestAModelReadsAResultOnce: a model reads the output, or the data if there is no output, and never
// both. For MCP, the structured content comes on top, which is for programs.
func TestAModelReadsAResultOnce(t *testing.T) {
	const content = "3,000 bytes of a file. "
	file := strings.Repeat(content, 3000/len(content))
	data := json.RawMessage(`{"path":"a.txt","content":"` + file + `"}`)
	for _, d := range known.Dialects() {
		for _, kind := range []string{tool.FunctionCall, tool.CustomCall, tool.LocalShellCall} {
			for name, result := range map[string]tool.Result{
				"a text with data":      {Success: true, Output: file, Data: data},
				"JSON":                  {Success: true, Output: string(data), Data: data},
				"data":                  {Success: true, Data: data},
				"a failure with output": {Output: file, Data: data, Error: "no", Kind: tool.ToolFailed},
				"a failure with data":   {Data: data, Error: "no", Kind: tool.ToolFailed},
			} {
				written := noerr.Get(d.Results([]tool.Record{{Call: tool.Call{ID: "c", Type: kind, Function: tool.Function{Name: "f"}}, Result: result}}))(t)
				times := 1
				if d.Name() == dialects.MCP {
					times = 2
				}
				assert.Equal(t, times*len(file)/len(content), strings.Count(string(written), content), "%s: %s", d.Name(), name)
				assert.Less(t, len(written), times*len(file)+400, "%s: %s", d.Name(), name)
			}
		}
	}
}

// TestNoOutputPassesForAFailure: what a tool printed is its output, even if it has the form in which a failure
// is written.
func TestNoOutputPassesForAFailure(t *testing.T) {
	for _, name := range []string{dialects.OpenAI, dialects.Responses} {
		d := noerr.Get(known.ByName(name))(t)
		for _, printed := range []string{`{"success":false,"error":"no","kind":"denied"}`, `{"success":true,"output":"a"}`} {
			record := tool.Record{Call: dialecttest.Call("c", "f", "{}"), Result: tool.Result{Success: true, Output: printed}}
			_, read := answered(t, d, []tool.Record{record})
			assert.Equal(t, record.Result, read[0].Result, name)
		}
	}
}

// TestResultsAreNotLongerInJSON: a model pays for each character that it reads, and JSON needs no
// escapes for these.
func TestResultsAreNotLongerInJSON(t *testing.T) {
	result := tool.Result{Success: true, Output: "<b> & </b>", Data: json.RawMessage(`{"<":"&"}`), Content: []tool.Content{{Type: "link", Name: "<l>", URL: "https://example.com/?a&b"}}}
	failed := tool.Result{Error: "a < b && c > d", Kind: tool.ToolFailed, Output: "<>"}
	for _, d := range known.Dialects() {
		for _, kind := range []string{tool.FunctionCall, tool.CustomCall, tool.LocalShellCall} {
			call := tool.Call{ID: "c", Type: kind, Function: tool.Function{Name: "f"}}
			written := noerr.Get(d.Results([]tool.Record{{Call: call, Result: result}, {Call: call, Result: failed}}))(t)
			assert.Contains(t, string(written), "<b> & </b>", d.Name())
			assert.Contains(t, string(written), "a < b && c > d", d.Name())
			assert.NotContains(t, string(written), `u00`, d.Name())
		}
	}
}

var update = flag.Bool("update", false, "write the golden files under testdata")

// golden fails the test unless a document is the file of that name, but for white space.
func golden(t *testing.T, name string, document json.RawMessage) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *update {
		var shown bytes.Buffer
		require.NoError(t, json.Indent(&shown, document, "", "  "))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, append(shown.Bytes(), '\n'), 0o644))
	}
	text := noerr.Get(os.ReadFile(name))(t)
	var want bytes.Buffer
	require.NoError(t, json.Compact(&want, text))
	assert.Equal(t, want.String(), string(document), name)
}

func offered() []tool.Definition {
	return []tool.Definition{
		{
			Name: "weather", Description: "The weather of the next days, in <°C>.", Label: "Weather", Hints: tool.Hints{ReadOnly: true},
			Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1}},"required":["city"]}`),
			Result:     json.RawMessage(`{"type":"object","properties":{"mm":{"type":"number"}},"required":["mm"]}`),
		},
		{
			Name: "apply_patch", Type: tool.CustomCall, Description: "Changes files.", Hints: tool.Hints{Destructive: true},
			Parameters: json.RawMessage(`{"type":"object","properties":{"patch":{"type":"string"}},"required":["patch"],"additionalProperties":false}`),
			Format:     json.RawMessage(`{"type":"grammar","syntax":"lark","definition":"start: \"***\" /.+/"}`),
		},
		{
			Name: "note", Type: tool.CustomCall, Format: json.RawMessage(`{"type":"text"}`),
			Parameters: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`),
		},
		{
			Name: "local_shell", Type: tool.LocalShellCall,
			Parameters: json.RawMessage(`{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"}}},"required":["command"]}`),
		},
		{Name: "now"},
	}
}

func conversation() []tool.Record {
	patch := dialecttest.Custom("call_patch", "apply_patch", "*** <b> & \"c\"\n")
	shell := dialecttest.Call("call_shell", "local_shell", `{"command":["ls","-l"]}`)
	shell.Type = tool.LocalShellCall
	signed := dialecttest.Call("call_zurich", "weather", `{"city":"Zürich","days":12345678901234567890}`)
	signed.Signature = "c2lnbmVk"
	return []tool.Record{
		{Call: signed, Result: tool.Result{Success: true, Output: "rain, <4 mm>", Data: json.RawMessage(`{"mm":3.50}`)}},
		{Call: patch, Skipped: true, Result: tool.Result{Error: "the call was refused", Kind: tool.Denied}},
		{Call: shell, Result: tool.Result{Error: "exit status 2", Kind: tool.ToolFailed, Output: "ls: cannot access"}},
		{Call: dialecttest.Call("call_now", "now", `{}`), Cached: true, Source: "earlier", Result: tool.Result{
			Success: true, Output: "noon", Content: []tool.Content{{Type: "image", MIMEType: "image/png", Data: []byte("\x89PNG")}, {Type: "link", URL: "https://example.com/clock", Name: "Clock"}},
		}},
	}
}

// TestDocumentsOfEveryDialect: the same tools, calls and results as each provider documents them. The
// Responses API has forms for more, of which its own package has the golden files.
func TestDocumentsOfEveryDialect(t *testing.T) {
	records := conversation()
	calls := make([]tool.Call, len(records))
	for i := range records {
		calls[i] = records[i].Call
	}
	for _, d := range known.Dialects() {
		if d.Name() == dialects.Responses {
			continue
		}
		t.Run(d.Name(), func(t *testing.T) {
			definitions, _ := noerr.Get2(d.Definitions(offered(), dialects.DefinitionOptions{}))(t)
			golden(t, d.Name()+"/definitions.json", definitions)
			shown := noerr.Get(d.Calls(calls))(t)
			golden(t, d.Name()+"/calls.json", shown)
			results := noerr.Get(d.Results(records))(t)
			golden(t, d.Name()+"/results.json", results)

			answers := noerr.Get(d.Answers(results))(t)
			require.Len(t, answers.Outputs, len(records))
			for i, output := range answers.Outputs {
				assert.Equal(t, records[i].ID, output.CallID)
				assert.Equal(t, records[i].Result.Success, output.Result.Success)
			}
		})
	}
}

// TestTuples: of the two forms of a tuple, "items" as a list is not in JSON Schema 2020-12, and OpenAI takes neither.
func TestTuples(t *testing.T) {
	list, prefix := dialecttest.With(`{"type":"array","items":[{"type":"string"},{"type":"integer"}]}`), dialecttest.With(`{"type":"array","prefixItems":[{"type":"string"}]}`)
	for name, want := range map[string][2]string{
		dialects.OpenAI:    {"refused items properties.p.items", "refused type properties.p.type"},
		dialects.Responses: {"refused items properties.p.items", "refused type properties.p.type"},
		dialects.Anthropic: {"refused items properties.p.items", ""},
		dialects.Gemini:    {"refused items properties.p.items", ""},
		dialects.MCP:       {"weakened items properties.p.items", ""},
	} {
		d := noerr.Get(known.ByName(name))(t)
		for i, schema := range []string{list, prefix} {
			_, found := dialecttest.Offered(t, d, false, dialecttest.Definition("f", schema))
			assert.Equal(t, want[i], strings.TrimPrefix(found, "f "), name+" "+schema)
			written, found := dialecttest.Offered(t, d, true, dialecttest.Definition("f", schema))
			assert.NotContains(t, written, `"strict":true`, "no strict mode has tuples")
			assert.Contains(t, found, want[i])
		}
	}
	d := noerr.Get(known.ByName(dialects.Anthropic))(t)
	_, found := dialecttest.Offered(t, d, false, dialecttest.Definition("f", dialecttest.With(`{"type":"integer","minimum":1,"exclusiveMinimum":true}`)))
	assert.Equal(t, "f refused exclusiveMinimum properties.p.exclusiveMinimum", found)
}

// TestNumbersAreReadByValue: some languages write every number as a float. Malformed token counts do not fail a
// response.
func TestNumbersAreReadByValue(t *testing.T) {
	for _, c := range []struct{ name, document string }{ // N is 0 or 1, and U a count
		{dialects.OpenAI, `{"choices":[{"index":1,"message":{"content":"no"}},{"index":N0,"message":{"tool_calls":[{"index":N0,"id":"c","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}],"usage":U("prompt_tokens","completion_tokens","total_tokens")}`},
		{dialects.OpenAI, `data: {"choices":[{"index":N0,"delta":{"tool_calls":[{"index":N1,"id":"d","function":{"name":"f","arguments":"{"}},{"index":N0,"id":"c","function":{"name":"f","arguments":"{}"}}]}}]}` + "\n\n" +
			`data: {"choices":[{"delta":{"tool_calls":[{"index":N1,"function":{"arguments":"}"}}]},"finish_reason":"stop"}],"usage":U("prompt_tokens","completion_tokens","total_tokens")}`},
		{dialects.Responses, `{"object":"response","status":"completed","output":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}],"usage":U("input_tokens","output_tokens","total_tokens")}`},
		{dialects.Responses, `data: {"type":"response.output_item.added","output_index":N1,"item":{"type":"function_call","name":"f"}}` + "\n\n" + `data: {"type":"response.function_call_arguments.delta","output_index":N1,"delta":"{}"}` + "\n\n" +
			`data: {"type":"response.output_item.done","output_index":N1,"item":{"type":"function_call","call_id":"c","name":"f"}}` + "\n\n" + `data: {"type":"response.completed","response":{"output":[],"usage":U("input_tokens","output_tokens","total_tokens")}}`},
		{dialects.Anthropic, `{"type":"message","role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}],"stop_reason":"tool_use","usage":U("input_tokens","output_tokens","-")}`},
		{dialects.Anthropic, `data: {"type":"message_start","message":{"usage":U("input_tokens","-","-")}}` + "\n\n" + `data: {"type":"content_block_start","index":N1,"content_block":{"type":"tool_use","id":"c","name":"f","input":{}}}` + "\n\n" +
			`data: {"type":"content_block_stop","index":N1}` + "\n\n" + `data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":U("-","output_tokens","-")}` + "\n\n" + `data: {"type":"message_stop"}`},
		{dialects.Gemini, `{"candidates":[{"index":N1,"content":{"parts":[{"text":"no"}]}},{"index":N0,"content":{"parts":[{"functionCall":{"id":"c","name":"f","args":{}}}]},"finishReason":"STOP"}],"usageMetadata":U("promptTokenCount","candidatesTokenCount","totalTokenCount")}`},
	} {
		for _, form := range []struct {
			numbers [2]string
			usage   string
			want    tool.ChatUsage
		}{
			{[2]string{"0", "1"}, `{"$1":30,"$2":12,"$3":42}`, tool.ChatUsage{PromptTokens: 30, CompletionTokens: 12, TotalTokens: 42}},
			{[2]string{"0.0", "1.0"}, `{"$1":30.0,"$2":1.2e1,"$3":42.000}`, tool.ChatUsage{PromptTokens: 30, CompletionTokens: 12, TotalTokens: 42}},
			{[2]string{"0e0", "10e-1"}, `{"$1":"30","$2":1.5,"$3":{}}`, tool.ChatUsage{}},
			{[2]string{"-0", "1e0"}, `"none"`, tool.ChatUsage{}},
			{[2]string{"-0.0", "1"}, `[1]`, tool.ChatUsage{}},
		} {
			document := strings.NewReplacer("N0", form.numbers[0], "N1", form.numbers[1]).Replace(c.document)
			document = regexp.MustCompile(`U\("(.*?)","(.*?)","(.*?)"\)`).ReplaceAllString(document, form.usage)
			response, dialect, err := known.Read([]byte(document))
			require.NoError(t, err, document)
			assert.Equal(t, c.name, dialect.Name())
			assert.Equal(t, dialecttest.Call("c", "f", "{}"), response.ToolCalls[0], document)
			assert.Equal(t, form.want, response.Usage, document)
		}
	}
	for document, want := range map[string]string{
		`{"choices":[{"index":0.5,"message":{}}]}`:       "openai response: choices[0].index: is a JSON number 0.5; want an integer",
		`{"choices":[{"index":"0","message":{}}]}`:       "openai response: choices[0].index: is a JSON string; want an integer",
		`{"choices":[{"index":1e300,"message":{}}]}`:     "openai response: choices[0].index: is a JSON number 1e300; want an integer",
		`{"candidates":[{"index":[],"finishReason":1}]}`: "gemini response: candidates[0].index: is a JSON array; want an integer",
	} {
		assert.EqualError(t, noerr.Error2(known.Read([]byte(document))), want)
	}
}

// TestRemarks: remarks report unread choices and calls that ids cannot identify, in whole and streamed responses.
func TestRemarks(t *testing.T) {
	const filled, same = "calls without an id were given one, which their results have: ", "calls have the same id, so only the order tells their results apart: "
	one := `{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`
	for _, c := range []struct {
		name, document string
		want           []string
	}{
		{dialects.OpenAI, `{"choices":[{"index":0,"message":{"tool_calls":[` + one + `]}},{"index":1,"message":{"content":"a","tool_calls":[]}}]}`, nil},
		{dialects.OpenAI, `{"choices":[{"index":0,"message":{"content":"a"}},{"index":2,"message":{"tool_calls":[` + one + `]}},{"index":1,"message":{"tool_calls":[` + one + `]}}]}`,
			[]string{"only the first choice is read, but there are calls in choice 1, choice 2, too"}},
		{dialects.OpenAI, `{"choices":[{"message":{"content":"a"}},{"message":{"tool_calls":[` + one + `]}}]}`, []string{"only the first choice is read, but there are calls in choice 1, too"}},
		{dialects.OpenAI, dialecttest.Data(`{"choices":[{"index":0,"delta":{"tool_calls":[`+one+`]}}]}`, `{"choices":[{"index":1,"delta":{"tool_calls":[`+one+`]}}]}`, `{"choices":[{"index":1,"delta":{"tool_calls":[`+one+`]}}]}`, `[DONE]`),
			[]string{"only the first choice is read, but there are calls in choice 1, too"}},
		{dialects.OpenAI, dialecttest.Data(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}},{"index":1,"function":{"name":"g","arguments":"{}"}}]},"finish_reason":"stop"}]}`),
			[]string{filled + "f (call_0), g (call_1)"}},
		{dialects.OpenAI, `{"choices":[{"message":{"tool_calls":[` + strings.Repeat(`{"function":{"name":"f"}},`, 9) + one + `,` + one + `]}}]}`,
			[]string{filled + "f (call_0), f (call_1), f (call_2), f (call_3), f (call_4), f (call_5), f (call_6), f (call_7), and 1 more", same + "a (2 calls)"}},
		{dialects.Responses, dialecttest.Data(`{"type":"response.completed","response":{"output":[{"type":"function_call","name":"f"},{"type":"function_call","call_id":"a","id":"x","name":"f"},{"type":"function_call","call_id":"a","id":"y","name":"f"}]}}`),
			[]string{filled + "f (call_0)"}},
		{dialects.Responses, `{"object":"response","output":[{"type":"function_call","call_id":"a","name":"f"},{"type":"function_call","call_id":"a","name":"f"}]}`, []string{same + "a (2 calls)"}},
		{dialects.Anthropic, `{"type":"message","role":"assistant","content":[{"type":"tool_use","name":"f","input":{}},{"type":"tool_use","id":"a","name":"f"},{"type":"tool_use","id":"a","name":"f"}]}`,
			[]string{filled + "f (call_0)", same + "a (2 calls)"}},
		{dialects.Anthropic, `{"type":"message","role":"assistant","content":[],"stop_reason":"refusal","stop_details":{"type":"refusal","category":"cyber","explanation":"It would do harm."}}`,
			[]string{"the provider ended the response with the reason cyber: It would do harm."}},
		{dialects.Anthropic, dialecttest.Data(`{"type":"message_start","message":{}}`, `{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"type":"refusal","category":null,"explanation":"No."}}}`, `{"type":"message_stop"}`),
			[]string{"the provider ended the response with the reason refusal: No."}},
		{dialects.Gemini, `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}},{"functionCall":{"name":"f"}}]},"finishReason":"STOP"}]}`, nil},
		{dialects.Gemini, `{"candidates":[{"content":{"parts":[{"functionCall":{"id":"a","name":"f"}},{"functionCall":{"id":"a","name":"f"}}]},"finishReason":"STOP"},{"index":1,"content":{"parts":[{"text":7,"functionCall":{"name":"f"}}]}},{"index":2,"content":{"parts":[{"text":"a"}]}}]}`,
			[]string{"only the first candidate is read, but there are calls in candidate 1, too", same + "a (2 calls)"}},
		{dialects.Gemini, `{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"},{"content":{"parts":[{"functionCall":{"name":"f"}}]},"finishReason":"STOP"}]}`,
			[]string{"only the first candidate is read, but there are calls in candidate 1, too"}},
		{dialects.Gemini, `{"candidates":[{"content":{},"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: print(f(1))"}]}`,
			[]string{"the provider ended the response with the reason MALFORMED_FUNCTION_CALL: Malformed function call: print(f(1))"}},
		{dialects.Gemini, dialecttest.Data(`{"candidates":[{"finish_reason":"UNEXPECTED_TOOL_CALL","finish_message":"No tools."}]}`), []string{"the provider ended the response with the reason UNEXPECTED_TOOL_CALL: No tools."}},
		{dialects.Gemini, `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT","blockReasonMessage":"Not that."},"usageMetadata":{}}`, []string{"the provider blocked the prompt with the reason PROHIBITED_CONTENT: Not that."}},
		{dialects.Gemini, `{"promptFeedback":{"blockReason":"SAFETY"}}`, []string{"the provider blocked the prompt with the reason SAFETY"}},
		{dialects.Gemini, `{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"MAX_TOKENS"}]}`, nil},
		{dialects.MCP, `[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"f"}},{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":"f"}}]`, nil},
		{dialects.MCP, `[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"f"}},{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"f"}}]`, []string{same + "1 (2 calls)"}},
	} {
		d := noerr.Get(known.ByName(c.name))(t)
		response, err := known.ReadIn(d, []byte(c.document))
		require.NoError(t, err, c.document)
		assert.ElementsMatch(t, c.want, response.Remarks, c.document)
	}
}

// TestNestedIDsAreReported: every dialect with rules for schemas reports an $id within a schema, from which
// references start, but no $id of the schema itself.
func TestNestedIDsAreReported(t *testing.T) {
	definition := func(id string) []tool.Definition {
		return []tool.Definition{{Name: "a", Parameters: json.RawMessage(`{"$id":"https://example.com/a","type":"object","properties":{"b":{` + id +
			`"type":"object","properties":{"c":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"string"}}}},"$defs":{"d":{"type":"integer"}}}`)}}
	}
	for _, d := range known.Dialects() {
		for _, strict := range []bool{false, true} {
			t.Run(fmt.Sprint(d.Name(), strict), func(t *testing.T) {
				for id, want := range map[string]bool{"": false, `"$id":"b",`: d.Name() != dialects.MCP} {
					_, findings := noerr.Get2(d.Definitions(definition(id), dialects.DefinitionOptions{Strict: strict}))(t)
					found := slices.ContainsFunc(findings, func(f dialects.Finding) bool { return f.Path == "properties.b.$id" })
					assert.Equal(t, want, found, "%+v", findings)
				}
			})
		}
	}
}
