// Package interpreters tests script tools, and interpreters that others compiled to WebAssembly, as users have them. It
// is a separate Go module, so that "make test" does without the interpreters, which "make interpreters" installs.
package interpreters

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/interpreter"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// installed returns the folder of the interpreters.
func installed(t testing.TB) interpreter.Folder {
	t.Helper()
	dir := os.Getenv("CAISSON_INTERPRETERS")
	require.NotEmpty(t, dir, "CAISSON_INTERPRETERS has to name the folder of the interpreters; `make interpreters` sets it")
	return interpreter.Folder(dir)
}

// interpreterOf returns the module of a language's interpreter.
func interpreterOf(t testing.TB, language string) []byte {
	t.Helper()
	i, found := interpreter.For(language)
	require.True(t, found)
	module, err := installed(t).Read(i)
	require.NoError(t, err)
	return module
}

// newRuntime returns a runtime that runs scripts. Compiled code is cached where the interpreters are.
func newRuntime(t testing.TB) *runtime.Runtime {
	t.Helper()
	r, err := runtime.New(t.Context(), runtime.Options{
		Limits: runtime.Limits{Memory: 512 << 20, Timeout: time.Minute}, Interpreters: string(installed(t)), CacheDir: filepath.Join(string(installed(t)), "compiled"),
		LookupEnv: func(name string) (string, bool) { return "sesame-" + name, name == "API_KEY" },
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close(context.Background())) })
	return r
}

// world is a folder of script tools.
type world struct {
	t       testing.TB
	dir     string
	runtime *runtime.Runtime
	grants  manifests.Grants
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return &world{t, t.TempDir(), newRuntime(t), manifests.Grants{}}
}

// write writes a file of the folder.
func (w *world) write(name, content string) {
	w.t.Helper()
	file := filepath.Join(w.dir, filepath.FromSlash(name))
	require.NoError(w.t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(w.t, os.WriteFile(file, []byte(content), 0o600))
}

// tool writes a script and loads a manifest for it.
func (w *world) tool(file, script, more string) *runtime.Tool {
	w.t.Helper()
	w.write(file, script)
	return w.load("module: {script: " + file + "}\n" + more)
}

// load loads a manifest of any parameters.
func (w *world) load(manifest string) *runtime.Tool {
	w.t.Helper()
	m, err := manifests.Parse(filepath.Join(w.dir, "tool.yaml"), []byte("schema: caisson/v1\nname: script\ndescription: A script.\n"+manifest))
	require.NoError(w.t, err)
	loaded, err := w.runtime.Load(w.t.Context(), m, w.grants)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { assert.NoError(w.t, loaded.Close(context.Background())) })
	return loaded
}

// call calls a tool, and returns the outcome.
func call(t testing.TB, loaded *runtime.Tool, arguments string) tool.Outcome {
	t.Helper()
	outcome, _ := loaded.Invoke(t.Context(), invocation(t, arguments))
	return outcome
}

func invocation(t testing.TB, arguments string) tool.Invocation {
	t.Helper()
	parsed, err := tool.ParseArguments(arguments)
	require.NoError(t, err)
	return tool.Invocation{CallID: "the-call", Tool: "script", Arguments: parsed}
}
