package native_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/native"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// newMixedHost returns a host of the calculator and the file tools, with a project to write in, and of Go functions.
func newMixedHost(t *testing.T, project string, functions ...registry.Tool) *caisson.Host {
	t.Helper()
	root, err := guests.Compile(t.Context(), "wasm-tools/calculator", "wasm-tools/files", "examples/digest")
	require.NoError(t, err)
	policy := &manifests.Policy{Grants: []manifests.Grant{{
		Tools: []string{"*"}, Grants: manifests.Grants{Context: manifests.GrantContext("project_id"),
			Files: []manifests.FileGrant{manifests.GrantDirectory("/project", filepath.Join(project, "{project_id}"), manifests.AccessReadWrite)},
			Calls: []manifests.NameGrant{{Name: "fetch_page"}},
		},
	}}}
	var sources []string
	for _, folder := range []string{"wasm-tools/calculator", "wasm-tools/files", "examples/digest"} {
		sources = append(sources, filepath.Join(root, filepath.FromSlash(folder)))
	}
	host, err := caisson.Open(t.Context(), caisson.Options{Tools: sources, Policies: []*manifests.Policy{policy}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, host.Close(context.WithoutCancel(t.Context()))) })
	for _, f := range functions {
		require.NoError(t, host.Registry().Register("program", f))
	}
	return host
}

func calls(pairs ...string) []tool.Call {
	var all []tool.Call
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, tool.Call{ID: fmt.Sprintf("call_%d", i/2), Type: tool.FunctionCall, Function: tool.Function{Name: pairs[i], Arguments: pairs[i+1]}})
	}
	return all
}

func session(t *testing.T, host *caisson.Host, options executor.SessionOptions) *executor.Session {
	t.Helper()
	options.Context = map[string]string{"project_id": "demo"}
	s, err := host.NewSession(options)
	require.NoError(t, err)
	return s
}

type conversion struct {
	Amount int    `json:"amount"`
	To     string `json:"to,omitempty" jsonschema:"the unit"`
}

// converting returns a read-only function that counts how often it runs.
func converting(t *testing.T, runs *atomic.Int32) *native.Tool {
	t.Helper()
	about := native.About{Name: "convert", Category: "math", Aliases: []string{"unit"}, Behavior: manifests.Behavior{ReadOnly: true}}
	return made(t, about, func(_ context.Context, c conversion) (string, error) {
		runs.Add(1)
		return fmt.Sprintf("%d %s", c.Amount*10, c.To), nil
	})
}

// TestFunctionsBesideSandboxedTools: in one batch, calls of functions are checked, repaired, refused and reused as
// those of sandboxed tools are, and their records have the same form.
func TestFunctionsBesideSandboxedTools(t *testing.T) {
	var runs atomic.Int32
	host := newMixedHost(t, t.TempDir(), converting(t, &runs))
	batch := executor.Batch{Session: session(t, host, executor.SessionOptions{}), Calls: calls(
		"calculator", `{"expression": "1/3", "precision": "3"}`, "convert", `{"amount": "3", "to": "mm"}`,
		"calculator", `{"precision": 3}`, "convert", `{"to": "mm"}`,
		"calculator", `{"expression": "1", "more": 1}`, "convert", `{"amount": 1, "more": 1}`,
		"calculator", `{"expression": `, "convert", `{"amount": `,
		"calculater", `{}`, "konvert", `{}`,
		"calculator", `{"expression": "1/3", "precision": 3}`, "unit", `{"amount": 3, "to": "mm"}`,
	)}
	report, err := host.Execute(t.Context(), batch)
	require.NoError(t, err)
	require.Len(t, report.Records, 12)
	assert.Equal(t, "0.333", report.Records[0].Result.Output)
	assert.Equal(t, "30 mm", report.Records[1].Result.Output)
	assert.Equal(t, int32(1), runs.Load(), "the same call under an alias is a duplicate")
	for i := 0; i < len(report.Records); i += 2 {
		sandboxed, function := report.Records[i], report.Records[i+1]
		assert.Equal(t, sandboxed.Result.Kind, function.Result.Kind, "%d: %s", i, function.Result.Error)
		assert.Equal(t, sandboxed.Result.Success, function.Result.Success, i)
		assert.Equal(t, sandboxed.Skipped, function.Skipped, i)
		assert.Equal(t, sandboxed.Cached, function.Cached, i)
		assert.Len(t, function.Repairs, len(sandboxed.Repairs), i)
		assert.Equal(t, members(t, sandboxed), members(t, function), i)
		assert.NotEqual(t, sandboxed.CallID, function.CallID)
	}
	assert.Equal(t, []tool.Kind{"", tool.InvalidArguments, tool.InvalidArguments, tool.InvalidArguments, tool.UnknownTool, ""}, kinds(report.Records, 2))
	assert.Positive(t, report.Records[1].Usage.Wall)

	// Another batch of the session takes both results from the first, until a call may have changed something.
	again := executor.Batch{Session: batch.Session, Calls: calls(
		"calculator", `{"expression": "1/3", "precision": 3}`, "convert", `{"amount": 3, "to": "mm"}`,
		"file_write", `{"path": "a.txt", "content": "x"}`,
		"calculator", `{"expression": "1/3", "precision": 3}`, "convert", `{"amount": 3, "to": "mm"}`,
	)}
	report, err = host.Execute(t.Context(), again)
	require.NoError(t, err)
	for i, reused := range []bool{true, true, false, false, false} {
		record := report.Records[i]
		assert.Equal(t, reused, record.Cached || record.Skipped, "%d: %+v", i, record)
	}
	assert.Equal(t, int32(2), runs.Load())
}

