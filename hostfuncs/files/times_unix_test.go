//go:build unix

package files_test

import (
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/errno"
	"github.com/caisson-run/caisson/manifests"
)

// TestTimesOfALink: without follow, a link's own times are set, wherever it leads.
func TestTimesOfALink(t *testing.T) {
	first, second := time.Unix(1_000_000, 123_456_000), time.Unix(2_000_000, 0)
	for link, elsewhere := range map[string]string{
		"l": "f", "sub/l": "f", "to/l": "f", "dir": "sub", "dangling": "f", "loop": "f", "out": "../outside/secret.txt",
	} {
		t.Run(link, func(t *testing.T) {
			w := newWorld(t, "f = text", "sub/", "l => f", "sub/l => ../f", "to => sub", "dir => sub", "dangling => absent", "loop => loop", "out => ../outside/secret.txt")
			before := must(os.Stat(w.path(elsewhere)))
			d := preopen(t, w.open(manifests.AccessReadWrite), "/project")
			require.NoError(t, d.SetTimes(link, false, &first, &first))
			require.NoError(t, d.SetTimes(link, false, nil, &second))
			info := must(d.Stat(link, false))
			assert.Equal(t, fs.ModeSymlink, info.Kind)
			assert.True(t, info.Accessed.Equal(first), info.Accessed)
			assert.True(t, info.Modified.Equal(second), info.Modified)
			require.NoError(t, d.SetTimes(link, false, &second, nil))
			info = must(d.Stat(link, false))
			assert.True(t, info.Accessed.Equal(second), info.Accessed)
			assert.True(t, info.Modified.Equal(second), info.Modified)
			assert.Equal(t, before.ModTime(), must(os.Stat(w.path(elsewhere))).ModTime())
			assert.False(t, w.outsideChanged())
		})
	}
}

func TestTimesOfALinkThatMayNotChange(t *testing.T) {
	w := newWorld(t, "f = text", "l => f", "out => ../outside")
	past := time.Unix(1, 0)
	before := snapshot(t, w.project)
	d := preopen(t, w.open(manifests.AccessRead), "/project")
	assert.ErrorIs(t, d.SetTimes("l", false, &past, &past), errno.ReadOnly)
	assert.Equal(t, before, snapshot(t, w.project))
	d = preopen(t, w.open(manifests.AccessReadWrite), "/project")
	assert.ErrorIs(t, d.SetTimes("out/secret.txt", false, &past, &past), errno.Denied)
	require.NoError(t, os.Symlink("secret.txt", w.path("../outside/l")))
	w.before = snapshot(t, w.path("../outside"))
	assert.ErrorIs(t, d.SetTimes("out/l", false, &past, &past), errno.Denied)
	assert.False(t, w.outsideChanged())
}
