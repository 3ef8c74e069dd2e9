package registry_test

import (
	"context"
	"encoding/json"
	"maps"
	"path"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fields are the manifest keys that tests set.
type fields map[string]any

// newManifest parses a manifest, so that tests use complete ones.
func newManifest(t testing.TB, name string, more fields) *manifests.Manifest {
	t.Helper()
	document := fields{
		"schema": "caisson/v1", "name": name, "description": "Does " + name + ".", "version": "1.0.0",
		"module":     fields{"path": "tool.wasm"},
		"parameters": fields{"type": "object", "properties": fields{"n": fields{"type": "integer"}}},
	}
	maps.Copy(document, more)
	source, err := json.Marshal(document)
	require.NoError(t, err)
	m, err := manifests.Parse(path.Join("tools", name+".tool.json"), source)
	require.NoError(t, err)
	return m
}

// holding returns a registry with tools.
func holding(t testing.TB, tools ...registry.Tool) *registry.Registry {
	t.Helper()
	r, err := registry.New().With(tools...)
	require.NoError(t, err)
	return r
}

func aliases(names ...string) fields {
	if len(names) == 0 {
		return nil
	}
	return fields{"aliases": names}
}

var hidden = fields{"behavior": fields{"hidden": true}}

// fake is a tool that answers with its name.
type fake struct {
	manifest *manifests.Manifest
	answer   string
	run      func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error)
	calls    atomic.Int64
}

func (f *fake) Manifest() *manifests.Manifest { return f.manifest }

func (f *fake) Invoke(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
	f.calls.Add(1)
	if f.run != nil {
		return f.run(ctx, invocation)
	}
	return tool.Outcome{Result: tool.Result{Success: true, Output: f.answer}}, nil
}

func newFake(t testing.TB, name string, more fields) *fake {
	t.Helper()
	return &fake{manifest: newManifest(t, name, more), answer: name}
}

// closable is a fake that counts how often it is closed.
type closable struct {
	*fake
	closed atomic.Int64
	err    error
}

func (c *closable) Close(context.Context) error {
	c.closed.Add(1)
	return c.err
}

func newClosable(t testing.TB, name string, err error) *closable {
	t.Helper()
	return &closable{fake: newFake(t, name, nil), err: err}
}

// conditional is a fake that may be unavailable.
type conditional struct {
	*fake
	reason string
}

func (c conditional) Unavailable() string { return c.reason }
