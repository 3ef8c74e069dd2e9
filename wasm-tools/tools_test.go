package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/registry"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// TestManifests runs the tests that stand in the tools' manifests, each in a workspace
// of its own, through everything that a call goes through. Nothing is granted beside
// directories and context: what a tool says without the network is in these tests, and the
// rest in network_test.go.
func TestManifests(t *testing.T) {
	// The setting makes web_search available, which then finds that none of its services is.
	rt := newRuntime(t, runtime.Options{Settings: []string{"SEARXNG_URL"}})
	run, clients := 0, 0
	for _, m := range compiled(t) {
		if m.Execution == manifests.ExecutionClient {
			clients++ // client_test.go has what there is to test of them
			continue
		}
		run++
		t.Run(m.Name, func(t *testing.T) {
			require.GreaterOrEqual(t, len(m.Tests), 3, "a tool of ours shows what it does")
			for _, example := range m.Tests {
				t.Run(example.Name, func(t *testing.T) {
					w := newWorkspace(t, rt, m, example)
					w.check(example.Expect, w.call(example.Arguments))
				})
			}
		})
	}
	assert.Equal(t, []int{12, 3}, []int{run, clients})
}

// compiled compiles the tools, and returns their manifests.
func compiled(t testing.TB) []*manifests.Manifest {
	t.Helper()
	root, err := guests.Compile(t.Context(), modules...)
	require.NoError(t, err)
	found, err := registry.Directory(filepath.Join(root, "wasm-tools")).Manifests(t.Context())
	require.NoError(t, err)
	var all []*manifests.Manifest
	for _, f := range found {
		require.Nil(t, f.Broken)
		all = append(all, f.Manifest)
	}
	return all
}

var modules = []string{"wasm-tools/calculator", "wasm-tools/files", "wasm-tools/plot", "wasm-tools/search", "wasm-tools/weather", "wasm-tools/web"}

// newRuntime makes a runtime that keeps compiled code where all tests do.
func newRuntime(t testing.TB, options runtime.Options) *runtime.Runtime {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	options.CacheDir = filepath.Join(cache, "caisson", "test")
	rt, err := runtime.New(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, rt.Close(context.Background())) })
	return rt
}

// workspace is a directory for each guest path that a tool asks for, and a registry in
// which the tool is granted them.
type workspace struct {
	t     *testing.T
	m     *manifests.Manifest
	dirs  map[string]string // host directories by guest path
	tools *registry.Registry
	host  map[string]string // the context
}

func newWorkspace(t *testing.T, rt *runtime.Runtime, m *manifests.Manifest, example manifests.Test) *workspace {
	w := &workspace{t: t, m: m, dirs: map[string]string{}, tools: registry.New(), host: example.Context}
	// Whoever runs the tests has approved of what is destructive, too.
	grants := manifests.Grants{Context: manifests.GrantContext(m.Context...), Approved: []manifests.ApprovalGrant{{}}}
	for _, permission := range m.Permissions.Files {
		w.dirs[permission.Path] = t.TempDir()
		grants.Files = append(grants.Files, manifests.FileGrant{Path: permission.Path, Host: w.dirs[permission.Path], Access: permission.Access})
	}
	for guest, content := range example.Files {
		file := w.file(guest)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	}
	loaded, err := rt.Load(t.Context(), m, grants)
	require.NoError(t, err)
	require.NoError(t, w.tools.Register("wasm-tools", loaded))
	return w
}

func (w *workspace) file(guest string) string {
	for mount, dir := range w.dirs {
		if below, ok := strings.CutPrefix(guest, mount+"/"); ok {
			return filepath.Join(dir, filepath.FromSlash(below))
		}
	}
	require.Fail(w.t, fmt.Sprintf("%s is in no directory that the manifest asks for", guest))
	return ""
}

func (w *workspace) call(arguments json.RawMessage) tool.Record {
	run, err := executor.New(w.tools, executor.Options{})
	require.NoError(w.t, err)
	session, err := run.NewSession(executor.SessionOptions{Context: w.host})
	require.NoError(w.t, err)
	report, err := run.Execute(w.t.Context(), executor.Batch{
		Session: session, Calls: []tool.Call{{ID: "test", Type: "function", Function: tool.Function{Name: w.m.Name, Arguments: string(arguments)}}},
	})
	require.NoError(w.t, err)
	return report.Records[0]
}

func (w *workspace) check(want manifests.Expect, record tool.Record) {
	t, result := w.t, record.Result
	if want.Success != nil {
		assert.Equal(t, *want.Success, result.Success, result.Error)
	}
	if want.Kind != "" {
		assert.Equal(t, want.Kind, string(result.Kind), result.Error)
	}
	if want.Output != nil {
		assert.Equal(t, *want.Output, result.Output)
	}
	assert.Contains(t, result.Error, want.Error)
	if want.Data != nil {
		assert.JSONEq(t, string(want.Data), string(result.Data))
	}
	for guest, content := range want.Files {
		actual, err := os.ReadFile(w.file(guest))
		if assert.NoError(t, err) {
			assert.Equal(t, content, string(actual))
		}
	}
}