// members returns the names of the members of a record as JSON.
func members(t *testing.T, record tool.Record) []string {
	t.Helper()
	text, err := json.Marshal(record)
	require.NoError(t, err)
	var object map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(text, &object))
	return slices.Sorted(maps.Keys(object))
}

// kinds returns the kind of every nth record.
func kinds(records []tool.Record, n int) (found []tool.Kind) {
	for i := 0; i < len(records); i += n {
		found = append(found, records[i].Result.Kind)
	}
	return found
}

// TestOfAnAgent: an agent's set holds for functions as for other tools, also for the calls that a function makes and
// for those that are made to it.
func TestOfAnAgent(t *testing.T) {
	var runs atomic.Int32
	asking := made(t, native.About{Name: "ask_calculator", Tools: []string{"calculator"}}, func(ctx context.Context, a struct {
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
	}) (string, error) {
		i, _ := native.Invocation(ctx)
		record, err := i.Host.Call(ctx, tool.Call{ID: "inner", Type: tool.FunctionCall, Function: tool.Function{Name: a.Tool, Arguments: string(a.Arguments)}})
		if err != nil {
			return "", err
		}
		if !record.Result.Success {
			return "", errors.New(record.Result.Error)
		}
		return record.Result.Output, nil
	})
	page := made(t, native.About{Name: "fetch_page", Behavior: manifests.Behavior{ReadOnly: true}}, func(_ context.Context, a struct {
		URL         string `json:"url"`
		ExtractType string `json:"extract_type,omitempty"`
	}) (map[string]any, error) {
		return map[string]any{"url": a.URL, "title": "Of a function", "about": map[string]any{}, "links": []any{}}, nil
	})
	host := newMixedHost(t, t.TempDir(), converting(t, &runs), asking, page)
	run := func(allowed []string, name, arguments string) tool.Result {
		report, err := host.Execute(t.Context(), executor.Batch{Session: session(t, host, executor.SessionOptions{Allowed: allowed}), Calls: calls(name, arguments)})
		require.NoError(t, err)
		return report.Records[0].Result
	}
	const sum = `{"tool": "calculator", "arguments": {"expression": "1+1"}}`
	assert.Equal(t, tool.Result{Success: true, Output: "2"}, run([]string{"ask_calculator", "calculator"}, "ask_calculator", sum))
	assert.Equal(t, "calculator is not among the tools that this agent may call", run([]string{"ask_calculator"}, "ask_calculator", sum).Error)
	assert.Equal(t, "ask_calculator may not call convert: its manifest does not ask for it", run(nil, "ask_calculator", `{"tool": "convert", "arguments": {"amount": 1}}`).Error)
	assert.Equal(t, tool.Denied, run([]string{"calculator"}, "convert", `{"amount": 1}`).Kind)
	assert.Equal(t, tool.Denied, run([]string{"calculator"}, "unit", `{"amount": 1}`).Kind, "its alias")
	assert.Equal(t, tool.Denied, run([]string{}, "convert", `{"amount": 1}`).Kind, "an agent without tools")
	assert.Equal(t, "10 ", run([]string{"convert"}, "unit", `{"amount": 1}`).Output)
	assert.Equal(t, int32(1), runs.Load())

	const site = `{"url": "https://example.com/"}`
	digest := run([]string{"site_digest", "fetch_page"}, "site_digest", site)
	assert.Contains(t, string(digest.Data), "Of a function", digest.Error)
	assert.Contains(t, run([]string{"site_digest"}, "site_digest", site).Error, "fetch_page is not among the tools")
}

