//go:build postgres

package main

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/testcluster"
)

var cluster = sync.OnceValues(testcluster.Start)

func init() {
	crashStores["postgres"] = func(t *testing.T) (string, string) {
		c, err := cluster()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Stop()) })
		return t.TempDir(), noerr.Get(c.NewDatabase())(t)
	}
}
