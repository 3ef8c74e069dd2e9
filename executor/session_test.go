package executor_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// keeper is a tool that keeps data of sessions.
type keeper struct {
	registry.Tool
	close func(ctx context.Context, tenant, session string) error
}

func (k keeper) CloseSession(ctx context.Context, tenant, session string) error {
	return k.close(ctx, tenant, session)
}

// TestSessionsClose: tools hear once that a session has ended, after its last call, which ends with it. No other
// session notices.
func TestSessionsClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var heard []string
		note := func(text string) {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, text)
		}
		slow := newFake(t, "slow", nil, func(ctx context.Context, i tool.Invocation) (tool.Outcome, error) {
			<-ctx.Done()
			note("ended " + i.Session)
			return tool.Outcome{}, ctx.Err()
		})
		e := newExecutor(t, executor.Options{}, keeper{slow, func(_ context.Context, tenant, session string) error {
			note("closed " + tenant + " " + session)
			return nil
		}}, newFake(t, "echo", nil, echo), newFake(t, "remove", destructive, echo))
		session := newSession(t, e, executor.SessionOptions{ID: "s1", Tenant: "acme"})
		other := newSession(t, e, executor.SessionOptions{ID: "s2", Tenant: "acme"})
		paused := reportOf(t, e, executor.Batch{Session: session, Calls: []tool.Call{newCall("1", "remove", "")}})

		done := make(chan []tool.Record)
		go func() {
			report, err := e.Execute(t.Context(), executor.Batch{Session: session, Calls: []tool.Call{newCall("1", "slow", ""), newCall("2", "echo", "")}})
			assert.NoError(t, err)
			done <- report.Records
		}()
		synctest.Wait()
		var closing sync.WaitGroup
		for range 3 {
			closing.Go(func() { assert.NoError(t, session.Close(t.Context())) })
		}
		for _, record := range <-done {
			assert.Equal(t, tool.Cancelled, record.Result.Kind)
		}
		closing.Wait()
		assert.Equal(t, []string{"ended s1", "closed acme s1"}, heard)

		_, err := e.Execute(t.Context(), executor.Batch{Session: session, Calls: []tool.Call{newCall("1", "echo", "")}})
		require.ErrorIs(t, err, executor.ErrInvalidBatch)
		assert.ErrorContains(t, err, "the session s1 is closed")
		_, err = e.Resume(t.Context(), executor.Resumption{State: *paused.State, Session: session})
		require.ErrorIs(t, err, executor.ErrInvalidBatch)
		assert.True(t, executeAll(t, e, executor.Batch{Session: other, Calls: []tool.Call{newCall("1", "echo", "")}})[0].Result.Success)
	})
}

// TestSessionsCloseInTime: neither a call that does not end nor a tool that fails keeps other tools from hearing of
// the end.
func TestSessionsCloseInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		hung := make(chan struct{})
		heard := make(chan struct{})
		broken := errors.New("cannot drop the tables")
		e := newExecutor(t, executor.Options{},
			keeper{newFake(t, "a", nil, func(context.Context, tool.Invocation) (tool.Outcome, error) {
				<-release
				return succeed(""), nil
			}), func(context.Context, string, string) error { return broken }},
			keeper{newFake(t, "b", nil, echo), func(context.Context, string, string) error { panic("b") }},
			keeper{newFake(t, "bb", nil, echo), func(context.Context, string, string) error { <-hung; return nil }},
			keeper{newFake(t, "c", nil, echo), func(context.Context, string, string) error { close(heard); return nil }})
		session := newSession(t, e, executor.SessionOptions{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			assert.NoError(t, noerr.Error(e.Execute(t.Context(), executor.Batch{Session: session, Calls: []tool.Call{newCall("1", "a", "")}})))
		}()
		synctest.Wait()
		ended, stop := context.WithCancel(t.Context())
		stop()
		err := session.Close(ended)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, broken)
		assert.ErrorContains(t, err, "calls are still running")
		assert.ErrorContains(t, err, "registry: close session b: panic: b")
		assert.ErrorContains(t, err, "registry: close session bb: the tool has not returned: context canceled")
		<-heard
		close(release)
		close(hung)
		<-done
	})
}
