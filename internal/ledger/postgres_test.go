//go:build postgres

package ledger_test

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/testcluster"
)

var started = sync.OnceValues(testcluster.Start)

func TestMain(m *testing.M) {
	stores["postgres"] = func(t *testing.T) string {
		c, err := started()
		require.NoError(t, err)
		return noerr.Get(c.NewDatabase())(t)
	}
	code := m.Run()
	if c, err := started(); err == nil {
		if err := c.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "the cluster cannot be stopped:", err)
			code = 1
		}
	}
	os.Exit(code)
}
