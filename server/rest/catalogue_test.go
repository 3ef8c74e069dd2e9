package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/agents"
	"github.com/caisson-run/caisson/dialects"
	"github.com/caisson-run/caisson/internal/ledger"
	"github.com/caisson-run/caisson/internal/tooltest"
	"github.com/caisson-run/caisson/server/rest"
	"github.com/caisson-run/caisson/tool"
)

type catalogue struct {
	Tools      []listing
	Duplicates []any
	Problems   []struct {
		Names    []string
		Problems []struct {
			Line       int
			Path, Kind string
		}
	}
}

type listing struct {
	Name, Unavailable, Execution string
	Allowed                      bool
	Permissions                  []tool.Decision
}

func (c catalogue) allowed() (names []string) {
	for _, l := range c.Tools {
		if l.Allowed {
			names = append(names, l.Name)
		}
	}
	return names
}

// TestCatalogueServesASettingsPage: a settings page gets all tools, those of an agent, and those that are unavailable
// with the reason. No host path is in it.
func TestCatalogueServesASettingsPage(t *testing.T) {
	w := newWorld(t, rest.Options{})
	a := w.request("GET", "/v1/tools", "reader", nil)
	all := of[catalogue](a, 200)
	assert.Equal(t, len(all.Tools), len(all.allowed()))
	require.Len(t, all.Problems, 1)
	assert.Equal(t, []string{"broken"}, all.Problems[0].Names)
	assert.Contains(t, fmt.Sprint(all.Problems[0].Problems), "{4 nonsense unknown_key}")
	assert.Equal(t, []any{map[string]any{"name": "ca1culator", "kept_by": "calculator", "reason": "look_alike"}}, all.Duplicates, "and not among the problems")
	for _, inner := range []string{filepath.Dir(w.state), "/wasm-tools", "/tmp"} {
		assert.NotContains(t, string(a.body), inner)
	}

	stored := of[map[string]any](w.request("PUT", "/v1/agents/clerk", "ada", `{"allowed_tools":["calculator","file_read"],"agent_mode":"plain"}`), 200)
	assert.EqualValues(t, 10, stored["max_iterations"])
	assert.Equal(t, []string{"calculator", "file_read"}, of[catalogue](w.request("GET", "/v1/tools?agent=clerk", "reader", nil), 200).allowed())
	assert.Equal(t, []string{"calculator", "file_read"}, of[catalogue](w.request("GET", "/v1/tools", "clerk", nil), 200).allowed(), "the token's own agent")
	w.request("GET", "/v1/tools?agent=nobody", "reader", nil).refused(404)
	w.request("GET", "/v1/tools?agent=clerk", "mallory", nil).refused(404)
	w.request("GET", "/v1/tools?agents=clerk", "reader", nil).refused(400)

	for _, name := range []string{"echo", "file_read"} { // a function of the program's, and one in a sandbox
		assert.Equal(t, "function", of[struct{ Type string }](w.request("GET", "/v1/tools/"+name, "reader", nil), 200).Type, name)
	}
	one := of[listing](w.request("GET", "/v1/tools/file_write?agent=clerk", "reader", nil), 200)
	assert.False(t, one.Allowed)
	assert.NotEmpty(t, one.Permissions)
	for name, want := range map[string]string{"nothing": "there is no such tool; /v1/tools lists them", "parrot": "the tool is retired; echo replaces it"} {
		assert.Equal(t, want, w.request("GET", "/v1/tools/"+name, "reader", nil).refused(404))
	}
	// No agent may call all tools, and an empty variable of a program is more likely a mistake.
	for _, path := range []string{"/v1/tools?agent=", "/v1/tools/echo?agent=", "/v1/definitions?dialect=mcp&agent="} {
		assert.Equal(t, "agent is empty: name an agent, or leave it out", w.request("GET", path, "reader", nil).refused(400), path)
	}
	assert.Equal(t, "agent is empty: name an agent, or leave it out", w.request("POST", "/v1/definitions", "reader", `{"dialect":"mcp","agent":""}`).refused(400))

	// What the page shows is what happens.
	denied := of[tool.Record](w.request("POST", "/v1/calls", "clerk", `{"name":"file_write","arguments":{"path":"/project/a","content":"x"}}`), 200)
	assert.Equal(t, tool.Denied, denied.Result.Kind)
	assert.True(t, of[tool.Record](w.request("POST", "/v1/calls", "clerk", `{"name":"calculator","arguments":{"expression":"1"}}`), 200).Result.Success, "the control")
	w.request("POST", "/v1/calls", "ghost", `{"name":"calculator","arguments":{"expression":"1"}}`).refused(403)
}

