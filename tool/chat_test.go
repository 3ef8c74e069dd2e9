package tool

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRowS21ShapesOnTheWire pins the JSON of calls, responses and pieces of streams: others store and read it.
func TestRowS21ShapesOnTheWire(t *testing.T) {
	call := Call{ID: "call_1", Type: "function", Function: Function{Name: "add", Arguments: `{"a":1.50}`}}
	for _, c := range []struct {
		name  string
		value any
		into  func() any
		wire  string
	}{
		{"call", &call, func() any { return new(Call) },
			`{"id":"call_1","type":"function","function":{"name":"add","arguments":"{\"a\":1.50}"}}`},
		{"chat response", &ChatResponse{ID: "r", Model: "m", Content: "hello", ToolCalls: []Call{call}, FinishReason: FinishToolCalls, Usage: ChatUsage{1, 2, 3}}, func() any { return new(ChatResponse) },
			`{"id":"r","model":"m","content":"hello","tool_calls":[{"id":"call_1","type":"function","function":{"name":"add","arguments":"{\"a\":1.50}"}}],"finish_reason":"tool_calls","usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`},
		{"stream response", &StreamResponse{ID: "r", ResponseType: ResponseReferences, Content: "c", Done: true, KnowledgeReferences: []Reference{{ID: "k", Title: "t", URL: "u", Content: "c", Score: 0.5, Data: json.RawMessage(`{"page":1}`)}},
			SessionID: "s", AssistantMessageID: "a", ToolCalls: []Call{call}, Data: json.RawMessage(`{"n":1.0}`)}, func() any { return new(StreamResponse) },
			`{"id":"r","response_type":"references","content":"c","done":true,"knowledge_references":[{"id":"k","title":"t","url":"u","content":"c","score":0.5,"data":{"page":1}}],` +
				`"session_id":"s","assistant_message_id":"a","tool_calls":[{"id":"call_1","type":"function","function":{"name":"add","arguments":"{\"a\":1.50}"}}],"data":{"n":1.0}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			wire, err := json.Marshal(c.value)
			require.NoError(t, err)
			assert.Equal(t, c.wire, string(wire))
			back := c.into()
			require.NoError(t, json.Unmarshal(wire, back))
			assert.Equal(t, c.value, back)

			// What others add to it is not kept.
			more := c.into()
			require.NoError(t, json.Unmarshal([]byte(`{"stranger":{"x":1},`+c.wire[1:]), more))
			again, err := json.Marshal(more)
			require.NoError(t, err)
			assert.Equal(t, c.wire, string(again))
		})
	}
}

func TestRowS25EmptyListsAreLists(t *testing.T) {
	for _, c := range []struct {
		value any
		wire  string
	}{
		{ChatResponse{}, `{"content":"","tool_calls":[],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`},
		{&ChatResponse{ToolCalls: []Call{}}, `{"content":"","tool_calls":[],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`},
		{StreamResponse{}, `{"id":"","response_type":"","content":"","done":false,"knowledge_references":[],"tool_calls":[]}`},
		{[]*StreamResponse{{}}, `[{"id":"","response_type":"","content":"","done":false,"knowledge_references":[],"tool_calls":[]}]`},
		{Calls(nil), `[]`},
		{References{}, `[]`},
		{struct{ C Calls }{}, `{"C":[]}`},
	} {
		wire, err := json.Marshal(c.value)
		require.NoError(t, err)
		assert.Equal(t, c.wire, string(wire))
	}
	wire, err := json.Marshal(Record{})
	require.NoError(t, err)
	assert.NotContains(t, strings.Replace(string(wire), `"fuel":null`, "", 1), "null")

	var read ChatResponse
	require.NoError(t, json.Unmarshal([]byte(`{"tool_calls":null}`), &read))
	wire, err = json.Marshal(read)
	require.NoError(t, err)
	assert.Contains(t, string(wire), `"tool_calls":[]`)
}

// TestRowS27DependsOnTheStandardLibrary reads the imports of this package.
func TestRowS27DependsOnTheStandardLibrary(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	read := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range syntax.Imports {
			first, _, _ := strings.Cut(strings.Trim(spec.Path.Value, `"`), "/")
			assert.NotContains(t, first, ".", "%s imports %s", file, spec.Path.Value)
			read++
		}
	}
	assert.Greater(t, read, 10, "the imports must be found")
}
