package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/tool"
)

func TestAQuestionToTheUser(t *testing.T) {
	for name, test := range map[string]struct {
		typed  string
		absent bool
		want   tool.Result
	}{
		"a choice":       {typed: "2\n", want: tool.Result{Success: true, Output: "Basel"}},
		"other words":    {typed: "  Chur \n", want: tool.Result{Success: true, Output: "Chur"}},
		"no such choice": {typed: "3\n", want: tool.Result{Success: true, Output: "3"}},
		"nothing":        {typed: "\n", want: tool.Result{Success: true, Output: "(the user gave no answer)"}},
		"an end":         {typed: "", want: tool.Result{Error: "nobody is there to ask", Kind: tool.ToolFailed}},
		"nobody":         {typed: "2\n", absent: true, want: tool.Result{Error: "nobody is there to ask", Kind: tool.ToolFailed}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, script(t, "question")...)
			w.typed, w.absent = test.typed, test.absent
			ran := w.run(t, "Where?")
			require.Zero(t, ran.code, ran.errors)
			assert.Equal(t, "Then Basel it is.\n", ran.out)
			results := w.results(t)
			assert.Equal(t, test.want, results["call_ask"])
			assert.Equal(t, "2", results["call_sum"].Output)
			assert.Equal(t, !test.absent, strings.Contains(ran.errors, "\nthe model asks: Which city?\n  1  Bern\n  2  Basel\nyour answer: "))
		})
	}
}

func TestApproval(t *testing.T) {
	for name, test := range map[string]struct {
		typed  string
		absent bool
		gone   bool
		said   string // to the model
	}{
		"yes":           {typed: "y\n", gone: true},
		"after a while": {typed: "\nperhaps\nYES\n", gone: true},
		"no":            {typed: "n\n", said: "not approved"},
		"no, and why":   {typed: "no  use the bin instead\n", said: "use the bin instead"},
		"nobody":        {typed: "y\n", absent: true, said: "nobody is there who could approve of it"},
		"an end":        {typed: "", said: "nobody is there who could approve of it"},
		"there is no l": {typed: "l\nn\n", said: "not approved"},
		"yes, but":      {typed: "yes but keep a copy\nn\n", said: "not approved"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, script(t, "delete")...)
			w.typed, w.absent = test.typed, test.absent
			ran := w.run(t, "Tidy up.")
			require.Zero(t, ran.code, ran.errors)
			assert.Equal(t, "That is settled.\n", ran.out)
			assert.Equal(t, test.gone, !w.hasFile(t))
			result := w.results(t)["call_delete"]
			assert.Equal(t, test.gone, result.Success)
			assert.Contains(t, result.Error, test.said)
			assert.Contains(t, ran.errors, "file_delete waits for your approval: ")
			assert.Contains(t, ran.errors, "\n  {\n    \"path\": \"notes.txt\"\n  }\n")
			assert.Contains(t, ran.errors, "  it may use files: /project (read-write)\n")
		})
	}
}

// TestApprovalForTheSession: the same call is not asked for again. The control is one that was
// approved once.
func TestApprovalForTheSession(t *testing.T) {
	for answer, times := range map[string]int{"s\n": 1, "y\ny\n": 2} {
		w := newWorld(t, script(t, "twice")...)
		w.typed = answer
		ran := w.run(t, "Tidy up twice.")
		require.Zero(t, ran.code, ran.errors)
		assert.Equal(t, times, strings.Count(ran.errors, "waits for your approval"))
		results := w.results(t)
		assert.True(t, results["call_first"].Success)
		assert.Equal(t, tool.ToolFailed, results["call_second"].Kind, "it was run, and the file is gone")
	}
}

// TestApprovedByThePolicy: the operator's word is enough.
func TestApprovedByThePolicy(t *testing.T) {
	w := newWorld(t, script(t, "delete")...)
	w.policy, w.absent = "approve: [{tools: [file_delete]}]\n", true
	ran := w.run(t, "Tidy up.")
	require.Zero(t, ran.code, ran.errors)
	assert.False(t, w.hasFile(t))
}

// TestLater: a conversation is put off, another run of the program goes on with it, and nothing is
// done twice.
func TestLater(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state.json")
	w := newWorld(t, script(t, "later")...)
	w.typed = "Basel\nl\n"
	ran := w.run(t, "--state", state, "Do all of it.")
	assert.Equal(t, exitWaiting, ran.code)
	assert.Contains(t, ran.errors, "agent: error: the conversation waits in "+state+"\nagent: hint: go on with --resume "+state+"\n")
	assert.True(t, w.hasFile(t))
	kept, err := os.ReadFile(state)
	require.NoError(t, err)
	assert.NotContains(t, string(kept), key)
	assert.NotContains(t, string(kept), w.project, "it holds no permission")
	info, err := os.Stat(state)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	// It can be put off again.
	w.typed = "l\n"
	ran = w.run(t, "--resume", state)
	assert.Equal(t, exitWaiting, ran.code, ran.errors)
	assert.NotContains(t, ran.errors, "the model asks", "what was answered is not asked again")

	w.typed = "y\n"
	ran = w.run(t, "--resume", state)
	require.Zero(t, ran.code, ran.errors)
	assert.Equal(t, "All done.\n", ran.out)
	assert.False(t, w.hasFile(t))
	results := w.results(t)
	assert.Equal(t, "Basel", results["call_ask"].Output)
	assert.True(t, results["call_delete"].Success)
	assert.Equal(t, "42", results["call_sum"].Output)
	assert.Len(t, w.endpoint.Requests(), 2)
	entries, err := os.ReadDir(filepath.Dir(state))
	require.NoError(t, err)
	assert.Empty(t, entries, "nothing is left of it")

	ran = w.run(t, "--resume", state)
	assert.Equal(t, exitUsage, ran.code)
	assert.Contains(t, ran.errors, "another process may have gone on with it")
}

