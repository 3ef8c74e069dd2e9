package main

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/examples/agent/internal/scripted"
	"github.com/caisson-run/caisson/tool"
)

// TestConversations compares what the agent asks and prints with golden files.
func TestConversations(t *testing.T) {
	for _, name := range []string{"text", "parallel", "failing"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, script(t, name)...)
			ran := w.run(t, "What", "is", "a", "caisson?")
			assert.Zero(t, ran.code, ran.errors)
			golden(t, name+"/out.txt", ran.out)
			golden(t, name+"/requests.json", w.requests(t))
			assert.Len(t, w.endpoint.Requests(), len(w.endpoint.Answers), "the whole script was played")
		})
	}
}

// TestRowS2_4ResultsMatchCalls: calls of one answer run beside each other, one that fails touches no
// other, and the model finds each result by its call's id.
func TestRowS2_4ResultsMatchCalls(t *testing.T) {
	w := newWorld(t, script(t, "failing")...)
	require.Zero(t, w.run(t, "Try it.").code)
	results := w.results(t)
	require.Len(t, results, 5)
	assert.Equal(t, "42", results["call_good"].Output)
	kinds := map[string]tool.Kind{}
	for id, result := range results {
		kinds[id] = result.Kind
	}
	assert.Equal(t, map[string]tool.Kind{
		"call_zero": tool.ToolFailed, "call_none": tool.UnknownTool, "call_text": tool.InvalidArguments, "call_good": "", "call_away": tool.Denied,
	}, kinds)
}

func TestToolsAreShownAsTheyRun(t *testing.T) {
	w := newWorld(t, script(t, "parallel")...)
	ran := w.run(t, "Look.")
	assert.Zero(t, ran.code, ran.errors)
	assert.Contains(t, ran.errors, `· calculator {"expression":"2**10"} …`)
	assert.Contains(t, ran.errors, "· calculator: 323\n")
	assert.NotContains(t, ran.out, "·")
}

// TestFinalOutputIsTheAnswer: the model is not asked what it thinks of it.
func TestFinalOutputIsTheAnswer(t *testing.T) {
	w := newWorld(t, script(t, "final")...)
	ran := w.run(t, "--tools", w.exact(t), "Tell me exactly.")
	assert.Zero(t, ran.code, ran.errors)
	assert.Equal(t, "18446744073709551616\n", ran.out)
	assert.Len(t, w.endpoint.Requests(), 1)
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

func TestQuestionsOneAfterTheOther(t *testing.T) {
	w := newWorld(t, append(script(t, "text"), append([]scripted.Answer{{Status: 500}}, script(t, "parallel")...)...)...)
	w.typed = "What is a caisson?\n\nWhat is wrong?\nAnd 17 times 19?\n"
	ran := w.run(t)
	assert.Zero(t, ran.code)
	assert.Contains(t, ran.errors, "agent: error: the model's server says 500 Internal Server Error")
	var said []any
	for _, message := range w.messages(t) {
		if message["role"] == "user" {
			said = append(said, message["content"])
		}
	}
	assert.Equal(t, []any{"What is a caisson?", "And 17 times 19?"}, said, "a question that failed leaves no trace")
}

// TestQuestionsFromAFile: nobody sees that one fails, so the program ends with it.
func TestQuestionsFromAFile(t *testing.T) {
	w := newWorld(t, scripted.Answer{Status: 500})
	w.typed, w.absent = "What is wrong?\nAnd now?\n", true
	assert.Equal(t, exitFailed, w.run(t).code)
	assert.Len(t, w.endpoint.Requests(), 1)
}

func TestBounds(t *testing.T) {
	for name, test := range map[string]struct {
		flags []string
		want  string
	}{
		"rounds": {[]string{"--rounds", "1"}, "the model has not come to an end in 1 rounds"},
		"tokens": {[]string{"--tokens", "190"}, "the question has taken 190 tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, script(t, "parallel")...)
			ran := w.run(t, append(test.flags, "Look.")...)
			assert.Equal(t, exitLimit, ran.code)
			assert.Contains(t, ran.errors, test.want)
			assert.Len(t, w.endpoint.Requests(), 1)
		})
	}
}

// TestTokensAreCountedWhereTheServerDoesNot: a server that says nothing of them does not have the
// agent go on for ever.
func TestTokensAreCountedWhereTheServerDoesNot(t *testing.T) {
	var c conversation
	c.count(make([]byte, 4000), tool.ChatResponse{Content: "1234", ToolCalls: []tool.Call{{Function: tool.Function{Arguments: "1234"}}}})
	assert.Equal(t, conversation{Rounds: 1, Tokens: 1002}, c)
}

// TestTokensOnlyGrow: no count of a server lowers what the question has taken.
func TestTokensOnlyGrow(t *testing.T) {
	for name, counts := range map[string][]int64{
		"overflow":  {100, math.MaxInt64},
		"the most":  {math.MaxInt64, math.MaxInt64, 1, 0},
		"negative":  {200_000, -200_000, math.MinInt64},
		"as it was": {100_000, 100_000},
	} {
		t.Run(name, func(t *testing.T) {
			var c conversation
			for _, count := range counts {
				before := c.Tokens
				c.count(nil, tool.ChatResponse{Usage: tool.ChatUsage{TotalTokens: count}})
				assert.GreaterOrEqual(t, c.Tokens, before)
			}
			assert.Error(t, c.within(bounds{rounds: 16, tokens: 200_000}))
		})
	}
}

func TestUsage(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"unknown flag":    {[]string{"--colour"}, "agent: error: flag provided but not defined: -colour\nagent: hint: --help lists the flags\n"},
		"no rounds":       {[]string{"--rounds", "0", "x"}, "must be more than 0"},
		"both":            {[]string{"--resume", "x", "question"}, "--resume goes on with a question that was asked"},
		"no such state":   {[]string{"--resume", "none"}, "there is no such file"},
		"no such config":  {[]string{"--config", "none", "x"}, "none"},
		"a state's file":  {[]string{"--state", "main.go", "x"}, "--state main.go: there is such a file"},
		"unset key":       {[]string{"--api-key-env", "NONE", "x"}, "the variable NONE is not set"},
		"no URL":          {[]string{"--base-url", "localhost", "x"}, "--base-url is no http or https URL"},
		"a password":      {[]string{"--base-url", "https://a:secret@localhost", "x"}, "--base-url holds a password"},
		"a key in clear":  {[]string{"--base-url", "http://example.com/v1", "x"}, "the API key would cross the network"},
		"no such tools":   {[]string{"--tools", "none", "x"}, "none"},
		"without a model": {[]string{"--model", "", "x"}, "it is not said which model answers"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			ran := w.run(t, test.arguments...)
			assert.Equal(t, exitUsage, ran.code)
			assert.Contains(t, ran.errors, test.want)
			assert.NotContains(t, ran.errors, "secret")
			assert.Empty(t, w.endpoint.Requests())
		})
	}
	w := newWorld(t)
	ran := w.run(t, "--help")
	assert.Zero(t, ran.code)
	assert.Contains(t, ran.out, "-allow-shell")
}
