package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// failing is a tool that fails with an error.
func failing(err error) run {
	return func(context.Context, tool.Invocation) (tool.Outcome, error) { return succeed("x"), err }
}

// textless is an error whose Error method panics if text is nil.
type textless struct{ text *string }

func (e *textless) Error() string { return *e.text }

// unlike is an error that cannot be compared.
type unlike struct{}

func (unlike) Error() string { return "unlike" }
func (unlike) As(any) bool   { panic("as") }
func (unlike) Is(error) bool { panic("is") }
func (unlike) Unwrap() error { panic("unwrap") }

// TestHostileErrors: a tool's error, whose methods are the tool's code, ends no more than its call.
func TestHostileErrors(t *testing.T) {
	for name, failure := range map[string]error{
		"nil *tool.Error":             (*tool.Error)(nil),
		"nil *fs.PathError":           (*fs.PathError)(nil),
		"wrapped nil *tool.Error":     fmt.Errorf("wrapped: %w", (*tool.Error)(nil)),
		"Error panics":                &textless{},
		"As, Is and Unwrap panic":     unlike{},
		"*tool.Error of one":          &tool.Error{Kind: tool.Internal, Err: &textless{}},
		"joined with one that panics": errors.Join(errors.New("x"), unlike{}),
	} {
		t.Run(name, func(t *testing.T) {
			var log journal
			e := newExecutor(t, executor.Options{Logger: log.Logger(), Breaker: executor.Breaker{Off: true}, Limits: executor.Limits{Running: 1, PerTenant: 1, PerTool: 1}},
				newFake(t, "bad", readOnly, failing(failure)), newFake(t, "echo", readOnly, echo))
			for _, calls := range [][]tool.Call{many("bad", 1), many("bad", 2)} {
				for _, record := range executeAll(t, e, executor.Batch{Calls: calls}) {
					assert.Equal(t, tool.Internal, record.Result.Kind)
				}
			}
			assert.True(t, ask(t, e, nil, "echo", "").Result.Success, "the place was given back")
			said := 0
			for _, line := range log.Lines(t) {
				if line["level"] == "ERROR" {
					assert.NotEmpty(t, line["error"])
					said++
				}
			}
			assert.Equal(t, 3, said)
		})
	}
}

// exiting is an error, or the value of a panic, whose text exits.
type exiting struct{ after *int }

func (e exiting) Error() string {
	if *e.after--; *e.after < 0 {
		goruntime.Goexit()
	}
	return "words"
}

// TestAttackErrorsThatExit: what a tool returns or panics with does not end the worker that other calls wait for,
// whenever its text is read.
func TestAttackErrorsThatExit(t *testing.T) {
	for _, after := range []int{0, 1, 2} {
		for name, end := range map[string]func(error) error{
			"returned": func(err error) error { return err },
			"panicked": func(err error) error { panic(err) },
		} {
			var log journal
			e := newExecutor(t, executor.Options{Logger: log.Logger()},
				newFake(t, "bad", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) {
					return succeed("x"), end(exiting{new(after)})
				}),
				newFake(t, "echo", nil, echo))
			records := executeAll(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "bad", ""), newCall("2", "echo", "")}})
			assert.Equal(t, tool.Internal, records[0].Result.Kind, name)
			assert.True(t, records[1].Result.Success, name)
		}
	}
}

// TestDataThatIsNotJSON: the call is failed, and the batch's records can be written.
func TestDataThatIsNotJSON(t *testing.T) {
	for _, data := range []string{"{", "1 2", "nul", "\xff", "\x00"} {
		e := newExecutor(t, executor.Options{}, newFake(t, "bad", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) {
			return tool.Outcome{Result: tool.Result{Success: true, Data: json.RawMessage(data)}}, nil
		}), newFake(t, "echo", nil, echo))
		records := executeAll(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "bad", ""), newCall("2", "echo", "")}})
		assert.Equal(t, tool.Internal, records[0].Result.Kind, "%q", data)
		assert.Empty(t, records[0].Result.Data)
		assert.True(t, records[1].Result.Success)
		_ = jsonOf(t, records)
	}
}

// unsure is a tool that panics when it is asked whether it can be used.
type unsure struct{ *fake }

func (unsure) Unavailable() string { panic("unavailable") }

// TestUnavailableThatPanics: the tool is not called, and other tools are.
func TestUnavailableThatPanics(t *testing.T) {
	e := newExecutor(t, executor.Options{}, unsure{newFake(t, "bad", nil, echo)}, newFake(t, "echo", nil, echo))
	session := newSession(t, e, executor.SessionOptions{Allowed: []string{"bad", "echo"}})
	assert.True(t, ask(t, e, session, "echo", "").Result.Success)
	assert.Equal(t, tool.Denied, ask(t, e, session, "bad", "").Result.Kind)
}

// TestLongErrorInLog: what a tool says of its failure is bounded in the log, where it may hold
// anything.
func TestLongErrorInLog(t *testing.T) {
	var log journal
	e := newExecutor(t, executor.Options{Logger: log.Logger()}, newFake(t, "crash", nil, func(_ context.Context, invocation tool.Invocation) (tool.Outcome, error) {
		return tool.Outcome{}, &tool.Error{Kind: tool.Trap, Err: errors.New("trap in " + strings.Repeat("€", 1<<18))}
	}))
	ask(t, e, nil, "crash", "")
	said := 0
	for _, line := range log.Lines(t) {
		if text, ok := line["error"].(string); ok {
			assert.Contains(t, text, "trap in")
			assert.NotContains(t, text, "\ufffd", "it is cut between characters")
			assert.Less(t, len(text), 8<<10)
			said++
		}
	}
	assert.Positive(t, said)
}

// TestNamesInLogAndEvents: a name that a model made up is short and shows no control characters.
func TestNamesInLogAndEvents(t *testing.T) {
	var log journal
	e := newExecutor(t, executor.Options{Logger: log.Logger()}, newFake(t, "echo", readOnly, echo))
	w := watch(t, e, nil)
	made := "no\x1b[31m\u202etool" + strings.Repeat("x", 1<<16)
	ask(t, e, nil, made, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	noerr.Get(e.Execute(ctx, executor.Batch{Calls: []tool.Call{newCall("1", made, "")}}))(t)
	var names []string
	for _, line := range log.Lines(t) {
		if name, ok := line["tool"].(string); ok {
			names = append(names, name)
		}
	}
	for _, event := range w.rest(t) {
		names = append(names, event.Tool)
		for _, planned := range event.Calls {
			names = append(names, planned.Tool)
		}
	}
	assert.GreaterOrEqual(t, len(names), 2*(2+3))
	for _, name := range names {
		assert.LessOrEqual(t, len(name), 256)
		assert.False(t, strings.ContainsAny(name, "\x1b\u202e"), "%q", name)
	}
}

// TestHiddenIsMarked: events that name a hidden tool say that it is hidden.
func TestHiddenIsMarked(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newFake(t, "secret", behaves(fields{"hidden": true, "read_only": true}), echo), newFake(t, "echo", readOnly, echo))
	w := watch(t, e, nil)
	executeAll(t, e, executor.Batch{Calls: []tool.Call{newCall("1", "secret", ""), newCall("2", "echo", "")}})
	events := w.rest(t)
	require.Equal(t, tool.BatchStarted, events[0].Type)
	require.Len(t, events[0].Calls, 2)
	assert.True(t, events[0].Calls[0].Hidden)
	assert.False(t, events[0].Calls[1].Hidden)
	for _, event := range events[1 : len(events)-1] {
		assert.Equal(t, event.Tool == "secret", event.Hidden)
	}
}
