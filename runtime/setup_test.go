package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/tool"
)

var (
	root     string   // of the repository, where TestMain has compiled the guests
	cacheDir string   // of compiled code, which later runs of the tests find
	shared   *Runtime // by all tests that ask for no options
)

func TestMain(m *testing.M) {
	ctx := context.Background()
	var err error
	if _, cacheDir, err = guests.CompiledCode(); err == nil {
		root, err = guests.Compile(ctx, "internal/guests/callprobe", "internal/guests/early", "internal/guests/failing", "internal/guests/netprobe", "internal/guests/probe",
			"internal/guests/streamprobe", "wasm-tools/files", "examples/turn/hostile/hoard")
	}
	if err == nil {
		shared, err = New(ctx, Options{CacheDir: cacheDir})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(sharing{m})
}

// sharing is the tests, and the end of the runtime that they share.
type sharing struct{ *testing.M }

func (s sharing) Run() int {
	code := s.M.Run()
	if err := shared.Close(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// newRuntime returns a runtime with these options, or without any the one that all tests share. Its
// compiled code is kept for later runs of the tests.
func newRuntime(t testing.TB, options Options) *Runtime {
	t.Helper()
	if reflect.ValueOf(options).IsZero() {
		return shared
	}
	if options.CacheDir == "" {
		options.CacheDir = cacheDir
	}
	r, err := New(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	return r
}

// readGuest reads a module of the repository's.
func readGuest(t testing.TB, module string) []byte {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(module)))
	require.NoError(t, err)
	return source
}

// manifest writes a manifest into a folder with a copy of a module, and reads it. The text follows schema, name and
// description.
func manifest(t testing.TB, module, text string) *manifests.Manifest {
	t.Helper()
	return named(t, "guest", module, text)
}

// named is manifest for a tool of another name. The module is one of the repository's or, if the text
// is one, the module itself.
func named(t testing.TB, name, module, text string) *manifests.Manifest {
	t.Helper()
	source := []byte(module)
	if !strings.HasPrefix(module, magic) {
		source = readGuest(t, module)
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "guest.wasm"), source, 0o600))
	return manifestIn(t, dir, name, text)
}

// manifestIn writes a manifest into a folder, whatever guest.wasm is there.
func manifestIn(t testing.TB, dir, name, text string) *manifests.Manifest {
	t.Helper()
	file := filepath.Join(dir, "tool.yaml")
	if !strings.Contains(text, "module:") {
		text = "module: {path: guest.wasm}\n" + text
	}
	require.NoError(t, os.WriteFile(file, []byte("schema: caisson/v1\nname: "+name+"\ndescription: A test's guest.\n"+text), 0o600))
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

func mustInvoke(t testing.TB, loaded *Tool, arguments string) tool.Outcome {
	t.Helper()
	outcome, err := invoke(t, loaded, arguments)
	require.NoError(t, err, outcome.Result.Error)
	return outcome
}

func digestOf(t testing.TB, m *manifests.Manifest) engine.Digest {
	t.Helper()
	digest, err := moduleDigest(m)
	require.NoError(t, err)
	return digest
}

func inspect(t testing.TB, m *manifests.Manifest) ModuleInfo {
	t.Helper()
	info, err := InspectModule(m)
	require.NoError(t, err)
	return info
}

func isolationOf(t testing.TB, loaded *Tool) Isolation {
	t.Helper()
	found, err := loaded.Isolation(t.Context())
	require.NoError(t, err)
	return found
}

func encode(t testing.TB, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return text
}

func decode[T any](t testing.TB, raw json.RawMessage) T {
	t.Helper()
	var value T
	require.NoError(t, json.Unmarshal(raw, &value), string(raw))
	return value
}
