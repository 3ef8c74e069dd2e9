package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/anthropic"
	"github.com/caisson-run/caisson/dialects/known"
	"github.com/caisson-run/caisson/dialects/openai"
	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// probeTools writes files into a folder with the module that does what its arguments say.
func probeTools(t *testing.T, files map[string]string) string {
	t.Helper()
	root := noerr.Get(guests.Compile(t.Context(), "internal/guests/probe"))(t)
	module := noerr.Get(os.ReadFile(filepath.Join(root, "internal", "guests", "probe", "probe.wasm")))(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "probe.wasm"), module, 0o600))
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return dir
}

// testCache is the folder for compiled code that all tests share, so that each module is compiled
// once.
func testCache(t *testing.T) string {
	t.Helper()
	_, dir := noerr.Get2(guests.CompiledCode())(t)
	return dir
}

// printing is a call that prints a text.
const printing = `{"id":"call_1","function":{"name":"probe","arguments":"{\"do\":\"print\",\"text\":\"removed\"}"}}`

// probeBatch returns a command line that runs calls of a probe whose manifest has more lines. The state
// folder is last.
func probeBatch(t *testing.T, calls, more string) []string {
	t.Helper()
	tools := probeTools(t, map[string]string{
		"tool.yaml":  "schema: caisson/v1\nname: probe\ndescription: Does what its arguments say.\nmodule: {path: probe.wasm, stdout: text}\nparameters: {type: object}\n" + more,
		"calls.json": calls,
	})
	return []string{"batch", filepath.Join(tools, "calls.json"), "--cache-dir", testCache(t), "--tools", tools, "--state-dir", ""}
}

const destructive = "behavior: {destructive: true}\n"

// TestABatchIsResumedOnce: of many commands that resume a batch at the same time, from its file, from a
// copy, by its id, and from its file with their own state folder, one does.
func TestABatchIsResumedOnce(t *testing.T) {
	state := t.TempDir()
	command := probeBatch(t, printing, destructive)
	resume := append([]string{"batch", "--resume"}, command[2:len(command)-1]...)
	code, stdout, stderr := start(t.Context(), nil, append(command[:len(command)-1:len(command)-1], state)...)
	require.Equal(t, exitWaits, code, stderr)
	told := outcome{waiting: &waiting{}}
	require.NoError(t, json.Unmarshal([]byte(stdout), &told))
	content := noerr.Get(os.ReadFile(told.State))(t)
	copied := filepath.Join(t.TempDir(), "copy.json")
	require.NoError(t, os.WriteFile(copied, content, 0o600))

	var mu sync.Mutex
	var group sync.WaitGroup
	ended := map[int]int{}
	for i := range 8 {
		name, folder := []string{told.Batch, told.State, copied, told.State}[i%4], state
		if i%4 == 3 {
			folder = t.TempDir()
		}
		group.Go(func() {
			args := slices.Insert(slices.Clone(resume), 2, name, "--approve", "call_1@"+told.Approvals[0].Fingerprint)
			code, stdout, stderr := start(t.Context(), nil, append(args, folder)...)
			mu.Lock()
			defer mu.Unlock()
			ended[code]++
			if code == exitSuccess {
				assert.Contains(t, stdout, "removed")
				return
			}
			assert.Empty(t, stdout)
			assert.True(t, strings.Contains(stderr, "the batch was already resumed") || strings.Contains(stderr, "has ended"), stderr)
		})
	}
	group.Wait()
	assert.Equal(t, map[int]int{exitSuccess: 1, exitUsage: 7}, ended)
}

// TestAnInterruptIsShownToTheEnd: the stream of an interrupted batch reports the outcome of all its calls.
func TestAnInterruptIsShownToTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs bytes.Buffer
	watched := writerFunc(func(p []byte) (int, error) {
		if bytes.Contains(p, []byte(`"type":"call_started"`)) {
			cancel()
		}
		return out.Write(p)
	})
	command := probeBatch(t, `[{"id":"call_1","function":{"name":"probe","arguments":"{\"do\":\"sleep\",\"millis\":600000}"}},{"id":"call_2","function":{"name":"probe","arguments":"{}"}}]`, "")
	code := run(ctx, append(command, "--stream", "--timeout", "5m"), environment{stdout: watched, stderr: &errs})
	assert.Equal(t, exitInterrupted, code, errs.String())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var last struct {
		Status  string
		Results []tool.Record
	}
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &last))
	assert.Equal(t, "completed", last.Status)
	require.Len(t, last.Results, 2)
	for _, record := range last.Results {
		assert.Equal(t, tool.Cancelled, record.Result.Kind)
	}
	assert.Contains(t, out.String(), `"type":"batch_finished"`)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestOutputThatCannotBeWritten: the calls run nevertheless. Records of ended calls go to standard error,
