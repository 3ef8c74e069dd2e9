//go:build postgres

package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/ledger"
)

// TestAttackLostAnswers: the connection breaks at any answer of the database while a key is taken, also at that to the
// commit. The key is then taken, or can be. The control is without a break.
func TestAttackLostAnswers(t *testing.T) {
	b := newBetween(t)
	l := opened(t, ledger.Options{Location: b.location})
	broke := 0
	for n := range 16 {
		one := key("acme", fmt.Sprint(n))
		b.answers.Store(int64(n)) // none for 0
		_, err := l.TakeKey(t.Context(), one)
		b.answers.Store(0)
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