// TestStreamed: a function's emissions are shown as its call's output, not interleaved with that of other calls.
func TestStreamed(t *testing.T) {
	steps := made(t, native.About{Name: "steps", Behavior: manifests.Behavior{ReadOnly: true}}, func(ctx context.Context, a struct {
		Name string `json:"name"`
	}) (string, error) {
		i, _ := native.Invocation(ctx)
		for step := range 3 {
			if err := i.Host.Emit(tool.Emission{Type: tool.EmitText, Text: fmt.Sprintf("%s %d", a.Name, step)}); err != nil {
				return "", err
			}
		}
		return "done", i.Host.Emit(tool.Emission{Type: "nonsense"})
	})
	host := newMixedHost(t, t.TempDir(), steps)
	var shown []string
	report, err := host.Stream(t.Context(), executor.Batch{Calls: calls(
		"steps", `{"name": "a"}`, "calculator", `{"expression": "1+1"}`, "steps", `{"name": "b"}`,
	)}, func(event tool.Event) bool {
		if event.Emission != nil {
			shown = append(shown, event.Emission.Text)
		}
		return true
	})
	require.NoError(t, err)
	if len(shown) > 0 && shown[0] == "b 0" { // the call that spoke first is shown first
		shown = append(shown[3:], shown[:3]...)
	}
	assert.Equal(t, []string{"a 0", "a 1", "a 2", "b 0", "b 1", "b 2"}, shown)
	assert.Equal(t, tool.ToolFailed, report.Records[0].Result.Kind, "an emission that is none is the function's mistake: %s", report.Records[0].Result.Error)
	assert.Equal(t, "2", report.Records[1].Result.Output)
}

// TestApproved: a batch waits for approvals of functions and sandboxed tools alike, and resumes in another process,
// here another host. A tool that has changed must be approved again.
func TestApproved(t *testing.T) {
	project := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(project, "demo"), 0o700))
	file := filepath.Join(project, "demo", "a.txt")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	var posts atomic.Int32
	post := func(version string) *native.Tool {
		about := native.About{Name: "post", Version: version, Behavior: manifests.Behavior{Destructive: true}}
		return made(t, about, func(_ context.Context, a struct {
			Text string `json:"text"`
		}) (string, error) {
			posts.Add(1)
			return "posted " + a.Text, nil
		})
	}
	first := newMixedHost(t, project, post("1.0.0"))
	paused, err := first.Execute(t.Context(), executor.Batch{Session: session(t, first, executor.SessionOptions{}), Calls: calls(
		"calculator", `{"expression": "1+1"}`, "post", `{"text": "one"}`, "post", `{"text": "two"}`, "file_delete", `{"path": "a.txt"}`,
	)})
	require.NoError(t, err)
	require.Equal(t, executor.RequiresAction, paused.Status)
	require.Len(t, paused.Pending, 3)
	stored, err := json.Marshal(paused.State)
	require.NoError(t, err)
	resume := func(host *caisson.Host, decisions ...tool.Approval) executor.Report {
		var state executor.State
		require.NoError(t, json.Unmarshal(stored, &state))
		report, err := host.Resume(t.Context(), executor.Resumption{State: state, Session: session(t, host, executor.SessionOptions{}), Approvals: decisions})
		require.NoError(t, err)
		return report
	}
	decisions := []tool.Approval{
		{CallID: paused.Pending[0].CallID, Approve: true, Fingerprint: paused.Pending[0].Fingerprint},
		{CallID: paused.Pending[1].CallID, Reason: "not twice"},
		{CallID: paused.Pending[2].CallID, Approve: true, Fingerprint: paused.Pending[2].Fingerprint},
	}
	changed := resume(newMixedHost(t, project, post("2.0.0")), decisions...)
	require.Equal(t, executor.RequiresAction, changed.Status, "another version was not approved")
	assert.Equal(t, "post", changed.Pending[0].Tool)
	assert.Zero(t, posts.Load())

	done := resume(newMixedHost(t, project, post("1.0.0")), decisions...)
	require.Equal(t, executor.Completed, done.Status)
	assert.Equal(t, "posted one", done.Records[1].Result.Output)
	assert.Equal(t, tool.Denied, done.Records[2].Result.Kind)
	assert.Contains(t, done.Records[2].Result.Error, "not twice")
	assert.True(t, done.Records[3].Result.Success, done.Records[3].Result.Error)
	assert.Equal(t, int32(1), posts.Load())
	assert.NoFileExists(t, file)
}