// TestDefinitions: in each dialect, with the same bytes each time, and for an agent only its own.
func TestDefinitions(t *testing.T) {
	w := newWorld(t, rest.Options{})
	type definitions struct {
		Dialect     string
		Definitions []json.RawMessage
		Findings    []dialects.Finding
	}
	of[map[string]any](w.request("PUT", "/v1/agents/clerk", "ada", `{"allowed_tools":["calculator"]}`), 200)
	for _, dialect := range dialects.Names() {
		a := w.request("GET", "/v1/definitions?dialect="+dialect, "reader", nil)
		all := of[definitions](a, 200)
		assert.Equal(t, dialect, all.Dialect)
		assert.Contains(t, string(a.body), "calculator")
		assert.Equal(t, string(a.body), string(w.request("GET", "/v1/definitions?dialect="+dialect, "reader", nil).body))
		few := w.request("GET", "/v1/definitions?dialect="+dialect+"&agent=clerk", "reader", nil)
		assert.Contains(t, string(few.body), "calculator")
		assert.NotContains(t, string(few.body), "file_read")
	}
	strict := w.request("GET", "/v1/definitions?dialect=openai&strict=true", "reader", nil)
	assert.Contains(t, string(strict.body), `"strict":true`)
	for _, wrong := range []string{"", "?dialect=esperanto", "?dialect=openai&strict=1", "?dialect=openai&x=1", "?dialect=openai&dialect=mcp", "?%zz"} {
		w.request("GET", "/v1/definitions"+wrong, "reader", nil).refused(400)
	}
}

// TestAgents: of each tenant its own. A name of no tool is refused with the nearest one, and nothing is stored.
func TestAgents(t *testing.T) {
	w := newWorld(t, rest.Options{})
	type list struct {
		Names, DefaultAllowedTools, MissingTools []string
	}
	assert.Empty(t, of[list](w.request("GET", "/v1/agents", "reader", nil), 200).Names)
	body := `{"allowed_tools":["calculater","echo","nothing_like_it"],"agent_mode":"a\nb"}`
	detail := w.request("PUT", "/v1/agents/a1", "ada", body).refused(422)
	assert.Contains(t, detail, "there is no tool calculater; did you mean calculator?")
	assert.Contains(t, detail, "nothing_like_it")
	assert.Contains(t, detail, "agent_mode")
	w.request("GET", "/v1/agents/a1", "reader", nil).refused(404)
	w.request("PUT", "/v1/agents/a1", "worker", `{"allowed_tools":[]}`).refused(403)
	w.request("PUT", "/v1/agents/a1", "ada", `{"name":"a2","allowed_tools":[]}`).refused(422)
	w.request("PUT", "/v1/agents/a1", "ada", `{"name":1,"allowed_tools":[]}`).refused(400)
	w.request("PUT", "/v1/agents/A1", "ada", `{"allowed_tools":[]}`).refused(422)
	w.request("PUT", "/v1/agents/a1", "ada", `{"max_iterations":1.5}`).refused(400)
	w.request("PUT", "/v1/agents/a1", "ada", `{"reflection_enabled":"yes"}`).refused(400)

	put := w.request("PUT", "/v1/agents/a1", "ada", `{"name":"a1","allowed_tools":["echo"],"max_iterations":3.0,"reflection_enabled":true}`)
	assert.JSONEq(t, `{"name":"a1","agent_mode":"","allowed_tools":["echo"],"max_iterations":3,"reflection_enabled":true,"unknown_tools":[]}`, string(put.body))
	assert.JSONEq(t, string(put.body), string(w.request("GET", "/v1/agents/a1", "reader", nil).body))
	assert.Contains(t, string(w.request("GET", "/v1/agents", "reader", nil).body), `"names":["a1"]`)

	// Another tenant has none of it, and cannot remove it.
	w.request("GET", "/v1/agents/a1", "mallory", nil).refused(404)
	w.request("DELETE", "/v1/agents/a1", "mallory", nil).refused(404)
	assert.Equal(t, http.StatusNoContent, w.request("DELETE", "/v1/agents/a1", "ada", nil).status)
	w.request("DELETE", "/v1/agents/a1", "ada", nil).refused(404)
}

