package known_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
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

// responses are templates of models' responses, for the calls that Calls writes.
var responses = map[string]string{
	dialects.OpenAI:    `{"choices":[{"message":{"tool_calls":%s},"finish_reason":"tool_calls"}]}`,
	dialects.Responses: `{"object":"response","status":"completed","output":%s}`,
	dialects.Anthropic: `{"type":"message","role":"assistant","content":%s,"stop_reason":"tool_use"}`,
	dialects.Gemini:    `{"candidates":[{"content":{"parts":%s},"finishReason":"STOP"}]}`,
	dialects.MCP:       `%s`,
}

// dice makes random test data.
type dice struct{ *rand.Rand }

func thrown(seed uint64) dice { return dice{rand.New(rand.NewPCG(seed, 44))} }

func (d dice) of(choices ...string) string { return choices[d.IntN(len(choices))] }

func (d dice) often() bool { return d.IntN(2) == 0 }

// text returns a text that is not blank, with characters that are difficult for writers of JSON and of events.
func (d dice) text() string {
	var text strings.Builder
	for range 1 + d.IntN(4) {
		text.WriteString(d.of("a", "é", "🌧", "<&>", `"`, `\`, "\u2028", "\n", "\r", "\t", "\x00", " b", "data: ", "{", "denied: x", "null"))
	}
	return text.String() + "."
}

// object is a JSON object without white space.
func (d dice) object() string {
	var members []string
	for i := range d.IntN(4) {
		members = append(members, fmt.Sprintf(`"k%d":`, i)+d.of(`1.50`, `12345678901234567890`, `1e400`, `"é\u00e9<&>\ud83d\ude00"`, `[]`, `{"b":{},"a":null}`, `""`, `true`))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// TestCallsThatAreShownBackAreTheSame: calls that Calls writes into the history are those of the model.
func TestCallsThatAreShownBackAreTheSame(t *testing.T) {
	for _, d := range known.Dialects() {
		t.Run(d.Name(), func(t *testing.T) {
			for seed := range uint64(100) {
				random, all := thrown(seed), []tool.Call{}
				for n := range random.IntN(5) {
					call := dialecttest.Call(fmt.Sprint(random.of("call_", "7", "é"), n, "x"), random.of("f", "get_weather"), random.object())
					openAI := d.Name() == dialects.OpenAI || d.Name() == dialects.Responses
					switch {
					case openAI && random.often():
						call.Type, call.Function.Arguments = tool.CustomCall, random.text()
					case openAI && random.often():
						call.Function.Arguments = random.text()
					case d.Name() == dialects.Gemini && random.often():
						call.Signature = "c2lnbmVk+/=="
					case d.Name() == dialects.Gemini:
						call.ID = fmt.Sprint("gemini-call-", n) // one that is not sent
					}
					all = append(all, call)
				}
				written := noerr.Get(d.Calls(all))(t)
				response, err := d.Response(fmt.Appendf(nil, responses[d.Name()], written))
				require.NoError(t, err, "%s", written)
				require.Equal(t, all, response.ToolCalls)
				again := noerr.Get(d.Calls(response.ToolCalls))(t)
				require.Equal(t, string(written), string(again))
			}
		})
	}
}

// plain is a result that every dialect has a place for.
func (d dice) plain() tool.Result {
	result := tool.Result{Success: d.often()}
	if result.Success || d.often() {
		result.Output = d.text()
	}
	if !result.Success {
		result.Kind, result.Error = tool.ToolFailed, d.text()
	}
	for range d.IntN(3) {
		result.Content = append(result.Content, tool.Content{Type: "image", MIMEType: d.of("image/png", "image/jpeg"), Data: []byte(d.text())})
	}
	return result
}

// any is any result of a call, of any kind.
func (d dice) any() tool.Result {
	result := d.plain()
	if d.often() {
		result.Data = json.RawMessage(d.of(d.object(), `[1.0]`, `"text"`, `5`, `{"text":"a","data":1}`))
	}
	if d.IntN(4) == 0 {
		result.Output = string(result.Data)
	}
	for range d.IntN(3) {
		result.Content = append(result.Content, []tool.Content{
			{Type: "text", Text: d.text()}, {Type: "link", URL: "https://example.com/" + d.of("a", "b"), Name: d.of("", "n")},
			{Type: "image", URL: "https://example.com/a.png"}, {Type: "image", URL: "https://example.com/a.png", MIMEType: "image/png"},
			{Type: "image", Data: []byte(d.text()), MIMEType: "image/svg+xml", Name: "drawn"},
			{Type: "file", Data: []byte(d.text()), MIMEType: d.of("application/pdf", "text/plain", "text/csv", "audio/wav"), Name: d.of("a.pdf", "b c")},
			{Type: "file", URL: "https://example.com/a.pdf", MIMEType: "application/pdf"}, {Type: "file", Text: d.text(), Name: "t"},
			{Type: "link", URL: "https://example.com", Text: d.text()},
		}[d.IntN(9)])
	}
	if !result.Success && d.often() {
		result.Kind = tool.Kinds()[d.IntN(len(tool.Kinds()))]
	}
	return result
}

// answered writes the records' results in a dialect and reads them back. It returns the document and the records
// with the results that were read.
func answered(t *testing.T, d dialects.Dialect, records []tool.Record) (string, []tool.Record) {
	t.Helper()
	written := noerr.Get(d.Results(records))(t)
	answers, err := d.Answers(written)
	require.NoError(t, err, "%s", written)
	require.Len(t, answers.Outputs, len(records))
	require.Equal(t, []dialects.NamedOutput{}, answers.Named)
	require.Equal(t, []tool.Approval{}, answers.Approvals)
	read := make([]tool.Record, len(records))
	for i, output := range answers.Outputs {
		require.Equal(t, records[i].ID, output.CallID)
		read[i] = tool.Record{Call: records[i].Call, Result: output.Result}
	}
	return string(written), read
}

// TestResultsThatAreHandedInAreTheSame: a client may answer with what Results writes. The messages of
// Chat Completions have no images.
func TestResultsThatAreHandedInAreTheSame(t *testing.T) {
	for _, d := range known.Dialects() {
		t.Run(d.Name(), func(t *testing.T) {
			for seed := range uint64(120) {
				random := thrown(seed)
				var records []tool.Record
				for n := range 1 + random.IntN(4) {
					call := dialecttest.Call(fmt.Sprint("call_", n), "f", "{}")
					if d.Name() == dialects.Responses && random.often() {
						call.Type = tool.CustomCall
					}
					result := random.plain()
					if d.Name() == dialects.OpenAI {
						result.Content = nil
					}
					records = append(records, tool.Record{Call: call, Result: result})
				}
				_, read := answered(t, d, records)
				require.Equal(t, records, read)
			}
		})
	}
}

// TestWhatAResultHasIsHandedOn: of results of any kind, a model reads the same before and after they were
// submitted. Texts do not carry the kind of a failure, except in the prefix that is written once.
func TestWhatAResultHasIsHandedOn(t *testing.T) {
	for _, d := range known.Dialects() {
		t.Run(d.Name(), func(t *testing.T) {
			for seed := range uint64(300) {
				random := thrown(seed)
				records := []tool.Record{{Call: dialecttest.Call("a", "f", "{}"), Result: random.any()}}
				records[0].Type = random.of("", tool.FunctionCall, tool.CustomCall, tool.LocalShellCall)
				written, read := answered(t, d, records)
				again, twice := answered(t, d, read)
				last, _ := answered(t, d, twice)
				require.Equal(t, again, last)
				if kind := records[0].Result.Kind; kind == "" || kind == tool.ToolFailed {
					require.Equal(t, written, again, "%+v", records[0].Result)
				}
				require.Equal(t, records[0].Result.Success, read[0].Result.Success)
			}
		})
	}
}

// TestAConversationIsPassedOver: in a conversation that a client keeps, only the results are answers, and no
// text is mistaken for one.
func TestAConversationIsPassedOver(t *testing.T) {
	for name, documents := range map[string][]string{
		dialects.OpenAI: {
			`{"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"u"}]},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"4"}]}`,
			`[{"role":"developer","content":"d"},{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"4"}]}]`,
			`{"role":"tool","tool_call_id":"c","content":"{\"success\": true, \"output\": \"4\"}"}`,
		},
		dialects.Responses: {
			`{"input":[{"role":"user","content":"u"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"4"}]}`,
			`{"type":"function_call_output","call_id":"c","output":"{\"success\":true,\"output\":\"4\"}"}`,
		},
		dialects.Anthropic: {
			`{"messages":[{"role":"user","content":"u"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"4"},{"type":"text","text":"t"}]}]}`,
			`[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"4"}]}]}]`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"4","is_error":false}]}`,
			`[{"type":"tool_result","tool_use_id":"c","content":"{\"output\":\"4\",\"success\":true}\n"},{"type":"text","text":"t"}]`,
			`{"type":"tool_result","tool_use_id":"c","content":"4"}`,
		},
		dialects.Gemini: {
			`{"contents":[{"role":"user","parts":[{"text":"u"}]},{"role":"model","parts":[{"functionCall":{"id":"c","name":"f"}}]},{"role":"user","parts":[{"functionResponse":{"id":"c","name":"f","response":{"output":"4"}}}]}]}`,
			`[{"role":"user","parts":[{"functionResponse":{"id":"c","name":"f","response":{"output":"4"}}}]}]`,
			`{"parts":[{"functionResponse":{"id":"c","name":"f","response":{"output":"4"}}},{"text":"t"}]}`,
			`[{"functionResponse":{"id":"c","name":"f","response":{"success":true,"output":"4"}}}]`,
			`{"functionResponse":{"id":"c","name":"f","response":{"output":"{\"success\":true,\"output\":\"4\"}"}}}`,
		},
		dialects.MCP: {
			`[{"jsonrpc":"2.0","method":"notifications/progress"},{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":"c","result":{"content":[{"type":"text","text":"4"}]}}]`,
			`{"jsonrpc":"2.0","id":"c","result":{"content":[{"type":"text","text":"{\"success\":true,\"output\":\"4\"}"}]}}`,
		},
	} {
		d := noerr.Get(known.ByName(name))(t)
		for _, document := range documents {
			answers, err := d.Answers([]byte(" \n" + document + "\n"))
			require.NoError(t, err, document)
			assert.Equal(t, []tool.Answer{{CallID: "c", Result: tool.Result{Success: true, Output: "4"}}}, answers.Outputs, document)
		}
		empty := noerr.Get(d.Answers([]byte(`[]`)))(t)
		assert.Equal(t, dialects.Answers{Outputs: []tool.Answer{}, Named: []dialects.NamedOutput{}, Approvals: []tool.Approval{}}, empty)
	}
}

// FuzzAnswers: no document makes a dialect panic, and the answers that it reads can be written and read again.
func FuzzAnswers(f *testing.F) {
	for _, pattern := range []string{"client_request.json", "results.json", "client_results.json"} {
		fixtures(f, pattern)
	}
	f.Add([]byte(`[{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"{\"success\":true,\"content\":[{\"type\":\"image\",\"mime_type\":\"image/png\"}]}"},{"type":"input_image","image_url":"data:image/png;base64,AA=="},{"type":"input_image","image_url":"data:image/png;base64,AA=="}]}]`))
	f.Add([]byte(`[{"role":"tool","tool_call_id":"c","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AQ=="}},{"type":"text","text":"a"}]}]`))
	f.Add([]byte(`{"input":[{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a"}]},{"type":"mcp_approval_response","approval_request_id":"mcpr_a","approve":true}]}`))
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","is_error":true,"content":[{"type":"text","text":"tool_failed: a"},{"type":"search_result","source":"https://example.com","title":"t","content":[{"type":"text","text":"b"}]}]}]}]}`))
	f.Add([]byte(`[{"functionResponse":{"name":"f","response":{"output":{"text":"a","data":1,"content":["b"]},"error":"denied: x"},"parts":[{"inlineData":{"mimeType":"image/png","data":"AQ=="}}]}}]`))
	f.Add([]byte(`[{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{}"},{"type":"resource","resource":{"uri":"u","blob":"AQ=="}}],"structuredContent":{},"isError":true}},{"jsonrpc":"2.0","id":"1","error":{"code":-32602,"message":"x"}}]`))
	f.Fuzz(func(t *testing.T, document []byte) {
		for _, d := range known.Dialects() {
			answers, err := d.Answers(document)
			if err != nil {
				var typed *dialects.Error
				require.ErrorAs(t, err, &typed)
				require.Empty(t, answers)
				continue
			}
			require.NotNil(t, answers.Outputs)
			require.NotNil(t, answers.Named)
			require.NotNil(t, answers.Approvals)
			for _, approval := range answers.Approvals {
				require.NotEmpty(t, approval.CallID)
				require.Empty(t, approval.Scope, "an answer is for one call")
			}
			var records []tool.Record
			for _, output := range answers.Outputs {
				require.NotEmpty(t, output.CallID)
				require.True(t, output.Result.Success == (output.Result.Kind == ""))
				noerr.Get(json.Marshal(output.Result))(t)
				records = append(records, tool.Record{Call: dialecttest.Call(output.CallID, "f", ""), Result: output.Result})
			}
			written := noerr.Get(d.Results(records))(t)
			again := noerr.Get(d.Answers(written))(t)
			require.Equal(t, len(records), len(again.Outputs)+len(again.Named)) // an id that Gemini does not know is not sent
			for i := range records {
				if d.Name() == dialects.Responses {
					require.Equal(t, records[i].Result.Success, again.Outputs[i].Result.Success)
				}
			}
		}
	})
}