// and a paused batch is stored.
func TestOutputThatCannotBeWritten(t *testing.T) {
	command := probeBatch(t, printing, destructive)
	for _, form := range []string{"--stream=events", "--stream=responses", "--quiet"} {
		var stderr bytes.Buffer
		env := environment{stdin: strings.NewReader(""), stdout: full{}, stderr: &stderr}
		assert.Equal(t, exitFailed, run(t.Context(), append(command, form, "--approve-tool", "probe"), env), form)
		lines := strings.Split(stderr.String(), "\n")
		require.Len(t, lines, 3, form)
		var record tool.Record
		require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(lines[0], "caisson: record: ")), &record), form)
		assert.Equal(t, "call_1", record.Call.ID)
		assert.True(t, record.Result.Success)
		assert.Equal(t, "caisson: error: cannot write the output: no room", lines[1], form)

		file := filepath.Join(t.TempDir(), "batch.json")
		assert.Equal(t, exitFailed, run(t.Context(), append(command, form, "--state", file), env), form)
		resume := slices.Concat([]string{"batch", "--resume", file, "--refuse", "call_1"}, command[2:])
		code, stdout, errs := start(t.Context(), nil, resume...)
		assert.Equal(t, exitSuccess, code, errs)
		assert.Contains(t, stdout, "not approved", form)
	}
}

// TestFlagsAreGivenAgain: the flags that also apply when a batch is resumed, quoted for a shell.
func TestFlagsAreGivenAgain(t *testing.T) {
	for line, want := range map[string]string{
		"batch in.json --tools a --json":                         "--tools a --json",
		"batch --tools=a -- in.json":                             "--tools a",
		"batch --tools a --tools b --quiet=false --parallel=3 x": "--tools a --tools b --quiet=false --parallel 3",
		"batch --resume x --approve a --refuse b=c --stream":     "--stream",
		"batch --stream=events --dialect openai --state s":       "--stream=events",
		"batch --context a=b|c --state-dir=":                     "--context 'a=b|c' --state-dir ''",
		"--tools=a batch - --json=true --tools b":                "--tools a --json=true --tools b",
	} {
		root := newRoot(environment{})
		args := strings.Fields(line)
		command, rest := noerr.Get2(root.Find(args))(t)
		require.NoError(t, command.ParseFlags(rest))
		assert.Equal(t, want, strings.Join(flagsOf(command, args, func(name string) bool { return !slices.Contains(ofOneRun, name) }), " "), line)
	}
}

