package openaitest

import (
	"context"
	"encoding/json"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// accepted reads a document as the client's own type and requires that nothing in it is unknown to
// the client, and that the client writes the same.
func accepted[T any](t *testing.T, document []byte) T {
	t.Helper()
	var value T
	require.NoError(t, json.Unmarshal(document, &value))
	onlyKnown(t, reflect.ValueOf(value), "$")
	again, err := json.Marshal(value)
	require.NoError(t, err)
	assert.JSONEq(t, string(document), string(again))
	return value
}

// onlyKnown fails where the client has kept members that its types do not have.
func onlyKnown(t *testing.T, value reflect.Value, path string) {
	t.Helper()
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			onlyKnown(t, value.Elem(), path)
		}
	case reflect.Slice:
		for i := range value.Len() {
			onlyKnown(t, value.Index(i), path+"[]")
		}
	case reflect.Struct:
		if extra, ok := value.Interface().(interface{ ExtraFields() map[string]any }); ok {
			assert.Empty(t, extra.ExtraFields(), path)
		}
		for i := range value.NumField() {
			if field := value.Type().Field(i); field.IsExported() {
				onlyKnown(t, value.Field(i), path+"."+field.Name)
			}
		}
	}
}

// offer is a tool that is offered and never run.
type offer struct{ manifest *manifests.Manifest }

func (o offer) Manifest() *manifests.Manifest { return o.manifest }
func (o offer) Invoke(context.Context, tool.Invocation) (tool.Outcome, error) {
	return tool.Outcome{}, tool.Internal
}

// definitions are those of all first-party tools: functions, a custom tool, and a local shell.
func definitions(t *testing.T) []tool.Definition {
	t.Helper()
	tools := registry.New()
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	require.NoError(t, tools.Load(t.Context(), registry.Directory(filepath.Join(root, "wasm-tools"), nil), func(_ context.Context, m *manifests.Manifest) (registry.Tool, error) {
		return offer{m}, nil
	}))
	offered := tools.Definitions()
	types := map[string]int{}
	for _, d := range offered {
		types[d.Type]++
	}
	require.Contains(t, types, tool.CustomCall)
	require.Contains(t, types, tool.LocalShellCall)
	require.Greater(t, len(offered), 10)
	return offered
}

func calls() []tool.Call {
	return []tool.Call{
		{ID: "call_1", Type: tool.FunctionCall, Function: tool.Function{Name: "weather", Arguments: `{"city": "Zürich"}`}},
		{ID: "call_2", Type: tool.CustomCall, Function: tool.Function{Name: "apply_patch", Arguments: "*** Begin"}},
		{ID: "call_3", Type: tool.LocalShellCall, Function: tool.Function{Name: "local_shell", Arguments: `{"type":"exec","command":["ls"],"env":{"A":"b"}}`}},
	}
}

func records() []tool.Record {
	calls := calls()
	return []tool.Record{
		{Call: calls[0], CallID: "0", Result: tool.Result{Success: true, Output: "rain", Data: json.RawMessage(`{"mm":3.5}`)}},
		{Call: calls[1], CallID: "1", Result: tool.Result{Error: "it does not apply", Kind: tool.ToolFailed}},
		{Call: calls[2], CallID: "2", Result: tool.Result{Success: true, Output: "notes.txt"}},
		{Call: tool.Call{ID: "call_4", Type: tool.FunctionCall, Function: tool.Function{Name: "chart"}}, CallID: "3", Result: tool.Result{
			Success: true, Content: []tool.Content{{Type: "image", MIMEType: "image/png", Data: []byte("\x89PNG")}, {Type: "text", Text: "a chart"}},
		}},
	}
}
