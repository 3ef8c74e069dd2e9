package executor_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

// TestForgedContextValues has a model set what belongs to the host.
func TestForgedContextValues(t *testing.T) {
	forgeries := []struct{ name, context, arguments, key string }{
		{"as it is", "project_id", `{"project_id":"evil"}`, "project_id"},
		{"capital letters", "project_id", `{"Project_ID":"evil"}`, "Project_ID"},
		{"all capitals", "project_id", `{"PROJECT_ID":"evil"}`, "PROJECT_ID"},
		{"escape", "project_id", `{"project\u005fid":"evil"}`, "project_id"},
		{"escaped capital", "project_id", `{"\u0050roject_id":"evil"}`, "Project_id"},
		{"long s", "task", `{"ta\u017fk":"evil"}`, "taſk"},
		{"Kelvin sign", "key", `{"\u212aey":"evil"}`, "\u212aey"},
		{"dotless i", "project_id", `{"project_ıd":"evil"}`, "project_ıd"},
		{"beside another", "project_id", `{"path":"x","PROJECT_id":"evil"}`, "PROJECT_id"},
		{"null", "project_id", `{"Project_ID":null}`, "Project_ID"},
	}
	for _, forgery := range forgeries {
		t.Run(forgery.name, func(t *testing.T) {
			ran := false
			e := newExecutor(t, executor.Options{}, newFake(t, "file_read", fields{"context": []string{forgery.context}},
				func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
					ran = true
					return echo(ctx, invocation)
				}))
			record := execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "file_read", forgery.arguments)}, Session: withContext(t, e, map[string]string{forgery.context: "mine"})})
			assert.False(t, ran)
			assert.Equal(t, tool.Denied, record.Result.Kind)
			assert.Contains(t, record.Result.Error, "the host fills in "+forgery.context)
			assert.Equal(t, []tool.Denial{{
				Permission: "context", Value: forgery.key,
				Rule: "the host fills in " + forgery.context + "; a model cannot set it",
			}}, record.Denials)
		})
	}

	t.Run("doubled key", func(t *testing.T) {
		e := newExecutor(t, executor.Options{}, newFake(t, "file_read", fields{"context": []string{"project_id"}}, echo))
		for _, arguments := range []string{`{"project_id":"a","project_id":"evil"}`, `{"path":"a","path":"b"}`, `{"o":{"x":1,"\u0078":2}}`} {
			record := execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "file_read", arguments)}, Session: withContext(t, e, map[string]string{"project_id": "mine"})})
			assert.Equal(t, tool.InvalidArguments, record.Result.Kind)
			assert.Contains(t, record.Result.Error, "occurs twice")
		}
	})

	// The control shows which value a tool in Go would read if the host only added its value:
	// the forged key wins at any position after the host's.
	t.Run("control: encoding/json takes the forged value", func(t *testing.T) {
		for _, arguments := range []string{
			`{"project_id":"mine","Project_ID":"evil"}`,
			`{"project_id":"mine","project_\u0069d":"evil"}`,
			`{"project_id":"mine","PROJECT_ID":"evil"}`,
		} {
			var naive struct {
				ProjectID string `json:"project_id"`
			}
			require.NoError(t, json.Unmarshal([]byte(arguments), &naive))
			assert.Equal(t, "evil", naive.ProjectID)
		}
		var folded struct {
			Task string `json:"task"`
			Key  string `json:"key"`
		}
		require.NoError(t, json.Unmarshal([]byte("{\"task\":\"mine\",\"key\":\"mine\",\"ta\u017fk\":\"evil\",\"\u212aey\":\"evil\"}"), &folded))
		assert.Equal(t, "evil", folded.Task)
		assert.Equal(t, "evil", folded.Key)
	})
}

// TestContextValuesAreFilledIn: a tool has the host's values, in its arguments where its manifest asks
// for them.
func TestContextValuesAreFilledIn(t *testing.T) {
	more := fields{
		"context": []string{"project_id", "user"},
		"parameters": fields{"type": "object", "properties": fields{
			"n": fields{"type": "number"}, "user": fields{"type": "string", "maxLength": 4},
		}},
	}
	var seen tool.Invocation
	e := newExecutor(t, executor.Options{}, newFake(t, "file_read", more,
		func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
			seen = invocation
			invocation.Context["project_id"] = "changed by the tool"
			return echo(ctx, invocation)
		}), newFake(t, "plain", nil, echo))
	values := map[string]string{"project_id": `p"1`, "user": "ann", "session": "s"}

	record := execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "file_read", `{"n":1.50e1}`)}, Session: withContext(t, e, values)})
	require.True(t, record.Result.Success, record.Result.Error)
	assert.Equal(t, `{"n":1.50e1,"project_id":"p\"1","user":"ann"}`, record.Result.Output, "numbers stay as they were written")
	assert.Equal(t, "file_read", seen.Tool)
	assert.Equal(t, record.CallID, seen.CallID)
	assert.Equal(t, "s", seen.Context["session"])
	assert.Equal(t, `p"1`, values["project_id"], "a tool has a copy")
	assert.Equal(t, `{"n":1.50e1}`, record.Function.Arguments, "the record shows what the model wrote")

	t.Run("only to tools that ask", func(t *testing.T) {
		record := execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "plain", `{"project_id":"free"}`)}, Session: withContext(t, e, values)})
		assert.Equal(t, `{"project_id":"free"}`, record.Result.Output)
	})
	t.Run("missing values are denials", func(t *testing.T) {
		record := execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "file_read", `{"USER":"me"}`)}, Session: withContext(t, e, map[string]string{"session": "s"})})
		assert.Equal(t, tool.Denied, record.Result.Kind)
		assert.Equal(t, `leave out the argument "USER": the host fills in user; the host has no value for project_id; the host has no value for user`, record.Result.Error)
		assert.Equal(t, []tool.Denial{
			{Permission: "context", Value: "USER", Rule: "the host fills in user; a model cannot set it"},
			{Permission: "context", Value: "project_id", Rule: "the host has no value for project_id", Allow: tool.Allow{Grant: json.RawMessage(`{"context":{"project_id":{"from":"fixed","value":null}}}`)}},
			{Permission: "context", Value: "user", Rule: "the host has no value for user", Allow: tool.Allow{Grant: json.RawMessage(`{"context":{"user":{"from":"fixed","value":null}}}`)}},
		}, record.Denials)
	})
	t.Run("an empty value is a value", func(t *testing.T) {
		record := execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "file_read", ``)}, Session: withContext(t, e, map[string]string{"project_id": "", "user": ""})})
		assert.Equal(t, `{"project_id":"","user":""}`, record.Result.Output)
	})
	t.Run("a value that does not fit is not the model's to mend", func(t *testing.T) {
		record := execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "file_read", `{}`)}, Session: withContext(t, e, map[string]string{"project_id": "p", "user": "confidential"})})
		assert.Equal(t, tool.Denied, record.Result.Kind)
		text := jsonOf(t, record)
		assert.NotContains(t, string(text), "confidential")
		assert.Equal(t, "the host's value of user does not fit the tool's parameters", record.Result.Error)
		assert.Equal(t, "user", record.Denials[0].Value)
	})
}

