package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/anthropic"
	"github.com/caisson-run/caisson/dialects/known"
	"github.com/caisson-run/caisson/dialects/openai"
	"github.com/caisson-run/caisson/tool"
)

// TestOutputsAreReadInEveryDialect: what Results writes for the next request, a client may hand in,
// whichever dialect the calls had.
func TestOutputsAreReadInEveryDialect(t *testing.T) {
	records := []tool.Record{{
		Call:   tool.Call{ID: "call_1", Type: tool.FunctionCall, Function: tool.Function{Name: "ask_user", Arguments: "{}"}},
		Result: tool.Result{Success: true, Output: "The red one"},
	}}
	for _, written := range known.Dialects() {
		document, err := written.Results(records)
		require.NoError(t, err)
		for _, dialect := range append(known.Dialects(), nil) {
			answers, err := readAnswers(document, dialect, false)
			require.NoError(t, err, "%s within %s", written.Name(), nameOf(dialect))
			require.Len(t, answers.Outputs, 1, "%s within %s: %s", written.Name(), nameOf(dialect), document)
			assert.Equal(t, "call_1", answers.Outputs[0].CallID)
			assert.Equal(t, "The red one", answers.Outputs[0].Result.Output, "%s within %s", written.Name(), nameOf(dialect))
			if dialect != nil && dialect.Name() != written.Name() {
				_, err := readAnswers(document, dialect, true)
				assert.Error(t, err, "%s as %s", written.Name(), nameOf(dialect))
			}
		}
	}
}

func TestSubmissions(t *testing.T) {
	for name, test := range map[string]struct {
		document string
		want     dialects.Answers
		wrong    string
	}{
		"text":     {`{"tool_outputs":[{"tool_call_id":"a","output":"<b>"}]}`, dialects.Answers{Outputs: []tool.Answer{{CallID: "a", Result: tool.Result{Success: true, Output: "<b>"}}}}, ""},
		"no text":  {`{"tool_outputs":[{"tool_call_id":"a","output":""}]}`, dialects.Answers{Outputs: []tool.Answer{{CallID: "a", Result: tool.Result{Success: true}}}}, ""},
		"failure":  {`{"tool_outputs":[{"tool_call_id":"a","result":{"success":false,"error":"no"}}]}`, dialects.Answers{Outputs: []tool.Answer{{CallID: "a", Result: tool.Result{Error: "no"}}}}, ""},
		"approval": {`{"approvals":[{"call_id":"a","approve":true,"fingerprint":"f","scope":"time","for_ns":5}]}`, dialects.Answers{Approvals: []tool.Approval{{CallID: "a", Approve: true, Fingerprint: "f", Scope: tool.ApproveFor, For: 5}}}, ""},
		"nothing":  {`{"tool_outputs":[]}`, dialects.Answers{}, ""},
		"no id":    {`{"tool_outputs":[{"output":"x"}]}`, dialects.Answers{}, "tool_outputs[0]: want a tool_call_id"},
		"neither":  {`{"tool_outputs":[{"tool_call_id":"a"}]}`, dialects.Answers{}, "want either output, a text, or result"},
		"no call":  {`{"approvals":[{"approve":true}]}`, dialects.Answers{}, "approvals[0]: want a call_id"},
		"object":   {`{"tool_outputs":[{"tool_call_id":"a","output":{}}]}`, dialects.Answers{}, "tool_outputs.output is a JSON object, near byte"},
		"unknown":  {`{"tool_outputs":[],"tenant":"x"}`, dialects.Answers{}, `unknown field "tenant"`},
		"null":     {`{"tool_outputs":null,"approvals":null}`, dialects.Answers{}, ""},
		"behind":   {`{"tool_outputs":[]}{}`, dialects.Answers{}, "in none of the dialects"},
		"no JSON":  {`The red one`, dialects.Answers{}, "in none of the dialects"},
		"empty":    {``, dialects.Answers{}, "in none of the dialects"},
	} {
		answers, err := readAnswers([]byte(test.document), nil, false)
		if test.wrong != "" {
			require.ErrorContains(t, err, test.wrong, name)
			continue
		}
		require.NoError(t, err, name)
		assert.Equal(t, test.want.Outputs, answers.Outputs, name)
		assert.Equal(t, test.want.Approvals, answers.Approvals, name)
	}
}

// FuzzReadAnswers: whatever is handed in, each answer is for a call that it names, and what is read
// as our own form is read the same when it is written again.
func FuzzReadAnswers(f *testing.F) {
	for _, seed := range []string{
		`{"tool_outputs":[{"tool_call_id":"a","output":"b"}],"approvals":[{"call_id":"c","approve":true,"fingerprint":"f"}]}`,
		`{"tool_outputs":[{"tool_call_id":"a","result":{"success":true,"data":{"n":1}}}]}`,
		`[{"role":"tool","tool_call_id":"a","content":"b"}]`, `[{"type":"function_call_output","call_id":"a","output":"b"}]`,
		`[{"type":"mcp_approval_response","approval_request_id":"mcpr_a_f","approve":true}]`,
		`[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"b","is_error":true}]}]`,
		`[{"functionResponse":{"name":"n","response":{"output":"b"}}}]`, `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`, `[]`, `{}`, `nul`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		for _, dialect := range []dialects.Dialect{nil, openai.New()} {
			answers, err := readAnswers(document, dialect, false)
			if err != nil {
				assert.Empty(t, answers.Outputs)
				continue
			}
			if !isSubmission(document) {
				assert.NotZero(t, len(answers.Outputs)+len(answers.Named)+len(answers.Approvals), "nothing was handed in")
				continue
			}
			again := submission{Approvals: answers.Approvals}
			for _, output := range answers.Outputs {
				require.NotEmpty(t, output.CallID)
				again.Outputs = append(again.Outputs, submittedOutput{CallID: output.CallID, Result: &output.Result})
			}
			for _, approval := range answers.Approvals {
				require.NotEmpty(t, approval.CallID)
			}
			written, err := json.Marshal(again)
			require.NoError(t, err)
			second, err := readSubmission(written)
			require.NoError(t, err)
			one, err := json.Marshal(answers)
			require.NoError(t, err)
			two, err := json.Marshal(second)
			require.NoError(t, err)
			assert.JSONEq(t, string(one), string(two))
		}
	})
}

