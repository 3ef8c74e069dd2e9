package agents_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/agents"
	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/tooltest"
	"github.com/caisson-run/caisson/native"
	"github.com/caisson-run/caisson/registry"
)

// toolsNamed returns a registry of tools that do nothing. The first also goes by the alias "fetch".
func toolsNamed(t testing.TB, names ...string) *registry.Registry {
	t.Helper()
	r := registry.New()
	for i, name := range names {
		about := native.About{Name: name, Description: "Do it."}
		if i == 0 {
			about.Aliases = []string{"fetch"}
		}
		f, err := native.New(about, func(context.Context, struct{}) (string, error) { return "", nil })
		require.NoError(t, err)
		require.NoError(t, r.Register("test", f))
	}
	return r
}

// contentOf returns what is stored of an agent.
func contentOf(t testing.TB, state, tenant, name string) []byte {
	t.Helper()
	documents, err := ledger.OpenDocuments(t.Context(), ledger.AgentKind, state, "")
	require.NoError(t, err)
	content, err := documents.Read(t.Context(), tenant, name)
	require.NoError(t, err)
	require.NoError(t, documents.Close())
	return content
}

var researcher = agents.Agent{Name: "researcher", Mode: "smart-reasoning", AllowedTools: []string{"web_search", "fetch_page"}, MaxIterations: 5, Reflection: true}

func TestAgentsSurviveTheProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "agents")
	tools := toolsNamed(t, "fetch_page", "web_search")
	require.NoError(t, tooltest.Agents(t, dir).Save(t.Context(), "acme", researcher, tools))
	agent, unknown, err := tooltest.Agents(t, dir).Load(t.Context(), "acme", "researcher", tools)
	require.NoError(t, err)
	assert.Equal(t, researcher, agent)
	assert.Empty(t, unknown)

	// By an alias, and twice: the registered name, once.
	require.NoError(t, tooltest.Agents(t, dir).Save(t.Context(), "acme", agents.Agent{Name: "reader", AllowedTools: []string{"fetch", "fetch_page"}}, tools))
	agent, _, err = tooltest.Agents(t, dir).Load(t.Context(), "acme", "reader", tools)
	require.NoError(t, err)
	assert.Equal(t, agents.Agent{Name: "reader", AllowedTools: []string{"fetch_page"}, MaxIterations: 10}, agent)

	names, err := tooltest.Agents(t, dir).Names(t.Context(), "acme")
	require.NoError(t, err)
	assert.Equal(t, []string{"reader", "researcher"}, names)
	require.NoError(t, tooltest.Agents(t, dir).Remove(t.Context(), "acme", "reader"))
	require.ErrorIs(t, tooltest.Agents(t, dir).Remove(t.Context(), "acme", "reader"), agents.ErrNotFound)
}

// TestUnknownTools: unknown tool names are refused when an agent is saved. When it is loaded, tools that no longer exist
// are reported, and the rest stays.
func TestUnknownTools(t *testing.T) {
	store := tooltest.Agents(t, filepath.Join(t.TempDir(), "state"))
	tools := toolsNamed(t, "fetch_page", "web_search")
	wrong := researcher
	wrong.AllowedTools = []string{"web_serch", "fetch_page", "nothing"}
	err := store.Save(t.Context(), "", wrong, tools)
	require.ErrorIs(t, err, agents.ErrInvalid)
	var invalid *agents.Error
	require.ErrorAs(t, err, &invalid)
	assert.Equal(t, []string{"there is no tool web_serch; did you mean web_search?", "there is no tool nothing"}, invalid.Problems)
	_, _, err = store.Load(t.Context(), "", "researcher", tools)
	require.ErrorIs(t, err, agents.ErrNotFound, "nothing was stored")
	for name, want := range map[string]string{
		"*": "there is no tool *; name each tool, without wildcards", "fetch_*": "name each tool, without wildcards",
		"": `there is no tool ""`, "Fetch_Page": "did you mean fetch_page?", "fetch-page": "did you mean fetch_page?",
	} {
		wrong.AllowedTools = []string{name}
		require.ErrorContains(t, store.Save(t.Context(), "", wrong, tools), want)
	}

	require.NoError(t, store.Save(t.Context(), "", researcher, tools))
	agent, unknown, err := store.Load(t.Context(), "", "researcher", toolsNamed(t, "web_search"))
	require.NoError(t, err)
	assert.Equal(t, []string{"web_search"}, agent.AllowedTools)
	assert.Equal(t, []string{"fetch_page"}, unknown)

	require.NoError(t, store.Save(t.Context(), "", agents.Agent{Name: "reader", AllowedTools: []string{"web_search"}}, tools))
	about := native.About{Name: "other", Description: "Do it.", Aliases: []string{"web_search"}}
	other, err := native.New(about, func(context.Context, struct{}) (string, error) { return "", nil })
	require.NoError(t, err)
	renamed, err := registry.New().With(other)
	require.NoError(t, err)
	agent, unknown, err = store.Load(t.Context(), "", "reader", renamed)
	require.NoError(t, err)
	assert.Empty(t, agent.AllowedTools, "a tool that took the name as an alias is another one")
	assert.Equal(t, []string{"web_search"}, unknown)

	require.ErrorIs(t, store.Save(t.Context(), "\xff", researcher, tools), agents.ErrInvalid)
}

