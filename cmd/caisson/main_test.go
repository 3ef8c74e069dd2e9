package main

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/runtime"
)

func TestMain(m *testing.M) {
	runtime.ChildCompiler(context.Background()) // a child of a script's command is this binary
	testscript.Main(m, map[string]func(){"caisson": main})
}

// TestScripts runs the command as people do. The scripts find the first-party tools at
// $TOOLS, tools that misbehave at $HOSTILE, at $PROBE a module that does what its
// arguments say, and the folders of all tests' modules in $GUESTS.
func TestScripts(t *testing.T) {
	root, err := guests.Compile(t.Context())
	require.NoError(t, err)
	// One home for all scripts, so that each module is compiled once.
	home := t.TempDir()
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			for _, name := range []string{"HOME", "XDG_CACHE_HOME", "LocalAppData"} {
				env.Setenv(name, home)
			}
			// The race detector would have each process wait a second at its end.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			env.Setenv("TOOLS", filepath.Join(root, "wasm-tools"))
			env.Setenv("HOSTILE", filepath.Join(root, "examples", "turn", "hostile"))
			env.Setenv("PROBE", filepath.Join(root, "internal", "guests", "probe", "probe.wasm"))
			env.Setenv("GUESTS", filepath.Join(root, "internal", "guests"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "lines": lines},
	})
}

// exits runs the command and checks its exit code: exits 3 call file_read ….
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: exits CODE [ARGUMENT…]")
	}
	err := ts.Exec("caisson", args[1:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if args[0] != strconv.Itoa(code) {
		ts.Fatalf("the exit code is %d, want %s", code, args[0])
	}
}

// lines checks how many lines the last command wrote: lines stdout 2.
func lines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines stdout|stderr N")
	}
	text := ts.ReadFile(args[0])
	if n := strings.Count(text, "\n"); args[1] != strconv.Itoa(n) {
		ts.Fatalf("%s has %d lines, want %s:\n%s", args[0], n, args[1], text)
	}
}
