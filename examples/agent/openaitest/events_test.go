package openaitest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/respjson"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	api "github.com/caisson-run/caisson/dialects/responses"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// TestEventsAreTheirs: the events of a batch with a call of each kind, which pauses and is resumed,
// are read by the client's own reader: each is of a type that it knows, complete, and without
// members that it does not know; and the response that it assembles equals that at our stream's end.
func TestEventsAreTheirs(t *testing.T) {
	run, err := executor.New(household(t), executor.Options{})
	require.NoError(t, err)
	session, err := run.NewSession(executor.SessionOptions{})
	require.NoError(t, err)

	first, paused := transcript(t, api.EventsOptions{Model: "model-1"}, func(stream *executor.Stream) (executor.Report, error) {
		return run.Execute(t.Context(), executor.Batch{Session: session, Calls: asked(), Stream: stream})
	})
	require.Equal(t, executor.RequiresAction, paused.Status)
	response := read(t, first)
	assert.Equal(t, []string{
		"custom_tool_call", "file_search_call", "function_call", "image_generation_call", "local_shell_call", "mcp_approval_request", "mcp_call", "mcp_call", "mcp_call", "message", "web_search_call",
	}, kinds(response), "a tool whose output is final has two")

	// The client answers in its own types.
	answers := answered(t, response)
	second, ended := transcript(t, api.EventsOptions{Model: "model-1", PreviousResponseID: response.ID}, func(stream *executor.Stream) (executor.Report, error) {
		return run.Resume(t.Context(), executor.Resumption{State: *paused.State, Session: session, Outputs: answers.Outputs, Approvals: answers.Approvals, Stream: stream})
	})
	require.Equal(t, executor.Completed, ended.Status)
	response = read(t, second)
	assert.Equal(t, []string{"mcp_call"}, kinds(response), "the call that was approved")
	for _, record := range ended.Records {
		assert.Equal(t, record.Function.Name != "fails", record.Result.Success, "%s: %s", record.Function.Name, record.Result.Error)
	}
}

// asked has a call of each tool of the household.
func asked() []tool.Call {
	var calls []tool.Call
	add := func(kind, name, arguments string) {
		calls = append(calls, tool.Call{ID: fmt.Sprintf("call_%d", len(calls)), Type: kind, Function: tool.Function{Name: name, Arguments: arguments}})
	}
	for _, name := range []string{"searches", "draws", "finds", "adds", "fails", "writes"} {
		add(tool.FunctionCall, name, `{"text": "a \u00fc"}`)
	}
	add(tool.FunctionCall, "ask_user", `{"question": "a \u00fc"}`)
	add(tool.CustomCall, "apply_patch", "--- \"a\"\n")
	add(tool.LocalShellCall, "local_shell", `{"command":["ls","-l"]}`)
	add(tool.FunctionCall, "wipes", `{}`)
	return calls
}

// transcript executes a batch and writes what its stream shows.
func transcript(t *testing.T, options api.EventsOptions, execute func(*executor.Stream) (executor.Report, error)) ([]byte, executor.Report) {
	t.Helper()
	stream, err := executor.NewStream(executor.StreamOptions{})
	require.NoError(t, err)
	var report executor.Report
	var failed error
	var running sync.WaitGroup
	running.Go(func() { report, failed = execute(stream) })
	events := api.NewEvents(options)
	var text bytes.Buffer
	for event, err := range stream.Events(t.Context()) {
		require.NoError(t, err)
		mapped, err := events.Map(event)
		require.NoError(t, err)
		for _, m := range mapped {
			require.NoError(t, dialects.WriteEvent(&text, m))
		}
	}
	running.Wait()
	require.NoError(t, failed)
	return text.Bytes(), report
}

// read has the client read a transcript, and returns the response with which it ends.
func read(t *testing.T, transcript []byte) responses.Response {
	t.Helper()
	server := serve(transcript)
	defer server.Close()
	client := openai.NewClient(option.WithBaseURL(server.URL+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0))
	return together(t, client.Responses.NewStreaming(t.Context(), responses.ResponseNewParams{Model: "model-1"}))
}