// TestAttackOwnAgent: a caller who is limited to an agent's tools does not get more of them by changing agents, even
// with the scope admin. Its tenant's other tokens may: the control.
func TestAttackOwnAgent(t *testing.T) {
	w := newWorld(t, rest.Options{})
	call := func(as string) tool.Record {
		return of[tool.Record](w.request("POST", "/v1/calls", as, `{"name":"echo","arguments":{}}`), 200)
	}
	of[map[string]any](w.request("PUT", "/v1/agents/clerk", "ada", `{"allowed_tools":["calculator"]}`), 200)
	for _, name := range []string{"clerk", "another"} {
		w.request("PUT", "/v1/agents/"+name, "clerk", `{"allowed_tools":["calculator","echo"]}`).refused(403)
		w.request("DELETE", "/v1/agents/"+name, "clerk", nil).refused(403)
	}
	assert.Equal(t, tool.Denied, call("clerk").Result.Kind)
	assert.Contains(t, string(w.request("GET", "/v1/agents", "reader", nil).body), `"names":["clerk"]`)
	of[map[string]any](w.request("PUT", "/v1/agents/clerk", "ada", `{"allowed_tools":["calculator","echo"]}`), 200)
	assert.True(t, call("clerk").Result.Success)
}

// TestUnknownToolsOfAnAgent: tools that have gone since the agent was stored are named.
func TestUnknownToolsOfAnAgent(t *testing.T) {
	w := newWorld(t, rest.Options{})
	require.NoError(t, w.agents.Save(t.Context(), "acme", agents.Agent{Name: "a1", AllowedTools: []string{"gone", "echo"}}, anything{}))
	a := w.request("GET", "/v1/agents/a1", "reader", nil)
	assert.Contains(t, string(a.body), `"allowed_tools":["echo"]`)
	assert.Contains(t, string(a.body), `"unknown_tools":["gone"]`)
}

// TestOurFailures: what the caller sees is an id, under which the log has the cause.
func TestOurFailures(t *testing.T) {
	w := newWorld(t, rest.Options{})
	of[map[string]any](w.request("PUT", "/v1/agents/a1", "ada", `{"allowed_tools":[]}`), 200)
	tooltest.Place(t, filepath.Join(filepath.Dir(w.state), "agents"), ledger.AgentKind, callers["ada"].Tenant, "a1", []byte("{"))
	a := w.request("GET", "/v1/agents/a1", "reader", nil)
	failure := of[struct{ Detail, ID string }](a, 500)
	assert.True(t, strings.HasPrefix(failure.ID, "err_"))
	assert.Contains(t, w.log.String(), failure.ID)
	assert.Contains(t, w.log.String(), "damaged")
	assert.NotContains(t, string(a.body), "damaged")
	assert.NotContains(t, string(a.body), "/")
}
