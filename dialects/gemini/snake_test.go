package gemini

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/dialecttest"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// snaked returns a document as the provider's Python client writes it: with snake_case names. Names within
// arguments are the tool's own, and not changed there either.
func snaked(document string) string {
	words := regexp.MustCompile(`[A-Z]`)
	return regexp.MustCompile(`"[a-z]+([A-Z][a-z]*)+": *`).ReplaceAllStringFunc(document, func(name string) string {
		return words.ReplaceAllStringFunc(name, func(capital string) string { return "_" + strings.ToLower(capital) })
	})
}

func TestSnakeCaseIsReadAlike(t *testing.T) {
	for _, name := range []string{"parallel.json", "parallel.sse"} {
		document := string(dialecttest.Fixture(t, name))
		other := strings.ReplaceAll(snaked(document), "executable_code", "executableCode")
		require.Contains(t, other, `"finish_reason":`)
		require.Contains(t, other, `"prompt_token_count":`)
		if name == "parallel.json" {
			want := noerr.Get(New().Response([]byte(document)))(t)
			response := noerr.Get(New().Response([]byte(other)))(t)
			assert.Equal(t, want, response)
			continue
		}
		_, want := noerr.Get2(dialecttest.Feed(New(), document))(t)
		_, pieces := noerr.Get2(dialecttest.Feed(New(), other))(t)
		assert.Equal(t, want, pieces)
	}
	// The client writes absent members as null.
	response := noerr.Get(New().Response([]byte(`{"candidates":[{"content":{"parts":[{"text":null,"thought":null,"executable_code":null,"function_call":
		{"id":null,"name":"f","args":{"aB":1,"a_b":2},"partial_args":null,"will_continue":null},"thought_signature":"c2ln_-8="}],"role":"model"},
		"finish_reason":"STOP","index":null}],"prompt_feedback":null,"usage_metadata":{"prompt_token_count":7,"total_token_count":null},"model_version":"m","response_id":"r"}`)))(t)
	call := dialecttest.Call("gemini-call-0", "f", `{"aB":1,"a_b":2}`)
	call.Signature = "c2ln_-8="
	assert.Equal(t, tool.ChatResponse{
		ID: "r", Model: "m", ToolCalls: []tool.Call{call}, FinishReason: tool.FinishToolCalls, Usage: tool.ChatUsage{PromptTokens: 7, TotalTokens: 7},
	}, response)
	require.ErrorContains(t, noerr.Error(New().Response([]byte(`{"candidates":[{"finishReason":"STOP","finish_reason":"SAFETY"}]}`))), "twice", "which of them is meant cannot be known")
}

// TestPartialArgumentsInSnakeCase: a partial argument whose other value members are null is not null itself.
func TestPartialArgumentsInSnakeCase(t *testing.T) {
	piece := func(path, member, value string) string {
		all := map[string]string{"string_value": "null", "number_value": "null", "bool_value": "null", "null_value": "null", "will_continue": "null"}
		all[member] = value
		written := `{"json_path":"` + path + `"`
		for name, value := range all {
			written += `,"` + name + `":` + value
		}
		return written + `}`
	}
	response := noerr.Get(New().Response([]byte(reply("STOP",
		`{"function_call":{"name":"f","partial_args":[`+piece("$.a", "string_value", `"x"`)+`,`+piece("$.b", "bool_value", "true")+`],"will_continue":true}}`,
		`{"function_call":{"partial_args":[`+piece("$.c", "null_value", `"NULL_VALUE"`)+`,`+piece("$.d", "will_continue", "true")+`,`+piece("$.d", "number_value", "1.50")+`]}}`))))(t)
	assert.Equal(t, []tool.Call{dialecttest.Call("gemini-call-0", "f", `{"a":"x","b":true,"c":null,"d":1.50}`)}, response.ToolCalls)
}

func TestAnswersInSnakeCase(t *testing.T) {
	data := []byte{0xfb, 0xff, 0xfe}
	want := dialects.Answers{Outputs: []tool.Answer{{CallID: "a", Result: tool.Result{Kind: tool.ToolFailed, Error: "no", Content: []tool.Content{
		{Type: "image", Data: data, MIMEType: "image/png", Name: "p"}, {Type: "file", URL: "gs://x", MIMEType: "application/pdf"},
	}}}}, Named: []dialects.NamedOutput{}, Approvals: []tool.Approval{}}
	camel := `{"contents":[{"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"error":"no"},"willContinue":false,
		"parts":[{"inlineData":{"mimeType":"image/png","data":"+//+","displayName":"p"}},{"fileData":{"fileUri":"gs://x","mimeType":"application/pdf"}}]}}]}]}`
	urls := strings.ReplaceAll(snaked(camel), `"+//+"`, `"-__-"`)
	require.Contains(t, urls, "function_response")
	for _, document := range []string{camel, snaked(camel), urls} {
		answers := noerr.Get(New().Answers([]byte(document)))(t)
		assert.Equal(t, want, answers)
	}
	require.ErrorContains(t, noerr.Error(New().Answers([]byte(`{"function_response":{"name":"f","will_continue":true}}`))), "there is more to come")
}

// TestPartsThatAreNotOursAreReported: code that the provider runs, its other tools, and media.
func TestPartsThatAreNotOursAreReported(t *testing.T) {
	for part, want := range map[string]tool.ProviderItem{
		`{"executable_code":{"id":"x","code":"1","language":"PYTHON"},"thought_signature":null,"text":null}`: {Type: "executableCode", ID: "x"},
		`{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}}`:                                      {Type: "codeExecutionResult"},
		`{"toolCall":{"id":"t","toolType":"GOOGLE_SEARCH_WEB","args":{}}}`:                                   {Type: "toolCall", ID: "t"},
		`{"inlineData":{"mimeType":"image/png","data":"AA=="},"videoMetadata":{},"thought":true}`:            {Type: "inlineData"},
		`{"ofALaterYear":7}`: {Type: "ofALaterYear"},
	} {
		want.Data = json.RawMessage(part)
		response := noerr.Get(New().Response([]byte(reply("STOP", part))))(t)
		assert.Equal(t, []tool.ProviderItem{want}, response.ProviderItems)
	}
	response := noerr.Get(New().Response([]byte(reply("STOP", `{"text":"a","partMetadata":{"x":1},"video_metadata":{}}`, `{"thoughtSignature":"c2ln"}`, `{}`))))(t)
	assert.Empty(t, response.ProviderItems)
}