// together has the client put a streamed response together, and returns it.
func together(t *testing.T, stream *ssestream.Stream[responses.ResponseStreamEventUnion]) responses.Response {
	t.Helper()
	var together responses.ResponseAccumulator
	var before responses.ResponseAccumulatorSnapshot // of the end, which repeats everything
	var last responses.ResponseStreamEventUnion
	count := int64(0)
	for stream.Next() {
		last = stream.Current()
		assert.Equal(t, count, last.SequenceNumber)
		count++
		known := last.AsAny()
		if !assert.NotNil(t, known, last.Type) {
			continue
		}
		complete(t, reflect.ValueOf(known), last.Type)
		var event responses.ResponsesServerEventUnion
		require.NoError(t, json.Unmarshal([]byte(last.RawJSON()), &event))
		before = together.Snapshot()
		require.NoError(t, together.AddEvent(event), last.RawJSON())
	}
	require.NoError(t, stream.Err())
	require.Equal(t, "response.completed", last.Type)
	assert.Equal(t, together.Snapshot().Output, before.Output, "the end repeats what came before")
	whole, err := together.ReconstructedResponse()
	require.NoError(t, err)
	assert.JSONEq(t, last.AsResponseCompleted().Response.RawJSON(), whole.RawJSON())
	return *whole
}

