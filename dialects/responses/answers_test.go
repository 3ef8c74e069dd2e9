package responses

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/dialecttest"
	"github.com/caisson-run/caisson/dialects/internal/wire"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

func TestAnswersOfAClient(t *testing.T) {
	read := noerr.Get(New().Answers(dialecttest.Fixture(t, "client_request.json")))(t)
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

func TestTextThatIsNoResultIsWhatACallSays(t *testing.T) {
	for _, text := range []string{
		"", "rain", "null", "{}", `{"success":"yes"}`, `{"success":true,"error":"x"}`, `{"success":false,"kind":"made_up"}`,
		`{"success":true,"more":1}`, `[{"success":true}]`, `{"output":"12"}`,
	} {
		for _, kind := range []string{"function_call_output", "custom_tool_call_output", "local_shell_call_output"} {
			encoded := noerr.Get(json.Marshal(text))(t)
			read := noerr.Get(New().Answers(fmt.Appendf(nil, `{"type":%q,"call_id":"a","output":%s}`, kind, encoded)))(t)
			assert.Equal(t, []tool.Answer{{CallID: "a", Result: tool.Result{Success: true, Output: text}}}, read.Outputs)
		}
	}
}

func TestWrongAnswersAreReported(t *testing.T) {
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
		"bare base64":       {`[{"type":"function_call_output","call_id":"a","output":[{"type":"input_file","file_data":"JVBERg=="}]}]`, "[0].output[0].file_data: is not a data URL"},
		"broken base64":     {`[{"type":"function_call_output","call_id":"a","output":[{"type":"input_image","image_url":"data:image/png;base64,%%"}]}]`, "[0].output[0].image_url: is not a data URL"},
		"no request":        {`[{"type":"mcp_approval_response","approve":true}]`, "[0].approval_request_id: is missing"},
		"no decision":       {`[{"type":"mcp_approval_response","approval_request_id":"mcpr_1"}]`, "[0].approve: is missing; want true or false"},
		"too many":          {"[" + strings.Repeat(output+",", wire.MaxCalls) + output + "]", "[4096]: is one answer too many"},
		"too many parts":    {`[{"type":"function_call_output","call_id":"a","output":[` + strings.Repeat(`{"type":"input_text"},`, wire.MaxParts) + `{"type":"input_text"}]}]`, "[0].output: has more than 4096 elements"},
		"too long":          {strings.Repeat(" ", dialects.MaxDocument+1), "responses answers: has 8388609 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			read, err := New().Answers([]byte(test.document))
			dialecttest.Refused(t, New(), err, test.want)
			assert.Empty(t, read)
		})
	}
}

// TestAnApprovalIsForWhatWasShown: the answer to a request names its call and fingerprint, and another call's
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
