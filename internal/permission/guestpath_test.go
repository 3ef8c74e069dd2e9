package permission_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/permission"
)

func guestPath(t *testing.T, text string) permission.GuestPath {
	t.Helper()
	p, err := permission.ParseGuestPath(text)
	require.NoError(t, err, text)
	return p
}

func TestParseGuestPath(t *testing.T) {
	for _, text := range []string{"/", "/project", "/a/b.c", "/a b", "/...", "/ü/日本"} {
		assert.Equal(t, text, guestPath(t, text).String())
	}
	for _, text := range []string{
		"", "project", "/project/", "//", "/a/../b", "/..", "/a/./b", "/a//b", `/a\b`, "/a\nb", "/a\tb", "/a\x00", "/a\u202eb", "/a\u200cb", "/a\u2800", "/\xff", "~", "/" + strings.Repeat("a", 1024),
	} {
		p, err := permission.ParseGuestPath(text)
		require.ErrorIs(t, err, permission.ErrInvalid, text)
		assert.Zero(t, p)
	}
}

func TestGuestPathLattice(t *testing.T) {
	all := []string{"/", "/a", "/a/b", "/ab", "/b"}
	for outer, covered := range map[string][]string{"/": all, "/a": {"/a/b"}, "/a/b": nil, "/ab": nil, "/b": nil} {
		for _, inner := range all {
			want := outer == inner || slices.Contains(covered, inner)
			assert.Equal(t, want, guestPath(t, outer).Covers(guestPath(t, inner)), "%s covers %s", outer, inner)
			assert.Equal(t, want, guestPath(t, outer).Matches(inner), "%s matches %s", outer, inner)
		}
		none := permission.GuestPath{}
		assert.False(t, none.Covers(guestPath(t, outer)) || guestPath(t, outer).Covers(none) || none.Covers(none) || none.Matches(outer))
	}
	assert.True(t, guestPath(t, "/a").Matches("/a/../b"), "on paper")
	assert.False(t, guestPath(t, "/").Matches("a"))
	assert.False(t, guestPath(t, "/a").Matches(""))
}
