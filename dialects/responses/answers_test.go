package responses

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/dialecttest"
	"github.com/caisson-run/caisson/tool"
)

func TestRowS4_8AnswersOfAClient(t *testing.T) {
	read, err := New().Answers(dialecttest.Fixture(t, "client_request.json"))
	require.NoError(t, err)
	assert.Equal(t, dialects.Answers{
		Outputs: []tool.Answer{
			{CallID: "call_shell", Result: tool.Result{Success: true, Output: `{"output":"12\n","metadata":{"exit_code":0}}`}},
			{CallID: "call_patch", Result: tool.Result{Success: true, Output: "Look:", Content: []tool.Content{
				{Type: "image", MIMEType: "image/png", Data: []byte("\x89PNG")},
				{Type: "file", Name: "plan.pdf", MIMEType: "application/pdf", Data: []byte("%PDF")},
				{Type: "image", URL: "https://weather.example/map.png"},
			}}},
			{CallID: "call_ask", Result: tool.Result{Error: "the output is incomplete", Kind: tool.ToolFailed}},
		},
		Named: []dialects.NamedOutput{},
		Approvals: []tool.Approval{
			{CallID: "0199-4", Approve: true, Fingerprint: "9f2c"},
			{CallID: "mcpr_68a1", Reason: "not that one"},
		},
	}, read)
}

// TestRowS2_2ResultsAreAnswers: what Results writes is read as the results that it was written of.
func TestRowS2_2ResultsAreAnswers(t *testing.T) {
	sent, err := New().Results(results())
	require.NoError(t, err)
	read, err := New().Answers(sent)
	require.NoError(t, err)
	require.Len(t, read.Outputs, 3)
	for i, record := range results() {
		assert.Equal(t, tool.Answer{CallID: record.ID, Result: record.Result}, read.Outputs[i])
	}
}

func TestAnswersRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	for range 1000 {
		var records []tool.Record
		for i := range random.IntN(4) {
			record := tool.Record{Call: tool.Call{ID: fmt.Sprint("call_", i), Type: pick("", tool.FunctionCall, tool.CustomCall, tool.LocalShellCall)}}
			record.Result = tool.Result{Success: true, Output: pick("", "a <b> & c", `{"success":true}`, "🌦\n")}
			if random.IntN(3) == 0 {
				record.Result = tool.Result{Output: pick("", "so far"), Error: pick("it broke", ""), Kind: tool.Kinds()[random.IntN(len(tool.Kinds()))]}
			}
			record.Result.Data = json.RawMessage(pick("", "null", `{"n":1.50}`))
			if len(record.Result.Data) == 0 {
				record.Result.Data = nil
			}
			for range random.IntN(4) {
				record.Result.Content = append(record.Result.Content, randomContent(random, pick))
			}
			records = append(records, record)
		}
		sent, err := New().Results(records)
		require.NoError(t, err)
		read, err := New().Answers(sent)
		require.NoError(t, err)
		require.Len(t, read.Outputs, len(records))
		for i, record := range records {
			require.Equal(t, tool.Answer{CallID: record.ID, Result: record.Result}, read.Outputs[i], string(sent))
		}
	}
}

// randomContent returns a part with text, data or a URL. An image with neither data nor a URL that
// the provider can follow could not be told from one with data that comes behind it.
func randomContent(random *rand.Rand, pick func(...string) string) tool.Content {
	part := tool.Content{Type: pick("image", "file", "link"), Name: pick("", "a.bin"), MIMEType: pick("image/png", "image/jpeg", "application/pdf", "text/csv", "")}
	switch random.IntN(4) {
	case 0:
		return tool.Content{Type: "text", Text: pick("a", `{"success":true}`)}
	case 1:
		part.URL = pick("https://a.example/1", "https://a.example/2")
	case 2:
		part.Data, part.URL = []byte(pick("one", "two")), pick("", "https://a.example/1")
	case 3:
		part.Data = []byte(pick("one", "two"))
	}
	return part
}

func TestTextThatIsNoResultIsWhatACallSays(t *testing.T) {
	for _, text := range []string{
		"", "rain", "null", "{}", `{"success":"yes"}`, `{"success":true,"error":"x"}`, `{"success":false,"kind":"made_up"}`,
		`{"success":true,"more":1}`, `[{"success":true}]`, `{"output":"12"}`,
	} {
		for _, kind := range []string{"function_call_output", "custom_tool_call_output", "local_shell_call_output"} {
			encoded, err := json.Marshal(text)
			require.NoError(t, err)
			read, err := New().Answers(fmt.Appendf(nil, `{"type":%q,"call_id":"a","output":%s}`, kind, encoded))
			require.NoError(t, err)
			assert.Equal(t, []tool.Answer{{CallID: "a", Result: tool.Result{Success: true, Output: text}}}, read.Outputs)
		}
	}
}

