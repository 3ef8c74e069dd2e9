package ledger_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/ledger/internal/database"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/tool"
)

// intended is the n-th call, after its intent was kept.
func intended(n int) ledger.Entry {
	return entry(n, func(e *ledger.Entry) { e.Intended, e.Tenant = true, "acme" })
}

// executed runs a statement beside the ledger.
func executed(t *testing.T, location, statement string) {
	t.Helper()
	db, err := database.Open(t.Context(), location)
	require.NoError(t, err)
	require.NoError(t, db.Update(t.Context(), func(tx *database.Tx) error {
		_, err := tx.Exec(t.Context(), statement)
		return err
	}))
	require.NoError(t, db.Close())
}

// queried returns the texts that a query finds in a ledger.
func queried(t *testing.T, location, query string) (texts []string) {
	t.Helper()
	db, err := database.Open(t.Context(), location)
	require.NoError(t, err)
	require.NoError(t, db.View(t.Context(), func(tx *database.Tx) error {
		return tx.Rows(t.Context(), query, nil, func(scan func(into ...any) error) error {
			var text string
			err := scan(&text)
			texts = append(texts, text)
			return err
		})
	}))
	require.NoError(t, db.Close())
	return texts
}

// outcomes returns the kinds of the calls, by id.
func outcomes(t *testing.T, l *ledger.Ledger) map[string]tool.Kind {
	t.Helper()
	kinds := map[string]tool.Kind{}
	for _, e := range noerr.Get(l.Calls(t.Context(), ledger.Filter{}))(t).Entries {
		kinds[e.Record.CallID] = e.Record.Result.Kind
	}
	return kinds
}

// TestAttackDeadWriters: the process that runs calls is killed, or stopped for longer than its lease. Each call without
// a record gets one that says so, once, and the process cannot add another when it goes on. The controls are a call
// that had ended, and a process whose lease is not overdue.
func TestAttackDeadWriters(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		options := ledger.Options{Location: location}
		stopped := opened(t, options)
		for n := range 3 {
			require.NoError(t, stopped.Intend(t.Context(), intended(n+1)))
		}
		appended(t, stopped, intended(1))

		assert.Equal(t, map[string]tool.Kind{id(1): ""}, outcomes(t, opened(t, options)), "the control")
		executed(t, location, "update writers set until = 0")
		for range 2 {
			assert.Equal(t, map[string]tool.Kind{id(1): "", id(2): tool.UnknownOutcome, id(3): tool.UnknownOutcome},
				outcomes(t, opened(t, options)))
		}
		found := noerr.Get(opened(t, options).Find(t.Context(), id(2)))(t)
		assert.Equal(t, "acme", found.Tenant)
		assert.Equal(t, "probe", found.Record.Function.Name)
		assert.Contains(t, found.Record.Result.Error, "find out")

		require.ErrorIs(t, stopped.Append(t.Context(), intended(2)), ledger.ErrKept)
		require.ErrorIs(t, stopped.Intend(t.Context(), intended(4)), ledger.ErrLease)
		require.NoError(t, stopped.Intend(t.Context(), intended(4)), "as another writer")
		appended(t, stopped, intended(4))
		assert.Empty(t, noerr.Get(stopped.Verify(t.Context()))(t).Faults)
	})
}

// TestCallsWithoutARecordWhenTheLedgerIsClosed: what a process leaves behind is recorded by the next.
func TestCallsWithoutARecordWhenTheLedgerIsClosed(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		options := ledger.Options{Location: location}
		l, err := ledger.Open(t.Context(), options)
		require.NoError(t, err)
		require.NoError(t, l.Intend(t.Context(), intended(1)))
		require.NoError(t, l.Close(t.Context()))
		assert.Equal(t, map[string]tool.Kind{id(1): tool.UnknownOutcome}, outcomes(t, opened(t, options)))
	})
}

