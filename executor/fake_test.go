package executor_test

import (
	"context"
	"encoding/json"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/tooltest"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	fields  = tooltest.Fields
	fake    = tooltest.Tool
	run     = tooltest.Run
	journal = tooltest.Log
)

var (
	newFake     = tooltest.New
	newRegistry = tooltest.Registry
	newCall     = tooltest.Call
	echo        = tooltest.Echo
	succeed     = tooltest.Succeed
)

var readOnly = fields{"behavior": fields{"read_only": true}}

func newExecutor(t testing.TB, options executor.Options, tools ...registry.Tool) *executor.Executor {
	t.Helper()
	return executorOf(t, newRegistry(t, tools...), options)
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

// ask makes one call in a session, or in a new one if session is nil, and returns its record.
func ask(t testing.TB, e *executor.Executor, session *executor.Session, name, arguments string) tool.Record {
	t.Helper()
	return execute(t, e, executor.Batch{Calls: []tool.Call{newCall("1", name, arguments)}, Session: session})
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
