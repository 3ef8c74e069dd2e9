package registry_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

func namesOf(definitions []tool.Definition) (names []string) {
	for _, d := range definitions {
		names = append(names, d.Name)
	}
	return names
}

// TestCatalogueAndDefinitionsAgree: people choose from all tools, and the model gets those of the agent that can
// be used, whichever set the agent has.
func TestCatalogueAndDefinitionsAgree(t *testing.T) {
	r := holding(t, newFake(t, "a", aliases("first")), newFake(t, "b", hidden), conditional{newFake(t, "c", nil), "needs KEY"},
		newFake(t, "d", fields{"label": "D", "summary": "For people.", "category": "web", "retired": []string{"old"}}))
	for _, test := range []struct {
		allowed, tools, offered []string
	}{
		{nil, []string{"a", "b", "c", "d"}, []string{"a", "b", "d"}},
		{[]string{}, nil, nil},
		{[]string{"first", "c"}, []string{"a", "c"}, []string{"a"}},
		{[]string{"old", "nothing", "d", "d"}, []string{"d"}, []string{"d"}},
	} {
		c := r.Catalogue(test.allowed)
		require.Len(t, c.Tools, 4)
		var has []string
		for _, l := range c.Tools {
			if l.Allowed {
				has = append(has, l.Name)
			}
			found, ok := r.Listing(l.Name)
			require.True(t, ok, "each tool that people see exists")
			found.Allowed = l.Allowed
			assert.Equal(t, l, found)
		}
		assert.Equal(t, test.tools, has)
		assert.Equal(t, test.offered, namesOf(c.Definitions()))
	}
	assert.Equal(t, r.Definitions(), r.Catalogue(nil).Definitions())
	_, ok := r.Listing("nothing")
	assert.False(t, ok)
}

// TestCatalogueInJSON: it has what a settings page needs, and no null where there is an empty list.
func TestCatalogueInJSON(t *testing.T) {
	r := holding(t, conditional{newFake(t, "d", nil), "needs KEY"})
	require.Error(t, r.Register("later", newFake(t, "D", nil)))
	text, err := json.Marshal(r.Catalogue(nil))
	require.NoError(t, err)
	assert.JSONEq(t, `{"tools":[{"name":"d","label":"","summary":"Does d.","description":"Does d.","version":"1.0.0","category":"","source":"","file":"tools/d.tool.json",
		"aliases":[],"retired":[],"allowed":true,"unavailable":"needs KEY","type":"function","execution":"sandbox","read_only":false,"destructive":false,"asks":"","final":false,
		"hidden":false,"deprecated":null,"permissions":[],"shadowed":[{"name":"D","source":"later","file":"tools/D.tool.json","alias":false,"retired":false}]}],
		"duplicates":[{"name":"D","kept":{"name":"d","source":"","file":"tools/d.tool.json","alias":false,"retired":false},
			"dropped":{"name":"D","source":"later","file":"tools/D.tool.json","alias":false,"retired":false},"reason":"look_alike"}]}`, string(text))
	text, err = json.Marshal(registry.New().Catalogue(nil))
	require.NoError(t, err)
	assert.JSONEq(t, `{"tools":[],"duplicates":[]}`, string(text))
}

// TestRetiredNames: calls by the name of a former tool are told its replacement, and only a tool with exactly this name
// can take it.
func TestRetiredNames(t *testing.T) {
	r := holding(t, newFake(t, "new", fields{"retired": []string{"old", "older"}}))
	_, err := r.Invoke(context.Background(), tool.Invocation{Tool: "old"})
	var failed *tool.Error
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, tool.UnknownTool, failed.Kind)
	assert.Equal(t, `the tool "old" is retired; call new instead`, failed.Message)

	for name, want := range map[string]string{"old": "new", "older": "new", "new": "", "Old": "", "nothing": ""} {
		instead, ok := r.Replacement(name)
		assert.Equal(t, want, instead, name)
		assert.Equal(t, want != "", ok, name)
	}
	_, ok := r.Get("old")
	assert.False(t, ok)
	assert.Equal(t, []string{"new"}, r.Nearest("old", 3), "what names a former tool means the one that replaces it")
	assert.Equal(t, []string{"new"}, namesOf(r.Definitions()))

	// Neither an alias nor a retired name of a later tool takes it.
	require.NoError(t, r.Register("later", newFake(t, "other", fields{"aliases": []string{"old"}, "retired": []string{"OLDER"}})))
	entry, ok := r.Get("other")
	require.True(t, ok)
	assert.Empty(t, entry.Aliases)
	assert.Empty(t, entry.Retired)
	assert.Len(t, r.Duplicates(), 2)

	// A tool's own name takes it, and the report says that it was a retired name.
	require.NoError(t, r.Register("later", newFake(t, "old", nil)))
	_, ok = r.Replacement("old")
	assert.False(t, ok)
	var reports []string
	for _, d := range r.Duplicates() {
		reports = append(reports, d.Error())
	}
	assert.Contains(t, reports, `retired name "old" of tools/new.tool.json is kept out: the name is taken by "old" of tools/old.tool.json`)

	// It goes with its tool.
	_, ok = r.Without("new").Replacement("older")
	assert.False(t, ok)
}
