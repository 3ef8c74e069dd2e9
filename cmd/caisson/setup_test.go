package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/view"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// TestContextNote: hints suggest no flag that the policy would reject.
func TestContextNote(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ops.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`schema: caisson-config/v1
context:
  by_token: {from: token}
  by_session: {from: session}
  by_flag: {from: flag}
  by_policy: {from: fixed, value: demo}
`), 0o600))
	o := options{config: file}
	op := noerr.Get(o.operator())(t)
	assert.Equal(t, map[string]string{"by_policy": "demo"}, op.context)
	missing := tool.Allow{Manifest: manifests.ContextRule("a"), Grant: manifests.ContextSource{Name: "a", From: manifests.FromFixed}.Rule()}
	full := view.Remedy{Manifest: "context: [a]", Flags: "--context a=VALUE", Policy: "context: {a: {from: fixed, value: VALUE}}"}
	flagAlone := view.Remedy{Manifest: full.Manifest, Flags: full.Flags}
	neither := view.Remedy{Manifest: full.Manifest}
	for _, test := range []struct {
		permission, name string
		want             view.Remedy
		note             string
	}{
		{"context", "by_token", neither, `ops.yaml:3 says that by_token comes from the token, and the command line has none; write "from: flag" there to set it with --context`},
		{"context", "by_session", neither, `ops.yaml:4 says that by_session comes from the session, and the command line has none; write "from: flag" there to set it with --context`},
		{"context", "by_policy", neither, ""},
		{"context", "by_flag", flagAlone, "or write {from: fixed, value: VALUE} for it at ops.yaml:5"},
		{"context", "unnamed", full, ""},
		{"files", "by_token", full, ""},
	} {
		got, note := op.contextNote(tool.Denial{Permission: test.permission, Value: test.name, Allow: missing}, "")
		assert.Equal(t, test.want, got, test.name)
		if test.note == "" {
			assert.Empty(t, note, test.name)
			continue
		}
		assert.Equal(t, []string{test.note}, note)
	}
	ungranted := tool.Allow{Grant: json.RawMessage(`{"tools":["a"],"context":["by_token"]}`)}
	got, _ := op.contextNote(tool.Denial{Permission: "context", Value: "by_token", Allow: ungranted}, "")
	assert.Equal(t, view.Remedy{Policy: "- {tools: [a], context: [by_token]}"}, got, "a grant is another element of its list")
}

// TestFlagsAreAPolicy: flags grant to all tools, and name themselves as the origin.
func TestFlagsAreAPolicy(t *testing.T) {
	dir := t.TempDir()
	var o options
	assert.Empty(t, o.policy().Grants, "no flags grant nothing")
	command := &cobra.Command{}
	o.policyFlags(command)
	o.grantFlags(command)
	require.NoError(t, command.ParseFlags([]string{"--allow-net=b.test", "--secret=KEY=env:VAR@b.test", "--mount=/project=" + dir, "--context=b=value"}))
	given := o.policy().For("any", "")
	assert.Equal(t, []string{"--mount /project", "--allow-net b.test", "--secret KEY=…@b.test", "--context b"},
		[]string{given.Files[0].Origin, given.Network[0].Origin, given.Secrets[0].Origin, given.Context[0].Origin})
}

// TestSecretsStandInNoMessage: errors in --secret do not repeat its value.
func TestSecretsStandInNoMessage(t *testing.T) {
	for _, flag := range []string{"sk-live-1", "KEY=sk-live-1", "KEY=sk-live-1@a.test", "KEY=env:sk-live-1@a.test"} {
		code, stdout, stderr := start(t.Context(), nil, "list", "--secret", flag)
		assert.Equal(t, exitUsage, code, flag)
		assert.Empty(t, stdout, flag)
		assert.Contains(t, stderr, "caisson: error: --secret: ", flag)
		assert.NotContains(t, stderr, "sk-live", flag)
	}
}

// TestFindingsSayWhatToDo: the text of a finding has the fix, and says whether the schema was adapted already.
func TestFindingsSayWhatToDo(t *testing.T) {
	finding := dialects.Finding{
		Tool: "probe", Path: "properties.a.minLength", Severity: dialects.Weakened,
		Message: "the keyword is ignored", Fix: "say it in the description",
	}
	assert.Equal(t, "probe: properties.a.minLength: the keyword is ignored (weakened); say it in the description", describeFinding(finding))
	finding.Adapted = true
	assert.Equal(t, "probe: properties.a.minLength: the keyword is ignored (weakened); adapted: say it in the description", describeFinding(finding))
	finding.Path, finding.Adapted, finding.Fix = "", false, ""
	assert.Equal(t, "probe: the keyword is ignored (weakened)", describeFinding(finding))
}

