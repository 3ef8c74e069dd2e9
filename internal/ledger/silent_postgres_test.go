//go:build postgres

package ledger_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/noerr"
)

// TestAttackSilentDatabaseAtTheEnd: the database stops answering, and then the ledger is closed. That ends soon. The
// control is a database that answers.
func TestAttackSilentDatabaseAtTheEnd(t *testing.T) {
	for name, isSilent := range map[string]bool{"attack": true, "control": false} {
		t.Run(name, func(t *testing.T) {
			b := newBetween(t)
			l := noerr.Get(ledger.Open(t.Context(), ledger.Options{Location: b.location}))(t)
			appended(t, l, entry(1))
			require.NoError(t, l.Intend(t.Context(), intended(2)))
			left := make(chan error, 1)
			if isSilent {
				b.silence.Lock()
				defer b.silence.Unlock()
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				require.ErrorIs(t, l.Append(ctx, entry(3)), context.DeadlineExceeded)
			}
			go func() { left <- l.Close(t.Context()) }()
			select {
			case err := <-left:
				assert.Equal(t, isSilent, err != nil, "%v", err)
			case <-time.After(30 * time.Second):
				t.Fatal("the ledger is not closed")
			}
		})
	}
}

// TestAttackSilentDatabase: the database, or the network, stops answering. Reading a document ends with its context, and
// succeeds again afterwards. The control is the database before.
func TestAttackSilentDatabase(t *testing.T) {
	b := newBetween(t)
	d := documents(t, ledger.TokenKind, b.location)
	require.NoError(t, d.Change(t.Context(), "", "a", to("1")))
	read := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		return noerr.Error(d.Read(ctx, "", "a"))
	}
	require.NoError(t, read())
	b.silence.Lock()
	for range 10 { // also those that wait for a connection, or begin one
		began := time.Now()
		require.ErrorIs(t, read(), context.DeadlineExceeded)
		ended, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		require.ErrorIs(t, noerr.Error(d.Names(ended, "")), context.DeadlineExceeded)
		cancel()
		assert.Less(t, time.Since(began), time.Second)
	}
	b.silence.Unlock()
	require.Eventually(t, func() bool { return read() == nil }, 20*time.Second, 100*time.Millisecond)
}

// TestAttackSilentDatabaseIsNotReady: the database stops answering while the ledger is idle. A check notices that, and
// that it answers again. The control is the check before.
func TestAttackSilentDatabaseIsNotReady(t *testing.T) {
	b := newBetween(t)
	l := opened(t, ledger.Options{Location: b.location})
	require.NoError(t, l.Check(t.Context()))
	b.silence.Lock()
	require.Eventually(t, func() bool { return l.Check(t.Context()) != nil }, 15*time.Second, 100*time.Millisecond)
	for range 3 {
		began := time.Now()
		require.Error(t, l.Check(t.Context()))
		assert.Less(t, time.Since(began), 4*time.Second)
	}
	b.silence.Unlock()
	require.Eventually(t, func() bool { return l.Check(t.Context()) == nil }, 30*time.Second, 100*time.Millisecond)
}

// TestAttackSuspendedTransactions: a process is suspended in the middle of a transaction, in which it has locked a row.
// Others change the row soon afterwards. The control is the process that was suspended, whose change fails.
func TestAttackSuspendedTransactions(t *testing.T) {
	location := stores["postgres"](t)
	suspended, other := documents(t, ledger.TokenKind, location), documents(t, ledger.TokenKind, location)
	require.NoError(t, other.Change(t.Context(), "", "a", to("1")))
	locked, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- suspended.Change(t.Context(), "", "a", func([]byte) ([]byte, error) {
			close(locked)
			<-goOn
			return []byte("2"), nil
		})
	}()
	<-locked
	began := time.Now()
	require.NoError(t, other.Change(t.Context(), "", "a", to("3")))
	assert.Less(t, time.Since(began), 8*time.Second)
	close(goOn)
	require.Error(t, <-ended)
	assert.Equal(t, "3", string(noerr.Get(other.Read(t.Context(), "", "a"))(t)))
}