// TestAttackFunctionsBesideSandboxedTools: a function that panics, ends its goroutine, hangs or returns invalid JSON
// harms no other call of its batch, and none waits for it longer than its timeout.
func TestAttackFunctionsBesideSandboxedTools(t *testing.T) {
	release := make(chan struct{})
	readOnly := manifests.Behavior{ReadOnly: true}
	host := newMixedHost(t, t.TempDir(),
		made(t, native.About{Name: "panics", Behavior: readOnly}, func(context.Context, struct{}) (string, error) { panic("hunter2") }),
		made(t, native.About{Name: "hangs", Behavior: readOnly, Timeout: 50 * time.Millisecond}, func(context.Context, struct{}) (string, error) {
			<-release
			return "", nil
		}),
		made(t, native.About{Name: "garbles", Behavior: readOnly}, func(context.Context, struct{}) (tool.Result, error) {
			return tool.Result{Success: true, Data: json.RawMessage(`{"half": `)}, nil
		}),
		made(t, native.About{Name: "floods", Behavior: readOnly}, func(context.Context, struct{}) ([]byte, error) { return make([]byte, 8<<20), nil }),
	)
	defer close(release)
	began := time.Now()
	report, err := host.Execute(t.Context(), executor.Batch{Calls: calls(
		"calculator", `{"expression": "1+1"}`, "panics", `{}`, "hangs", `{}`, "garbles", `{}`, "floods", `{}`, "calculator", `{"expression": "2+2"}`,
	)})
	require.NoError(t, err)
	assert.Less(t, time.Since(began), 30*time.Second)
	assert.Equal(t, "2", report.Records[0].Result.Output)
	assert.Equal(t, "4", report.Records[5].Result.Output)
	assert.Equal(t, tool.Internal, report.Records[1].Result.Kind)
	assert.Equal(t, tool.Deadline, report.Records[2].Result.Kind)
	text, err := json.Marshal(report.Records)
	require.NoError(t, err, "records can be stored")
	assert.NotContains(t, string(text), "hunter2")
	assert.Less(t, len(text), 2<<20)
	assert.Equal(t, []tool.Kind{tool.Internal, ""}, kinds(report.Records[3:5], 1), "data that is too long is left out")
}

// TestCancelled: a cancelled batch ends, with functions that heed their context and with those that do not.
func TestCancelled(t *testing.T) {
	release, started := make(chan struct{}), make(chan struct{}, 2)
	readOnly := manifests.Behavior{ReadOnly: true}
	host := newMixedHost(t, t.TempDir(),
		made(t, native.About{Name: "heeds", Behavior: readOnly}, func(ctx context.Context, _ struct{}) (string, error) {
			started <- struct{}{}
			<-ctx.Done()
			return "", ctx.Err()
		}),
		made(t, native.About{Name: "ignores", Behavior: readOnly}, func(context.Context, struct{}) (string, error) {
			started <- struct{}{}
			<-release
			return "", nil
		}),
	)
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		<-started
		cancel()
	}()
	began := time.Now()
	report, err := host.Execute(ctx, executor.Batch{Session: session(t, host, executor.SessionOptions{}), Calls: calls(
		"heeds", `{}`, "ignores", `{}`, "file_write", `{"path": "a.txt", "content": "x"}`, "calculator", `{"expression": "1+1"}`,
	)})
	assert.Less(t, time.Since(began), 10*time.Second)
	require.NoError(t, err)
	assert.Equal(t, []tool.Kind{tool.Cancelled, tool.Cancelled, tool.Cancelled, tool.Cancelled}, kinds(report.Records, 1))
}

// TestWhatIsNotContained: as the documentation says, a panic in a goroutine that a function starts ends the process.
func TestWhatIsNotContained(t *testing.T) {
	if os.Getenv("CAISSON_TEST_PANIC") != "" {
		f := made(t, native.About{Name: "starts"}, func(ctx context.Context, _ struct{}) (string, error) {
			go func() { panic("outside") }()
			<-ctx.Done()
			return "", nil
		})
		_, _ = f.Invoke(t.Context(), tool.Invocation{Tool: "starts"})
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestWhatIsNotContained$")
	child.Env = append(os.Environ(), "CAISSON_TEST_PANIC=1")
	output, err := child.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(output), "panic: outside")
}
