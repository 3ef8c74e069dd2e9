package tools_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/agents"
	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/dialects/known"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/internal/tooltest"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
	"github.com/caisson-run/caisson/wasm-tools/internal/toolname"
)

// host opens the shipped tools, and those in the test's manifests. Nothing is granted.
func host(t *testing.T, more ...string) *caisson.Host {
	t.Helper()
	return hostWith(t, caisson.Options{}, more...)
}

func hostWith(t *testing.T, options caisson.Options, more ...string) *caisson.Host {
	t.Helper()
	root, err := guests.Compile(t.Context(), moduleFolders...)
	require.NoError(t, err)
	own := t.TempDir()
	for i, manifest := range more {
		require.NoError(t, os.WriteFile(filepath.Join(own, string(rune('a'+i))+".tool.yaml"), []byte("schema: caisson/v1\n"+manifest), 0o600))
	}
	_, cache, err := guests.CompiledCode()
	require.NoError(t, err)
	options.Tools = []string{filepath.Join(root, "wasm-tools"), own}
	options.Runtime.CacheDir = cache
	options.Runtime.Interpreters = "none" // whatever is installed on this machine
	h, err := caisson.Open(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, h.Close(context.Background())) })
	require.Empty(t, h.Problems())
	return h
}

func shown(t *testing.T, c registry.Catalogue, name string) registry.Listing {
	t.Helper()
	at := slices.IndexFunc(c.Tools, func(l registry.Listing) bool { return l.Name == name })
	require.GreaterOrEqual(t, at, 0, name)
	return c.Tools[at]
}

// TestCatalogueForPeople: each shipped tool has a label and words for people, apart from its words for models.
func TestCatalogueForPeople(t *testing.T) {
	c := host(t).Catalogue(nil)
	require.Len(t, c.Tools, len(toolname.All()))
	for _, l := range c.Tools {
		assert.NotEmpty(t, l.Label, l.Name)
		assert.NotEmpty(t, l.Category, l.Name)
		assert.NotEqual(t, l.Description, l.Summary, "%s has no words for people", l.Name)
		assert.LessOrEqual(t, utf8.RuneCountInString(l.Summary), 80, l.Name)
		assert.True(t, strings.HasSuffix(l.Summary, "."), l.Name)
	}
	for _, d := range c.Definitions() {
		text, err := json.Marshal(d)
		require.NoError(t, err)
		assert.NotContains(t, string(text), shown(t, c, d.Name).Summary, "the summary is for people")
	}
}

// TestToolsAreOfferedEverywhere: no provider refuses a request for one of the tools that run on this machine.
func TestToolsAreOfferedEverywhere(t *testing.T) {
	definitions := host(t).Registry().Definitions()
	require.NotEmpty(t, definitions)
	offeredEverywhere(t, definitions)
}

// offeredEverywhere fails the test if a provider refuses one of the definitions, in any form in which it can be asked
// for.
func offeredEverywhere(t *testing.T, definitions []tool.Definition) {
	t.Helper()
	for _, dialect := range known.Dialects() {
		for _, options := range []dialects.DefinitionOptions{{}, {Strict: true}} {
			_, findings, err := dialect.Definitions(definitions, options)
			require.NoError(t, err, dialect.Name())
			for _, finding := range findings {
				assert.False(t, finding.Severity == dialects.Refused && !finding.Adapted, "%s, %+v: %+v", dialect.Name(), options, finding)
			}
		}
	}
}

// TestDefaultToolsThatAreShipped: a new agent gets the default tools that are shipped, none of which needs a setting.
// The other default tools are listed as missing.
func TestDefaultToolsThatAreShipped(t *testing.T) {
	h := host(t)
	allowed, missing := agents.DefaultAllowedTools(h.Registry())
	assert.Len(t, slices.Concat(allowed, missing), 10)
	for _, name := range allowed {
		assert.Contains(t, toolname.All(), name)
		assert.Empty(t, shown(t, h.Catalogue(nil), name).Unavailable)
	}
	for _, name := range missing {
		assert.NotContains(t, toolname.All(), name)
	}
}

