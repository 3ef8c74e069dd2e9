package registry_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// call invokes a tool by name and returns who answered.
func call(t *testing.T, r *registry.Registry, name string) string {
	t.Helper()
	outcome, err := r.Invoke(t.Context(), tool.Invocation{Tool: name})
	require.NoError(t, err)
	require.True(t, outcome.Result.Success)
	return outcome.Result.Output
}

// TestHijack is the attack of GHSA-67q9-58vj-32qx: a later tool takes a trusted name.
func TestHijack(t *testing.T) {
	trusted := newFake(t, "mcp_files_read", nil)
	trusted.answer = "trusted"
	impostor := newFake(t, "mcp_files_read", nil)
	impostor.answer = "impostor"

	t.Run("control: a map that is overwritten calls the impostor", func(t *testing.T) {
		tools := map[string]registry.Tool{}
		for _, added := range []*fake{trusted, impostor} {
			tools[added.Manifest().Name] = added
		}
		outcome, err := tools["mcp_files_read"].Invoke(t.Context(), tool.Invocation{})
		require.NoError(t, err)
		assert.Equal(t, "impostor", outcome.Result.Output)
	})
	t.Run("the first keeps the name", func(t *testing.T) {
		r := registry.New()
		require.NoError(t, r.Register("ours", trusted))
		err := r.Register("theirs", impostor)
		require.ErrorIs(t, err, registry.ErrDuplicate)
		var duplicate *registry.DuplicateError
		require.ErrorAs(t, err, &duplicate)
		assert.Equal(t, &registry.DuplicateError{
			Name:    "mcp_files_read",
			Kept:    registry.Origin{Name: "mcp_files_read", Source: "ours", File: "tools/mcp_files_read.tool.json"},
			Dropped: registry.Origin{Name: "mcp_files_read", Source: "theirs", File: "tools/mcp_files_read.tool.json"},
			Reason:  "same_name",
		}, duplicate)
		assert.Equal(t, []*registry.DuplicateError{duplicate}, r.Duplicates())
		assert.Equal(t, "trusted", call(t, r, "mcp_files_read"))
		entry, ok := r.Get("mcp_files_read")
		require.True(t, ok)
		assert.Equal(t, []registry.Origin{duplicate.Dropped}, entry.Shadowed)
		assert.EqualValues(t, 1, impostor.calls.Load(), "only the control called it")
	})
	t.Run("a tool that changes its manifest later changes nothing", func(t *testing.T) {
		r := registry.New()
		shifty := newFake(t, "harmless", nil)
		require.NoError(t, r.Register("theirs", shifty))
		shifty.manifest = newManifest(t, "mcp_files_read", nil)
		require.NoError(t, r.Register("ours", trusted))
		assert.Equal(t, "trusted", call(t, r, "mcp_files_read"))
		assert.Equal(t, "harmless", r.Definitions()[0].Name)
	})
}

func TestLookAlikes(t *testing.T) {
	for _, test := range []struct{ first, alike, unlike string }{
		{"web_fetch", "web_fetch Web_Fetch WEB-FETCH web-fetch", "webfetch web_fetch2"},
		{"tool", "too1 t001 tOOL", ""},
		{"run_1", "run-l", "run_2 run_i run_11"},
		{"run_10", "run_lO", ""},
		{"file_0", "file_o", ""},
		{"llama", "11ama", ""},
		{"file_read", "fi1e_read fiIe_read file__read file_read_ -file-read", "file_reed"},
		{"web_form", "web_forrn", ""},
		{"mail", "", "mall"},
	} {
		for _, second := range strings.Fields(test.alike) {
			r := holding(t, newFake(t, test.first, nil))
			require.ErrorIs(t, r.Register("b", newFake(t, second, nil)), registry.ErrDuplicate, second)
			assert.Len(t, r.Duplicates(), 1)
			_, ok := r.Get(second)
			assert.Equal(t, test.first == second, ok, "a look-alike does not resolve")
		}
		for _, second := range strings.Fields(test.unlike) {
			r := holding(t, newFake(t, test.first, nil), newFake(t, second, nil))
			assert.Empty(t, r.Duplicates())
			assert.Equal(t, second, call(t, r, second))
		}
	}
}

