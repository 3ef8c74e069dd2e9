package permission_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/permission"
)

func hostTemplate(t *testing.T, text string) permission.HostTemplate {
	t.Helper()
	parsed, err := permission.ParseHostTemplate(filepath.FromSlash(text))
	require.NoError(t, err, text)
	return parsed
}

func TestParseHostTemplate(t *testing.T) {
	for text, want := range map[string]struct {
		canonical, base string
		keys            []string
	}{
		"./workspaces/{project_id}":        {"workspaces/{project_id}", "workspaces", []string{"project_id"}},
		"/srv/{tenant}/{project}/{tenant}": {"/srv/{tenant}/{project}/{tenant}", "/srv", []string{"tenant", "project"}},
		"{id}":                             {"{id}", ".", []string{"id"}},
		"/{id}/x":                          {"/{id}/x", "/", []string{"id"}},
		"../up/./x//y/":                    {"../up/x/y", "../up/x/y", nil},
		".":                                {".", ".", nil},
		"/":                                {"/", "/", nil},
		"./~":                              {"~", "~", nil},
	} {
		parsed := hostTemplate(t, text)
		assert.Equal(t, filepath.FromSlash(want.canonical), parsed.String())
		assert.Equal(t, filepath.FromSlash(want.base), parsed.Base())
		assert.Equal(t, want.keys, parsed.Keys(), text)
	}
	for _, text := range []string{
		"", "a\x00b", "a\xff", "a\nb", "ws/p-{id}", "ws/{id}x", "ws/{}", "ws/{a b}", "ws/{a-b}", "ws/{a.b}", "ws/{a}{b}", "ws/{", "ws/}", "{a}/../b", "ws/{{id}}", "ws/{../x}",
		"ws/{" + strings.Repeat("a", 65) + "}", strings.Repeat("a/", 2049),
	} {
		_, err := permission.ParseHostTemplate(text)
		assert.ErrorIs(t, err, permission.ErrInvalid, text)
	}
}

func TestHostTemplatePath(t *testing.T) {
	values := map[string]string{"id": "p1", "bad": "..", "empty": "", "long": strings.Repeat("a", 256), "slash": "a/b", "back": `a\b`, "control": "a\x01", "bytes": "\xff"}
	for text, want := range map[string]string{"ws/{id}/data": "ws/p1/data", "./ws/{id}": "ws/p1", "/srv/ws": "/srv/ws", "{id}": "p1", ".": ".", "/{id}": "/p1"} {
		path, err := hostTemplate(t, text).Path(values)
		require.NoError(t, err, text)
		assert.Equal(t, filepath.FromSlash(want), path, text)
	}
	for _, key := range []string{"none", "bad", "empty", "long", "slash", "back", "control", "bytes"} {
		_, err := hostTemplate(t, "ws/{"+key+"}").Path(values)
		wrong, ok := errors.AsType[*permission.ValueError](err)
		require.True(t, ok, key)
		assert.Equal(t, key, wrong.Key)
		assert.Contains(t, wrong.Error(), key)
		if value := values[key]; value != "" {
			assert.NotContains(t, wrong.Error(), value)
		}
	}
}

func TestHostTemplateSets(t *testing.T) {
	for _, c := range []struct {
		a, b   string
		covers bool   // a covers b
		both   string // what both name; empty: nothing
	}{
		{"/ws", "/ws", true, "/ws"},
		{"/ws", "/other", false, ""},
		{"/ws", "ws", false, ""},
		{"/ws", "/ws/a", false, ""},
		{"/ws/{id}", "/ws/a", true, "/ws/a"},
		{"/ws/a", "/ws/{id}", false, "/ws/a"},
		{"/ws/{id}", "/ws/{other}", true, "/ws/{id}"},
		{"/ws/{id}/{id}", "/ws/{a}/{b}", false, "/ws/{id}/{id}"},
		{"/ws/{a}/{b}", "/ws/{id}/{id}", true, "/ws/{a}/{a}"},
		{"/ws/{a}/x", "/ws/y/{b}", false, "/ws/y/x"},
		{"/{a}/{a}", "/x/{b}", false, "/x/x"},
		{"/{a}/{a}", "/x/y", false, ""},
		{"/{a}/{b}", "/{b}/x", true, "/{a}/x"},
		{"/{a}/{b}/{a}", "/{c}/{c}/{d}", false, "/{a}/{a}/{a}"},
		{"{a}", "..", false, ""},
		{"{a}", "b", true, "b"},
		{".", ".", true, "."},
		{".", "/", false, ""},
		{".", "{a}", false, ""},
		{"../a", "../{b}", false, "../a"},
	} {
		a, b := hostTemplate(t, c.a), hostTemplate(t, c.b)
		assert.Equal(t, c.covers, a.Covers(b), "%s covers %s", c.a, c.b)
		both, overlap := a.Intersect(b)
		assert.Equal(t, filepath.FromSlash(c.both), both.String(), "%s and %s", c.a, c.b)
		assert.Equal(t, c.both != "", overlap)
		_, swapped := b.Intersect(a)
		assert.Equal(t, overlap, swapped)
	}
	none := permission.HostTemplate{}
	assert.False(t, none.Covers(none) || none.Matches("") || none.Matches(".") || hostTemplate(t, ".").Covers(none))
	assert.True(t, hostTemplate(t, "/ws/{id}").Matches(filepath.FromSlash("/ws/p1")))
	assert.False(t, hostTemplate(t, "/ws/{id}").Matches(filepath.FromSlash("/ws/{id}")), "a template is no directory")
}
