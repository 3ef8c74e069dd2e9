//go:build postgres

package ledger_test

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/noerr"
)

// breaking returns the location of a PostgreSQL database whose connections break once answers counts down to zero.
func breaking(t *testing.T) (location string, answers *atomic.Int64) {
	t.Helper()
	real := noerr.Get(url.Parse(stores["postgres"](t)))(t)
	const socket = ".s.PGSQL.5432"
	between, err := net.Listen("unix", filepath.Join(t.TempDir(), socket))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, between.Close()) })
	answers = &atomic.Int64{}
	pass := func(to, from net.Conn, counts bool) {
		defer func() { _, _ = to.Close(), from.Close() }()
		buffer := make([]byte, 64<<10)
		for {
			n, err := from.Read(buffer)
			if err != nil || counts && answers.Add(-1) == 0 {
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
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
				go pass(server, client, false)
				go pass(client, server, true)
			}
		}
	}()
	through := *real
	through.RawQuery = url.Values{"host": {filepath.Dir(between.Addr().String())}}.Encode()
	return through.String(), answers
}

// TestAttackLostAnswers: the connection breaks at any answer of the database while a key is taken, also at that to the
// commit. The key is then taken, or can be. The control is without a break.
func TestAttackLostAnswers(t *testing.T) {
	location, answers := breaking(t)
	l := opened(t, ledger.Options{Location: location})
	broke := 0
	for n := range 16 {
		one := key("acme", fmt.Sprint(n))
		answers.Store(int64(n)) // none for 0
		_, err := l.TakeKey(t.Context(), one)
		answers.Store(0)
		if err == nil {
			continue
		}
		broke++
		require.Eventually(t, func() bool {
			again, err := l.TakeKey(t.Context(), one)
			return err == nil && again.State == ledger.KeyTaken
		}, 10*time.Second, 50*time.Millisecond, "after %d answers", n)
	}
	assert.Greater(t, broke, 3)
}
