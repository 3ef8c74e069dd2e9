package tools_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// clientTools loads the tools of the folder client, of which nothing has to be compiled.
func clientTools(t *testing.T) *registry.Registry {
	t.Helper()
	return start(t, newRuntime(t, runtime.Options{}), "client")
}

// TestClientToolsAreOffered: no provider refuses any of them, in any form in which they can be
// asked for.
func TestClientToolsAreOffered(t *testing.T) {
	definitions := clientTools(t).Definitions()
	require.Len(t, definitions, 3)
	for i, want := range []tool.Definition{
		{Name: "apply_patch", Type: tool.CustomCall, Hints: tool.Hints{Destructive: true}},
		{Name: "ask_user", Hints: tool.Hints{ReadOnly: true}},
		{Name: "local_shell", Type: tool.LocalShellCall, Hints: tool.Hints{Destructive: true}},
	} {
		got := definitions[i]
		assert.Equal(t, want, tool.Definition{Name: got.Name, Type: got.Type, Hints: got.Hints})
		assert.NotEmpty(t, got.Label)
	}
	offeredEverywhere(t, definitions)
}

// readme returns the elements of the README's JSON block that follows a heading.
func readme[E any](t *testing.T, heading string) []E {
	t.Helper()
	text, err := os.ReadFile("client/README.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(text), "## "+heading+"\n")
	require.True(t, found, heading)
	_, after, found = strings.Cut(after, "```json\n")
	require.True(t, found, heading)
	block, _, _ := strings.Cut(after, "```")
	var elements []E
	for line := range strings.Lines(block) {
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.DisallowUnknownFields()
		var element E
		require.NoError(t, decoder.Decode(&element), line)
		elements = append(elements, element)
	}
	return elements
}

// TestClientToolsFollowTheREADME: clients get the requests that the README shows, and their answers in its form are
// accepted.
func TestClientToolsFollowTheREADME(t *testing.T) {
	run, err := executor.New(clientTools(t), executor.Options{})
	require.NoError(t, err)
	shown := readme[tool.Action](t, "What a client is given")
	require.Len(t, shown, 3)
	var calls []tool.Call
	for _, action := range shown {
		calls = append(calls, action.Call)
	}
	session, err := run.NewSession(executor.SessionOptions{})
	require.NoError(t, err)
	report, err := run.Execute(t.Context(), executor.Batch{Session: session, Calls: calls})
	require.NoError(t, err)
	require.Equal(t, executor.RequiresAction, report.Status)
	require.Len(t, report.Pending, 3)
	for i, action := range report.Pending {
		shown[i].CallID = action.CallID // which no two calls share
		want, err := json.Marshal(shown[i])
		require.NoError(t, err)
		got, err := json.Marshal(action)
		require.NoError(t, err)
		assert.JSONEq(t, string(want), string(got))
	}

	answers := readme[tool.Answer](t, "Answers")
	report, err = run.Resume(t.Context(), executor.Resumption{State: *report.State, Session: session, Outputs: answers})
	require.NoError(t, err)
	require.Equal(t, executor.Completed, report.Status)
	require.Len(t, report.Records, 3)
	for i, record := range report.Records {
		assert.Equal(t, answers[i].CallID, record.ID)
		assert.Equal(t, answers[i].Result.Success, record.Result.Success)
		assert.Equal(t, answers[i].Result.Output, record.Result.Output)
		assert.Equal(t, answers[i].Result.Error, record.Result.Error)
	}
}

// TestLocalShellTakesWhatItsAPIGives has calls as OpenAI's API writes them, and calls that are
// refused before any client gets them.
func TestLocalShellTakesWhatItsAPIGives(t *testing.T) {
	entry, found := clientTools(t).Get("local_shell")
	require.True(t, found)
	for arguments, fits := range map[string]bool{
		`{"command":["ls","-la"],"env":{}}`: true,
		`{"command":["make"],"env":{"CI":"1"},"working_directory":"/srv/a","timeout_ms":60000,"user":"build"}`: true,
		`{"command":["ls"]}`:                   true,
		`{"command":"ls"}`:                     false,
		`{"command":[]}`:                       false,
		`{"command":["ls",1]}`:                 false,
		`{"command":["ls"],"env":{"A":1}}`:     false,
		`{"command":["ls"],"timeout_ms":0}`:    false,
		`{"command":["ls"],"shell":"/bin/sh"}`: false,
		`{}`:                                   false,
	} {
		err := entry.Manifest.Parameters.Validate(t.Context(), []byte(arguments))
		assert.Equal(t, fits, err == nil, "%s: %v", arguments, err)
	}
}

// patchPattern makes one expression of the grammar of apply_patch, which has no recursion.
func patchPattern(t *testing.T) *regexp.Regexp {
	t.Helper()
	m, err := manifests.Load("client/apply_patch.tool.yaml")
	require.NoError(t, err)
	assert.Contains(t, string(m.ModelParameters), `"required":["patch"]`)
	var format struct{ Type, Syntax, Definition string }
	require.NoError(t, json.Unmarshal(m.Format, &format))
	require.Equal(t, []string{"grammar", "lark"}, []string{format.Type, format.Syntax})
	rules := map[string]string{}
	for line := range strings.Lines(format.Definition) {
		name, rule, found := strings.Cut(strings.TrimSpace(line), ": ")
		require.True(t, found, line)
		rules[name] = rule
	}
	word := regexp.MustCompile(`[A-Za-z]+`)
	var expand func(rule string) string
	expand = func(rule string) string {
		if terminal, found := strings.CutPrefix(rule, "/"); found {
			return "(?:" + strings.TrimSuffix(terminal, "/") + ")"
		}
		return "(?:" + strings.ReplaceAll(word.ReplaceAllStringFunc(rule, func(name string) string {
			require.Contains(t, rules, name)
			return expand(rules[name])
		}), " (?:", "(?:") + ")"
	}
	return regexp.MustCompile("^" + expand(rules["start"]) + "$")
}

func TestGrammarOfApplyPatchIsThatOfUnifiedDiffs(t *testing.T) {
	grammar := patchPattern(t)
	for patch, fits := range map[string]bool{
		"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-one\n+two\n":                                            true,
		"--- /dev/null\n+++ b/x y\n@@ -0,0 +1,2 @@\n+one\n+\n":                                   true,
		"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ func main() {\n one\n-two\n+2\n@@ -9 +9 @@\n-a\n+b\n": true,
		"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n":                  true,
		"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n":         true,
		"":                                     false,
		"one\ntwo\n":                           false,
		"--- a/x\n":                            false,
		"+++ b/x\n@@ -1 +1 @@\n-one\n+two\n":   false,
		"--- a/x\n+++ b/x\n-one\n+two\n":       false,
		"--- a/x\n+++ b/x\n@@ -1 +1 @@\n":      false,
		"--- a/x\n+++ b/x\n@@ -1 +1 @@\none\n": false,
		"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-one\n+two":                            false,
		"*** Begin Patch\n*** Update File: x\n@@\n-one\n+two\n*** End Patch\n": false,
	} {
		assert.Equal(t, fits, grammar.MatchString(patch), "%q", patch)
	}
}

// TestGrammarOfApplyPatchTakesWhatDiffWrites reads what GNU diff has written with -u, of files with
// and without a line feed at the end, with lines that look like headers, and empty ones.
func TestGrammarOfApplyPatchTakesWhatDiffWrites(t *testing.T) {
	grammar := patchPattern(t)
	patches, err := filepath.Glob("client/testdata/*.diff")
	require.NoError(t, err)
	require.Len(t, patches, 4)
	for _, file := range patches {
		patch, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotEmpty(t, patch)
		assert.True(t, grammar.Match(patch), "%s", patch)
	}
}
