package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/runtime"
)

func TestMain(m *testing.M) {
	runtime.ChildCompiler(context.Background()) // commands in scripts start this binary as their compiler
	testscript.Main(m, map[string]func(){"caisson": main})
}

// TestScripts runs the command as people do. The scripts find the first-party tools at $TOOLS, hostile
// tools at $HOSTILE, a module that does what its arguments say at $PROBE, one that makes requests at
// $NETPROBE, a tool that calls another at $DIGEST, the folders of all test modules in $GUESTS, and the
// plug-ins of extism/go-sdk in $PLUGINS.
func TestScripts(t *testing.T) { runScripts(t, "script") }

func runScripts(t *testing.T, folder string) {
	root := noerr.Get(guests.Compile(t.Context()))(t)
	plugins := noerr.Get(exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/extism/go-sdk").Output())(t)
	// One cache for all scripts and runs, so that each module is compiled once.
	home := t.TempDir()
	cache, _ := noerr.Get2(guests.CompiledCode())(t)
	scripts := noerr.Get(filepath.Glob(filepath.Join("testdata", folder, "*.txtar")))(t)
	require.NotEmpty(t, scripts)
	scripts = testsize.QuickSample(scripts, 10) // each starts a dozen processes
	testscript.Run(t, testscript.Params{
		Files:               scripts,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", home)
			env.Setenv("LocalAppData", home)
			env.Setenv("XDG_CACHE_HOME", cache)
			// Each script has its own records, on systems with a variable for their folder.
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, ".state"))
			// With the race detector, each process would wait a second before it exits.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			// Most of the processes end before collecting their garbage is worth the time.
			env.Setenv("GOGC", "400")
			env.Setenv("TOOLS", filepath.Join(root, "wasm-tools"))
			env.Setenv("HOSTILE", filepath.Join(root, "examples", "turn", "hostile"))
			env.Setenv("DIGEST", filepath.Join(root, "examples", "digest"))
			env.Setenv("PROBE", filepath.Join(root, "internal", "guests", "probe", "probe.wasm"))
			env.Setenv("NETPROBE", filepath.Join(root, "internal", "guests", "netprobe", "netprobe.wasm"))
			env.Setenv("GUESTS", filepath.Join(root, "internal", "guests"))
			env.Setenv("PLUGINS", filepath.Join(strings.TrimSpace(string(plugins)), "wasm"))
			return nil
		},
		Cmds: commands(),
	})
}
