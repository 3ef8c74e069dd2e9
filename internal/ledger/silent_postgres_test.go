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

// TestAttackSilentDatabase: the database, or the network, stops answering. Reading a document ends with its context, and
// succeeds again afterwards. The control is the database before.
func TestAttackSilentDatabase(t *testing.T) {
	real := noerr.Get(url.Parse(stores["postgres"](t)))(t)
	const socket = ".s.PGSQL.5432"
	between, err := net.Listen("unix", filepath.Join(t.TempDir(), socket))
	require.NoError(t, err)
	var silence sync.RWMutex // held for writing while nothing is passed on
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
	d := documents(t, ledger.TokenKind, through.String())
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
