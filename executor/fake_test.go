package executor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fields are the manifest keys that tests set; nil leaves a key out.
type fields map[string]any

// run is what a fake tool does.
type run func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error)

type fake struct {
	manifest *manifests.Manifest
	run      run
	reason   string
}

func (f *fake) Manifest() *manifests.Manifest { return f.manifest }
func (f *fake) Unavailable() string           { return f.reason }
func (f *fake) Invoke(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	return f.run(ctx, invocation)
}

func newFake(t testing.TB, name string, more fields, do run) *fake {
	t.Helper()
	document := fields{
		"schema": "caisson/v1", "name": name, "description": "Does " + name + ".",
		"module": fields{"path": "tool.wasm"},
	}
	for key, value := range more {
		document[key] = value
		if value == nil {
			delete(document, key)
		}
	}
	source := jsonOf(t, document)
	m := noerr.Get(manifests.Parse(name+".tool.json", source))(t)
	return &fake{manifest: m, run: do}
}

// echo succeeds with the complete arguments as its output.
func echo(_ context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	text, err := invocation.Arguments.MarshalJSON()
	if err != nil {
		return tool.Outcome{}, err
	}
	return succeed(string(text)), nil
}

func succeed(output string) tool.Outcome {
	return tool.Outcome{Result: tool.Result{Success: true, Output: output}}
}

var readOnly = fields{"behavior": fields{"read_only": true}}

func newRegistry(t testing.TB, tools ...registry.Tool) *registry.Registry {
	t.Helper()
	r := noerr.Get(registry.New().With(tools...))(t)
	return r
}

func newExecutor(t testing.TB, options executor.Options, tools ...registry.Tool) *executor.Executor {
	t.Helper()
	return executorOf(t, newRegistry(t, tools...), options)
}

func newCall(id, name, arguments string) tool.Call {
	return tool.Call{ID: id, Type: "function", Function: tool.Function{Name: name, Arguments: arguments}}
}

// newSession returns a session of the executor.
func newSession(t testing.TB, e *executor.Executor, options executor.SessionOptions) *executor.Session {
	t.Helper()
	session := noerr.Get(e.NewSession(options))(t)
	return session
}

// withContext returns a session in which the host has these values.
func withContext(t testing.TB, e *executor.Executor, values map[string]string) *executor.Session {
	t.Helper()
	return newSession(t, e, executor.SessionOptions{Context: values})
}

// execute runs one call and returns its record.
func execute(t testing.TB, e *executor.Executor, batch executor.Batch) tool.Record {
	t.Helper()
	records := executeAll(t, e, batch)
	require.Len(t, records, 1)
	return records[0]
}

// executeAll runs a batch and returns its records.
func executeAll(t testing.TB, e *executor.Executor, batch executor.Batch) []tool.Record {
	t.Helper()
	report := reportOf(t, e, batch)
	require.Len(t, report.Records, len(batch.Calls))
	return report.Records
}

// ask makes one call in a session, or in one of its own for nil, and returns its record.
func ask(t testing.TB, e *executor.Executor, session *executor.Session, name, arguments string) tool.Record {
	t.Helper()
	return execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", name, arguments)}, Session: session})
}

// journal keeps the lines of a log.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(line)
}

func (j *journal) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (j *journal) lines(t testing.TB) []map[string]any {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	var lines []map[string]any
	decoder := json.NewDecoder(bytes.NewReader(j.text.Bytes()))
	for decoder.More() {
		var line map[string]any
		require.NoError(t, decoder.Decode(&line))
		lines = append(lines, line)
	}
	return lines
}

// unlimited is for tests that make more calls than a tenant may in a second.
var unlimited = executor.Rates{
	All: executor.Rate{Unlimited: true}, PerTenant: executor.Rate{Unlimited: true}, PerTool: executor.Rate{Unlimited: true},
}

// behaves returns the manifest key for a behavior.
func behaves(behavior fields) fields { return fields{"behavior": behavior} }

// counted is a tool that counts its runs.
type counted struct{ runs atomic.Int64 }

// answer succeeds with the number of the run.
func (c *counted) answer(context.Context, tool.Invocation) (tool.Outcome, error) {
	return succeed(strconv.FormatInt(c.runs.Add(1), 10)), nil
}

// argument returns an argument that is a text, or "".
func argument(invocation tool.Invocation, name string) string {
	raw, _ := invocation.Arguments.Get(name)
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return text
}

// executorOf returns an executor of a resolver's tools.
func executorOf(t testing.TB, resolver executor.Resolver, options executor.Options) *executor.Executor {
	t.Helper()
	e := noerr.Get(executor.New(resolver, options))(t)
	return e
}

// reportOf runs a batch.
func reportOf(t testing.TB, e *executor.Executor, batch executor.Batch) executor.Report {
	t.Helper()
	report := noerr.Get(e.Execute(t.Context(), batch))(t)
	return report
}

// resume resumes a batch.
func resume(t testing.TB, e *executor.Executor, resumption executor.Resumption) executor.Report {
	t.Helper()
	report := noerr.Get(e.Resume(t.Context(), resumption))(t)
	return report
}

func subscribe(t testing.TB, e *executor.Executor, options executor.SubscribeOptions) *executor.Subscription {
	t.Helper()
	subscription := noerr.Get(e.Subscribe(options))(t)
	return subscription
}

func jsonOf(t testing.TB, value any) []byte {
	t.Helper()
	text := noerr.Get(json.Marshal(value))(t)
	return text
}
