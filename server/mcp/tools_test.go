package mcp_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"context"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/agents"
	"github.com/caisson-run/caisson/dialects"
	dialect "github.com/caisson-run/caisson/dialects/mcp"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/server/auth"
	"github.com/caisson-run/caisson/server/mcp"
	"github.com/caisson-run/caisson/tool"
)

// names returns the names of all tools, page by page, and how many pages there are.
func names(t testing.TB, c *sdk.ClientSession) (names []string, pages int) {
	t.Helper()
	cursor := ""
	for {
		list := noerr.Get(c.ListTools(t.Context(), &sdk.ListToolsParams{Cursor: cursor}))(t)
		pages++
		for _, offered := range list.Tools {
			names = append(names, offered.Name)
		}
		if cursor = list.NextCursor; cursor == "" {
			return names, pages
		}
	}
}

var measured = fields{
	"label": "Measure", "aliases": []string{"gauge"},
	"parameters": json.RawMessage(`{"type":"object","properties":{"z":{"type":"number","maximum":123456789012345678901},"a":{"type":"string"}},"required":["z"]}`),
	"result":     json.RawMessage(`{"type":"object","properties":{"value":{"type":"number"}}}`),
	"behavior":   fields{"read_only": true, "idempotent": true},
}

// TestDefinitionsAreTheDialects: tools/list has what "caisson list --definitions mcp" has.
func TestDefinitionsAreTheDialects(t *testing.T) {
	overAll(t, func(t *testing.T, connect func(testing.TB, *world, *sdk.ClientOptions) *sdk.ClientSession) {
		w := newWorld(t, mcp.Options{}, newFake(t, "measure", measured, says(tool.Result{Success: true})), newFake(t, "wipe", fields{"behavior": fields{"destructive": true}}, nil))
		want, _ := noerr.Get2(dialect.New().Definitions(w.host.Definitions(), dialects.DefinitionOptions{}))(t)
		list := noerr.Get(connect(t, w, nil).ListTools(t.Context(), nil))(t)
		got := noerr.Get(json.Marshal(list.Tools))(t)
		// The SDK writes hints that are false, which is what their absence means.
		var a, b []map[string]any
		require.NoError(t, json.Unmarshal(want, &a))
		require.NoError(t, json.Unmarshal(got, &b))
		for _, list := range [][]map[string]any{a, b} {
			for _, offered := range list {
				if hints, ok := offered["annotations"].(map[string]any); ok {
					for _, name := range []string{"readOnlyHint", "idempotentHint"} {
						if hints[name] == false {
							delete(hints, name)
						}
					}
				}
			}
		}
		assert.Equal(t, a, b)
		require.Len(t, list.Tools, 3)
		measure := list.Tools[1]
		assert.Equal(t, "Measure", measure.Title)
		assert.Equal(t, "Does measure.", measure.Description)
		assert.True(t, measure.Annotations.ReadOnlyHint)
		assert.True(t, measure.Annotations.IdempotentHint)
		assert.NotNil(t, measure.OutputSchema)
		assert.True(t, *list.Tools[2].Annotations.DestructiveHint)
	})
}

// TestAvailability: a tool that was unavailable when the server began is listed once it is available, and
// not before. A call of one that is unavailable says why.
func TestAvailability(t *testing.T) {
	overAll(t, func(t *testing.T, connect func(testing.TB, *world, *sdk.ClientOptions) *sdk.ClientSession) {
		measure := newFake(t, "measure", measured, says(tool.Result{Success: true, Data: json.RawMessage(`{"value":1}`)}))
		measure.Lack("needs the setting RULER")
		c := connect(t, newWorld(t, mcp.Options{}, measure), nil)
		for _, lacks := range []string{"needs the setting RULER", "", "needs the setting RULER"} {
			measure.Lack(lacks)
			list := noerr.Get(c.ListTools(t.Context(), nil))(t)
			result := noerr.Get(c.CallTool(t.Context(), &sdk.CallToolParams{Name: "measure", Arguments: fields{"z": 1}}))(t)
			if lacks != "" {
				assert.Len(t, list.Tools, 1)
				assert.Equal(t, "denied: the tool is unavailable: "+lacks, result.Content[0].(*sdk.TextContent).Text)
				continue
			}
			require.Len(t, list.Tools, 2)
			assert.Equal(t, "Does measure.", list.Tools[1].Description)
			assert.Contains(t, fmt.Sprint(list.Tools[1].InputSchema), "maximum")
			assert.NotNil(t, list.Tools[1].OutputSchema)
			assert.Equal(t, map[string]any{"value": 1.0}, result.StructuredContent)
		}
	})
}

// TestPages: a list in pages has each tool once, in order, and a tool that comes or goes between two pages changes
// nothing about the others.
func TestPages(t *testing.T) {
	overAll(t, func(t *testing.T, connect func(testing.TB, *world, *sdk.ClientOptions) *sdk.ClientSession) {
		w := newWorld(t, mcp.Options{Page: 3})
		want := []string{"ask_user"}
		for i := range 8 {
			name := fmt.Sprintf("tool_%d%d", i, i)
			want = append(want, name)
			require.NoError(t, w.host.Registry().Register("", newFake(t, name, nil, nil)))
		}
		c := connect(t, w, nil)
		require.Eventually(t, func() bool { got, _ := names(t, c); return len(got) == 9 }, 10*time.Second, time.Millisecond)
		got, pages := names(t, c)
		assert.Equal(t, want, got)
		assert.Equal(t, 3, pages)

		for _, cursor := range []string{"!", "dG9vbA==x"} {
			_, err := c.ListTools(t.Context(), &sdk.ListToolsParams{Cursor: cursor})
			assertCode(t, jsonrpc.CodeInvalidParams, err)
		}
	})
}