func TestDecisionsNameOneCall(t *testing.T) {
	whole := func(digit string) string { return strings.Repeat(digit, 64) }
	approval := func(id, provider string) tool.Action {
		return tool.Action{Type: tool.NeedsApproval, CallID: id, Tool: "remove", Call: tool.Call{ID: provider}, Fingerprint: whole(id[3:])}
	}
	pending := []tool.Action{
		approval("0001", "call=1@a"), approval("0002", "twin"), approval("0003", "twin"),
		{Type: tool.NeedsOutput, CallID: "0004", Tool: "ask_user", Call: tool.Call{ID: "call_4"}},
	}
	least := func(digit string) string { return strings.Repeat(digit, leastFingerprint) }
	for text, want := range map[string]tool.Approval{
		"0001@" + whole("1"):                  {CallID: "0001", Approve: true, Fingerprint: whole("1"), Scope: tool.ApproveOnce},
		"0001@" + least("1"):                  {CallID: "0001", Approve: true, Fingerprint: whole("1"), Scope: tool.ApproveOnce},
		"call=1@a@" + least("1"):              {CallID: "0001", Approve: true, Fingerprint: whole("1"), Scope: tool.ApproveOnce},
		"call=1@a@" + least("1") + "=session": {CallID: "0001", Approve: true, Fingerprint: whole("1"), Scope: tool.ApproveSession},
		"0003@" + least("3") + "=10m":         {CallID: "0003", Approve: true, Fingerprint: whole("3"), Scope: tool.ApproveFor, For: 10 * time.Minute},
		"0002@" + least("2") + "=once":        {CallID: "0002", Approve: true, Fingerprint: whole("2"), Scope: tool.ApproveOnce},
		"0002@" + least("2") + "=":            {CallID: "0002", Approve: true, Fingerprint: whole("2"), Scope: tool.ApproveOnce},
		"twin@" + least("3"):                  {CallID: "0003", Approve: true, Fingerprint: whole("3"), Scope: tool.ApproveOnce},
	} {
		o := batchOptions{approve: []string{text}}
		approvals, err := o.decisions(pending)
		require.NoError(t, err, text)
		assert.Equal(t, []tool.Approval{want}, approvals, text)
	}
	const bare, other = "want CALL-ID@FINGERPRINT, with at least 20 digits", "has another fingerprint: it is not what was looked at"
	for text, wrong := range map[string]string{
		"": bare, "0001": bare, "0001=session": bare, "twin": bare, "@" + least("1"): bare, "0001@": bare,
		"0001@" + least("1")[1:]: bare, "0001@" + strings.Repeat("A", leastFingerprint): bare, "0001@" + least("x"): bare,
		"0001@" + least("2"): other, "0001@" + whole("1") + "1": other, "0001@" + least("1")[1:] + "2": other, "twin@" + least("1"): other,
		"call_4@" + least("1"): "waits for an output", "call@" + least("1"): "no call waits", "call=1@" + least("1"): "no call waits",
		"0001@" + least("1") + "=forever": `"forever": want once, session, or a time such as 10m`, "0001@" + least("1") + "=-1m": "want once, session, or a time",
	} {
		o := batchOptions{approve: []string{text}}
		_, err := o.decisions(pending)
		require.ErrorContains(t, err, wrong, text)
		var told *failure
		require.ErrorAs(t, err, &told)
		for _, m := range told.messages {
			for _, hint := range m.hints {
				assert.NotRegexp(t, "[0-9a-f]{20}", hint, "what waits is not copied from here")
			}
		}
	}
	o := batchOptions{refuse: []string{"0001=a=b", "call_4", "x"}}
	_, err := o.decisions(pending)
	assert.Equal(t, 2, strings.Count(err.Error(), "--refuse"), "all mistakes are told: %v", err)
	o = batchOptions{refuse: []string{"0001=a=b", "0002"}}
	approvals, err := o.decisions(pending)
	require.NoError(t, err)
	assert.Equal(t, []tool.Approval{{CallID: "0001", Reason: "a=b"}, {CallID: "0002"}}, approvals)
	o = batchOptions{refuse: []string{"twin"}}
	_, err = o.decisions(pending)
	require.ErrorContains(t, err, "several calls wait under this id: 0002, 0003")
}

// TestNothingRunsWhoseResultCannotBeWritten: a provider that matches results by id takes none
// without.
func TestNothingRunsWhoseResultCannotBeWritten(t *testing.T) {
	require.Error(t, answerable(anthropic.New(), []tool.Call{{Function: tool.Function{Name: "probe", Arguments: "{}"}}}))
	require.NoError(t, answerable(anthropic.New(), []tool.Call{{ID: "a", Function: tool.Function{Name: "probe", Arguments: "{"}}}))
}