// TestAgentsOfShippedTools: a stored agent decides which tools its model is offered and may run, in another process
// too.
func TestAgentsOfShippedTools(t *testing.T) {
	h, dir := host(t), filepath.Join(t.TempDir(), "state")
	require.NoError(t, tooltest.Agents(t, dir).Save(t.Context(), "acme", agents.Agent{Name: "clerk", AllowedTools: []string{"web_fetch", toolname.Calculator}}, h.Registry()))
	agent, unknown, err := tooltest.Agents(t, dir).Load(t.Context(), "acme", "clerk", h.Registry())
	require.NoError(t, err)
	assert.Empty(t, unknown)
	assert.Equal(t, []string{toolname.FetchPage, toolname.Calculator}, agent.AllowedTools)
	var offered []string
	for _, d := range h.Catalogue(agent.AllowedTools).Definitions() {
		offered = append(offered, d.Name)
	}
	assert.Equal(t, []string{toolname.Calculator, toolname.FetchPage}, offered)
	session, err := h.NewSession(executor.SessionOptions{Tenant: "acme", Allowed: agent.AllowedTools})
	require.NoError(t, err)
	var kinds []tool.Kind
	report, err := h.Execute(t.Context(), executor.Batch{Session: session, Calls: []tool.Call{
		{ID: "1", Function: tool.Function{Name: toolname.Calculator, Arguments: `{"expression":"6*7"}`}},
		{ID: "2", Function: tool.Function{Name: toolname.FileRead, Arguments: `{"path":"a"}`}},
	}})
	require.NoError(t, err)
	for _, record := range report.Records {
		kinds = append(kinds, record.Result.Kind)
	}
	assert.Equal(t, []tool.Kind{"", tool.Denied}, kinds)
}

// TestCatalogueAndRegistryAgree: each entry of the catalogue is a tool that can be called by its name, and each
// tool is in the catalogue; so with every constant.
func TestCatalogueAndRegistryAgree(t *testing.T) {
	h := host(t)
	var listed []string
	for _, l := range h.Catalogue(nil).Tools {
		listed = append(listed, l.Name)
		entry, ok := h.Registry().Get(l.Name)
		require.True(t, ok, l.Name)
		assert.Equal(t, l.Description, entry.Manifest.Description)
	}
	assert.Equal(t, toolname.All(), listed)
}

// TestConditionalToolsShowTheCondition: a tool without a needed setting is listed with that setting, and is not offered
// to models until the setting is there.
func TestConditionalToolsShowTheCondition(t *testing.T) {
	c := host(t).Catalogue(nil)
	assert.Contains(t, shown(t, c, toolname.WebSearch).Unavailable, "BRAVE_API_KEY or TAVILY_API_KEY or SEARXNG_URL")
	assert.False(t, slices.ContainsFunc(c.Definitions(), func(d tool.Definition) bool { return d.Name == toolname.WebSearch }))
	for _, l := range c.Tools {
		lacking := []string{toolname.WebSearch, toolname.ExecuteJavaScript, toolname.ExecutePython, toolname.ExecuteSkillScript, toolname.ReadSkill} // a setting, interpreters, skills
		assert.Equal(t, slices.Contains(lacking, l.Name), l.Unavailable != "", l.Name)
	}

	policy, err := manifests.ParsePolicy("caisson.yaml", []byte(`
schema: caisson-config/v1
grants: [{tools: [web_search], secrets: [{name: TAVILY_API_KEY, from: {env: KEY}, host: api.tavily.com}]}]`))
	require.NoError(t, err)
	options := caisson.Options{Policies: []*manifests.Policy{policy}}
	options.Runtime.LookupEnv = func(string) (string, bool) { return "a-key-of-sixteen-bytes", true }
	c = hostWith(t, options).Catalogue(nil)
	assert.Empty(t, shown(t, c, toolname.WebSearch).Unavailable)
	assert.True(t, slices.ContainsFunc(c.Definitions(), func(d tool.Definition) bool { return d.Name == toolname.WebSearch }))
}

// TestSkillsAreOfferedWithAFolder: the tools for skills are listed with the missing folder, and offered once it is
// granted.
func TestSkillsAreOfferedWithAFolder(t *testing.T) {
	isOffered := func(c registry.Catalogue) bool {
		return slices.ContainsFunc(c.Definitions(), func(d tool.Definition) bool { return d.Name == toolname.ReadSkill })
	}
	c := host(t).Catalogue(nil)
	assert.Equal(t, "needs a granted directory at /skills", shown(t, c, toolname.ReadSkill).Unavailable)
	assert.Contains(t, shown(t, c, toolname.ExecuteSkillScript).Unavailable, "needs the interpreter")
	assert.False(t, isOffered(c))

	skills := t.TempDir()
	policy, err := manifests.ParsePolicy(filepath.Join(skills, "caisson.yaml"), []byte("schema: caisson-config/v1\ngrants: [{tools: [read_skill], files: [{path: /skills, host: .}]}]"))
	require.NoError(t, err)
	c = hostWith(t, caisson.Options{Policies: []*manifests.Policy{policy}}).Catalogue(nil)
	assert.Empty(t, shown(t, c, toolname.ReadSkill).Unavailable)
	assert.True(t, isOffered(c))
}