// TestOutputsAreReadInEveryDialect: a client may submit the Results of any dialect, whatever the dialect of the calls.
func TestOutputsAreReadInEveryDialect(t *testing.T) {
	records := []tool.Record{{
		Call:   tool.Call{ID: "call_1", Type: tool.FunctionCall, Function: tool.Function{Name: "ask_user", Arguments: "{}"}},
		Result: tool.Result{Success: true, Output: "The red one"},
	}}
	for _, written := range known.Dialects() {
		document := noerr.Get(written.Results(records))(t)
		for _, dialect := range append(known.Dialects(), nil) {
			answers, err := readAnswers(document, dialect, false)
			require.NoError(t, err, "%s within %s", written.Name(), nameOf(dialect))
			require.Len(t, answers.Outputs, 1, "%s within %s: %s", written.Name(), nameOf(dialect), document)
			assert.Equal(t, "call_1", answers.Outputs[0].CallID)
			assert.Equal(t, "The red one", answers.Outputs[0].Result.Output, "%s within %s", written.Name(), nameOf(dialect))
			if dialect != nil && dialect.Name() != written.Name() {
				assert.Error(t, noerr.Error(readAnswers(document, dialect, true)), "%s as %s", written.Name(), nameOf(dialect))
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
		"text":         {`{"tool_outputs":[{"tool_call_id":"a","output":"<b>"}]}`, dialects.Answers{Outputs: []tool.Answer{{CallID: "a", Result: tool.Result{Success: true, Output: "<b>"}}}}, ""},
		"no text":      {`{"tool_outputs":[{"tool_call_id":"a","output":""}]}`, dialects.Answers{Outputs: []tool.Answer{{CallID: "a", Result: tool.Result{Success: true}}}}, ""},
		"failure":      {`{"tool_outputs":[{"tool_call_id":"a","result":{"success":false,"error":"no"}}]}`, dialects.Answers{Outputs: []tool.Answer{{CallID: "a", Result: tool.Result{Error: "no"}}}}, ""},
		"approval":     {`{"approvals":[{"call_id":"a","approve":true,"fingerprint":"f","scope":"time","for_ns":5}]}`, dialects.Answers{Approvals: []tool.Approval{{CallID: "a", Approve: true, Fingerprint: "f", Scope: tool.ApproveFor, For: 5}}}, ""},
		"a number":     {`{"tool_outputs":[{"tool_call_id":1,"output":"a"},{"tool_call_id":"1","output":"b"}]}`, dialects.Answers{Outputs: []tool.Answer{{CallID: "1", Result: tool.Result{Success: true, Output: "a"}}, {CallID: `"1"`, Result: tool.Result{Success: true, Output: "b"}}}}, ""},
		"no id at all": {`{"tool_outputs":[{"tool_call_id":{},"output":"x"}]}`, dialects.Answers{}, "tool_outputs[0].tool_call_id must be a string"},
		"nothing":      {`{"tool_outputs":[]}`, dialects.Answers{}, ""},
		"no id":        {`{"tool_outputs":[{"output":"x"}]}`, dialects.Answers{}, "tool_outputs[0]: want a tool_call_id"},
		"neither":      {`{"tool_outputs":[{"tool_call_id":"a"}]}`, dialects.Answers{}, "want either output, a text, or result"},
		"no call":      {`{"approvals":[{"approve":true}]}`, dialects.Answers{}, "approvals[0]: want a call_id"},
		"object":       {`{"tool_outputs":[{"tool_call_id":"a","output":{}}]}`, dialects.Answers{}, "tool_outputs[0].output must be a string"},
		"unknown":      {`{"tool_outputs":[],"tenant":"x"}`, dialects.Answers{}, "tenant is unknown; the members are approvals, tool_outputs"},
		"null":         {`{"tool_outputs":null,"approvals":null}`, dialects.Answers{}, ""},
		"behind":       {`{"tool_outputs":[]}{}`, dialects.Answers{}, "in any of the dialects"},
		"no JSON":      {`The red one`, dialects.Answers{}, "in any of the dialects"},
		"empty":        {``, dialects.Answers{}, "in any of the dialects"},
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

// FuzzReadAnswers: each answer names a call, and a submission survives encoding unchanged.
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
				assert.False(t, len(answers.Outputs)+len(answers.Named)+len(answers.Approvals) == 0 && answers.Earlier == nil, "nothing was submitted")
				continue
			}
			type written struct {
				CallID json.RawMessage `json:"tool_call_id"`
				Result tool.Result     `json:"result"`
			}
			var again struct {
				Outputs   []written       `json:"tool_outputs"`
				Approvals []tool.Approval `json:"approvals"`
			}
			again.Approvals = answers.Approvals
			for _, output := range answers.Outputs {
				require.NotEmpty(t, output.CallID)
				id := json.RawMessage(output.CallID)
				if json.Unmarshal(id, new(json.Number)) != nil {
					id = noerr.Get(json.Marshal(output.CallID))(t)
				}
				again.Outputs = append(again.Outputs, written{id, output.Result})
			}
			for _, approval := range answers.Approvals {
				require.NotEmpty(t, approval.CallID)
			}
			document := noerr.Get(json.Marshal(again))(t)
			second := noerr.Get(readSubmission(document))(t)
			one := noerr.Get(json.Marshal(answers))(t)
			two := noerr.Get(json.Marshal(second))(t)
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
	const bare, other = "want CALL-ID@FINGERPRINT, with at least 20 digits", "has a different fingerprint: it is not the call that was reviewed"
	for text, wrong := range map[string]string{
		"": bare, "0001": bare, "0001=session": bare, "twin": bare, "@" + least("1"): bare, "0001@": bare,
		"0001@" + least("1")[1:]: bare, "0001@" + strings.Repeat("A", leastFingerprint): bare, "0001@" + least("x"): bare,
		"0001@" + least("2"): other, "0001@" + whole("1") + "1": other, "0001@" + least("1")[1:] + "2": other, "twin@" + least("1"): other,
		"call_4@" + least("1"): "needs an output", "call@" + least("1"): "no paused call", "call=1@" + least("1"): "no paused call",
		"0001@" + least("1") + "=forever": `"forever": want once, session, or a duration such as 10m`, "0001@" + least("1") + "=-1m": "want once, session, or a duration",
	} {
		o := batchOptions{approve: []string{text}}
		_, err := o.decisions(pending)
		require.ErrorContains(t, err, wrong, text)
		var told *failure
		require.ErrorAs(t, err, &told)
		for _, m := range told.messages {
			for _, hint := range m.hints {
				assert.NotRegexp(t, "[0-9a-f]{20}", hint, "hints must not reveal fingerprints")
			}
		}
	}
	o := batchOptions{refuse: []string{"0001=a=b", "call_4", "x"}}
	_, err := o.decisions(pending)
	assert.Equal(t, 2, strings.Count(err.Error(), "--refuse"), "all mistakes are reported: %v", err)
	o = batchOptions{refuse: []string{"0001=a=b", "0002"}}
	approvals := noerr.Get(o.decisions(pending))(t)
	assert.Equal(t, []tool.Approval{{CallID: "0001", Reason: "a=b"}, {CallID: "0002"}}, approvals)
	o = batchOptions{refuse: []string{"twin"}}
	require.ErrorContains(t, noerr.Error(o.decisions(pending)), "this can mean several paused calls: 0002, 0003; begin with one of these ids")

	pending = []tool.Action{approval("0001", "a"), approval("0002", "a=b"), {Type: tool.NeedsOutput, CallID: "0003", Tool: "ask_user", Call: tool.Call{ID: "c"}}, approval("0004", "c=d")}
	for text, want := range map[string]tool.Approval{
		"a": {CallID: "0001"}, "a=why": {CallID: "0001", Reason: "why"}, "0001=b": {CallID: "0001", Reason: "b"}, "0002=why": {CallID: "0002", Reason: "why"},
		"c=d": {CallID: "0004"}, "c=d=why": {CallID: "0004", Reason: "why"},
	} {
		approvals, err := (&batchOptions{refuse: []string{text}}).decisions(pending)
		require.NoError(t, err, text)
		assert.Equal(t, []tool.Approval{want}, approvals, text)
	}
	for text, want := range map[string]string{"a=b": "0001, 0002", "a=b=why": "0001, 0002", "c=why": "needs an output", "c": "needs an output"} {
		require.ErrorContains(t, noerr.Error((&batchOptions{refuse: []string{text}}).decisions(pending)), want, text)
	}
	_, err = (&batchOptions{refuse: []string{"x", "x"}, approve: []string{"y"}}).decisions(pending)
	var told *failure
	require.ErrorAs(t, err, &told)
	require.Len(t, told.messages, 2, "each mistake is reported once")
	assert.Empty(t, told.messages[0].hints)
	assert.Equal(t, pendingHints(pending), told.messages[1].hints, "and so are the pending calls")
}

// TestNothingRunsWhoseResultCannotBeWritten: a provider that matches results by id rejects calls without
// one.
func TestNothingRunsWhoseResultCannotBeWritten(t *testing.T) {
	require.Error(t, answerable(anthropic.New(), []tool.Call{{Function: tool.Function{Name: "probe", Arguments: "{}"}}}))
	require.NoError(t, answerable(anthropic.New(), []tool.Call{{ID: "a", Function: tool.Function{Name: "probe", Arguments: "{"}}}))
}

// TestLongResponsesAreRefused: otherwise a response that is too long would be read as plain calls, and answered in
// another form.
func TestLongResponsesAreRefused(t *testing.T) {
	document := []byte(`{"choices":[{"index":0,"message":{"tool_calls":[{"id":"a","function":{"name":"probe","arguments":"{}"}}]}}]}` + strings.Repeat(" ", dialects.MaxDocument))
	require.EqualError(t, noerr.Error2(new(batchOptions).readCalls(document)), "the input has 8388716 bytes, and a response may have 8388608")
	calls, dialect := noerr.Get2((&batchOptions{dialect: noDialect}).readCalls(document))(t)
	assert.Nil(t, dialect)
	assert.Len(t, calls, 1)
}
