package executor_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/registry"
)

func TestNewRefuses(t *testing.T) {
	require.ErrorIs(t, noerr.Error(executor.New(nil, executor.Options{})), executor.ErrInvalidOptions)
	rate := executor.Rate{Calls: 1, Per: time.Second}
	bad := []executor.Options{
		{Parallel: -1},
		{NoRepair: true, TolerantJSON: true},
		{Reuse: executor.Reuse{Scope: "world"}},
		{Reuse: executor.Reuse{TTL: -1}},
		{Reuse: executor.Reuse{Bytes: -1}},
		{Limits: executor.Limits{Running: -1}},
		{Limits: executor.Limits{PerTenant: -1}},
		{Limits: executor.Limits{PerTool: -1}},
		{Limits: executor.Limits{Waiting: -1}},
		{Limits: executor.Limits{Wait: -1}},
		{Rates: executor.Rates{All: executor.Rate{Calls: -1, Per: time.Second}}},
		{Rates: executor.Rates{All: executor.Rate{Calls: 1}}},
		{Rates: executor.Rates{All: executor.Rate{Calls: 1, Per: -1}}},
		{Rates: executor.Rates{PerTenant: executor.Rate{Per: time.Second}}},
		{Rates: executor.Rates{PerTenant: executor.Rate{Calls: 1, Unlimited: true}}},
		{Rates: executor.Rates{PerTool: executor.Rate{Per: 1, Unlimited: true}}},
		{Rates: executor.Rates{PerTool: executor.Rate{Calls: -1, Per: 1}}},
		{Breaker: executor.Breaker{Failures: -1}},
		{Breaker: executor.Breaker{Open: -1}},
		{Breaker: executor.Breaker{Failures: 1, Off: true}},
		{Breaker: executor.Breaker{Open: 1, Off: true}},
		{Nesting: executor.Nesting{Calls: -1}},
		{Nesting: executor.Nesting{Depth: -1}},
		{Output: executor.Output{PerCall: -1}},
		{Output: executor.Output{PerBatch: -1}},
		{Output: executor.Output{Kept: -1}},
		{Output: executor.Output{PerCall: 1, Unlimited: true}},
		{Output: executor.Output{PerBatch: 1, Unlimited: true}},
		{Output: executor.Output{Kept: 1, Unlimited: true}},
	}
	for _, options := range bad {
		t.Run(fmt.Sprintf("%+v", options), func(t *testing.T) {
			_, err := executor.New(registry.New(), options)
			require.ErrorIs(t, err, executor.ErrInvalidOptions)
			var typed *executor.Error
			require.ErrorAs(t, err, &typed)
			assert.Equal(t, "new", typed.Op)
		})
	}
	require.ErrorContains(t, noerr.Error(executor.New(registry.New(), executor.Options{Parallel: -1})), "executor: new: invalid options: Parallel is -1")

	_ = executorOf(t, registry.New(), executor.Options{
		Reuse:  executor.Reuse{Scope: executor.ReuseSession, TTL: time.Second, Bytes: 1},
		Limits: executor.Limits{Running: 1, PerTenant: 1, PerTool: 1, Waiting: 1, Wait: 1}, Rates: executor.Rates{All: rate, PerTenant: rate, PerTool: unlimited.All},
		Breaker: executor.Breaker{Off: true}, Nesting: executor.Nesting{Calls: 1, Depth: 1}, Output: executor.Output{Unlimited: true},
	})
}

func TestSubscribeRefuses(t *testing.T) {
	e := newExecutor(t, executor.Options{})
	require.ErrorIs(t, noerr.Error(e.Subscribe(executor.SubscribeOptions{Queue: -1})), executor.ErrInvalidOptions)
	require.ErrorIs(t, noerr.Error(e.Subscribe(executor.SubscribeOptions{Session: newSession(t, newExecutor(t, executor.Options{}), executor.SessionOptions{})})), executor.ErrInvalidOptions, "another executor's session has no events here")
}

func TestNewSession(t *testing.T) {
	e := newExecutor(t, executor.Options{}, newFake(t, "echo", fields{"context": []string{"k"}}, echo))
	for _, options := range []executor.SessionOptions{
		{ID: "\xff"}, {Tenant: "\xff"}, {Context: map[string]string{"k": "\xff"}}, {Context: map[string]string{"\xff": "v"}},
	} {
		require.ErrorIs(t, noerr.Error(e.NewSession(options)), executor.ErrInvalidOptions)
	}
	values, allowed := map[string]string{"k": "v"}, []string{"echo"}
	session := newSession(t, e, executor.SessionOptions{ID: "mine", Tenant: "t", Context: values, Allowed: allowed})
	assert.Equal(t, "mine", session.ID())
	values["k"], allowed[0] = "changed", "none"
	assert.Equal(t, `{"k":"v"}`, ask(t, e, session, "echo", "").Result.Output, "a session has copies")
}