func TestInvalidAgents(t *testing.T) {
	store := tooltest.Agents(t, filepath.Join(t.TempDir(), "state"))
	tools := toolsNamed(t, "fetch_page")
	for want, agent := range map[string]agents.Agent{
		"the name":               {Name: ""},
		`the name ../x`:          {Name: "../x"},
		"the name Researcher":    {Name: "Researcher"},
		"agent_mode":             {Name: "a", Mode: "two\nlines"},
		"max_iterations -1":      {Name: "a", MaxIterations: -1},
		"max_iterations 1000000": {Name: "a", MaxIterations: 1_000_000},
		"10001 tools":            {Name: "a", AllowedTools: make([]string, 10_001)},
	} {
		err := store.Save(t.Context(), "", agent, tools)
		require.ErrorIs(t, err, agents.ErrInvalid, want)
		assert.ErrorContains(t, err, want)
	}
	_, _, err := store.Load(t.Context(), "", "../x", tools)
	require.ErrorIs(t, err, agents.ErrNotFound)
	require.ErrorIs(t, store.Remove(t.Context(), "", "../x"), agents.ErrNotFound)
}

// TestAttackAgentOfAnotherTenant: no tenant's name, and nothing that was stored in the wrong place, gives a tenant
// another's agent.
func TestAttackAgentOfAnotherTenant(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	store, tools := tooltest.Agents(t, dir), toolsNamed(t, "fetch_page", "web_search")
	tenants := []string{"acme", "ACME", "", "..", "acme/../other", "acme\x00", strings.Repeat("x", 5000)}
	require.NoError(t, store.Save(t.Context(), "acme", researcher, tools))
	for _, tenant := range tenants[1:] {
		_, _, err := store.Load(t.Context(), tenant, "researcher", tools)
		require.ErrorIs(t, err, agents.ErrNotFound, "%q", tenant)
		names, err := store.Names(t.Context(), tenant)
		require.NoError(t, err)
		assert.Empty(t, names)
	}
	tooltest.Place(t, dir, ledger.AgentKind, "other", "researcher", contentOf(t, dir, "acme", "researcher"))
	_, _, err := store.Load(t.Context(), "other", "researcher", tools)
	require.ErrorIs(t, err, agents.ErrDamaged)
	_, _, err = store.Load(t.Context(), "acme", "researcher", tools)
	require.NoError(t, err, "the control")
}

// TestSavesAtOnce: of agents that are saved at the same time each is whole.
func TestSavesAtOnce(t *testing.T) {
	store, tools := tooltest.Agents(t, filepath.Join(t.TempDir(), "state")), toolsNamed(t, "fetch_page", "web_search")
	var saving sync.WaitGroup
	for i := range 8 {
		saving.Go(func() {
			for range 20 {
				agent := researcher
				agent.MaxIterations = i + 1
				assert.NoError(t, store.Save(t.Context(), "acme", agent, tools))
				found, _, err := store.Load(t.Context(), "acme", "researcher", tools)
				assert.NoError(t, err)
				assert.Equal(t, researcher.AllowedTools, found.AllowedTools)
			}
		})
	}
	saving.Wait()
}

