package permission_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/permission"
)

func urlPath(t *testing.T, text string) permission.URLPath {
	t.Helper()
	p, err := permission.ParseURLPath(text)
	require.NoError(t, err, text)
	return p
}

func TestParseURLPath(t *testing.T) {
	for _, text := range []string{"/", "/v1", "/v1/", "/a;b=c", "/.well-known/x", "/ü", "/a.b", "/" + strings.Repeat("a", 1023)} {
		assert.Equal(t, text, urlPath(t, text).String())
	}
	for _, text := range []string{
		"", "v1", "api", "//", "/a//b", "/a//", "/..", "/a/../b", "/./a", "/a/.", "/...", "/a/..;x", "/a%2f", "/%", "/a?b", "/a#b", `/a\b`, "/*", "/a b", " /a", "/a\n", "/a\tb",
		"/a\x00", "/a\u202eb", "/a\u200db", "/a\u2800", "/\xff", "/" + strings.Repeat("a", 1024),
	} {
		p, err := permission.ParseURLPath(text)
		require.ErrorIs(t, err, permission.ErrInvalid, text)
		assert.Zero(t, p)
	}
}

func TestURLPathMatches(t *testing.T) {
	for _, c := range []struct {
		prefix, decoded, escaped string
		matches, loosely         bool
	}{
		{"/", "", "", true, true},
		{"/", "/a//b", "/a//b", true, true},
		{"/", "/a/../b", "/a/%2e%2e/b", true, true},
		{"/v1", "/v1", "/v1", true, true},
		{"/v1", "/v1/", "/v1/", true, true},
		{"/v1", "/v1/x", "/v1/x", true, true},
		{"/v1", "/v10", "/v10", false, false},
		{"/v1", "/v", "/v", false, false},
		{"/v1", "/V1", "/V1", false, true},
		{"/v1", "/v1;x/y", "/v1;x/y", false, true},
		{"/v1", "/v1.", "/v1.", false, true},
		{"/v1", "/v1?x", "/v1%3fx", false, true},
		{"/v1", "/v1/../x", "/v1/../x", false, true},
		{"/v1", "/x", "/%2fx", false, true},
		{"/v1", "/x/%2e", "/x/%252e", false, true},
		{"/v1", "/x/\xc0\xae", "/x/%c0%ae", false, true},
		{"/v1/", "/v1", "/v1", false, false},
		{"/v1/", "/v1/x", "/v1/x", true, true},
	} {
		requested := permission.ReadRequestPath(c.decoded, c.escaped)
		assert.Equal(t, c.matches, urlPath(t, c.prefix).Matches(requested), "%s and %s", c.prefix, c.escaped)
		assert.Equal(t, c.loosely, urlPath(t, c.prefix).MatchesLoosely(requested), "%s and %s", c.prefix, c.escaped)
		assert.False(t, permission.URLPath{}.Matches(requested) || permission.URLPath{}.MatchesLoosely(requested))
	}
	assert.False(t, urlPath(t, "/v1").Matches(permission.RequestPath{}))
}

func TestURLPathLattice(t *testing.T) {
	for outer, covered := range map[string][]string{
		"/": {"/a", "/a/", "/a/b", "/ab"}, "/a": {"/a/", "/a/b"}, "/a/": {"/a/b"}, "/a/b": nil, "/ab": nil,
	} {
		for _, inner := range []string{"/", "/a", "/a/", "/a/b", "/ab"} {
			assert.Equal(t, outer == inner || slices.Contains(covered, inner), urlPath(t, outer).Covers(urlPath(t, inner)), "%s covers %s", outer, inner)
		}
		assert.False(t, permission.URLPath{}.Covers(urlPath(t, outer)) || urlPath(t, outer).Covers(permission.URLPath{}) || permission.URLPath{}.Covers(permission.URLPath{}))
	}
}
