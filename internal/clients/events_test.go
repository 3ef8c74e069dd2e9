//go:build clients

package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/responses"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// acting is a tool that the host runs.
type acting struct {
	offer
	run func(tool.Host) tool.Result
}

func (a acting) Invoke(_ context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	return tool.Outcome{Result: a.run(invocation.Host)}, nil
}

// events are those of a batch with a call for each kind of item, which pauses; of the same batch when it is
// resumed; and of responses that fail, before they began and after.
func events(t *testing.T) (all []document) {
	t.Helper()
	run, err := executor.New(household(t), executor.Options{})
	require.NoError(t, err)
	session, err := run.NewSession(executor.SessionOptions{})
	require.NoError(t, err)
	add := func(name string, written []dialects.Event) {
		for i, event := range written {
			all = append(all, document{"responses event", fmt.Sprintf("%s %d %s", name, i, event.Name), event.Data})
		}
	}
	var report executor.Report
	written := streamed(t, func(stream *executor.Stream) (err error) {
		report, err = run.Execute(t.Context(), executor.Batch{Session: session, Calls: asked(), Stream: stream})
		return err
	})
	require.Equal(t, executor.RequiresAction, report.Status)
	add("paused", written)
	resumption := executor.Resumption{State: *report.State, Session: session}
	for _, action := range report.Pending {
		if action.Type == tool.NeedsApproval {
			resumption.Approvals = append(resumption.Approvals, tool.Approval{CallID: action.CallID, Approve: true, Fingerprint: action.Fingerprint})
			continue
		}
		resumption.Outputs = append(resumption.Outputs, tool.Answer{CallID: action.CallID, Result: tool.Result{Success: true, Output: "done"}})
	}
	add("resumed", streamed(t, func(stream *executor.Stream) error {
		resumption.Stream = stream
		_, err := run.Resume(t.Context(), resumption)
		return err
	}))
	add("refused", responses.NewEvents(responses.EventsOptions{}).Fail("it was refused"))
	broken := responses.NewEvents(responses.EventsOptions{Model: "model-1", PreviousResponseID: "resp_0", ServerLabel: "label"})
	began, err := broken.Map(tool.Event{Type: tool.BatchStarted, Batch: "b"})
	require.NoError(t, err)
	add("failed", append(began, broken.Fail("it broke")...))
	return all
}

// streamed returns the events of a batch.
func streamed(t *testing.T, execute func(*executor.Stream) error) (all []dialects.Event) {
	t.Helper()
	stream, err := executor.NewStream(executor.StreamOptions{})
	require.NoError(t, err)
	var failed error
	var running sync.WaitGroup
	running.Go(func() { failed = execute(stream) })
	writer := responses.NewEvents(responses.EventsOptions{Model: "model-1"})
	for event, err := range stream.Events(t.Context()) {
		require.NoError(t, err)
		mapped, err := writer.Map(event)
		require.NoError(t, err)
		all = append(all, mapped...)
	}
	running.Wait()
	require.NoError(t, failed)
	return all
}

// asked has a call of each tool of the household, one of none, and half a call.
func asked() (calls []tool.Call) {
	add := func(kind, name, arguments string) {
		calls = append(calls, tool.Call{ID: fmt.Sprintf("call_%d", len(calls)), Type: kind, Function: tool.Function{Name: name, Arguments: arguments}})
	}
	for _, name := range []string{"searches", "draws", "fails_to_draw", "finds", "fails_to_find", "adds", "fails", "writes", "fails_to_write", "unheard_of"} {
		add(tool.FunctionCall, name, `{"text": "a \u00fc"}`)
	}
	add(tool.FunctionCall, "ask_user", `{"question": "a \u00fc"}`)
	add(tool.CustomCall, "apply_patch", "--- \"a\"\n")
	add(tool.LocalShellCall, "local_shell", `{"command":["ls","-l"]}`)
	add(tool.FunctionCall, "wipes", `{}`)
	add(tool.FunctionCall, "adds", `{"te`)
	calls[len(calls)-1].Incomplete = true
	return calls
}

// household has a tool for each kind of item, and those that a client runs.
func household(t *testing.T) *registry.Registry {
	t.Helper()
	tools := registry.New()
	register := func(name, keys string, result tool.Result, emissions ...tool.Emission) {
		m, err := manifests.Parse(name+".yaml", fmt.Appendf(nil, "schema: caisson/v1\nname: %s\ndescription: It %s.\nparameters: {type: object, properties: {text: {type: string}}}\nmodule: {path: x.wasm}\n%s\n", name, name, keys))
		require.NoError(t, err)
		require.NoError(t, tools.Register("test", acting{offer{m}, func(host tool.Host) tool.Result {
			for _, emission := range emissions {
				require.NoError(t, host.Emit(emission))
			}
			return result
		}}))
	}
	half, good, bad := 0.5, tool.Result{Success: true, Output: "one two"}, tool.Result{Error: "it does not work", Kind: tool.ToolFailed, Output: "half of it"}
	const reads = "behavior: {read_only: true}\n"
	register("searches", reads+"category: web_search", tool.Result{Success: true, Data: json.RawMessage(`{"results":[{"url":"https://example.org/"}]}`)},
		tool.Emission{Type: tool.EmitProgress, Text: "searching", Fraction: &half},
		tool.Emission{Type: tool.EmitLink, Text: "a page", Data: json.RawMessage(`"https://example.com/"`)})
	register("draws", reads+"category: image_generation", good,
		tool.Emission{Type: tool.EmitImage, MIMEType: "image/png", Data: json.RawMessage(`"aGFsZg=="`), Partial: true},
		tool.Emission{Type: tool.EmitImage, MIMEType: "image/png", Data: json.RawMessage(`"d2hvbGU="`)})
	register("fails_to_draw", reads+"category: image_generation", bad)
	register("finds", reads+"category: file_search", tool.Result{Success: true, Data: json.RawMessage(`{"results":[{"file_id":"f","filename":"notes.txt","score":0.5,"text":"eggs","attributes":{"a":1,"b":null}}]}`)})
	register("fails_to_find", reads+"category: file_search", bad)
	register("adds", reads, good, tool.Emission{Type: tool.EmitJSON, Data: json.RawMessage(`{}`)})
	register("fails", reads, bad)
	final := strings.Replace(reads, "}", ", final: true}", 1)
	register("writes", final, good, tool.Emission{Type: tool.EmitText, Text: "one "})
	register("fails_to_write", final, bad, tool.Emission{Type: tool.EmitText, Text: "half "})
	register("wipes", "behavior: {destructive: true}", good)
	clients, err := filepath.Abs("../../wasm-tools/client")
	require.NoError(t, err)
	require.NoError(t, tools.Load(t.Context(), registry.Directory(clients, nil), func(_ context.Context, m *manifests.Manifest) (registry.Tool, error) {
		return offer{m}, nil
	}))
	return tools
}