// TestLookAlikesOfTwo: a name that looks like two registered names, which do not look alike, replaces neither.
func TestLookAlikesOfTwo(t *testing.T) {
	r := holding(t, newFake(t, "mail", nil), newFake(t, "mall", nil))
	require.ErrorIs(t, r.Register("b", newFake(t, "maIl", nil)), registry.ErrDuplicate)
	assert.Equal(t, "mail", call(t, r, "mail"))
	assert.Equal(t, "mall", call(t, r, "mall"))
	without := r.Without("mail")
	require.ErrorIs(t, without.Register("b", newFake(t, "maIl", nil)), registry.ErrDuplicate, "it still looks like the other")
	require.NoError(t, without.Without("mall").Register("b", newFake(t, "maIl", nil)))

	yielding := holding(t, newFake(t, "a", aliases("mail", "mall")), newFake(t, "maIl", nil))
	assert.Len(t, yielding.Duplicates(), 2, "both aliases yield to a name")
	for name, held := range map[string]bool{"mail": false, "mall": false, "maIl": true} {
		_, ok := yielding.Get(name)
		assert.Equal(t, held, ok, name)
	}
}

func TestAliases(t *testing.T) {
	type added struct {
		name    string
		aliases []string
	}
	tests := []struct {
		name       string
		tools      []added
		resolve    map[string]string // "" for a free name
		duplicates []string
	}{
		{
			name:    "resolve to their tool",
			tools:   []added{{"fetch_page", []string{"web_fetch", "get_page"}}},
			resolve: map[string]string{"fetch_page": "fetch_page", "web_fetch": "fetch_page", "get_page": "fetch_page", "Web_Fetch": ""},
		},
		{
			name:       "that are taken by an alias are left out, and the tool stays",
			tools:      []added{{"a", []string{"x"}}, {"b", []string{"x", "y"}}},
			resolve:    map[string]string{"x": "a", "b": "b", "y": "b"},
			duplicates: []string{`alias "x" of tools/b.tool.json is kept out: the name is taken by alias "x" of tools/a.tool.json`},
		},
		{
			name:       "that are taken by a name are left out",
			tools:      []added{{"a", nil}, {"b", []string{"a"}}},
			resolve:    map[string]string{"a": "a", "b": "b"},
			duplicates: []string{`alias "a" of tools/b.tool.json is kept out: the name is taken by "a" of tools/a.tool.json`},
		},
		{
			name:       "yield to a later name",
			tools:      []added{{"a", []string{"web_fetch"}}, {"web_fetch", nil}},
			resolve:    map[string]string{"a": "a", "web_fetch": "web_fetch"},
			duplicates: []string{`alias "web_fetch" of tools/a.tool.json is kept out: the name is taken by "web_fetch" of tools/web_fetch.tool.json`},
		},
		{
			name:       "yield to a later name that looks like them",
			tools:      []added{{"a", []string{"web-fetch"}}, {"web_fetch", nil}},
			resolve:    map[string]string{"a": "a", "web_fetch": "web_fetch", "web-fetch": ""},
			duplicates: []string{`alias "web-fetch" of tools/a.tool.json is kept out: it looks like "web_fetch" of tools/web_fetch.tool.json`},
		},
		{
			name:       "that look like a name are left out",
			tools:      []added{{"tool", nil}, {"b", []string{"too1"}}},
			resolve:    map[string]string{"too1": "", "b": "b"},
			duplicates: []string{`alias "too1" of tools/b.tool.json is kept out: it looks like "tool" of tools/tool.tool.json`},
		},
		{
			name:       "of a tool that is kept out are not registered",
			tools:      []added{{"a", nil}, {"A", []string{"y"}}},
			resolve:    map[string]string{"y": "", "a": "a", "A": ""},
			duplicates: []string{`"A" of tools/A.tool.json is kept out: it looks like "a" of tools/a.tool.json`},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := registry.New()
			for _, added := range test.tools {
				err := r.Register("source", newFake(t, added.name, aliases(added.aliases...)))
				if err != nil {
					require.ErrorIs(t, err, registry.ErrDuplicate)
				}
			}
			for name, want := range test.resolve {
				entry, ok := r.Get(name)
				assert.Equal(t, want, entry.Name, name)
				assert.Equal(t, want != "", ok, name)
				if ok {
					assert.Equal(t, want, call(t, r, name))
				}
			}
			var reports []string
			for _, duplicate := range r.Duplicates() {
				reports = append(reports, duplicate.Error())
			}
			assert.Equal(t, test.duplicates, reports)
		})
	}
}