// TestRenamedToolsKeepTheirNames: the old name runs the same tool, is marked, and is not offered.
func TestRenamedToolsKeepTheirNames(t *testing.T) {
	h := host(t)
	renamed := shown(t, h.Catalogue(nil), toolname.FetchPage)
	assert.Equal(t, []string{"web_fetch"}, renamed.Aliases)
	require.NotNil(t, renamed.Deprecated)
	assert.Equal(t, manifests.Deprecated{Since: "1.0.0", Use: toolname.FetchPage, Alias: "web_fetch"}, *renamed.Deprecated)
	old, _ := h.Registry().Get("web_fetch")
	current, _ := h.Registry().Get(toolname.FetchPage)
	assert.Same(t, current.Tool, old.Tool)
	assert.False(t, slices.ContainsFunc(h.Definitions(), func(d tool.Definition) bool { return d.Name == "web_fetch" }))
}

// TestCallsOutsideTheSet checks the errors for tools that are not the agent's, and the definitions that its model gets.
func TestCallsOutsideTheSet(t *testing.T) {
	h := host(t,
		"name: add\ndescription: Adds.\nexecution: client\nretired: [sum]\n",
		"name: audit\ndescription: Notes what was done.\nexecution: client\nbehavior: {hidden: true}\n")
	all := []string{toolname.Calculator, toolname.FetchPage, toolname.WebSearch, "add", "audit"}
	for _, test := range []struct {
		name, call string
		allowed    []string
		kind       tool.Kind // "" if the tool or the client runs
		message    string
	}{
		{"in the set", toolname.Calculator, all, "", ""},
		{"outside the set", toolname.FileRead, all, tool.Denied, "file_read is not among the tools that this agent may call"},
		{"an alias of one in the set", "web_fetch", all, tool.Denied, "network"}, // it runs: its own permissions decide
		{"an alias of one outside the set", "web_fetch", []string{toolname.Calculator}, tool.Denied, "fetch_page is not among the tools that this agent may call"},
		{"hidden, in the set", "audit", all, "", ""},
		{"hidden, outside the set", "audit", []string{toolname.Calculator}, tool.Denied, "audit is not among"},
		{"retired", "sum", all, tool.UnknownTool, `the tool "sum" is retired; call add instead`},
		{"retired for one outside the set", "sum", []string{toolname.Calculator}, tool.UnknownTool, `there is no tool "sum"`},
		{"unavailable", toolname.WebSearch, all, tool.Denied, "the tool is unavailable: needs "},
		{"unavailable, outside the set", toolname.WebSearch, []string{toolname.Calculator}, tool.Denied, "web_search is not among"},
		{"unknown", "calculate", all, tool.UnknownTool, `there is no tool "calculate"; did you mean calculator?`},
		{"in another case", "Calculator", all, tool.UnknownTool, `did you mean calculator?`},
		{"nothing is in the set", toolname.Calculator, []string{}, tool.Denied, "calculator is not among"},
	} {
		t.Run(test.name, func(t *testing.T) {
			session, err := h.NewSession(executor.SessionOptions{Allowed: test.allowed})
			require.NoError(t, err)
			arguments := map[string]string{toolname.Calculator: `{"expression":"6*7"}`, "web_fetch": `{"url":"https://example.com"}`}[test.call]
			report, err := h.Execute(t.Context(), executor.Batch{Session: session, Calls: []tool.Call{{ID: "1", Function: tool.Function{Name: test.call, Arguments: arguments}}}})
			require.NoError(t, err)
			if test.kind == "" {
				assert.True(t, report.Status == executor.RequiresAction || report.Records[0].Result.Success)
			} else {
				assert.Equal(t, test.kind, report.Records[0].Result.Kind)
				assert.Contains(t, report.Records[0].Result.Error, test.message)
			}
			var offered, want []string
			for _, d := range h.Catalogue(test.allowed).Definitions() {
				offered = append(offered, d.Name)
			}
			for _, name := range test.allowed {
				if name != toolname.WebSearch {
					want = append(want, name)
				}
			}
			slices.Sort(want)
			assert.Equal(t, want, offered, "the model is offered the set, as far as it is available")
		})
	}
}
