package files_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs/files"
)

func TestParseTemplate(t *testing.T) {
	for text, keys := range map[string][]string{
		"./workspaces/{project_id}":        {"project_id"},
		"/srv/{tenant}/{project}/{tenant}": {"tenant", "project"},
		"{id}":                             {"id"},
		"../up/./x//y/":                    nil,
		".":                                nil,
		"/":                                nil,
		"/srv/{a-b.c}/data/":               {"a-b.c"},
	} {
		parsed, err := files.ParseTemplate(text)
		require.NoError(t, err, text)
		assert.Equal(t, text, parsed.String())
		assert.Equal(t, keys, parsed.Keys(), text)
	}
	for _, text := range []string{
		"", "a\x00b", "a\xff", "ws/p-{id}", "ws/{id}x", "ws/{}", "ws/{a b}", "ws/{a}{b}", "ws/{", "ws/}", "{a}/../b",
		"ws/{{id}}", "ws/{../x}",
	} {
		_, err := files.ParseTemplate(text)
		assert.ErrorIs(t, err, files.ErrInvalid, text)
	}
}

func TestTemplateIn(t *testing.T) {
	w := newWorld(t, "ws/p1/f = text")
	m := w.mount("read")
	m.Host = template(t, "./ws/{id}").In(w.project)
	view, err := openTenant(m, map[string]string{"id": "p1"})
	require.NoError(t, err)
	defer view.Close()
	text, err := read(preopen(t, view, "/project"), "f")
	require.NoError(t, err)
	assert.Equal(t, "text", text)

	m.Host = template(t, filepath.Join(w.project, "ws")).In("/nowhere")
	view2, err := openTenant(m, nil)
	require.NoError(t, err, "an absolute template stays where it is")
	require.NoError(t, view2.Close())
}

// FuzzTemplate: no template and no value leads to a path outside the literal part.
func FuzzTemplate(f *testing.F) {
	for _, seed := range [][2]string{
		{"ws/{id}", "p1"}, {"ws/{id}/x", ".."}, {"{id}", "a/b"}, {"/{a}/{a}", "\x00"}, {"a/../{b}", "."}, {"{a}/..", "x"}, {"ws/{id}", `a\b`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		parsed, err := files.ParseTemplate(text)
		if err != nil {
			assert.ErrorIs(t, err, files.ErrInvalid)
			return
		}
		values := map[string]string{}
		for _, key := range parsed.Keys() {
			values[key] = value
		}
		for _, name := range files.Filled(parsed, values) {
			assert.NotContains(t, []string{"", ".", ".."}, name)
			assert.NotContains(t, name, "/")
			assert.True(t, filepath.IsLocal(name))
		}
	})
}

func TestTemplatePath(t *testing.T) {
	values := map[string]string{"id": "p1", "bad": "..", "empty": ""}
	for text, want := range map[string]string{
		"ws/{id}/data": "ws/p1/data", "./ws/{id}": "ws/p1", "/srv/ws": "/srv/ws", "{id}": "p1", ".": ".",
		"ws/{none}": "", "ws/{bad}": "", "ws/{empty}": "",
	} {
		path, ok := template(t, text).Path(values)
		assert.Equal(t, want != "", ok, text)
		if ok {
			assert.Equal(t, filepath.FromSlash(want), path, text)
		}
	}
	path, ok := template(t, "ws/{id}").In("/base").Path(values)
	assert.True(t, ok)
	assert.Equal(t, filepath.FromSlash("/base/ws/p1"), path)
}