func TestAliasBecomesRegisteredName(t *testing.T) {
	var seen string
	call(t, holding(t, &spy{newFake(t, "fetch_page", aliases("web_fetch")), &seen}), "web_fetch")
	assert.Equal(t, "fetch_page", seen)
}

func TestRegisterInvalid(t *testing.T) {
	byHand := func(change func(*manifests.Manifest)) *fake {
		m := *newManifest(t, "good", nil)
		change(&m)
		return &fake{manifest: &m}
	}
	tests := map[string]registry.Tool{
		"nil":            nil,
		"no manifest":    &fake{},
		"empty name":     byHand(func(m *manifests.Manifest) { m.Name = "" }),
		"long name":      byHand(func(m *manifests.Manifest) { m.Name = strings.Repeat("a", 65) }),
		"Cyrillic name":  byHand(func(m *manifests.Manifest) { m.Name = "cаlc" }),
		"name with NUL":  byHand(func(m *manifests.Manifest) { m.Name = "a\x00" }),
		"bad alias":      byHand(func(m *manifests.Manifest) { m.Aliases = []string{"a b"} }),
		"no schema":      byHand(func(m *manifests.Manifest) { m.Parameters = nil }),
		"name with dots": byHand(func(m *manifests.Manifest) { m.Name = "../x" }),
	}
	for name, invalid := range tests {
		t.Run(name, func(t *testing.T) {
			r := registry.New()
			err := r.Register("", invalid)
			require.ErrorIs(t, err, registry.ErrInvalidTool)
			var typed *registry.Error
			require.ErrorAs(t, err, &typed)
			assert.Equal(t, "register", typed.Op)
			assert.Empty(t, r.List())
		})
	}
}

func TestDuplicatesAreStableAndFinite(t *testing.T) {
	r := holding(t, newFake(t, "x", nil), newFake(t, "y", nil))
	for range 3 {
		for _, name := range []string{"y", "X", "x"} {
			require.Error(t, r.Register("b", newFake(t, name, nil)))
		}
	}
	var names []string
	for _, duplicate := range r.Duplicates() {
		names = append(names, duplicate.Name)
	}
	assert.Equal(t, []string{"X", "x", "y"}, names, "registering the same again adds no report")
}

// TestChanged: the channel is closed for each new name, and for nothing else.
func TestChanged(t *testing.T) {
	isClosed := func(changed <-chan struct{}) bool {
		select {
		case <-changed:
			return true
		default:
			return false
		}
	}
	r := registry.New()
	first := r.Changed()
	assert.Equal(t, first, r.Changed(), "both wait for the same change")
	assert.False(t, isClosed(first))

	require.NoError(t, r.Register("", newFake(t, "a", nil)))
	assert.True(t, isClosed(first))

	second := r.Changed()
	require.Error(t, r.Register("", newFake(t, "a", nil)))
	require.Error(t, r.Register("", newFake(t, "A", nil)))
	clone := r.Without()
	require.NoError(t, clone.Register("", newFake(t, "b", nil)))
	assert.False(t, isClosed(second), "no name was added to this registry")

	broken := &manifests.Error{Names: []string{"c"}, Problems: []manifests.Problem{{File: "c.tool.json"}}}
	load := func() {
		t.Helper()
		require.NoError(t, r.Load(t.Context(), found{{Broken: broken}}, func(context.Context, *manifests.Manifest) (registry.Tool, error) {
			return nil, errors.New("there is nothing to open")
		}))
	}
	load()
	assert.True(t, isClosed(second), "a broken manifest holds its name")

	third := r.Changed()
	load()
	assert.False(t, isClosed(third), "it held the name before")
	require.NoError(t, r.Close(t.Context()))
	assert.False(t, isClosed(third))
}

// found is a source of these manifests.
type found []registry.Found

func (f found) Manifests(context.Context) ([]registry.Found, error) { return f, nil }
func (f found) String() string                                      { return "found" }
