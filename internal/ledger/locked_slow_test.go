//go:build slow

package ledger_test

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/noerr"
)

// TestAttackLockedAtTheEnd: another process has locked the file of the ledger while that is closed. That is waited for
// once, however much there is to write. The control is a file that is not locked.
func TestAttackLockedAtTheEnd(t *testing.T) {
	for name, isLocked := range map[string]bool{"attack": true, "control": false} {
		t.Run(name, func(t *testing.T) {
			location := filepath.Join(t.TempDir(), "ledger")
			l := noerr.Get(ledger.Open(t.Context(), ledger.Options{Location: location, Relaxed: true}))(t)
			require.NoError(t, l.Intend(t.Context(), intended(0)))
			other := noerr.Get(sql.Open("sqlite", filepath.Join(location, "ledger.db")))(t)
			defer other.Close()
			other.SetMaxOpenConns(1)
			if isLocked {
				noerr.Get(other.ExecContext(t.Context(), "begin immediate"))(t)
			}
			for n := range 100 {
				require.NoError(t, l.Append(t.Context(), entry(n+1)))
			}
			began := time.Now()
			assert.Equal(t, isLocked, l.Close(t.Context()) != nil)
			assert.Less(t, time.Since(began), 40*time.Second)
		})
	}
}
