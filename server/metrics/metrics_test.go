package metrics

import (
	"context"
	"io"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// TestCallsAreCounted: calls of real tools are in what Prometheus reads, by what became of them, and names that a model
// made up or a caller brought are not.
func TestCallsAreCounted(t *testing.T) {
	root := noerr.Get(guests.Compile(t.Context(), "wasm-tools/calculator", "wasm-tools/files"))(t)
	require.NoError(t, guests.ShareCompiledCode(t.Context()))
	m := New()
	h := noerr.Get(caisson.Open(t.Context(), caisson.Options{
		Tools: []string{filepath.Join(root, "wasm-tools", "calculator"), filepath.Join(root, "wasm-tools", "files")}, Executor: executor.Options{Recorder: m},
	}))(t)
	defer func() { assert.NoError(t, h.Close(context.Background())) }()
	call := func(name, arguments string) tool.Call {
		return tool.Call{ID: "1", Function: tool.Function{Name: name, Arguments: arguments}}
	}
	session := noerr.Get(h.NewSession(executor.SessionOptions{Tenant: "acme", Context: map[string]string{"project_id": "demo"}}))(t)
	for range 2 { // the second time, the calculator's answers are reused
		noerr.Get(h.Execute(t.Context(), executor.Batch{Session: session, Calls: []tool.Call{
			call("calculator", `{"expression":"6*7"}`), call("calculator", `{"expression":"6*"}`), call("made_up_by_a_model", "{}"), call("file_read", `{"path":"a"}`),
		}}))(t)
	}
	paused := noerr.Get(h.Execute(t.Context(), executor.Batch{Session: session, Calls: []tool.Call{call("brought_by_a_caller", "{}")}, Client: []tool.Definition{{Name: "brought_by_a_caller"}}}))(t)
	require.Equal(t, executor.RequiresAction, paused.Status)
	noerr.Get(h.Resume(t.Context(), executor.Resumption{
		State: *paused.State, Session: session, Client: []tool.Definition{{Name: "brought_by_a_caller"}},
		Outputs: []tool.Answer{{CallID: paused.Pending[0].CallID, Result: tool.Result{Success: true, Output: "x"}}},
	}))(t)
	w := httptest.NewRecorder()
	m.Handler(h.Load).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	body := noerr.Get(io.ReadAll(w.Result().Body))(t)
	text := string(body)
	for _, line := range []string{
		`caisson_calls_total{outcome="success",tool="calculator"} 2`, `caisson_calls_total{outcome="tool_failed",tool="calculator"} 2`,
		`caisson_calls_total{outcome="unknown_tool",tool=""} 2`, `caisson_calls_total{outcome="success",tool=""} 1`, `caisson_calls_total{outcome="denied",tool="file_read"} 2`,
		`caisson_calls_reused_total{tool="calculator"} 1`, `caisson_denials_total{permission="context"} 2`, `caisson_call_duration_seconds_count{tool="calculator"} `,
		`caisson_call_queue_seconds_count `, `caisson_fuel_total{tool="calculator"} `, `caisson_call_memory_bytes_count{tool="calculator"} `,
		`caisson_calls_running 0`, `caisson_calls_waiting 0`, `go_goroutines `,
	} {
		assert.True(t, strings.Contains(text, line), line)
	}
	for _, name := range []string{"made_up", "brought_by", "acme", `duration_seconds_count{tool="file_read"}`} {
		assert.False(t, strings.Contains(text, name), name)
	}
	for line := range strings.SplitSeq(text, "\n") {
		assert.False(t, strings.HasPrefix(line, "caisson_fuel_total") && strings.HasSuffix(line, " 0"), line)
	}
}
