package executor_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/tool"
)

// runaway is a tool that gives its calls up and goes on until the test ends.
type runaway struct {
	ended chan struct{}  // closed by the test
	host  chan tool.Host // of the call
	late  chan struct{}  // closed when the tool returns
}

func newRunaway(t *testing.T) *runaway {
	r := &runaway{ended: make(chan struct{}), host: make(chan tool.Host, 1), late: make(chan struct{})}
	t.Cleanup(func() {
		close(r.ended)
		<-r.late
	})
	return r
}

var errStuck = &tool.Error{Op: "invoke", Tool: "stuck", Kind: tool.Deadline, Message: "it could not be stopped"}

func (r *runaway) run(_ context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	defer close(r.late)
	invocation.Host.(interface {
		Abandon(outcome tool.Outcome, err error)
	}).Abandon(tool.Outcome{Result: tool.Result{Kind: tool.Deadline, Error: errStuck.Message}, Usage: tool.Usage{Wall: 3}}, errStuck)
	r.host <- invocation.Host
	<-r.ended
	return succeed("too late"), nil
}

// TestCallThatIsAbandoned: the batch does not wait for a tool that cannot be stopped, and goes on.
func TestCallThatIsAbandoned(t *testing.T) {
	for name, behavior := range map[string]fields{"a barrier": nil, "read-only": readOnly} {
		t.Run(name, func(t *testing.T) {
			r := newRunaway(t)
			e := newExecutor(t, executor.Options{}, newFake(t, "stuck", behavior, r.run), newFake(t, "echo", behavior, echo))
			report, err := e.Execute(t.Context(), executor.Batch{Calls: []tool.Call{
				newCall("1", "stuck", ""), newCall("2", "echo", `{"n":2}`),
			}})
			require.NoError(t, err)
			require.Len(t, report.Records, 2)
			first := report.Records[0]
			assert.Equal(t, tool.Deadline, first.Result.Kind)
			assert.Equal(t, errStuck.Message, first.Result.Error)
			assert.EqualValues(t, 3, first.Usage.Wall)
			assert.True(t, report.Records[1].Result.Success)

			host := <-r.host
			_, err = host.Call(t.Context(), newCall("3", "echo", ""))
			require.ErrorIs(t, err, tool.Cancelled, "the call has ended for its tool too")
			require.ErrorIs(t, host.Emit(tool.Emission{Type: tool.EmitText, Text: "late"}), tool.Cancelled)
		})
	}
}

// TestAbandonAfterTheEnd: what comes too late changes nothing, and holds nobody up.
func TestAbandonAfterTheEnd(t *testing.T) {
	var host tool.Host
	e := newExecutor(t, executor.Options{}, newFake(t, "keep", nil, func(_ context.Context, invocation tool.Invocation) (tool.Outcome, error) {
		host = invocation.Host
		return succeed("in time"), nil
	}))
	record := ask(t, e, nil, "keep", "")
	assert.Equal(t, "in time", record.Result.Output)
	for range 3 {
		host.(interface {
			Abandon(outcome tool.Outcome, err error)
		}).Abandon(tool.Outcome{}, errStuck)
	}
}