func assertCode(t testing.TB, code int64, err error) {
	t.Helper()
	var wire *jsonrpc.Error
	if assert.ErrorAs(t, err, &wire) {
		assert.Equal(t, code, wire.Code, wire.Message)
	}
}

// TestListChanged: clients are told when tools come, and then list them.
func TestListChanged(t *testing.T) {
	overAll(t, func(t *testing.T, connect func(testing.TB, *world, *sdk.ClientOptions) *sdk.ClientSession) {
		w := newWorld(t, mcp.Options{})
		changed := make(chan struct{}, 16)
		c := connect(t, w, &sdk.ClientOptions{ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { changed <- struct{}{} }})
		before, _ := names(t, c)
		assert.Equal(t, []string{"ask_user"}, before)
		// A stateless client listens with a request of its own, which may not have arrived yet.
		require.Eventually(t, func() bool {
			require.NoError(t, w.host.Registry().Register("", newFake(t, fmt.Sprintf("late_%d", time.Now().UnixNano()), nil, nil)))
			select {
			case <-changed:
				return true
			case <-time.After(200 * time.Millisecond):
				return false
			}
		}, 10*time.Second, time.Millisecond)
		after, _ := names(t, c)
		assert.Greater(t, len(after), 1)
	})
}

// TestFirstWins: the first tool of a name keeps it, whatever comes later, and the SDK, in which the last would,
// never sees another.
func TestFirstWins(t *testing.T) {
	overAll(t, func(t *testing.T, connect func(testing.TB, *world, *sdk.ClientOptions) *sdk.ClientSession) {
		w := newWorld(t, mcp.Options{}, newFake(t, "extract", nil, says(tool.Result{Success: true, Output: "the first"})))
		for _, name := range []string{"extract", "Extract"} {
			require.Error(t, w.host.Registry().Register("", newFake(t, name, nil, says(tool.Result{Success: true, Output: "an impostor"}))))
		}
		c := connect(t, w, nil)
		got, _ := names(t, c)
		assert.Equal(t, []string{"ask_user", "extract"}, got)
		assert.Equal(t, "the first", text(t, call(t, c, "extract", nil), 0))
	})
}

// TestSchemasThatTheSDKRefuses: a tool whose schema the SDK does not take is left out, and the others stay.
func TestSchemasThatTheSDKRefuses(t *testing.T) {
	w := newWorld(t, mcp.Options{},
		newFake(t, "bad", fields{"parameters": json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"not a header"}}}`)}, says(tool.Result{Success: true})),
		newFake(t, "good", nil, says(tool.Result{Success: true, Output: "good"})))
	c := connectLines("")(t, w, nil)
	got, _ := names(t, c)
	assert.Equal(t, []string{"ask_user", "good"}, got)
	_, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "bad"})
	assertCode(t, jsonrpc.CodeInvalidParams, err)
	assert.Equal(t, "good", text(t, call(t, c, "good", nil), 0))
}

// TestAgentsTools: a caller who is restricted to an agent sees and calls that agent's tools, also after the agent
// has changed.
func TestAgentsTools(t *testing.T) {
	for _, version := range []string{"", "2025-11-25"} {
		w := newWorld(t, mcp.Options{}, newFake(t, "a", nil, says(tool.Result{Success: true})), newFake(t, "b", nil, says(tool.Result{Success: true})))
		save := func(tools ...string) {
			require.NoError(t, w.agents.Save(t.Context(), "acme", agents.Agent{Name: "clerk", AllowedTools: tools, MaxIterations: 3}, w.host.Registry()))
		}
		save("a")
		c := connectWeb(version, &auth.Caller{ID: "1", Tenant: "acme", Scopes: everything, Agent: "clerk"})(t, w, nil)
		got, _ := names(t, c)
		assert.Equal(t, []string{"a"}, got)
		assert.False(t, call(t, c, "a", nil).IsError)
		refused, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "b"})
		assert.True(t, err != nil || refused.IsError, "b is not the agent's")
		save("a", "b")
		got, _ = names(t, c)
		assert.Equal(t, []string{"a", "b"}, got)
		assert.False(t, call(t, c, "b", nil).IsError)

		require.NoError(t, w.agents.Remove(t.Context(), "acme", "clerk"))
		_, err = c.ListTools(t.Context(), nil)
		assertCode(t, jsonrpc.CodeInvalidParams, err)
		_, err = c.CallTool(t.Context(), &sdk.CallToolParams{Name: "b"})
		assertCode(t, jsonrpc.CodeInvalidParams, err)
		assert.ErrorContains(t, err, "the token's agent does not exist")
	}
}

// TestManyTools: the list of many tools takes little time.
func TestManyTools(t *testing.T) {
	var many []*fake
	for i := range 300 {
		many = append(many, newFake(t, fmt.Sprintf("tool_%c%c%c", 'a'+i/100, 'a'+i/10%10, 'a'+i%10), without(measured, "aliases"), nil))
	}
	w := newWorld(t, mcp.Options{}, many...)
	got, pages := names(t, connectLines("")(t, w, nil))
	assert.Len(t, got, 301)
	assert.Equal(t, 1, pages)
	assert.True(t, slices.IsSortedFunc(got, strings.Compare))
}

func without(f fields, name string) fields {
	rest := fields{}
	for key, value := range f {
		if key != name {
			rest[key] = value
		}
	}
	return rest
}
