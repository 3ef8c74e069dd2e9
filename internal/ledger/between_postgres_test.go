//go:build postgres

package ledger_test

import (
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
)

// between passes on the messages of a PostgreSQL database and its clients.
type between struct {
	location string       // for the clients
	silence  sync.RWMutex // locked while nothing is passed on
	answers  atomic.Int64 // counts down with each answer; at zero, the connection breaks
}

// newBetween returns what is between the ledger and a new database, until the end of the test.
func newBetween(t *testing.T) *between {
	t.Helper()
	real := noerr.Get(url.Parse(stores["postgres"](t)))(t)
	const socket = ".s.PGSQL.5432"
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), socket))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, listener.Close()) })
	through := *real
	through.RawQuery = url.Values{"host": {filepath.Dir(listener.Addr().String())}}.Encode()
	b := &between{location: through.String()}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", filepath.Join(real.Query().Get("host"), socket))
			if assert.NoError(t, err) {
				go b.pass(server, client, func() bool { return true })
				go b.pass(client, server, func() bool { return b.answers.Add(-1) != 0 })
			}
		}
	}()
	return b
}

// pass passes on what comes from one side, until that ends or may returns false.
func (b *between) pass(to, from net.Conn, may func() bool) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil || !may() {
			return
		}
		b.silence.RLock()
		_, err = to.Write(buffer[:n])
		b.silence.RUnlock()
		if err != nil {
			return
		}
	}
}
