package executor_test

import (
	"context"
	"errors"
	goruntime "runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// TestAttackToolTakenFromARunningBatch: a call that waits for its turn does not start if its tool was taken from the
// agent a second before, or if AllowedNow fails. Neither does a call that another tool makes. As the control, tools
// that are not taken run.
func TestAttackToolTakenFromARunningBatch(t *testing.T) {
	unknown := errors.New("the disk has gone")
	for name, test := range map[string]struct {
		names []string
		err   error
		calls []tool.Call
		want  tool.Kind
		pends bool
	}{
		"control":               {names: []string{"slow", "wipe"}, calls: []tool.Call{newCall("1", "slow", "{}"), newCall("2", "wipe", "{}")}},
		"taken":                 {names: []string{"slow"}, calls: []tool.Call{newCall("1", "slow", "{}"), newCall("2", "wipe", "{}")}, want: tool.Denied},
		"all are taken":         {names: []string{}, calls: []tool.Call{newCall("1", "slow", "{}"), newCall("2", "wipe", "{}")}, want: tool.Denied},
		"no longer known":       {err: unknown, calls: []tool.Call{newCall("1", "slow", "{}"), newCall("2", "wipe", "{}")}, want: tool.Denied},
		"the client's: control": {names: []string{"slow", "local"}, calls: []tool.Call{newCall("1", "slow", "{}"), newCall("2", "local", "{}")}, pends: true},
		"the client's":          {names: []string{"slow"}, calls: []tool.Call{newCall("1", "slow", "{}"), newCall("2", "local", "{}")}, want: tool.Denied},
		"nested: control":       {names: []string{"slow", "wipe", "outer"}, calls: []tool.Call{newCall("2", "outer", "{}")}},
		"nested: the inner":     {names: []string{"slow", "outer"}, calls: []tool.Call{newCall("2", "outer", "{}")}, want: tool.ToolFailed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				allowed, failure := []string{"slow", "wipe", "outer", "local"}, error(nil)
				wiped := false
				slow := newFake(t, "slow", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) {
					time.Sleep(time.Second)
					allowed, failure = test.names, test.err
					return succeed(""), nil
				})
				wipe := newFake(t, "wipe", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) {
					wiped = true
					return succeed(""), nil
				})
				outer := newFake(t, "outer", fields{"permissions": fields{"tools": []string{"slow", "wipe"}}}, func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
					_, _ = invocation.Host.Call(ctx, newCall("a", "slow", "{}"))
					record, err := invocation.Host.Call(ctx, newCall("b", "wipe", "{}"))
					return tool.Outcome{Result: record.Result, Denials: record.Denials}, err
				})
				local := newClient(t, "local", nil)
				e := newExecutor(t, executor.Options{}, slow, wipe, outer, local)
				session := newSession(t, e, executor.SessionOptions{AllowedNow: func() ([]string, error) { return allowed, failure }})
				report := noerr.Get(e.Execute(t.Context(), executor.Batch{Session: session, Calls: test.calls}))(t)
				if assert.Equal(t, test.pends, len(report.Pending) > 0); test.pends {
					return
				}
				record := report.Records[len(report.Records)-1]
				assert.Equal(t, test.want, record.Result.Kind, record.Result.Error)
				assert.Equal(t, test.want == "", wiped)
				if test.want != "" && assert.NotEmpty(t, record.Denials) {
					assert.Contains(t, record.Result.Error, " is not among the tools that this agent may call")
					assert.Equal(t, "allowed_tools", record.Denials[0].Permission)
				}
			})
		})
	}
}

// TestAllowedNow: AllowedNow is called once for a batch that takes less than a second. If it fails, the batch is refused
// with the reason.
func TestAllowedNow(t *testing.T) {
	asked, failure := 0, error(nil)
	e := newExecutor(t, executor.Options{}, newFake(t, "echo", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) { return succeed(""), nil }))
	session := newSession(t, e, executor.SessionOptions{AllowedNow: func() ([]string, error) { asked++; return nil, failure }})
	calls := []tool.Call{newCall("1", "echo", "{}"), newCall("2", "echo", "{}"), newCall("3", "echo", "{}")}
	report := noerr.Get(e.Execute(t.Context(), executor.Batch{Session: session, Calls: calls}))(t)
	assert.True(t, report.Records[2].Result.Success, "nil allows all")
	assert.Equal(t, 1, asked)
	failure = errors.New("the disk has gone")
	assert.ErrorIs(t, noerr.Error(e.Execute(t.Context(), executor.Batch{Session: session, Calls: calls})), failure)
}

// TestAttackAllowedNow: a program's function that panics or ends its goroutine denies the call, and one that takes long
// ends with the call. No place is lost, and no tool runs.
func TestAttackAllowedNow(t *testing.T) {
	for name, test := range map[string]struct {
		function func()
		want     tool.Kind
	}{
		"panics":     {func() { panic("a bug") }, tool.Denied},
		"exits":      {goruntime.Goexit, tool.Denied},
		"takes long": {func() { time.Sleep(time.Hour) }, tool.Deadline},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked atomic.Int64 // an abandoned question may still run when the next one is asked
				slow := newFake(t, "slow", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) {
					time.Sleep(time.Second)
					return succeed(""), nil
				})
				e := newExecutor(t, executor.Options{}, slow)
				session := newSession(t, e, executor.SessionOptions{AllowedNow: func() ([]string, error) {
					if asked.Add(1) > 1 {
						test.function()
					}
					return nil, nil
				}})
				report := noerr.Get(e.Execute(t.Context(), executor.Batch{Session: session, Timeout: time.Minute, Calls: []tool.Call{newCall("1", "slow", "{}"), newCall("2", "slow", `{"n":1}`)}}))(t)
				assert.True(t, report.Records[0].Result.Success)
				assert.Equal(t, test.want, report.Records[1].Result.Kind)
				running, waiting := e.Load()
				assert.Zero(t, running+waiting)
				next := executor.Batch{Session: session, Timeout: time.Minute, Calls: []tool.Call{newCall("1", "slow", "{}")}}
				began := time.Now()
				report, err := e.Execute(t.Context(), next)
				if test.want == tool.Denied {
					assert.Error(t, err, "a batch that begins")
				} else if assert.NoError(t, err) {
					assert.Equal(t, tool.Deadline, report.Records[0].Result.Kind, "a batch that begins")
				}
				assert.LessOrEqual(t, time.Since(began), time.Minute)
				time.Sleep(2 * time.Hour)
			})
		})
	}
}