// TestLateRecords: the record of a call that was intended is written when the ledger can be written again. The control
// is one that was not intended.
func TestLateRecords(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		l := opened(t, ledger.Options{Location: location})
		require.NoError(t, l.Intend(t.Context(), intended(1)))
		executed(t, location, "alter table calls rename to hidden")
		require.Error(t, l.Append(t.Context(), intended(1)))
		require.Error(t, l.Append(t.Context(), entry(2)))
		executed(t, location, "alter table hidden rename to calls")
		require.Eventually(t, func() bool {
			_, err := l.Find(t.Context(), id(1))
			return err == nil
		}, 20*time.Second, 50*time.Millisecond)
		assert.Equal(t, map[string]tool.Kind{id(1): ""}, outcomes(t, l))
		require.NoError(t, l.Check(t.Context()))
	})
}

// TestLateRecordsAreWrittenAtTheEnd: a record that could not be written is tried once more when the ledger is closed.
func TestLateRecordsAreWrittenAtTheEnd(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		l, err := ledger.Open(t.Context(), ledger.Options{Location: location})
		require.NoError(t, err)
		require.NoError(t, l.Intend(t.Context(), intended(1)))
		executed(t, location, "alter table calls rename to hidden")
		require.Error(t, l.Append(t.Context(), intended(1)))
		executed(t, location, "alter table hidden rename to calls")
		require.NoError(t, l.Close(t.Context()))
		assert.Equal(t, map[string]tool.Kind{id(1): ""}, outcomes(t, opened(t, ledger.Options{Location: location})))
	})
}

// TestRelaxedRecords: records are written soon after they were appended, also if that fails at first, and before the
// ledger is closed.
func TestRelaxedRecords(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		l, err := ledger.Open(t.Context(), ledger.Options{Location: location, Relaxed: true})
		require.NoError(t, err)
		require.NoError(t, l.Intend(t.Context(), intended(1)))
		executed(t, location, "alter table calls rename to hidden")
		appended(t, l, intended(1), entry(2))
		executed(t, location, "alter table hidden rename to calls")
		require.Eventually(t, func() bool { return len(found(t, l, ledger.Filter{})) == 2 }, 20*time.Second, 50*time.Millisecond)
		for n := range 5000 {
			appended(t, l, entry(10+n))
		}
		require.ErrorIs(t, l.Append(t.Context(), entry(1, func(e *ledger.Entry) { e.Record.CallID = "call_1" })), ledger.ErrID)
		require.NoError(t, l.Close(t.Context()))
		assert.Len(t, found(t, opened(t, ledger.Options{Location: location}), ledger.Filter{}), 5002)
	})
}

// TestCheckFails: a ledger that cannot be written says so.
func TestCheckFails(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		l := opened(t, ledger.Options{Location: location})
		require.NoError(t, l.Check(t.Context()))
		executed(t, location, "alter table writers rename to hidden")
		require.Error(t, l.Intend(t.Context(), intended(1)))
		require.Error(t, l.Check(t.Context()))
		executed(t, location, "alter table hidden rename to writers")
		require.NoError(t, l.Check(t.Context()))
	})
}

// TestIntentsOfManyCalls: intents and records of calls that run at the same time are committed together.
func TestIntentsOfManyCalls(t *testing.T) {
	eachStore(t, func(t *testing.T, location string) {
		l := opened(t, ledger.Options{Location: location})
		done := make(chan error)
		const calls = 300
		for n := range calls {
			go func() {
				ctx := context.WithoutCancel(t.Context())
				err := l.Intend(ctx, intended(n))
				if err == nil {
					err = l.Append(ctx, intended(n))
				}
				done <- err
			}()
		}
		for range calls {
			require.NoError(t, <-done)
		}
		assert.Len(t, found(t, l, ledger.Filter{}), calls)
		for _, kind := range outcomes(t, opened(t, ledger.Options{Location: location})) {
			assert.Empty(t, kind)
		}
	})
}
