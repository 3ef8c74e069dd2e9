package files_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/manifests"
)

// os.Root opens each directory of a path and of the links in it, and begins again for each "..": a lookup takes long
// in a tree that is thousands of directories deep. A guest can make such a tree, but not lead a path down it.
func TestAttackDeepPaths(t *testing.T) {
	w := newWorld(t, "f = text")
	d := preopen(t, w.open(manifests.AccessReadWrite), "/project")
	const deep, longest = 1000, 144
	down := func(n int) string { return strings.Repeat("a/", n-1) + "a" }
	require.NoError(t, d.Symlink(down(longest), "near"))
	require.ErrorIs(t, d.Symlink(down(longest+1), "far"), errno.NameTooLong)

	at := must(os.OpenRoot(w.project)) // the path to the deepest would be too long for the system
	for range deep {
		require.NoError(t, at.Mkdir("a", 0o755))
		next := must(at.OpenRoot("a"))
		require.NoError(t, at.Close())
		at = next
	}
	require.NoError(t, at.Close())
	require.NoError(t, errOf(d.Stat(down(longest), true)))
	require.ErrorIs(t, errOf(d.Stat(down(longest+1), true)), errno.NameTooLong)

	// The control is a link that was there before.
	require.NoError(t, os.Symlink(down(deep), w.path("far")))
	took := func(name string) time.Duration {
		least := time.Hour
		for range 5 {
			began := time.Now()
			require.NoError(t, errOf(d.Stat(name+strings.Repeat("/..", 8), true)))
			least = min(least, time.Since(began))
		}
		return least
	}
	assert.Less(t, 3*took("near"), took("far"))
}
