package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// root is the repository's, where TestMain has compiled the guests.
var root string

func TestMain(m *testing.M) {
	var err error
	root, err = guests.Compile(context.Background(), "internal/guests/callprobe", "internal/guests/early", "internal/guests/netprobe", "internal/guests/probe", "internal/guests/streamprobe", "wasm-tools/files", "examples/turn/hostile/hoard")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// newRuntime returns a runtime that shares its compiled code with other test runs.
func newRuntime(t testing.TB, options Options) *Runtime {
	t.Helper()
	if options.CacheDir == "" {
		options.CacheDir = cacheDir(t)
	}
	r, err := New(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	return r
}

func cacheDir(t testing.TB) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	return filepath.Join(cache, "caisson", "test")
}

// manifest writes a manifest beside a copy of a module and reads it. The text holds
// what follows schema, name and description.
func manifest(t testing.TB, module, text string) *manifests.Manifest {
	t.Helper()
	dir := t.TempDir()
	source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(module)))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "guest.wasm"), source, 0o600))
	return manifestIn(t, dir, text)
}

func manifestIn(t testing.TB, dir, text string) *manifests.Manifest {
	t.Helper()
	file := filepath.Join(dir, "tool.yaml")
	if !strings.Contains(text, "module:") {
		text = "module: {path: guest.wasm}\n" + text
	}
	require.NoError(t, os.WriteFile(file, []byte("schema: caisson/v1\nname: guest\ndescription: A test's guest.\n"+text), 0o600))
	m, err := manifests.Load(file)
	require.NoError(t, err)
	return m
}

const probe = "internal/guests/probe/probe.wasm"

func load(t testing.TB, r *Runtime, m *manifests.Manifest, grants manifests.Grants) *Tool {
	t.Helper()
	loaded, err := r.Load(t.Context(), m, grants)
	require.NoError(t, err)
	return loaded
}

func invocation(t testing.TB, arguments string, context map[string]string) tool.Invocation {
	t.Helper()
	parsed, err := tool.ParseArguments(arguments)
	require.NoError(t, err)
	return tool.Invocation{CallID: "the-call", Tool: "guest", Arguments: parsed, Context: context}
}

func invoke(t testing.TB, loaded *Tool, arguments string) (tool.Outcome, error) {
	t.Helper()
	return loaded.Invoke(t.Context(), invocation(t, arguments, nil))
}

func decode[T any](t testing.TB, raw json.RawMessage) T {
	t.Helper()
	var value T
	require.NoError(t, json.Unmarshal(raw, &value), string(raw))
	return value
}
