package database

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
)

// insert inserts rows of a kilobyte in a transaction.
func insert(ctx context.Context, db *DB, rows int) error {
	return db.Update(ctx, func(tx *Tx) error {
		for range rows {
			if _, err := tx.Exec(ctx, "insert into t (x) values (?)", strings.Repeat("x", 1000)); err != nil {
				return err
			}
		}
		return nil
	})
}

func opened(t *testing.T) *DB {
	t.Helper()
	db := noerr.Get(Open(t.Context(), filepath.Join(t.TempDir(), "state")))(t)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	require.NoError(t, db.Update(t.Context(), func(tx *Tx) error {
		_, err := tx.Exec(t.Context(), "create table t (x text)")
		return err
	}))
	return db
}

func rows(t *testing.T, db *DB) (n int) {
	t.Helper()
	require.NoError(t, db.View(t.Context(), func(tx *Tx) error { return tx.Row(t.Context(), "select count(*) from t", nil, &n) }))
	return n
}

// TestAttackFullDisk: the disk is full for a moment. What could not be written is not there, and later transactions are
// written.
func TestAttackFullDisk(t *testing.T) {
	db := opened(t)
	require.NoError(t, insert(t.Context(), db, 10))
	noerr.Get(db.writer.ExecContext(t.Context(), "pragma max_page_count = 100"))(t)
	require.ErrorContains(t, insert(t.Context(), db, 1000), "full")
	noerr.Get(db.writer.ExecContext(t.Context(), "pragma max_page_count = 1000000"))(t)
	require.NoError(t, insert(t.Context(), db, 1000))
	assert.Equal(t, 1010, rows(t, db))
}

// TestAttackBrokenWriters: whatever happens to the connection that writes, the next transaction has one that works.
func TestAttackBrokenWriters(t *testing.T) {
	failed := errors.New("failed")
	for name, happen := range map[string]func(ctx context.Context, tx *Tx) error{
		"it fails":                   func(context.Context, *Tx) error { return failed },
		"the transaction is over":    func(ctx context.Context, tx *Tx) error { _, _ = tx.conn.ExecContext(ctx, "rollback"); return failed },
		"it is in another one later": func(ctx context.Context, tx *Tx) error { _, _ = tx.conn.ExecContext(ctx, "savepoint s"); return failed },
	} {
		t.Run(name, func(t *testing.T) {
			db := opened(t)
			require.NoError(t, insert(t.Context(), db, 1))
			for range 3 {
				require.ErrorIs(t, db.Update(t.Context(), func(tx *Tx) error {
					if _, err := tx.Exec(t.Context(), "insert into t (x) values ('lost')"); err != nil {
						return err
					}
					return happen(t.Context(), tx)
				}), failed)
				require.NoError(t, insert(t.Context(), db, 1))
			}
			assert.Equal(t, 4, rows(t, db))
		})
	}
}

// TestContextsEndSearchesAlone: the end of a context ends what reads, and nothing that writes.
func TestContextsEndSearchesAlone(t *testing.T) {
	db := opened(t)
	ended, cancel := context.WithCancel(t.Context())
	require.NoError(t, db.Update(ended, func(tx *Tx) error {
		cancel()
		_, err := tx.Exec(ended, "insert into t (x) values ('kept')")
		return err
	}))
	assert.Equal(t, 1, rows(t, db))
	require.ErrorIs(t, db.Update(ended, func(*Tx) error { return nil }), context.Canceled, "it has not begun")
	reading, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, db.View(reading, func(tx *Tx) error {
		cancel()
		var n int
		return tx.Row(reading, "select count(*) from t", nil, &n)
	}), context.Canceled)
}

// TestAttackReadersOfOtherProcesses: another process reads for long. What is written meanwhile does not wait for it. The
// control is that the log is emptied once it has ended.
func TestAttackReadersOfOtherProcesses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	db := noerr.Get(Open(t.Context(), dir))(t)
	defer func() { assert.NoError(t, db.Close()) }()
	require.NoError(t, db.Update(t.Context(), func(tx *Tx) error {
		_, err := tx.Exec(t.Context(), "create table t (x text)")
		return err
	}))
	length := func() int64 { return noerr.Get(os.Stat(db.log))(t).Size() }
	other := noerr.Get(Open(t.Context(), dir))(t)
	defer func() { assert.NoError(t, other.Close()) }()
	require.NoError(t, other.View(t.Context(), func(tx *Tx) error {
		var n int
		if err := tx.Row(t.Context(), "select count(*) from t", nil, &n); err != nil {
			return err
		}
		for range 2*shortenAfter + 1 {
			began := time.Now()
			if err := insert(t.Context(), db, 200); err != nil {
				return err
			}
			assert.Less(t, time.Since(began), busyTimeout*time.Millisecond/2)
		}
		assert.Greater(t, length(), int64(maxLog))
		return nil
	}))
	for range shortenAfter {
		require.NoError(t, insert(t.Context(), db, 1))
	}
	assert.Less(t, length(), int64(maxLog), "the control")
}

// TestOpeningsAtOnce: many open a new file at the same time.
func TestOpeningsAtOnce(t *testing.T) {
	for range 20 {
		dir := filepath.Join(t.TempDir(), "state")
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				db, err := Open(t.Context(), dir)
				if assert.NoError(t, err) {
					assert.NoError(t, db.Close())
				}
			})
		}
		all.Wait()
	}
}