// TestKilledSaves: a process that is killed at any moment of its saves leaves the agent as it was or as it should be.
func TestKilledSaves(t *testing.T) {
	names := make([]string, 500)
	for i := range names {
		names[i] = fmt.Sprintf("tool_number_%d", i)
	}
	tools := toolsNamed(t, names...)
	versions := []agents.Agent{
		{Name: "busy", Mode: "short", AllowedTools: names[:1], MaxIterations: 1},
		{Name: "busy", Mode: "long", AllowedTools: names, MaxIterations: 500, Reflection: true},
	}
	if dir := os.Getenv("CAISSON_TEST_AGENTS"); dir != "" {
		store := tooltest.Agents(t, dir)
		for i := 0; ; i++ {
			assert.NoError(t, store.Save(t.Context(), "acme", versions[i%2], tools))
			if i == 1 {
				fmt.Println("saving")
			}
		}
	}
	dir := filepath.Join(t.TempDir(), "state")
	require.NoError(t, tooltest.Agents(t, dir).Save(t.Context(), "acme", versions[0], tools))
	left := map[string]int{}
	for round := range 60 {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestKilledSaves$")
		child.Env = append(os.Environ(), "CAISSON_TEST_AGENTS="+dir)
		output, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		_, err = bufio.NewReader(output).ReadString('\n') // it has begun
		require.NoError(t, err)
		time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
		require.NoError(t, child.Process.Kill())
		_ = child.Wait()
		agent, unknown, err := tooltest.Agents(t, dir).Load(t.Context(), "acme", "busy", tools)
		require.NoError(t, err, "round %d", round)
		require.Empty(t, unknown)
		require.Contains(t, versions, agent)
		left[agent.Mode]++
		found, err := tooltest.Agents(t, dir).Names(t.Context(), "acme")
		require.NoError(t, err)
		require.Equal(t, []string{"busy"}, found)
	}
	assert.Len(t, left, 2, "each was there in some round: %v", left)
}

// TestDamagedAgents: other content in the place of an agent is reported as damage, and can be replaced.
func TestDamagedAgents(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	store, tools := tooltest.Agents(t, dir), toolsNamed(t, "fetch_page")
	require.NoError(t, store.Save(t.Context(), "", agents.Agent{Name: "a", AllowedTools: []string{"fetch_page"}}, tools))
	good := contentOf(t, dir, "", "a")
	for name, content := range map[string][]byte{
		"half of it": good[:len(good)/2], "nothing": {}, "twice": append(bytes.Clone(good), good...),
		"a later form":  bytes.Replace(good, []byte("/v1"), []byte("/v2"), 1),
		"another's key": bytes.Replace(good, []byte("{"), []byte(`{"more":1,`), 1),
	} {
		tooltest.Place(t, dir, ledger.AgentKind, "", "a", content)
		_, _, err := store.Load(t.Context(), "", "a", tools)
		require.ErrorIs(t, err, agents.ErrDamaged, name)
		require.NoError(t, store.Save(t.Context(), "", agents.Agent{Name: "a", AllowedTools: []string{"fetch_page"}}, tools), name)
		agent, _, err := store.Load(t.Context(), "", "a", tools)
		require.NoError(t, err, name)
		assert.Equal(t, []string{"fetch_page"}, agent.AllowedTools, name)
	}
}

// TestReadingCreatesNothing: until the first agent is saved, there is no state folder.
func TestReadingCreatesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	store := tooltest.Agents(t, dir)
	_, _, err := store.Load(t.Context(), "", "a", toolsNamed(t, "fetch_page"))
	require.ErrorIs(t, err, agents.ErrNotFound)
	names, err := store.Names(t.Context(), "")
	require.NoError(t, err)
	assert.Empty(t, names)
	assert.NoDirExists(t, dir)
	_, err = agents.Open(t.Context(), "", "")
	require.ErrorContains(t, err, "there is no state folder")
}

func TestDefaultAllowedTools(t *testing.T) {
	allowed, missing := agents.DefaultAllowedTools(toolsNamed(t, "web_search", "data_schema", "thinking"))
	assert.Equal(t, []string{"thinking", "data_schema"}, allowed, "in their own order")
	assert.Len(t, missing, 8)
	assert.False(t, slices.Contains(allowed, "web_search"), "it needs a setting from elsewhere")
}

// FuzzLoad: whatever is stored, an agent that is loaded from it has that tenant and name, and only tools that exist.
func FuzzLoad(f *testing.F) {
	tools := toolsNamed(f, "fetch_page")
	dir := filepath.Join(f.TempDir(), "state")
	store := tooltest.Agents(f, dir)
	require.NoError(f, store.Save(f.Context(), "", agents.Agent{Name: "a", AllowedTools: []string{"fetch_page"}}, tools))
	good := contentOf(f, dir, "", "a")
	f.Add(good)
	f.Add(bytes.ReplaceAll(good, []byte("fetch_page"), []byte("gone")))
	f.Add([]byte(`{"schema":"caisson-agent/v1","tenant":"","name":"a","allowed_tools":null,"max_iterations":1e9}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		tooltest.Place(t, dir, ledger.AgentKind, "", "a", append([]byte{}, content...))
		agent, _, err := store.Load(t.Context(), "", "a", tools)
		if err != nil {
			require.ErrorIs(t, err, agents.ErrDamaged)
			return
		}
		assert.Equal(t, "a", agent.Name)
		assert.Positive(t, agent.MaxIterations)
		assert.Subset(t, []string{"fetch_page"}, agent.AllowedTools)
		_, err = json.Marshal(agent)
		assert.NoError(t, err)
	})
}