func TestRowS4_8WhatIsWrongWithAnswersIsSaid(t *testing.T) {
	output := `{"type":"function_call_output","call_id":"a","output":"x"}`
	for name, test := range map[string]struct{ document, want string }{
		"empty":             {``, "responses answers: is not JSON"},
		"a text":            {`"x"`, "responses answers: "},
		"no type":           {`[{"call_id":"a"}]`, `responses answers: [0].type: is missing; want items: {"type":"function_call_output"`},
		"an input of text":  {`{"input":"hello"}`, "responses answers: input: is not a JSON array"},
		"no call_id":        {`[{"type":"function_call_output","id":"fc_1","output":"x"}]`, "[0].call_id: is missing"},
		"no output":         {`[{"type":"custom_tool_call_output","call_id":"a","output":null}]`, "[0].output: is missing"},
		"in progress":       {`[{"type":"local_shell_call_output","id":"a","output":"x","status":"in_progress"}]`, `[0].status: is "in_progress"; answer when`},
		"output of 7":       {`{"input":[{"type":"function_call_output","call_id":"a","output":7}]}`, "input[0].output: is a JSON number"},
		"a strange part":    {`[{"type":"function_call_output","call_id":"a","output":[{"type":"input_audio"}]}]`, `[0].output[0].type: is "input_audio"; want input_text`},
		"a provider's file": {`[{"type":"function_call_output","call_id":"a","output":[{"type":"input_image","file_id":"file-1"}]}]`, "[0].output[0].file_id: names a file that the provider keeps"},
		"an empty image":    {`[{"type":"function_call_output","call_id":"a","output":[{"type":"input_image"}]}]`, "[0].output[0].image_url: is missing"},
		"bare base64":       {`[{"type":"function_call_output","call_id":"a","output":[{"type":"input_file","file_data":"JVBERg=="}]}]`, "[0].output[0].file_data: is no data URL"},
		"broken base64":     {`[{"type":"function_call_output","call_id":"a","output":[{"type":"input_image","image_url":"data:image/png;base64,%%"}]}]`, "[0].output[0].image_url: is not a data URL"},
		"no request":        {`[{"type":"mcp_approval_response","approve":true}]`, "[0].approval_request_id: is missing"},
		"no decision":       {`[{"type":"mcp_approval_response","approval_request_id":"mcpr_1"}]`, "[0].approve: is missing; want true or false"},
		"too many":          {"[" + strings.Repeat(output+",", dialects.MaxCalls) + output + "]", "[4096]: is one answer too many"},
		"too many parts":    {`[{"type":"function_call_output","call_id":"a","output":[` + strings.Repeat(`{"type":"input_text"},`, dialects.MaxParts) + `{"type":"input_text"}]}]`, "[0].output: has more than 4096 elements"},
		"too long":          {strings.Repeat(" ", dialects.MaxDocument+1), "responses answers: has 8388609 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			read, err := New().Answers([]byte(test.document))
			require.ErrorContains(t, err, test.want)
			var typed *dialects.Error
			require.True(t, errors.As(err, &typed))
			assert.Equal(t, "responses", typed.Dialect)
			assert.Empty(t, read)
		})
	}
}

func TestRowS2_5NoAnswersAreLists(t *testing.T) {
	for _, document := range []string{`[]`, `{"input":[]}`, `[{"type":"reasoning"}]`, `{"type":"message","role":"user","content":[]}`} {
		read, err := New().Answers([]byte(document))
		require.NoError(t, err)
		assert.Equal(t, dialects.Answers{Outputs: []tool.Answer{}, Named: []dialects.NamedOutput{}, Approvals: []tool.Approval{}}, read, document)
	}
}

// TestAnApprovalIsForWhatWasShown: the answer to a request says what it is for, and another call's
// fingerprint cannot come with it unless the client writes it there itself.
func TestAnApprovalIsForWhatWasShown(t *testing.T) {
	for _, test := range []struct{ id, call, fingerprint string }{
		{requestID("0199aaaa-bbbb", "9f2c"), "0199aaaa-bbbb", "9f2c"},
		{requestID("0199aaaa", "sha256:9f_2c"), "0199aaaa", "sha256:9f_2c"},
		{"mcpr_0199aaaa", "mcpr_0199aaaa", ""},
		{"mcpr_0199aaaa_", "mcpr_0199aaaa_", ""},
		{"mcpr__9f2c", "mcpr__9f2c", ""},
		{"0199aaaa_9f2c", "0199aaaa_9f2c", ""},
	} {
		call, fingerprint := requested(test.id)
		assert.Equal(t, test.call, call)
		assert.Equal(t, test.fingerprint, fingerprint)
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add(dialecttest.Fixture(f, "client_request.json"))
	f.Add(dialecttest.Fixture(f, "results.json"))
	f.Add(dialecttest.Fixture(f, "client_results.json"))
	f.Add([]byte(`[{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"{\"success\":true,\"content\":[{\"type\":\"image\",\"mime_type\":\"image/png\"}]}"},{"type":"input_image","image_url":"data:image/png;base64,AA=="},{"type":"input_image","image_url":"data:image/png;base64,AA=="}]}]`))
	f.Fuzz(func(t *testing.T, document []byte) {
		read, err := New().Answers(document)
		if err != nil {
			var typed *dialects.Error
			require.True(t, errors.As(err, &typed), "%T", err)
			require.Empty(t, read)
			return
		}
		require.NotNil(t, read.Outputs)
		require.NotNil(t, read.Approvals)
		var records []tool.Record
		for _, output := range read.Outputs {
			require.NotEmpty(t, output.CallID)
			require.Equal(t, output.Result.Success, output.Result.Kind == "")
			records = append(records, tool.Record{Call: tool.Call{ID: output.CallID}, Result: output.Result})
		}
		for _, approval := range read.Approvals {
			require.NotEmpty(t, approval.CallID)
			require.Empty(t, approval.Scope, "an answer holds for one call")
		}
		sent, err := New().Results(records)
		require.NoError(t, err)
		again, err := New().Answers(sent)
		require.NoError(t, err)
		require.Len(t, again.Outputs, len(read.Outputs))
		for i := range read.Outputs {
			require.Equal(t, read.Outputs[i].CallID, again.Outputs[i].CallID)
			require.Equal(t, read.Outputs[i].Result.Success, again.Outputs[i].Result.Success)
			require.Len(t, again.Outputs[i].Result.Content, len(read.Outputs[i].Result.Content))
		}
	})
}
