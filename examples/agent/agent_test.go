package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/tool"
)

// TestConversations compares what the agent asks and prints with golden files.
func TestConversations(t *testing.T) {
	for _, name := range []string{"text", "parallel", "failing"} {
		t.Run(name, func(t *testing.T) {
			answers := script(t, name)
			w := newWorld(t, answers...)
			out, shown, err := w.run(t, "What", "is", "a", "caisson?")
			require.NoError(t, err)
			golden(t, name+"/out.txt", out)
			golden(t, name+"/requests.json", w.asked(t))
			assert.Len(t, w.requests, len(answers), "the whole script was played")
			if name == "parallel" {
				assert.Contains(t, shown, `· calculator {"expression":"2**10"} …`)
				assert.Contains(t, shown, "· calculator: 323\n")
			}
		})
	}
}

// TestResultsMatchCalls: calls of one response run in parallel, a failure affects no other call,
// and the model can match each result to its call by id.
func TestResultsMatchCalls(t *testing.T) {
	w := newWorld(t, script(t, "failing")...)
	_, _, err := w.run(t, "Try it.")
	require.NoError(t, err)
	results := w.results(t)
	assert.Equal(t, "42", results["call_good"].Output)
	kinds := map[string]tool.Kind{}
	for id, result := range results {
		kinds[id] = result.Kind
	}
	assert.Equal(t, map[string]tool.Kind{
		"call_zero": tool.ToolFailed, "call_none": tool.UnknownTool, "call_text": tool.InvalidArguments, "call_good": "", "call_away": tool.Denied,
	}, kinds)
}

// TestFinalOutputIsTheAnswer: the output of a final tool ends the question without another request.
func TestFinalOutputIsTheAnswer(t *testing.T) {
	w := newWorld(t, script(t, "final")...)
	out, _, err := w.run(t, "--tools", w.exact(t), "Tell me exactly.")
	require.NoError(t, err)
	assert.Equal(t, "18446744073709551616\n", out)
	assert.Len(t, w.requests, 1)
}

// exact returns a folder with a calculator whose output is final.
func (w *world) exact(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	module, err := os.ReadFile(filepath.Join(w.root, "wasm-tools", "calculator", "calculator.wasm"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "exact.wasm"), module, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "tool.yaml"), []byte(`schema: caisson/v1
name: exact
description: Calculates, and answers the user itself.
module: {path: exact.wasm, stdout: result}
parameters: {type: object, properties: {expression: {type: string}}, required: [expression]}
behavior: {read_only: true, final: true}
`), 0o600))
	return folder
}

func TestEnds(t *testing.T) {
	for name, test := range map[string]struct {
		answers   []string
		arguments []string
		want      string
	}{
		"rounds":     {script(t, "parallel"), []string{"--rounds", "1"}, "the model did not finish within the limit of --rounds=1; raise it"},
		"broken off": {script(t, "broken"), nil, "broke off"},
		"no JSON":    {[]string{"data: <html>\n\n"}, nil, "the model's answer cannot be read"},
		"endless":    {[]string{strings.Repeat(": wait\n", 3<<20)}, nil, "the model's answer cannot be read"},
		"refused":    {nil, nil, "the server answered 500 Internal Server Error"},
		"unset key":  {nil, []string{"--api-key-env", "NONE"}, "the variable NONE is not set"},
		"no config":  {nil, []string{"--config", "none"}, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.answers...)
			_, _, err := w.run(t, append(test.arguments, "Look.")...)
			assert.ErrorContains(t, err, test.want)
			assert.LessOrEqual(t, len(w.requests), 1)
		})
	}
}

func TestApproval(t *testing.T) {
	for name, test := range map[string]struct {
		typed  string
		absent bool
		policy string
		gone   bool
		said   string // to the model
	}{
		"yes":           {typed: "y\n", gone: true},
		"after a while": {typed: "\nperhaps\nYES\n", gone: true},
		"no":            {typed: "n\n", said: "not approved"},
		"no, and why":   {typed: "no  use the bin instead\n", said: "use the bin instead"},
		"nobody":        {typed: "y\n", absent: true, said: "nobody is there to approve it"},
		"an end":        {typed: "", said: "nobody is there to approve it"},
		"yes, but":      {typed: "yes but keep a copy\nn\n", said: "not approved"},
		"the policy's":  {policy: "approve: [{tools: [file_delete]}]\n", absent: true, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, script(t, "delete")...)
			w.typed, w.absent, w.policy = test.typed, test.absent, test.policy
			out, shown, err := w.run(t, "Tidy up.")
			require.NoError(t, err)
			assert.Equal(t, "That is settled.\n", out)
			assert.Equal(t, test.gone, !w.hasFile())
			result := w.results(t)["call_delete"]
			assert.Equal(t, test.gone, result.Success)
			assert.Contains(t, result.Error, test.said)
			if test.policy == "" {
				assert.Contains(t, shown, "file_delete needs your approval: ")
				assert.Contains(t, shown, "\n  {\n    \"path\": \"notes.txt\"\n  }\n  it may use files: /project (read-write)\n")
			}
		})
	}
}

// TestApprovalForTheSession: an identical call is not asked about again. The control approves once.
func TestApprovalForTheSession(t *testing.T) {
	for answer, times := range map[string]int{"s\n": 1, "y\ny\n": 2} {
		w := newWorld(t, script(t, "twice")...)
		w.typed = answer
		_, shown, err := w.run(t, "Tidy up twice.")
		require.NoError(t, err)
		assert.Equal(t, times, strings.Count(shown, "needs your approval"))
		results := w.results(t)
		assert.True(t, results["call_first"].Success)
		assert.Equal(t, tool.ToolFailed, results["call_second"].Kind, "it was run, and the file is gone")
	}
}

// TestWhatTheClientRunsIsRefused: this client implements no client tools.
func TestWhatTheClientRunsIsRefused(t *testing.T) {
	w := newWorld(t, script(t, "question")...)
	_, _, err := w.run(t, "Where?")
	require.NoError(t, err)
	assert.Equal(t, "the client does not know how to run ask_user", w.results(t)["call_ask"].Error)
	assert.Equal(t, "2", w.results(t)["call_sum"].Output)
}

// TestInterrupted: after an interrupt, typed lines approve nothing.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	lines := make(chan string, 1)
	lines <- "y"
	p := &person{lines: lines, out: &strings.Builder{}}
	approval, err := p.approve(ctx, tool.Action{Tool: "file_delete"})
	require.ErrorIs(t, err, context.Canceled)
	assert.False(t, approval.Approve)
}
