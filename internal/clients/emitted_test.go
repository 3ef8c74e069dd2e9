//go:build clients

package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/known"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// python is an interpreter that has the clients.
var python = flag.String("python", "", "the Python `interpreter` with the packages of requirements.txt")

// document is one that a dialect has written.
type document struct {
	As       string          `json:"as"` // as in TYPES of accept.py
	Name     string          `json:"name"`
	Document json.RawMessage `json:"document"`
}

// TestWhatIsWrittenIsTheirs: definitions, calls, results and events are of the clients' types.
func TestWhatIsWrittenIsTheirs(t *testing.T) {
	t.Parallel()
	var written []document
	for _, dialect := range known.Dialects() {
		written = append(written, definitions(t, dialect)...)
		written = append(written, exchanged(t, dialect)...)
	}
	written = append(written, events(t)...)
	kinds := map[string]int{}
	for _, one := range written {
		kinds[one.As]++
	}
	require.Len(t, kinds, 16, "three kinds of each dialect, and the events: %v", kinds)
	for _, one := range judged(t, written) {
		assert.Empty(t, one.Faults, one.Name)
	}
	t.Logf("%d documents: %v", len(written), kinds)
}

// TestFaultsAreFound is the control of accept.py: a member too many, one too few, and one of another type.
func TestFaultsAreFound(t *testing.T) {
	t.Parallel()
	var wrong []document
	for _, one := range []struct{ as, text, fault string }{
		{"responses result", `{"type":"local_shell_call_output","id":"a","call_id":"a","output":"x"}`, "$.call_id is not known"},
		{"responses result", `{"type":"function_call_output","call_id":"a"}`, "$.output is missing"},
		{"responses result", `{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":7}]}`, "$.output[0].text is 7"},
		{"responses event", `{"type":"response.output_item.done","output_index":1,"sequence_number":2,"item":{"type":"custom_tool_call","call_id":"a","input":"b","name":"c","colour":"d"}}`, "$.item.colour is not known"},
		{"responses event", `{"type":"response.output_item.ended"}`, "$"},
		{"openai definition", `{"type":"function","function":{"name":"a","strikt":true}}`, "$.function.strikt is not known"},
		{"openai result", `{"role":"tool","tool_call_id":"a","content":[{"type":"image_url"}]}`, "$.content"},
		{"anthropic result", `{"type":"tool_result","tool_use_id":"a","is_error":"no"}`, "$.is_error is 'no'"},
		{"anthropic definition", `{"name":"a","input_schema":{"type":"array"},"parameters":{}}`, "$.parameters is not known"},
		{"gemini call", `{"functionCall":{"name":"a","arguments":{}}}`, "$.functionCall.arguments is not known"},
		{"gemini result", `{"functionResponse":{"name":"a","response":"x"}}`, "$.functionResponse.response is 'x'"},
		{"mcp result", `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text"}]}}`, "the client: "},
		{"mcp call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}`, "the client: "},
		{"mcp definition", `{"name":"a","inputSchema":{"type":"object"},"output_schema":{}}`, "$.output_schema is not known"},
	} {
		wrong = append(wrong, document{one.as, one.fault, json.RawMessage(one.text)})
	}
	for i, found := range judged(t, wrong)[:len(wrong)] {
		assert.Contains(t, strings.Join(found.Faults, "\n"), wrong[i].Name)
	}
}

// judgement is what accept.py says of a document.
type judgement struct {
	Name   string
	Faults []string
}

// judged returns a judgement for each document, and maybe some about the list of reasons.
func judged(t *testing.T, written []document) (all []judgement) {
	t.Helper()
	var lines bytes.Buffer
	for _, one := range written {
		require.NoError(t, json.NewEncoder(&lines).Encode(one))
	}
	for i, line := range script(t, "accept.py", &lines) {
		var found judgement
		require.NoError(t, json.Unmarshal(line, &found))
		if i < len(written) {
			require.Equal(t, written[i].Name, found.Name)
		}
		all = append(all, found)
	}
	require.GreaterOrEqual(t, len(all), len(written))
	return all
}

// script runs one of the scripts here, and returns the lines that it writes.
func script(t *testing.T, name string, input *bytes.Buffer) [][]byte {
	t.Helper()
	require.NotEmpty(t, *python, `run "make clients"`)
	var complaints bytes.Buffer
	command := exec.CommandContext(t.Context(), *python, "-B", name)
	command.Stdin, command.Stderr = input, &complaints
	output, err := command.Output()
	require.NoError(t, err, "%s: %s", name, complaints.String())
	return bytes.Split(bytes.TrimSpace(output), []byte("\n"))
}

// each returns the elements of a JSON array as documents.
func each(t *testing.T, as, name string, array json.RawMessage, err error) (all []document) {
	t.Helper()
	require.NoError(t, err, name)
	var elements []json.RawMessage
	require.NoError(t, json.Unmarshal(array, &elements))
	require.NotEmpty(t, elements)
	for i, element := range elements {
		all = append(all, document{as, fmt.Sprintf("%s %s %d", as, name, i), element})
	}
	return all
}

// offer is a tool that is offered and never run.
type offer struct{ manifest *manifests.Manifest }

func (o offer) Manifest() *manifests.Manifest { return o.manifest }
func (o offer) Invoke(context.Context, tool.Invocation) (tool.Outcome, error) {
	return tool.Outcome{}, tool.Internal
}

// definitions are those of all first-party tools, strict and not.
func definitions(t *testing.T, dialect dialects.Dialect) (all []document) {
	t.Helper()
	tools := registry.New()
	folder, err := filepath.Abs("../../wasm-tools")
	require.NoError(t, err)
	require.NoError(t, tools.Load(t.Context(), registry.Directory(folder, nil), func(_ context.Context, m *manifests.Manifest) (registry.Tool, error) {
		return offer{m}, nil
	}))
	offered := tools.Definitions()
	require.Greater(t, len(offered), 10)
	for _, strict := range []bool{false, true} {
		written, _, err := dialect.Definitions(offered, dialects.DefinitionOptions{Strict: strict})
		all = append(all, each(t, dialect.Name()+" definition", fmt.Sprintf("strict=%v", strict), written, err)...)
	}
	return all
}

// exchanged are calls of all types and from all providers, and results of all forms.
func exchanged(t *testing.T, dialect dialects.Dialect) []document {
	t.Helper()
	var calls []tool.Call
	var records []tool.Record
	for i, result := range results() {
		call := tool.Call{ID: fmt.Sprintf("call_%d", i), Type: tool.FunctionCall, Function: tool.Function{Name: "weather", Arguments: `{"city": "Zürich"}`}}
		calls = append(calls, call)
		call.Origin = `{"responses":{"namespace":"crm","caller":{"type":"program","caller_id":"prog_1"},"async":true},` +
			`"anthropic":{"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_1"},"toolset_name":"browser"}}`
		call.Signature = "c2lnbmVk"
		calls = append(calls, call)
		half := tool.Call{ID: call.ID, Type: call.Type, Function: tool.Function{Name: "weather", Arguments: `{"city": "Z`}, Incomplete: true}
		custom := tool.Call{ID: call.ID, Type: tool.CustomCall, Function: tool.Function{Name: "apply_patch", Arguments: "*** Begin"}, Origin: call.Origin}
		shell := tool.Call{ID: call.ID, Type: tool.LocalShellCall, Function: tool.Function{Name: "local_shell", Arguments: `{"command":["ls"],"env":{"A":"b"}}`}}
		calls = append(calls, half, custom, shell)
		for _, one := range []tool.Call{call, half, custom, shell} {
			records = append(records, tool.Record{Call: one, CallID: fmt.Sprint(i), Result: result})
		}
	}
	written, err := dialect.Calls(calls)
	all := each(t, dialect.Name()+" call", "", written, err)
	written, err = dialect.Results(records)
	return append(all, each(t, dialect.Name()+" result", "", written, err)...)
}

// results are results of all forms: text, data, all kinds of content, and failures of all kinds.
func results() []tool.Result {
	image := []byte("\x89PNG")
	all := []tool.Result{
		{Success: true},
		{Success: true, Output: "rain"},
		{Success: true, Output: "rain", Data: json.RawMessage(`{"mm":3.5}`)},
		{Success: true, Data: json.RawMessage(`[1,null]`)},
		{Success: true, Output: "… cut at 5 bytes", Data: json.RawMessage(`{}`)},
		{Success: true, Output: "a", Content: []tool.Content{
			{Type: "image", MIMEType: "image/png", Data: image, Name: "a.png"}, {Type: "image", MIMEType: "image/bmp", Data: image},
			{Type: "image", URL: "https://example.com/a.png"}, {Type: "image", MIMEType: "image/webp", URL: "https://example.com/a.webp"},
			{Type: "text", Text: "b"}, {Type: "link", URL: "https://example.com/", Name: "c", Text: "about it"}, {Type: "link", URL: "http://example.com/"},
			{Type: "file", MIMEType: "application/pdf", Data: []byte("%PDF"), Name: "d.pdf"}, {Type: "file", MIMEType: "application/pdf", URL: "https://example.com/d.pdf"},
			{Type: "file", MIMEType: "text/plain", Data: []byte("e")}, {Type: "file", MIMEType: "audio/wav", Data: []byte("f")}, {Type: "file", Text: "g", Name: "g.txt"},
			{Type: "file", Name: "h"},
		}},
		{Success: true, Content: []tool.Content{{Type: "image", MIMEType: "image/gif", Data: image}}},
	}
	for _, kind := range tool.Kinds() {
		all = append(all, tool.Result{Kind: kind, Error: "it did not work"},
			tool.Result{Kind: kind, Error: "no", Output: "a", Data: json.RawMessage(`{"b":1}`), Content: []tool.Content{{Type: "image", MIMEType: "image/png", Data: image}}})
	}
	return all
}
