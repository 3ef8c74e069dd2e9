package responses

import (
	"encoding/base64"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/internal/dialecttest"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

var update = flag.Bool("update", false, "write the golden files anew")

// scene is a batch whose events are in testdata/events_NAME.sse.
type scene struct {
	options EventsOptions
	events  []tool.Event
	calls   []tool.Call // that the client is to answer
	text    string      // for the user
}

func emitted(p *tool.Planned, emission tool.Emission) tool.Event {
	e := about(tool.CallOutput, p)
	e.Emission = &emission
	return e
}

func concluded(p *tool.Planned, result tool.Result) tool.Event {
	e := about(tool.CallFinished, p)
	e.Record = &tool.Record{CallID: p.CallID, Result: result}
	return e
}

func waits(p *tool.Planned, action tool.Action) tool.Event {
	e := about(tool.CallWaiting, p)
	action.CallID, action.Tool = p.CallID, p.Tool
	action.Call = tool.Call{ID: p.ID, Type: p.Type, Function: tool.Function{Name: p.Tool, Arguments: p.Arguments}}
	e.Action = &action
	return e
}

// batchOf returns the events of a batch around those of its calls.
func batchOf(first, last tool.EventType, planned []*tool.Planned, within ...tool.Event) []tool.Event {
	begin := tool.Event{Type: first}
	for _, p := range planned {
		begin.Calls = append(begin.Calls, *p)
	}
	all := append(append([]tool.Event{begin}, within...), tool.Event{Type: last, Totals: &tool.Totals{}})
	at := time.Unix(1_795_000_000, 0)
	for i := range all {
		all[i].Batch, all[i].Time = "0199aaaa", at.Add(time.Duration(i)*time.Second)
	}
	return all
}

func base64Image(text string) json.RawMessage {
	return json.RawMessage(`"` + base64.StdEncoding.EncodeToString([]byte(text)) + `"`)
}

func scenes() map[string]scene {
	return map[string]scene{"image": imageScene(), "search": searchScene(), "client": clientScene(), "resumed": resumedScene(), "final": finalScene()}
}

// imageScene: an image with progress and partial images, one that fails, and one without emissions.
func imageScene() scene {
	draw := &tool.Planned{ID: "call_1", CallID: "0199-1", Tool: "draw", Type: "function", Arguments: `{"prompt":"a cat"}`, Category: "image_generation"}
	fails := &tool.Planned{ID: "call_2", CallID: "0199-2", Tool: "draw", Type: "function", Arguments: `{"prompt":""}`, Category: "image_generation"}
	silent := &tool.Planned{ID: "call_3", CallID: "0199-3", Tool: "draw", Type: "function", Arguments: `{}`, Category: "image_generation"}
	half := 0.5
	return scene{options: EventsOptions{ResponseID: "resp_1", Model: "m"}, events: batchOf(
		tool.BatchStarted, tool.BatchFinished, []*tool.Planned{draw, fails, silent},
		about(tool.CallStarted, draw), about(tool.CallStarted, fails), about(tool.CallStarted, silent),
		emitted(draw, tool.Emission{Type: tool.EmitProgress, Text: "drawing", Fraction: &half}),
		emitted(draw, tool.Emission{Type: tool.EmitImage, MIMEType: "image/png", Partial: true, Data: base64Image("rough")}),
		emitted(draw, tool.Emission{Type: tool.EmitImage, MIMEType: "image/png", Partial: true, Data: base64Image("better")}),
		emitted(draw, tool.Emission{Type: tool.EmitImage, MIMEType: "image/webp", Data: base64Image("done")}),
		concluded(draw, tool.Result{Success: true, Output: "A cat."}),
		concluded(fails, tool.Result{Error: "the prompt is empty", Kind: tool.ToolFailed}),
		concluded(silent, tool.Result{Success: true, Content: []tool.Content{{Type: "image", MIMEType: "image/png", Data: []byte("whole")}}}),
	)}
}

func searchScene() scene {
	web := &tool.Planned{ID: "call_1", CallID: "0199-1", Tool: "web_search", Type: "function", Arguments: `{"query":"Bern <weather>"}`, Category: "web_search"}
	files := &tool.Planned{ID: "call_2", CallID: "0199-2", Tool: "find", Type: "function", Arguments: `{"queries":["rain","snow"]}`, Category: "file_search"}
	fails := &tool.Planned{ID: "call_3", CallID: "0199-3", Tool: "web_search", Type: "function", Arguments: `oops`, Category: "web_search"}
	return scene{events: batchOf(
		tool.BatchStarted, tool.BatchFinished, []*tool.Planned{web, files, fails},
		about(tool.CallStarted, files), about(tool.CallStarted, web),
		emitted(web, tool.Emission{Type: tool.EmitProgress, Text: "searching"}),
		about(tool.CallStarted, fails),
		emitted(web, tool.Emission{Type: tool.EmitLink, Text: "Bern", Data: json.RawMessage(`"https://weather.example/bern"`)}),
		concluded(web, tool.Result{Success: true, Output: "rain", Content: []tool.Content{{Type: "link", URL: "https://weather.example/bern"}, {Type: "link", URL: "https://weather.example/be"}}}),
		concluded(files, tool.Result{Success: true, Data: json.RawMessage(`{"results":[{"file_id":"file-1","filename":"rain.txt","score":0.75,"text":"wet","attributes":{"year":2026,"tags":["a"]}}]}`)}),
		concluded(fails, tool.Result{Error: "the arguments are not JSON", Kind: tool.InvalidArguments}),
	)}
}

// clientScene: calls of each type that the client answers, one that it approves of, and one that
// was refused before it came to that.
func clientScene() scene {
	function := &tool.Planned{ID: "call_1", CallID: "0199-1", Tool: "ask", Type: "function", Arguments: `{"question": "Which one?",}`, Client: true}
	patch := &tool.Planned{ID: "call_2", CallID: "0199-2", Tool: "apply_patch", Type: "custom", Arguments: "--- a\n+++ b\n", Client: true}
	shell := &tool.Planned{ID: "call_3", CallID: "0199-3", Tool: "local_shell", Type: "local_shell", Arguments: `{"command":["ls"]}`, Client: true}
	destroys := &tool.Planned{ID: "call_4", CallID: "0199-4", Tool: "file_delete", Type: "function", Arguments: `{"path":"/a"}`}
	refused := &tool.Planned{ID: "call_5", CallID: "0199-5", Tool: "ask", Type: "function", Arguments: `{}`, Client: true}
	return scene{
		options: EventsOptions{ResponseID: "resp_1", PreviousResponseID: "resp_0", Model: "m", ServerLabel: "tools"},
		events: batchOf(
			tool.BatchStarted, tool.BatchPaused, []*tool.Planned{function, patch, shell, destroys, refused},
			about(tool.CallStarted, refused),
			concluded(refused, tool.Result{Error: "question is required", Kind: tool.InvalidArguments}),
			waits(function, tool.Action{Type: tool.NeedsOutput, Arguments: json.RawMessage(`{"question":"Which one?"}`)}),
			waits(patch, tool.Action{Type: tool.NeedsOutput, Arguments: json.RawMessage(`{"patch":"--- a\n+++ b\n"}`)}),
			waits(shell, tool.Action{Type: tool.NeedsOutput, Arguments: json.RawMessage(`{"command":["ls"]}`)}),
			waits(destroys, tool.Action{Type: tool.NeedsApproval, Arguments: json.RawMessage(`{"path":"/a","recursive":false}`), Fingerprint: "9f2c"}),
		),
		calls: []tool.Call{
			dialecttest.Call("call_1", "ask", `{"question":"Which one?"}`), dialecttest.Custom("call_2", "apply_patch", "--- a\n+++ b\n"),
			{ID: "call_3", Type: "local_shell", Function: tool.Function{Name: "local_shell", Arguments: `{"command":["ls"],"env":{}}`}},
		},
	}
}

// resumedScene: a batch that continues after the client has answered and approved.
func resumedScene() scene {
	answered := &tool.Planned{ID: "call_1", CallID: "0199-1", Tool: "ask", Type: "function", Arguments: `{}`, Client: true}
	approved := &tool.Planned{ID: "call_4", CallID: "0199-4", Tool: "file_delete", Type: "function", Arguments: `{"path":"/a"}`}
	refused := &tool.Planned{ID: "call_6", CallID: "0199-6", Tool: "file_delete", Type: "custom", Arguments: "/b"}
	return scene{options: EventsOptions{PreviousResponseID: "resp_1"}, events: batchOf(
		tool.BatchResumed, tool.BatchFinished, []*tool.Planned{answered, approved, refused},
		about(tool.CallStarted, answered), concluded(answered, tool.Result{Success: true, Output: "the first"}),
		about(tool.CallStarted, approved),
		emitted(approved, tool.Emission{Type: tool.EmitText, Text: "not shown"}),
		concluded(approved, tool.Result{Success: true, Output: "deleted", Data: json.RawMessage(`{"bytes":7}`)}),
		about(tool.CallStarted, refused), concluded(refused, tool.Result{Error: "the user refused", Kind: tool.Denied}),
	)}
}

// finalScene has an output that is shown to the user while it is emitted, with the rest at the end, and an output
// that does not continue the emitted text.
func finalScene() scene {
	report := &tool.Planned{ID: "call_1", CallID: "0199-1", Tool: "report", Type: "function", Arguments: ``, Final: true}
	lost := &tool.Planned{ID: "call_2", CallID: "0199-2", Tool: "report", Type: "function", Arguments: `{}`, Final: true}
	broke := &tool.Planned{ID: "call_3", CallID: "0199-3", Tool: "report", Type: "function", Arguments: `{}`, Final: true}
	return scene{text: "It rains. 🌦Snow.The whole.Half", events: batchOf(
		tool.BatchStarted, tool.BatchFinished, []*tool.Planned{report, lost, broke},
		about(tool.CallStarted, report),
		emitted(report, tool.Emission{Type: tool.EmitText, Text: "It "}),
		about(tool.CallStarted, lost), about(tool.CallStarted, broke),
		emitted(report, tool.Emission{Type: tool.EmitText, Text: "rains."}),
		concluded(report, tool.Result{Success: true, Output: "It rains. 🌦"}),
		emitted(lost, tool.Emission{Type: tool.EmitText, Text: "Snow."}),
		concluded(lost, tool.Result{Success: true, Output: "The whole."}),
		emitted(broke, tool.Emission{Type: tool.EmitText, Text: "Half"}),
		concluded(broke, tool.Result{Error: "it broke", Kind: tool.Internal}),
	)}
}

func TestEventTranscripts(t *testing.T) {
	for name, s := range scenes() {
		t.Run(name, func(t *testing.T) {
			written := mappedBy(t, NewEvents(s.options), s.events)
			text := transcribed(t, written)
			path := filepath.Join("testdata", "events_"+name+".sse")
			if *update {
				require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
			}
			assert.Equal(t, string(dialecttest.Fixture(t, "events_"+name+".sse")), text)
			require.NoError(t, checked(written, true))

			stream, _ := noerr.Get2(feed(text))(t)
			assert.ElementsMatch(t, s.calls, stream.Response().ToolCalls)
			assert.Equal(t, s.text, stream.Response().Content)
		})
	}
}

// kinds returns the names of the events about one item, without the common prefix.
func kinds(t testing.TB, events []dialects.Event, item string) []string {
	t.Helper()
	var names []string
	for _, event := range events {
		if strings.Contains(string(event.Data), `"`+item+`"`) && !strings.Contains(event.Name, "response.completed") {
			names = append(names, strings.TrimPrefix(event.Name, "response."))
		}
	}
	return names
}

func TestCustomInputComesAsDeltaAndDone(t *testing.T) {
	written := mapped(t, clientScene().events)
	assert.Equal(t, []string{"output_item.added", "custom_tool_call_input.delta", "custom_tool_call_input.done", "output_item.done"}, kinds(t, written, "ctc_0199-2"))
	assert.Equal(t, []string{"output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"}, kinds(t, written, "fc_0199-1"))
	assert.Equal(t, []string{"output_item.added", "output_item.done"}, kinds(t, written, "lsh_0199-3"))
	assert.Equal(t, []string{"output_item.added", "output_item.done"}, kinds(t, written, "mcpr_0199-4_9f2c"))
}

func TestSearchesSayHowFarTheyAre(t *testing.T) {
	written := mapped(t, searchScene().events)
	all := []string{"output_item.added", "web_search_call.in_progress", "web_search_call.searching", "web_search_call.completed", "output_item.done"}
	assert.Equal(t, all, kinds(t, written, "ws_0199-1"))
	assert.Equal(t, []string{"output_item.added", "file_search_call.in_progress", "file_search_call.searching", "file_search_call.completed", "output_item.done"}, kinds(t, written, "fs_0199-2"), "the tool says nothing")
	assert.Equal(t, []string{"output_item.added", "web_search_call.in_progress", "output_item.done"}, kinds(t, written, "ws_0199-3"), "it failed")
}

// TestSourcesAreWebPages: clients show a tool's sources as links, so only addresses of web pages become sources.
func TestSourcesAreWebPages(t *testing.T) {
	p := &tool.Planned{ID: "call_1", CallID: "0199-1", Tool: "search", Arguments: `{"query":"rain"}`, Category: "web_search"}
	written := mapped(t, batchOf(
		tool.BatchStarted, tool.BatchFinished, []*tool.Planned{p}, about(tool.CallStarted, p),
		concluded(p, tool.Result{
			Success: true, Data: json.RawMessage(`{"results":[{"url":"javascript:alert(1)"},{"url":"https://bank.example@evil.example/"},{"url":"/relative"},{"url":""},{"url":"https://rain.example/"}]}`),
			Content: []tool.Content{{Type: "link", URL: "data:text/html,x"}, {Type: "link", URL: "http://wet.example/"}},
		}),
	))
	require.NoError(t, checked(written, true))
	last := string(written[len(written)-1].Data)
	assert.Contains(t, last, `"sources":[{"type":"url","url":"http://wet.example/"},{"type":"url","url":"https://rain.example/"}]`)
}

func TestPartialImagesAndProgress(t *testing.T) {
	written := mapped(t, imageScene().events)
	assert.Equal(t, []string{
		"output_item.added", "image_generation_call.in_progress", "image_generation_call.generating", "image_generation_call.partial_image",
		"image_generation_call.partial_image", "image_generation_call.completed", "output_item.done",
	}, kinds(t, written, "ig_0199-1"))
	assert.Equal(t, []string{"cm91Z2g=", "YmV0dGVy"}, partialImages(t, written))
	last := string(written[len(written)-1].Data)
	assert.Contains(t, last, `"status":"completed","result":"ZG9uZQ==","output_format":"webp"`)
	assert.Contains(t, last, `"status":"completed","result":"d2hvbGU=","output_format":"png"`)
	assert.Contains(t, last, `"status":"failed","result":null`)
}

// TestAFileSearchMayBeTheAnswer: the files are listed, and the tool's text is the message for the
// user.
func TestAFileSearchMayBeTheAnswer(t *testing.T) {
	p := &tool.Planned{ID: "call_1", CallID: "0199-1", Tool: "find", Arguments: `{"q":"rain"}`, Category: "file_search", Final: true}
	written := mapped(t, batchOf(
		tool.BatchStarted, tool.BatchFinished, []*tool.Planned{p}, about(tool.CallStarted, p),
		concluded(p, tool.Result{Success: true, Output: "It is wet.", Data: json.RawMessage(`[{"filename":"rain.txt","score":1}]`)}),
	))
	require.NoError(t, checked(written, true))
	last := string(written[len(written)-1].Data)
	assert.Contains(t, last, `"queries":["rain"],"results":[{"file_id":"","filename":"rain.txt","score":1,"text":"","attributes":{}}]`)
	assert.Contains(t, last, `"content":[{"type":"output_text","text":"It is wet."`)
}

// TestACutOutputIsNotSaidAgain: text emitted to the user is complete, even if the output for the model is
// cut.
func TestACutOutputIsNotSaidAgain(t *testing.T) {
	p := &tool.Planned{ID: "call_1", CallID: "0199-1", Tool: "report", Arguments: `{}`, Final: true}
	for bytes, want := range map[int64]string{6: "abcdef", 7: "abcdefab… (cut)"} {
		ended := concluded(p, tool.Result{Success: true, Output: "ab… (cut)"})
		ended.Record.Cuts = []tool.Cut{{Part: "output", Bytes: bytes, Kept: 2}}
		stream, _ := noerr.Get2(feed(transcribed(t, mapped(t, batchOf(
			tool.BatchStarted, tool.BatchFinished, []*tool.Planned{p}, about(tool.CallStarted, p),
			emitted(p, tool.Emission{Type: tool.EmitText, Text: "abcdef"}), ended,
		)))))(t)
		assert.Equal(t, want, stream.Response().Content)
	}
}