// TestNothingIsAnsweredTwice: what was answered is kept, wherever it stands and however often the
// conversation is put off. An approval is asked for anew.
func TestNothingIsAnsweredTwice(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state.json")
	w := newWorld(t, script(t, "mixed")...)
	w.policy = "ask: [calculator]\n" // which stands before the questions
	for i, typed := range []string{"y\nBasel\n/later\n", "l\n", "y\n/later\n"} {
		w.typed = typed
		flag := "--state"
		if i > 0 {
			flag = "--resume"
		}
		arguments := []string{flag, state}
		if i == 0 {
			arguments = append(arguments, "Do all of it.")
		}
		ran := w.run(t, arguments...)
		require.Equal(t, exitWaiting, ran.code, ran.errors)
		assert.Equal(t, i == 0, strings.Contains(ran.errors, "Which city?"))
	}
	w.typed = "y\n100\n"
	ran := w.run(t, "--resume", state)
	require.Zero(t, ran.code, ran.errors)
	results := w.results(t)
	assert.Equal(t, "Basel", results["call_city"].Output)
	assert.Equal(t, "100", results["call_budget"].Output)
	assert.Equal(t, "2", results["call_sum"].Output)
}

// TestApprovalsOutlastTheProcess: what was approved for the session is not asked for again when
// another run of the program goes on with it.
func TestApprovalsOutlastTheProcess(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state.json")
	w := newWorld(t, script(t, "outlast")...)
	w.typed = "s\n/later\n"
	require.Equal(t, exitWaiting, w.run(t, "--state", state, "Tidy up twice.").code)
	require.False(t, w.hasFile(t))
	w.typed = "Basel\n"
	ran := w.run(t, "--resume", state)
	require.Zero(t, ran.code, ran.errors)
	assert.NotContains(t, ran.errors, "waits for your approval")
	assert.Equal(t, tool.ToolFailed, w.results(t)["call_second"].Kind, "it was run, and the file is gone")
}

// TestWhatCannotGoOnIsKept: with other tools, other context values or a broken file nothing runs,
// and the conversation stays where it is.
func TestWhatCannotGoOnIsKept(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state.json")
	w := newWorld(t, script(t, "later")...)
	w.typed = "Basel\nl\n"
	require.Equal(t, exitWaiting, w.run(t, "--state", state, "Do all of it.").code)
	kept, err := os.ReadFile(state)
	require.NoError(t, err)

	w.typed = "y\n"
	ran := w.run(t, "--resume", state, "--tools", "none")
	assert.Equal(t, exitUsage, ran.code)
	same, err := os.ReadFile(state)
	require.NoError(t, err)
	assert.Equal(t, string(kept), string(same))

	for _, broken := range []string{"", "{}", "null", `{"schema":"caisson-agent/v2"}`, string(kept[:len(kept)/2]), `{"schema":"caisson-agent/v1","key":1}`} {
		file := filepath.Join(t.TempDir(), "broken.json")
		require.NoError(t, os.WriteFile(file, []byte(broken), 0o600))
		ran := w.run(t, "--resume", file)
		assert.Equal(t, exitUsage, ran.code)
		assert.Contains(t, ran.errors, "agent: hint: name a file that --state has made")
		same, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, broken, string(same))
	}
	assert.True(t, w.hasFile(t))
	assert.Len(t, w.endpoint.Requests(), 1)
}

// TestInterruptedWhileItWaits: Ctrl-C at a question loses nothing where there is a file.
func TestInterruptedWhileItWaits(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state.json")
	w := newWorld(t, script(t, "later")...)
	ctx, cancel := context.WithCancel(t.Context())
	typing, typed := io.Pipe() // which stays open: the person is there and types nothing more
	w.noticed = func(noted string) {
		switch {
		case strings.Contains(noted, "your answer"):
			go func() { _, _ = io.WriteString(typed, "Basel\n") }()
		case strings.Contains(noted, "[y]es"):
			cancel()
		}
	}
	ran := w.runWith(ctx, t, typing, "--state", state, "Do all of it.")
	require.NoError(t, typed.Close())
	assert.Equal(t, exitInterrupted, ran.code, ran.errors)
	assert.Contains(t, ran.errors, "agent: error: interrupted; the conversation waits in "+state)

	w.typed, w.noticed = "y\n", nil
	ran = w.run(t, "--resume", state)
	require.Zero(t, ran.code, ran.errors)
	assert.Equal(t, "Basel", w.results(t)["call_ask"].Output)
}
