package caisson_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/known"
	"github.com/caisson-run/caisson/dialects/responses"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/tooltest"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// traceback is the text that Python prints about an uncaught exception.
const traceback = "Traceback (most recent call last):\n  File \"tool.py\", line 3, in <module>\n    raise ValueError(\"no such city; try Oslo\")\nValueError: no such city; try Oslo\n"

// failures are tools that fail in the way that is usual in their language, and the reason that each gives.
// The one in the way of Python looks for /pyvenv.cfg as it starts, and the one in C for a file in /etc; no
// grant covers either.
var failures = []struct {
	name, module, arguments string
	reason                  string
}{
	{"python", "internal/guests/failing/failing.wasm", fmt.Sprintf(`{"log":%q,"code":1}`, traceback), "ValueError: no such city; try Oslo"},
	{"c", "internal/guests/failing/c/failing.wasm", `{"city":"Ys"}`, `no such city: {"city":"Ys"}; try Oslo`},
	{"go", "wasm-tools/calculator/calculator.wasm", `{"expression":"1 / 0"}`, "division by zero"},
	{"go_panic", "internal/guests/failing/failing.wasm", `{"code":"one"}`, "panic: json: cannot unmarshal string into Go struct field"},
}

// TestModelsReadTheReason: whichever language a tool is written in and whichever provider the model is of, the
// model reads the tool's own reason, whether the batch is streamed or not.
func TestModelsReadTheReason(t *testing.T) {
	root := noerr.Get(guests.Compile(t.Context(), "internal/guests/failing", "wasm-tools/calculator"))(t)
	content, calls := map[string]string{}, []tool.Call{}
	for _, f := range failures {
		module := noerr.Get(os.ReadFile(filepath.Join(root, filepath.FromSlash(f.module))))(t)
		content[f.name+".wasm"] = string(module)
		content[f.name+".tool.yaml"] = fmt.Sprintf("schema: caisson/v1\nname: %s\ndescription: Fails.\nmodule: {path: %[1]s.wasm}\nparameters: {type: object}\n", f.name)
		calls = append(calls, tool.Call{ID: "call_" + f.name, Type: tool.FunctionCall, Function: tool.Function{Name: f.name, Arguments: f.arguments}})
	}
	_, cache := noerr.Get2(guests.CompiledCode())(t)
	host := open(t, caisson.Options{Tools: []string{tooltest.Files(t, content)}, Runtime: runtime.Options{CacheDir: cache}})

	whole := noerr.Get(host.Execute(t.Context(), executor.Batch{Calls: calls}))(t)
	var streamed []tool.Record
	var events strings.Builder
	shown := responses.NewEvents(responses.EventsOptions{})
	noerr.Get(host.Stream(t.Context(), executor.Batch{Calls: calls}, func(event tool.Event) bool {
		if event.Record != nil {
			streamed = append(streamed, *event.Record)
		}
		mapped := noerr.Get(shown.Map(event))(t)
		for _, e := range mapped {
			require.NoError(t, dialects.WriteEvent(&events, e))
		}
		return true
	}))(t)

	for i, f := range failures {
		t.Run(f.name, func(t *testing.T) {
			for name, records := range map[string][]tool.Record{"whole": whole.Records, "streamed": streamed} {
				require.Len(t, records, len(failures), name)
				record := records[i]
				assert.Equal(t, tool.ToolFailed, record.Result.Kind, "%s: %s", name, record.Result.Error)
				for _, d := range known.Dialects() {
					written := noerr.Get(d.Results([]tool.Record{record}))(t)
					assert.Equal(t, 1, strings.Count(read(t, d, written), f.reason), "%s, %s: %s", d.Name(), name, written)
				}
			}
			quoted := noerr.Get(json.Marshal(f.reason))(t)
			assert.Contains(t, events.String(), strings.Trim(string(quoted), `"`))
		})
	}
}

// read returns what a model reads of the one result in a dialect's document: all of its texts.
func read(t *testing.T, d dialects.Dialect, written json.RawMessage) string {
	t.Helper()
	answers := noerr.Get(d.Answers(written))(t)
	require.Len(t, answers.Outputs, 1, "%s", written)
	result := answers.Outputs[0].Result
	assert.False(t, result.Success, "%s: the model learns that the call failed", d.Name())
	return result.Error + "\n" + result.Output + "\n" + string(result.Data)
}

// TestOnlyTheOperatorReadsWhyTheHostFailed: the reason that a module cannot be used names files of the host. The kept
// record has it for the operator, and neither the answer nor what a tenant reads of the record has.
func TestOnlyTheOperatorReadsWhyTheHostFailed(t *testing.T) {
	dir, state := tooltest.Files(t, map[string]string{
		"lost.tool.yaml": "schema: caisson/v1\nname: lost\ndescription: Has no module.\nmodule: {path: lost.wasm}\nparameters: {type: object}\n",
		"text.tool.yaml": "schema: caisson/v1\nname: text\ndescription: Has no module either.\nmodule: {path: text.wasm}\nparameters: {type: object}\n",
		"text.wasm":      "package main\n",
	}), t.TempDir()
	host := open(t, caisson.Options{Tools: []string{dir}, StateDir: state, NoCache: true})
	session := noerr.Get(host.NewSession(executor.SessionOptions{ID: "1", Tenant: "acme"}))(t)
	for name, reason := range map[string]string{"lost": "lost.wasm does not exist", "text": "text.wasm"} {
		report := noerr.Get(host.Execute(t.Context(), executor.Batch{Session: session, Calls: []tool.Call{{ID: "1", Type: tool.FunctionCall, Function: tool.Function{Name: name, Arguments: "{}"}}}}))(t)
		record := report.Records[0]
		assert.Equal(t, tool.Result{Kind: tool.Internal, Error: fmt.Sprintf("internal error (id %s)", record.CallID)}, record.Result)
		kept, _ := noerr.Get2(host.KeptCall(t.Context(), "acme", record.CallID))(t)
		assert.NotContains(t, string(kept.Record), reason)
		entry := tooltest.Kept(t, state, record.CallID)
		assert.Contains(t, entry.Cause, "module cannot be used: ")
		assert.Contains(t, entry.Cause, reason)
	}
}
