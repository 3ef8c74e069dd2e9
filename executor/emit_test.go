package executor_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

// TestEmitUnwatched: a call may speak though nobody watches. What is no emission is refused all the
// same, and once the call has ended it says nothing.
func TestEmitUnwatched(t *testing.T) {
	var host tool.Host
	e := newExecutor(t, executor.Options{}, newFake(t, "talk", nil, func(_ context.Context, i tool.Invocation) (tool.Outcome, error) {
		host = i.Host
		assert.NoError(t, host.Emit(tool.Emission{Type: tool.EmitText, Text: "hello"}))
		assert.ErrorContains(t, host.Emit(tool.Emission{Type: tool.EmitText}), "needs text")
		return succeed("done"), nil
	}))
	record := ask(t, e, nil, "talk", "")
	assert.Equal(t, "done", record.Result.Output, "it is no part of the result")
	err := host.Emit(tool.Emission{Type: tool.EmitText, Text: "late"})
	require.ErrorIs(t, err, tool.Cancelled)
}
