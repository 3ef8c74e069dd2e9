package benchmark

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/interpreter"
	"github.com/caisson-run/caisson/tool"
)

// TestCompeteScripts: the ways take turns, and are compared with the native start.
func TestCompeteScripts(t *testing.T) {
	var running, most atomic.Int32
	way := func(scheme ScriptScheme, takes time.Duration) scriptWay {
		return scriptWay{scheme, func(context.Context) (scriptAnswer, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(takes)
			return scriptAnswer{printed: scriptPrints}, nil
		}, scriptPrints}
	}
	ways := []scriptWay{way(NativeStart, 40*time.Millisecond), way(ScriptExecutor, time.Millisecond)}
	rows, err := competeScripts(t.Context(), ways, 3, 2, 100*time.Millisecond)
	require.NoError(t, err)
	require.Len(t, rows, 2)
	assert.Equal(t, int32(3), most.Load(), "callers of one way at a time")
	assert.Equal(t, 1.0, *rows[0].Native)
	assert.Less(t, *rows[1].Native, 0.5)
	assert.GreaterOrEqual(t, rows[0].P50, 40_000.0)
	assert.Equal(t, 3, rows[1].Callers)

	rows, err = competeScripts(t.Context(), ways[1:], 1, 1, time.Millisecond)
	require.NoError(t, err)
	assert.Nil(t, rows[0].Native, "nothing to compare with")

	ways[1].prints = "3\n"
	_, err = competeScripts(t.Context(), ways, 1, 1, time.Millisecond)
	require.EqualError(t, err, `benchmark: scripts: executor: it printed "2\n" instead of "3\n"`)
}

// TestScriptsLeftOut: a language whose interpreter is not installed is left out, with a reason that says how to install
// it.
func TestScriptsLeftOut(t *testing.T) {
	for _, folder := range []interpreter.Folder{"", interpreter.Folder(t.TempDir())} {
		b := newBench(Options{Interpreters: folder, Short: true}, t.TempDir())
		require.NoError(t, b.scripts(t.Context()))
		assert.Empty(t, b.report.Scripts)
		assert.Contains(t, b.report.LeftOut, LeftOut{"scripts in python", `the interpreter is not installed; run "caisson interpreters install python"`})
		assert.Contains(t, b.report.LeftOut, LeftOut{"scripts in javascript", `the interpreter is not installed; run "caisson interpreters install javascript"`})
	}
}

// TestAnswerBy: a failure is none of the answers.
func TestAnswerBy(t *testing.T) {
	fuel := int64(7)
	answer, err := answerBy(tool.Result{Success: true, Data: []byte(`{"stdout": "2\n"}`)}, tool.Usage{Fuel: &fuel})
	require.NoError(t, err)
	assert.Equal(t, scriptAnswer{"2\n", 7}, answer)
	_, err = answerBy(tool.Result{Error: "NameError: x"}, tool.Usage{})
	require.EqualError(t, err, "NameError: x")
}

// TestUntilResumed: calls are repeated until one does far less than the first, of this way or of one before it.
func TestUntilResumed(t *testing.T) {
	calls := 0
	way := scriptWay{ScriptRuntime, func(context.Context) (scriptAnswer, error) {
		calls++
		return scriptAnswer{fuel: []int64{100, 90, 110, 10}[calls-1]}, nil
	}, ""}
	started, err := way.untilResumed(t.Context(), 0)
	require.NoError(t, err)
	assert.EqualValues(t, 100, started)
	assert.Equal(t, 4, calls)
	calls = 3
	started, err = way.untilResumed(t.Context(), started)
	require.NoError(t, err)
	assert.EqualValues(t, 100, started)
	assert.Equal(t, 4, calls)
	way.call = func(context.Context) (scriptAnswer, error) { return scriptAnswer{}, assert.AnError }
	_, err = way.untilResumed(t.Context(), 0)
	require.ErrorIs(t, err, assert.AnError)
}