// complete fails where a value that the client has read lacks a member that it requires, has one
// that it does not know, or has one of another type.
func complete(t assert.TestingT, value reflect.Value, path string) {
	if method := value.MethodByName("AsAny"); method.IsValid() {
		variant := method.Call(nil)[0]
		if !variant.IsNil() {
			complete(t, variant.Elem(), path)
		}
		return
	}
	switch value.Kind() {
	case reflect.Slice:
		for i := range value.Len() {
			complete(t, value.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Struct:
		about := value.FieldByName("JSON")
		if !about.IsValid() {
			return
		}
		if extra := about.FieldByName("ExtraFields"); extra.IsValid() {
			assert.Empty(t, extra.Interface(), "%s: the client does not know it", path)
		}
		for i := range value.NumField() {
			member(t, value.Type().Field(i), value.Field(i), about, path)
		}
	}
}

func member(t assert.TestingT, field reflect.StructField, value, about reflect.Value, path string) {
	read := about.FieldByName(field.Name)
	if field.Name == "JSON" || !read.IsValid() {
		return
	}
	path += "." + strings.Split(field.Tag.Get("json"), ",")[0]
	known := read.Interface().(respjson.Field)
	if field.Tag.Get("api") == "required" {
		assert.NotEqual(t, respjson.Omitted, known.Raw(), "%s is missing", path)
	}
	if known.Raw() != respjson.Omitted && known.Raw() != respjson.Null {
		assert.True(t, known.Valid(), "%s is %s", path, known.Raw())
		complete(t, value, path)
	}
}

// faults counts what a check finds.
type faults int

func (f *faults) Errorf(string, ...any) { *f++ }

// TestFaultsAreFound is the control of complete.
func TestFaultsAreFound(t *testing.T) {
	for document, want := range map[string]faults{
		`{"type":"response.output_item.done","output_index":1,"sequence_number":2,"item":{"type":"custom_tool_call","call_id":"a","input":"b","name":"c"}}`:              0,
		`{"type":"response.output_item.done","output_index":1,"item":{"type":"custom_tool_call","call_id":"a","input":"b","name":"c"}}`:                                  1,
		`{"type":"response.output_item.done","output_index":1,"sequence_number":2,"item":{"type":"custom_tool_call","call_id":"a","name":"c"}}`:                          1,
		`{"type":"response.output_item.done","output_index":1,"sequence_number":2,"item":{"type":"custom_tool_call","call_id":"a","input":"b","name":"c","colour":"d"}}`: 1,
		`{"type":"response.output_item.done","output_index":"one","sequence_number":2,"item":{"type":"custom_tool_call","call_id":"a","input":"b","name":"c"}}`:          1,
	} {
		var event responses.ResponseStreamEventUnion
		require.NoError(t, json.Unmarshal([]byte(document), &event))
		var found faults
		complete(&found, reflect.ValueOf(event.AsAny()), "event")
		assert.Equal(t, want, found, document)
	}
}

func kinds(response responses.Response) []string {
	var found []string
	for _, item := range response.Output {
		found = append(found, item.Type)
	}
	slices.Sort(found)
	return found
}

// answered answers a response's calls as a program does that uses the client.
func answered(t *testing.T, response responses.Response) dialects.Answers {
	t.Helper()
	answers, err := api.New().Answers(written(t, response))
	require.NoError(t, err)
	return answers
}

// written are the answers to a response's calls as the client writes them.
func written(t *testing.T, response responses.Response) json.RawMessage {
	t.Helper()
	var items []responses.ResponseInputItemUnionParam
	for _, output := range response.Output {
		switch item := output.AsAny().(type) {
		case responses.ResponseFunctionToolCall:
			assert.JSONEq(t, `{"question":"a ü"}`, item.Arguments)
			output := responses.ResponseInputItemParamOfFunctionCallOutput("it is done")
			output.OfFunctionCallOutput.CallID = openai.String(item.CallID)
			items = append(items, output)
		case responses.ResponseCustomToolCall:
			assert.Equal(t, "--- \"a\"\n", item.Input)
			items = append(items, responses.ResponseInputItemParamOfCustomToolCallOutput(item.CallID, "it is done"))
		case responses.ResponseOutputItemLocalShellCall:
			assert.Equal(t, []string{"ls", "-l"}, item.Action.Command)
			items = append(items, responses.ResponseInputItemParamOfLocalShellCallOutput(item.CallID, "it is done"))
		case responses.ResponseOutputItemMcpApprovalRequest:
			assert.Equal(t, "wipes", item.Name)
			items = append(items, responses.ResponseInputItemParamOfMcpApprovalResponse(item.ID, true))
		}
	}
	document, err := json.Marshal(items)
	require.NoError(t, err)
	return document
}

// acting is a tool that the host runs.
type acting struct {
	offer
	run func(tool.Host) tool.Result
}

func (a acting) Invoke(_ context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	return tool.Outcome{Result: a.run(invocation.Host)}, nil
}

// household has a tool for each kind of item.
func household(t *testing.T) *registry.Registry {
	t.Helper()
	tools := registry.New()
	furnish(t, tools)
	return tools
}

// furnish registers the tools of the household.
func furnish(t *testing.T, tools *registry.Registry) {
	t.Helper()
	register := func(name, keys string, run func(tool.Host) tool.Result) {
		m, err := manifests.Parse(name+".yaml", fmt.Appendf(nil, "schema: caisson/v1\nname: %s\ndescription: It %s.\nparameters: {type: object, properties: {text: {type: string}}}\n%s\n", name, name, keys))
		require.NoError(t, err)
		require.NoError(t, tools.Register("test", acting{offer{m}, run}))
	}
	const module = "module: {path: x.wasm}\nbehavior: {read_only: true}\n"
	says := func(emissions ...tool.Emission) func(tool.Host) tool.Result {
		return func(host tool.Host) tool.Result {
			for _, emission := range emissions {
				require.NoError(t, host.Emit(emission))
			}
			return tool.Result{Success: true, Output: "one two"}
		}
	}
	half := 0.5
	register("searches", module+"category: web_search", says(
		tool.Emission{Type: tool.EmitProgress, Text: "searching", Fraction: &half},
		tool.Emission{Type: tool.EmitLink, Text: "a page", Data: json.RawMessage(`"https://example.com/"`)},
	))
	register("draws", module+"category: image_generation", says(
		tool.Emission{Type: tool.EmitImage, MIMEType: "image/png", Data: json.RawMessage(`"aGFsZg=="`), Partial: true},
		tool.Emission{Type: tool.EmitImage, MIMEType: "image/png", Data: json.RawMessage(`"d2hvbGU="`)},
	))
	register("finds", module+"category: file_search", func(tool.Host) tool.Result {
		return tool.Result{Success: true, Output: "found", Data: json.RawMessage(`{"results":[{"file_id":"f","filename":"notes.txt","score":0.5,"text":"eggs"}]}`)}
	})
	register("adds", module, says())
	register("fails", module, func(tool.Host) tool.Result { return tool.Result{Error: "it does not work", Kind: tool.ToolFailed} })
	register("writes", strings.Replace(module, "{read_only: true}", "{read_only: true, final: true}", 1), says(tool.Emission{Type: tool.EmitText, Text: "one "}))
	register("wipes", "module: {path: x.wasm}\nbehavior: {destructive: true}", says())
	clients, err := filepath.Abs("../../../wasm-tools/client")
	require.NoError(t, err)
	require.NoError(t, tools.Load(t.Context(), registry.Directory(clients, nil), func(_ context.Context, m *manifests.Manifest) (registry.Tool, error) {
		return offer{m}, nil
	}))
}
