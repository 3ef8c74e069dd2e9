//go:build postgres

package ledger_test

import (
	"context"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/noerr"
)

// silenced returns the location of a PostgreSQL database that does not answer while silence is locked.
func silenced(t *testing.T) (location string, silence *sync.RWMutex) {
	t.Helper()
	real := noerr.Get(url.Parse(stores["postgres"](t)))(t)
	const socket = ".s.PGSQL.5432"
	between, err := net.Listen("unix", filepath.Join(t.TempDir(), socket))
	require.NoError(t, err)
	silence = &sync.RWMutex{} // held for writing while nothing is passed on
	pass := func(to, from net.Conn) {
		defer func() { _ = to.Close() }()
		buffer := make([]byte, 64<<10)
		for {
			n, err := from.Read(buffer)
			silence.RLock()
			_, failed := to.Write(buffer[:n])
			silence.RUnlock()
			if err != nil || failed != nil {
				return
			}
		}
	}
	go func() {
		for {
			client, err := between.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", filepath.Join(real.Query().Get("host"), socket))
			if assert.NoError(t, err) {
				go pass(server, client)
				go pass(client, server)
			}
		}
	}()
	t.Cleanup(func() { assert.NoError(t, between.Close()) })
	through := *real
	through.RawQuery = url.Values{"host": {filepath.Dir(between.Addr().String())}}.Encode()
	return through.String(), silence
}

// TestAttackSilentDatabaseAtTheEnd: the database stops answering, and then the ledger is closed. That ends soon. The
// control is a database that answers.
func TestAttackSilentDatabaseAtTheEnd(t *testing.T) {
	for name, isSilent := range map[string]bool{"attack": true, "control": false} {
		t.Run(name, func(t *testing.T) {
			location, silence := silenced(t)
			l := noerr.Get(ledger.Open(t.Context(), ledger.Options{Location: location}))(t)
			appended(t, l, entry(1))
			require.NoError(t, l.Intend(t.Context(), intended(2)))
			left := make(chan error, 1)
			if isSilent {
				silence.Lock()
				defer silence.Unlock()
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
	between, silence := silenced(t)
	d := documents(t, ledger.TokenKind, between)
	require.NoError(t, d.Change(t.Context(), "", "a", to("1")))
	read := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		return noerr.Error(d.Read(ctx, "", "a"))
	}
	require.NoError(t, read())
	silence.Lock()
	for range 10 { // also those that wait for a connection, or begin one
		began := time.Now()
		require.ErrorIs(t, read(), context.DeadlineExceeded)
		ended, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		require.ErrorIs(t, noerr.Error(d.Names(ended, "")), context.DeadlineExceeded)
		cancel()
		assert.Less(t, time.Since(began), time.Second)
	}
	silence.Unlock()
	require.Eventually(t, func() bool { return read() == nil }, 20*time.Second, 100*time.Millisecond)
}

// TestAttackSilentDatabaseIsNotReady: the database stops answering while nobody writes. A check notices that, and that
// it answers again. The control is the check before.
func TestAttackSilentDatabaseIsNotReady(t *testing.T) {
	location, silence := silenced(t)
	l := opened(t, ledger.Options{Location: location})
	require.NoError(t, l.Check(t.Context()))
	silence.Lock()
	require.Eventually(t, func() bool { return l.Check(t.Context()) != nil }, 15*time.Second, 100*time.Millisecond)
	for range 3 {
		began := time.Now()
		require.Error(t, l.Check(t.Context()))
		assert.Less(t, time.Since(began), 4*time.Second)
	}
	silence.Unlock()
	require.Eventually(t, func() bool { return l.Check(t.Context()) == nil }, 30*time.Second, 100*time.Millisecond)
}
