package tool

import (
	"encoding/json"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"reflect"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
)

// TestShapesOnTheWire pins the JSON of calls, responses and pieces of streams: other programs store and read it.
func TestShapesOnTheWire(t *testing.T) {
	call := Call{ID: "call_1", Type: "function", Function: Function{Name: "add", Arguments: `{"a":1.50}`}}
	for _, c := range []struct {
		name  string
		value any
		into  func() any
		wire  string
	}{
		{"call", &call, func() any { return new(Call) },
			`{"id":"call_1","type":"function","function":{"name":"add","arguments":"{\"a\":1.50}"}}`},
		{"call of a custom tool", &Call{ID: "call_2", Type: CustomCall, Function: Function{Name: "shell", Arguments: "ls | wc"}, Signature: "c2ln"}, func() any { return new(Call) },
			`{"id":"call_2","type":"custom","function":{"name":"shell","arguments":"ls | wc"},"signature":"c2ln"}`},
		{"chat response", &ChatResponse{ID: "r", Model: "m", Content: "hello", ToolCalls: []Call{call}, FinishReason: FinishToolCalls, Usage: ChatUsage{1, 2, 3}}, func() any { return new(ChatResponse) },
			`{"id":"r","model":"m","content":"hello","tool_calls":[{"id":"call_1","type":"function","function":{"name":"add","arguments":"{\"a\":1.50}"}}],"finish_reason":"tool_calls","usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`},
		{"stream response", &StreamResponse{ID: "r", ResponseType: ResponseReferences, Content: "c", Done: true, KnowledgeReferences: []Reference{{ID: "k", Title: "t", URL: "u", Content: "c", Score: 0.5, Data: json.RawMessage(`{"page":1}`)}},
			SessionID: "s", AssistantMessageID: "a", ToolCalls: []Call{call}, Data: json.RawMessage(`{"n":1.0}`)}, func() any { return new(StreamResponse) },
			`{"id":"r","response_type":"references","content":"c","done":true,"knowledge_references":[{"id":"k","title":"t","url":"u","content":"c","score":0.5,"data":{"page":1}}],` +
				`"session_id":"s","assistant_message_id":"a","tool_calls":[{"id":"call_1","type":"function","function":{"name":"add","arguments":"{\"a\":1.50}"}}],"data":{"n":1.0}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			wire := noerr.Get(json.Marshal(c.value))(t)
			assert.Equal(t, c.wire, string(wire))
			back := c.into()
			require.NoError(t, json.Unmarshal(wire, back))
			assert.Equal(t, c.value, back)

			// Members that other programs add are not kept.
			more := c.into()
			require.NoError(t, json.Unmarshal([]byte(`{"stranger":{"x":1},`+c.wire[1:]), more))
			again := noerr.Get(json.Marshal(more))(t)
			assert.Equal(t, c.wire, string(again))
		})
	}
}

func TestEmptyListsAreLists(t *testing.T) {
	for _, c := range []struct {
		value any
		wire  string
	}{
		{ChatResponse{}, `{"content":"","tool_calls":[],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`},
		{&ChatResponse{ToolCalls: []Call{}}, `{"content":"","tool_calls":[],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`},
		{StreamResponse{}, `{"id":"","response_type":"","content":"","done":false,"knowledge_references":[],"tool_calls":[]}`},
		{[]*StreamResponse{{}}, `[{"id":"","response_type":"","content":"","done":false,"knowledge_references":[],"tool_calls":[]}]`},
		{List[Call](nil), `[]`},
		{List[Reference]{}, `[]`},
		{struct{ C List[Call] }{}, `{"C":[]}`},
	} {
		wire := noerr.Get(json.Marshal(c.value))(t)
		assert.Equal(t, c.wire, string(wire))
	}
	wire := noerr.Get(json.Marshal(Record{}))(t)
	assert.NotContains(t, strings.Replace(string(wire), `"fuel":null`, "", 1), "null")

	read := noerr.Decode[ChatResponse](t, []byte(`{"tool_calls":null}`))
	wire = noerr.Get(json.Marshal(read))(t)
	assert.Contains(t, string(wire), `"tool_calls":[]`)
}

// TestNoListIsNull marshals the zero value of every exported type that has JSON. Only unknown values and
// numbers are null then; no list is.
func TestNoListIsNull(t *testing.T) {
	values := []any{
		Action{}, Allow{}, Answer{}, Approval{}, Call{}, Callee{}, ChatResponse{}, ChatUsage{}, Content{}, Cut{}, Decision{}, Definition{}, Denial{}, Emission{},
		Event{}, File{}, Function{}, Hints{}, HostCall{}, Page{}, Planned{}, ProviderItem{}, Record{}, Reference{}, Repair{}, Request{}, Result{}, StreamResponse{}, Totals{}, Usage{},
		List[Call]{}, List[Reference]{}, Arguments{},
	}
	var nulls []string
	known := map[string]bool{"Invocation": true, "Outcome": true, "Error": true, "ArgumentsError": true} // these have no JSON
	for _, value := range values {
		kind := reflect.TypeOf(value)
		name, _, _ := strings.Cut(kind.Name(), "[") // of a generic type
		known[name] = true
		text := noerr.Get(json.Marshal(reflect.Zero(kind).Interface()))(t)
		read := noerr.Decode[any](t, text)
		nulls = append(nulls, nullsIn(kind.Name(), read)...)
	}
	sort.Strings(nulls)
	assert.Equal(t, []string{
		"Action.arguments", "Allow.grant", "Allow.manifest", "Decision.allow.grant", "Decision.allow.manifest", "Definition.parameters",
		"Denial.allow.grant", "Denial.allow.manifest", "ProviderItem.data", "Record.usage.fuel", "Repair.from", "Repair.to", "Usage.fuel",
	}, nulls)
	for _, name := range exportedTypes(t) {
		assert.True(t, known[name], "%s is not looked at", name)
	}
}

func nullsIn(path string, value any) []string {
	var nulls []string
	switch value := value.(type) {
	case nil:
		nulls = append(nulls, path)
	case map[string]any:
		for name, member := range value {
			nulls = append(nulls, nullsIn(path+"."+name, member)...)
		}
	}
	return nulls
}

// exportedTypes returns the names of the structs and the lists that the package exports.
func exportedTypes(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, file := range sources(t, ".").GoFiles {
		syntax := noerr.Get(parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution))(t)
		ast.Inspect(syntax, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !spec.Name.IsExported() {
				return true
			}
			switch declared := spec.Type.(type) {
			case *ast.StructType:
				names = append(names, spec.Name.Name)
			case *ast.ArrayType:
				if declared.Len == nil {
					names = append(names, spec.Name.Name)
				}
			}
			return true
		})
	}
	require.Greater(t, len(names), 20, "the types must be found")
	return names
}

func sources(t *testing.T, folder string) *build.Package {
	t.Helper()
	found := noerr.Get(build.ImportDir(folder, 0))(t)
	return found
}

// TestWhatWasCut: a reason that says that the model was done, whatever a server calls it, cuts nothing off.
func TestWhatWasCut(t *testing.T) {
	for reason, cut := range map[FinishReason]bool{
		"": false, FinishStop: false, FinishToolCalls: false, "pause_turn": false, "tool_use": false, "eos": false,
		FinishLength: true, FinishContentFilter: true, "MALFORMED_FUNCTION_CALL": true, "incomplete": true,
	} {
		assert.Equal(t, cut, reason.WasCut(), reason)
	}
}
