package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

// guarded is a fake with the methods Asks, Identity and Decisions.
type guarded struct {
	*fake
	asks      func() string
	identity  func() (string, error)
	decisions func() []tool.Decision
}

func (g guarded) Asks() string                             { return g.asks() }
func (g guarded) Identity(context.Context) (string, error) { return g.identity() }
func (g guarded) Decisions() []tool.Decision               { return g.decisions() }

// entryOf registers a tool and returns its entry.
func entryOf(t *testing.T, made registry.Tool) registry.Entry {
	t.Helper()
	entry, ok := holding(t, made).Get(made.Manifest().Name)
	require.True(t, ok)
	return entry
}

// TestAsks: an approver decides, and the manifest decides for other tools. If the approver fails, calls
// must be approved.
func TestAsks(t *testing.T) {
	destructive := fields{"behavior": fields{"destructive": true}}
	asks := func(reason string) guarded {
		return guarded{fake: newFake(t, "a", destructive), asks: func() string { return reason }}
	}
	assert.Empty(t, entryOf(t, newFake(t, "a", nil)).Asks())
	assert.Equal(t, "the tool says that it is destructive", entryOf(t, newFake(t, "a", destructive)).Asks())
	assert.Empty(t, entryOf(t, asks("")).Asks(), "the operator has approved")
	assert.Equal(t, "caisson.yaml:14", entryOf(t, asks("caisson.yaml:14")).Asks())
	broken := asks("")
	broken.asks = func() string { panic("no") }
	assert.NotEmpty(t, entryOf(t, broken).Asks())
	broken.asks = func() string { runtime.Goexit(); return "" }
	assert.NotEmpty(t, entryOf(t, broken).Asks())
	assert.Empty(t, registry.Entry{}.Asks())
	assert.NotEmpty(t, registry.Entry{Manifest: newManifest(t, "a", destructive)}.Asks(), "a resolver need not know the tool")
}

// TestIdentity: without an approver, the identity covers everything in the manifest that concerns calls.
func TestIdentity(t *testing.T) {
	identity := func(more fields) string {
		got, err := entryOf(t, newFake(t, "a", more)).Identity(t.Context())
		require.NoError(t, err)
		return got
	}
	seen := map[string]string{identity(nil): "nothing"}
	for name, more := range map[string]fields{
		"version":     {"version": "1.0.1"},
		"description": {"description": "Does more."},
		"module":      {"module": fields{"path": "other.wasm"}},
		"argv":        {"module": fields{"path": "tool.wasm", "args": []string{"--keep"}}},
		"other argv":  {"module": fields{"path": "tool.wasm", "args": []string{"--delete"}}},
		"parameters":  {"parameters": fields{"type": "object", "properties": fields{"n": fields{"type": "number"}}}},
		"permissions": {"permissions": fields{"files": []fields{{"path": "/data", "access": "read"}}}},
		"access":      {"permissions": fields{"files": []fields{{"path": "/data", "access": "read-write"}}}},
		"behavior":    {"behavior": fields{"destructive": true}},
		"limits":      {"limits": fields{"timeout": "7s"}},
		"context":     {"context": []string{"project"}},
		"requires":    {"requires": []string{"KEY"}},
	} {
		got := identity(more)
		assert.NotContains(t, seen, got, "%s and %s", name, seen[got])
		seen[got] = name
	}
	client := newManifest(t, "a", nil)
	client.Execution = manifests.ExecutionClient
	got, err := registry.Entry{Manifest: client}.Identity(t.Context())
	require.NoError(t, err)
	assert.NotContains(t, seen, got)
	assert.Equal(t, identity(nil), identity(fields{"label": "For people", "aliases": []string{"b"}}), "control: what no call depends on")
}

// TestGuardedIdentity: an approver returns its identity or fails.
func TestGuardedIdentity(t *testing.T) {
	failure := errors.New("the module cannot be read")
	says := func(identity func() (string, error)) registry.Entry {
		return entryOf(t, guarded{fake: newFake(t, "a", nil), identity: identity})
	}
	got, err := says(func() (string, error) { return "digest", nil }).Identity(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "digest", got)
	for name, identity := range map[string]func() (string, error){
		"an error": func() (string, error) { return "digest", failure },
		"nothing":  func() (string, error) { return "", nil },
		"a panic":  func() (string, error) { panic(failure) },
	} {
		_, err := says(identity).Identity(t.Context())
		assert.Error(t, err, name)
	}
	_, err = registry.Entry{}.Identity(t.Context())
	assert.Error(t, err)
}

// TestDecisions: an explainer returns its decisions, and its failure is reported.
func TestDecisions(t *testing.T) {
	want := []tool.Decision{{Permission: "files", Effective: "/data"}}
	explains := func(decisions func() []tool.Decision) []tool.Decision {
		return entryOf(t, guarded{fake: newFake(t, "a", nil), decisions: decisions}).Decisions()
	}
	assert.Equal(t, want, explains(func() []tool.Decision { return want }))
	assert.Nil(t, entryOf(t, newFake(t, "a", nil)).Decisions())
	failed := explains(func() []tool.Decision { panic("no") })
	require.Len(t, failed, 1)
	assert.NotEmpty(t, failed[0].Reason)
}

// TestDefinitionsSayMore: a definition has copies of what the manifest says for models, people and programs.
func TestDefinitionsSayMore(t *testing.T) {
	plain := newFake(t, "plain", fields{
		"label": "Plain tool", "behavior": fields{"read_only": true, "idempotent": true}, "result": fields{"type": "object"},
	})
	custom := newFake(t, "patch", fields{"behavior": fields{"destructive": true}})
	custom.manifest.Type, custom.manifest.Format = tool.CustomCall, json.RawMessage(`{"type":"text"}`)
	r := holding(t, plain, custom)
	definitions := r.Definitions()
	require.Len(t, definitions, 2)
	patch, first := definitions[0], definitions[1]
	assert.Equal(t, tool.CustomCall, patch.Type)
	assert.JSONEq(t, `{"type":"text"}`, string(patch.Format))
	assert.Equal(t, tool.Hints{Destructive: true}, patch.Hints)
	assert.Nil(t, patch.Result)
	assert.Empty(t, first.Type, "which means a function")
	assert.Equal(t, "Plain tool", first.Label)
	assert.Equal(t, tool.Hints{ReadOnly: true, Idempotent: true}, first.Hints)
	assert.JSONEq(t, `{"type":"object"}`, string(first.Result))
	patch.Format[0], first.Result[0] = 'x', 'x'
	assert.Equal(t, `{"type":"text"}`, string(r.Definitions()[0].Format))
	assert.JSONEq(t, `{"type":"object"}`, string(r.Definitions()[1].Result))
}