// TestContextStaysHidden: a message about the model's own mistake must not tell it of
// parameters that it was not shown.
func TestContextStaysHidden(t *testing.T) {
	more := fields{
		"context": []string{"project_id"},
		"parameters": fields{
			"type": "object", "additionalProperties": false, "required": []string{"n"},
			"properties": fields{"n": fields{"type": "integer"}, "project_id": fields{"type": "string"}},
		},
	}
	f := newFake(t, "file_read", more, echo)
	e := newExecutor(t, executor.Options{}, f)
	t.Run("control: the complete schema names the parameter", func(t *testing.T) {
		assert.ErrorContains(t, f.Manifest().Parameters.Validate(t.Context(), []byte(`{"m":1,"project_id":"p"}`)), "project_id")
	})
	run := func(arguments string) tool.Record {
		return execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "file_read", arguments)}, Session: withContext(t, e, map[string]string{"project_id": "p"})})
	}
	record := run(`{"m":1}`)
	assert.Equal(t, tool.InvalidArguments, record.Result.Kind)
	assert.Contains(t, record.Result.Error, "m: ")
	assert.Contains(t, record.Result.Error, "n: ")
	assert.NotContains(t, record.Result.Error, "project_id")
	assert.True(t, run(`{"n":1}`).Result.Success)

	t.Run("what only the complete arguments break is the host's", func(t *testing.T) {
		e := newExecutor(t, executor.Options{}, newFake(t, "file_read", fields{
			"context": []string{"project_id", "user"}, "parameters": fields{"type": "object", "maxProperties": 2},
		}, echo))
		record := execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "file_read", `{"n":1}`)}, Session: withContext(t, e, map[string]string{"project_id": "confidential", "user": "confidential"})})
		assert.Equal(t, tool.Denied, record.Result.Kind)
		require.Len(t, record.Denials, 2, "no single value is to blame")
		assert.Equal(t, "project_id", record.Denials[0].Value)
		assert.Equal(t, "user", record.Denials[1].Value)
		assert.NotContains(t, record.Result.Error, "confidential")
	})
}

// FuzzArguments feeds what a model may write: it must never panic, and never reach the
// tool with the host's value changed.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{``, `{}`, `{"n":1}`, `{"Project_ID":"x"}`, `{"project\u005fid":1}`, `{"a":{"project_id":2}}`, `[`, "\xff", `{"n":1e400}`, `{"a":"\ud800"}`} {
		f.Add("file_read", seed)
	}
	f.Add("file_raed", "{}")
	e := newExecutor(f, executor.Options{}, newFake(f, "file_read", fields{"context": []string{"project_id"}},
		func(_ context.Context, invocation tool.Invocation) (tool.Outcome, error) {
			text, err := invocation.Arguments.MarshalJSON()
			if err != nil {
				return tool.Outcome{}, err
			}
			return succeed(string(text)), nil
		}))
	f.Fuzz(func(t *testing.T, name, arguments string) {
		record := execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", name, arguments)}, Session: withContext(t, e, map[string]string{"project_id": "mine"})})
		if record.Result.Kind == tool.Internal || record.Result.Kind == tool.ToolFailed {
			t.Fatalf("a model's text became %s: %s", record.Result.Kind, record.Result.Error)
		}
		if !record.Result.Success {
			if !record.Skipped || record.Result.Error == "" {
				t.Fatalf("refused without a reason: %+v", record)
			}
			return
		}
		var naive struct {
			ProjectID string `json:"project_id"`
		}
		if err := json.Unmarshal([]byte(record.Result.Output), &naive); err != nil {
			t.Fatalf("the tool got invalid JSON: %v", err)
		}
		if naive.ProjectID != "mine" {
			t.Fatalf("forged: %q", naive.ProjectID)
		}
	})
}