// TestAttackInvisibleJSON: printed JSON contains no deceptive characters, and programs read the original
// values. Control: encoding/json prints nearly all of them unchanged.
func TestAttackInvisibleJSON(t *testing.T) {
	var all, raw int
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !tool.Deceives(r) {
			continue
		}
		all++
		text := "a" + string(r) + "b"
		whole := text // in JSON that is passed on unchanged
		if r < ' ' {
			whole = "not allowed in JSON"
		}
		value := map[string]any{text: []any{text, json.RawMessage(`{"nested":"` + whole + `"}`)}}
		printed := noerr.Get(encoded(value))(t)
		require.True(t, json.Valid(printed))
		require.False(t, bytes.ContainsFunc(printed, tool.Deceives), "%U in %s", r, printed)
		read := noerr.Decode[map[string]any](t, printed)
		require.Equal(t, map[string]any{text: []any{text, map[string]any{"nested": whole}}}, read)
		careless := noerr.Get(json.Marshal(text))(t)
		if bytes.ContainsRune(careless, r) {
			raw++
		}
	}
	assert.Greater(t, all, 4000)
	assert.Greater(t, raw, all-100, "control")
}

// TestSalvage: in every output format, after any failure, the records of ended calls are printed once,
// and the failure is kept.
func TestSalvage(t *testing.T) {
	ended := executor.Report{ID: "batch", Records: []tool.Record{
		{Call: tool.Call{ID: "call_1"}, CallID: "1", Result: tool.Result{Success: true, Output: "done"}},
		{Call: tool.Call{ID: "call_2"}, CallID: "2", Result: tool.Result{Success: true, Output: "done"}},
	}}
	openai := noerr.Get(dialectNamed(dialects.OpenAI))(t)
	for name, form := range map[string]struct {
		options batchOptions
		lines   int
		holds   string
	}{
		"records":            {batchOptions{}, 2, `{"id":"call_1",`},
		"events":             {batchOptions{stream: streamEvents}, 1, `{"status":"failed","batch":"batch","results":[{"id":"call_1",`},
		"server-sent events": {batchOptions{stream: streamResponses}, 3, `data: {"type":"caisson.batch","status":"failed","batch":"batch","results":[{"id":"call_1",`},
	} {
		for _, isFull := range []bool{false, true} {
			var stdout, stderr bytes.Buffer
			env := environment{stdout: &stdout, stderr: &stderr}
			if isFull {
				env.stdout = full{}
			}
			form.options.environment = env
			v := form.options.view(openai)
			v.broken = errors.New("the reader is too slow")
			host := failed(exitLimit, "the tool could not be stopped")
			err := v.salvage(ended, host, v.broken)
			var failure *failure
			require.ErrorAs(t, err, &failure, name)
			assert.Equal(t, exitLimit, failure.code, name)
			assert.Equal(t, "the tool could not be stopped\nthe reader is too slow", failure.Error(), name)
			if !isFull {
				assert.Contains(t, stdout.String(), form.holds, name)
				assert.Equal(t, form.lines, bytes.Count(stdout.Bytes(), []byte("\n")), name)
				assert.Contains(t, stdout.String(), `"id":"call_2"`, name)
				assert.Empty(t, stderr.String(), name)
				continue
			}
			assert.Equal(t, 2, bytes.Count(stderr.Bytes(), []byte("caisson: record: ")), name)
		}
	}
	failure := (&batchOptions{options: options{environment: environment{stdout: full{}, stderr: &bytes.Buffer{}}}}).view(nil).salvage(ended, nil, failed(exitUsage, "no"))
	assert.Equal(t, failed(exitUsage, "no"), failure)
}

// TestLostRecordsAreOneLine: output of a tool cannot look like a line of the command.
func TestLostRecordsAreOneLine(t *testing.T) {
	var stderr bytes.Buffer
	record := tool.Record{CallID: "1", Result: tool.Result{Success: true, Output: "a\ncaisson: error: forged\u202e\x1b[2J"}}
	environment{stderr: &stderr}.printLost([]tool.Record{record})
	assert.Equal(t, 1, bytes.Count(stderr.Bytes(), []byte("\n")))
	assert.NotContains(t, stderr.String(), "\u202e")
	read := noerr.Decode[tool.Record](t, bytes.TrimPrefix(stderr.Bytes(), []byte("caisson: record: ")))
	assert.Equal(t, record.Result.Output, read.Result.Output)
}
