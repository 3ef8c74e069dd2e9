package known_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/dialecttest"
	"github.com/caisson-run/caisson/dialects/known"
	"github.com/caisson-run/caisson/tool"
)

var update = flag.Bool("update", false, "write the golden files under testdata")

// golden fails the test unless a document is the file of that name, but for white space.
func golden(t *testing.T, name string, document json.RawMessage) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *update {
		var shown bytes.Buffer
		require.NoError(t, json.Indent(&shown, document, "", "  "))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, append(shown.Bytes(), '\n'), 0o644))
	}
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	var want bytes.Buffer
	require.NoError(t, json.Compact(&want, text))
	assert.Equal(t, want.String(), string(document), name)
}

func offered() []tool.Definition {
	return []tool.Definition{
		{
			Name: "weather", Description: "The weather of the next days, in <°C>.", Label: "Weather", Hints: tool.Hints{ReadOnly: true},
			Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1}},"required":["city"]}`),
			Result:     json.RawMessage(`{"type":"object","properties":{"mm":{"type":"number"}},"required":["mm"]}`),
		},
		{
			Name: "apply_patch", Type: tool.CustomCall, Description: "Changes files.", Hints: tool.Hints{Destructive: true},
			Parameters: json.RawMessage(`{"type":"object","properties":{"patch":{"type":"string"}},"required":["patch"],"additionalProperties":false}`),
			Format:     json.RawMessage(`{"type":"grammar","syntax":"lark","definition":"start: \"***\" /.+/"}`),
		},
		{
			Name: "note", Type: tool.CustomCall, Format: json.RawMessage(`{"type":"text"}`),
			Parameters: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`),
		},
		{
			Name: "local_shell", Type: tool.LocalShellCall,
			Parameters: json.RawMessage(`{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"}}},"required":["command"]}`),
		},
		{Name: "now"},
	}
}

func conversation() []tool.Record {
	patch := dialecttest.Custom("call_patch", "apply_patch", "*** <b> & \"c\"\n")
	shell := dialecttest.Call("call_shell", "local_shell", `{"command":["ls","-l"]}`)
	shell.Type = tool.LocalShellCall
	signed := dialecttest.Call("call_zurich", "weather", `{"city":"Zürich","days":12345678901234567890}`)
	signed.Signature = "c2lnbmVk"
	return []tool.Record{
		{Call: signed, Result: tool.Result{Success: true, Output: "rain, <4 mm>", Data: json.RawMessage(`{"mm":3.50}`)}},
		{Call: patch, Skipped: true, Result: tool.Result{Error: "the call was refused", Kind: tool.Denied}},
		{Call: shell, Result: tool.Result{Error: "exit status 2", Kind: tool.ToolFailed, Output: "ls: cannot access"}},
		{Call: dialecttest.Call("call_now", "now", `{}`), Cached: true, Source: "earlier", Result: tool.Result{
			Success: true, Output: "noon", Content: []tool.Content{{Type: "image", MIMEType: "image/png", Data: []byte("\x89PNG")}, {Type: "link", URL: "https://example.com/clock", Name: "Clock"}},
		}},
	}
}

// TestRowS2_2WhatIsWritten: the same tools, calls and results as each provider documents them. The
// Responses API has forms for more, of which its own package has the golden files.
func TestRowS2_2WhatIsWritten(t *testing.T) {
	records := conversation()
	calls := make([]tool.Call, len(records))
	for i := range records {
		calls[i] = records[i].Call
	}
	for _, d := range known.Dialects() {
		if d.Name() == dialects.Responses {
			continue
		}
		t.Run(d.Name(), func(t *testing.T) {
			definitions, _, err := d.Definitions(offered(), dialects.DefinitionOptions{})
			require.NoError(t, err)
			golden(t, d.Name()+"/definitions.json", definitions)
			shown, err := d.Calls(calls)
			require.NoError(t, err)
			golden(t, d.Name()+"/calls.json", shown)
			results, err := d.Results(records)
			require.NoError(t, err)
			golden(t, d.Name()+"/results.json", results)

			answers, err := d.Answers(results)
			require.NoError(t, err)
			require.Len(t, answers.Outputs, len(records))
			for i, output := range answers.Outputs {
				assert.Equal(t, records[i].ID, output.CallID)
				assert.Equal(t, records[i].Result.Success, output.Result.Success)
			}
		})
	}
}
