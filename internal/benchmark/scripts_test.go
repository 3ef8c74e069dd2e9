package benchmark

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/runtime/interpreters"
	"github.com/caisson-run/caisson/tool"
)

// TestCompeteScripts: the ways take turns, and are compared with the native start.
func TestCompeteScripts(t *testing.T) {
	var running, most atomic.Int32
	way := func(scheme ScriptScheme, takes time.Duration) scriptWay {
		return scriptWay{scheme, func(context.Context) (string, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(takes)
			return scriptPrints, nil
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

// TestScriptsLeftOut: what is not installed is left out, with what to do about it.
func TestScriptsLeftOut(t *testing.T) {
	for _, folder := range []interpreters.Folder{"", interpreters.Folder(t.TempDir())} {
		b := newBench(Options{Interpreters: folder, Short: true}, t.TempDir())
		require.NoError(t, b.scripts(t.Context()))
		assert.Empty(t, b.report.Scripts)
		assert.Contains(t, b.report.LeftOut, LeftOut{"scripts in python", `the interpreter is not installed; run "caisson interpreters install python"`})
		assert.Contains(t, b.report.LeftOut, LeftOut{"scripts in javascript", `the interpreter is not installed; run "caisson interpreters install javascript"`})
	}
}

// TestPrintedBy: a failure is none of the answers.
func TestPrintedBy(t *testing.T) {
	printed, err := printedBy(tool.Result{Success: true, Data: []byte(`{"stdout": "2\n"}`)})
	require.NoError(t, err)
	assert.Equal(t, "2\n", printed)
	_, err = printedBy(tool.Result{Error: "NameError: x"})
	require.EqualError(t, err, "NameError: x")
}
