package plugins

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/testsize"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// hostileLibrary returns a plug-in that only calls a library, which is the plug-in that means harm.
func hostileLibrary(t testing.TB) subject {
	t.Helper()
	exports := []string{"harmless", "endless", "endless_allocations", "endless_loads", "endless_logs", "endless_variables"}
	for _, a := range attacks() {
		exports = append(exports, a.export)
	}
	return forwarder(hostile(t), exports...)
}

// TestAttacksOfLibrariesAreContained: each attack ends in a library as it does in the plug-in itself, and the
// call after it finds nothing of it. Those of the plug-in itself have controls.
func TestAttacksOfLibrariesAreContained(t *testing.T) {
	serve(t)
	s := hostileLibrary(t)
	next := caisson(t, s, "harmless")
	for _, a := range attacks() {
		t.Run(a.export, func(t *testing.T) {
			outcome, err := caisson(t, s, a.export)("the input")
			a.check(t, outcome, err)
			assert.LessOrEqual(t, len(outcome.Log), 2*roomForLogs)
			outcome, err = next("hello")
			require.NoError(t, err)
			assert.Equal(t, "1 clean hello", outcome.Result.Output)
		})
	}
}

// TestEndlessLibrariesAreStopped: a library that never returns ends at the deadline of the call.
func TestEndlessLibrariesAreStopped(t *testing.T) {
	serve(t)
	s := hostileLibrary(t)
	subjects := map[string]subject{}
	for _, initializer := range []string{"start", "_initialize", "__wasm_call_ctors", "hs_init"} {
		subjects[initializer] = subject{module: assembled("lib", []string{"call"}, 0, written{"call", "\x10\x00"}), libraries: map[string][]byte{"lib": endless(initializer)}}
	}
	for _, export := range []string{"endless", "endless_allocations", "endless_loads", "endless_logs", "endless_variables"} {
		subjects[export] = s
	}
	for export, s := range subjects {
		t.Run(export, func(t *testing.T) {
			s.limits = `{"timeout": "50ms"}`
			if !strings.HasPrefix(export, "endless") {
				export = "call"
			}
			call := caisson(t, s, export)
			for range 2 {
				outcome, err := call("the input")
				require.ErrorIs(t, err, tool.Deadline)
				assert.Less(t, outcome.Usage.Wall, time.Second)
			}
		})
	}
	// Control: a function with another name is not called.
	s = subjects["start"]
	s.libraries = map[string][]byte{"lib": endless("initialize")}
	assert.Equal(t, answer{}, ours{}.load(t, s, "call")(""))
}

// TestMemoryOfLibrariesIsLimited: all memories of a plug-in together stay below the limit. On go-sdk, each may
// have as much.
func TestMemoryOfLibrariesIsLimited(t *testing.T) {
	const (
		pages  = "\xd8\x04"                                   // 600, which is 37.5 MiB
		grow   = "\x41" + pages + "\x40\x00"                  // memory.grow
		failed = "\x41\x7f\x46"                               // i32.eq -1
		both   = grow + "\x1a" + "\x10\x00" + failed + "\x45" // drops the result; whether the library got memory
	)
	library := assembled("", nil, 0, written{"more", grow})
	s := subject{module: assembled("lib", []string{"more"}, 0, written{"run", both}), libraries: map[string][]byte{"lib": library}}
	for limit, hasIt := range map[string]bool{"64MiB": false, "128MiB": true} {
		s.limits = fmt.Sprintf(`{"memory": %q}`, limit)
		outcome, _ := caisson(t, s, "run")("")
		assert.Equal(t, hasIt, strings.Contains(outcome.Result.Error, "returned 1"), "%s: %+v", limit, outcome.Result)
		assert.Equal(t, !hasIt, outcome.Result.Success)
		if !hasIt {
			assert.Less(t, outcome.Usage.MemoryBytes, int64(64<<20))
		}
	}
	assert.Equal(t, "code 1", theirs{}.load(t, withNames(t, s), "run")("").Error, "control")
}

// TestCallsFindNothingInLibraries: a counter in the memory or in a global of a library, or in a variable of the host,
// reads 1 in every call. In the control, the instance of go-sdk that is used again counts.
func TestCallsFindNothingInLibraries(t *testing.T) {
	for _, language := range languages() {
		s := withNames(t, forwarder(pdk(t, language), counters(language)...))
		for _, export := range counters(language) {
			t.Run(fmt.Sprintf("%s/%s", language, export), func(t *testing.T) {
				for _, snapshot := range []string{"auto", "start", "off"} {
					s.snapshot = snapshot
					call := ours{}.load(t, s, export)
					for range testsize.Of(10, 100) {
						assert.Equal(t, answer{Output: "1"}, call(""))
					}
				}
				call := theirs{reused: true}.load(t, s, export)
				for count := range 3 {
					assert.Equal(t, answer{Output: fmt.Sprint(count + 1)}, call(""), "control")
				}
			})
		}
	}
}

// TestFailedLibrariesLeaveNothing: a library that traps ends the call as the plug-in itself would, and the calls after
// it count from 1.
func TestFailedLibrariesLeaveNothing(t *testing.T) {
	s := forwarder(pdk(t, C), "trap", "fail", "count_memory")
	count := ours{}.load(t, s, "count_memory")
	for range 3 {
		outcome, err := caisson(t, s, "trap")("")
		require.ErrorIs(t, err, tool.Trap)
		assert.Equal(t, tool.Trap, outcome.Result.Kind)
		assert.Contains(t, ours{}.load(t, s, "fail")("it is broken").Error, "it is broken")
		assert.Equal(t, answer{Output: "1"}, count(""))
	}
}

// TestLibrariesCannotReplaceTheHost: a library by the name of what the host offers is refused, as by go-sdk.
func TestLibrariesCannotReplaceTheHost(t *testing.T) {
	library := assembled("", nil, 0, written{"f", "\x41\x00"})
	for name, want := range map[string]string{
		"wasi_snapshot_preview1": "no library can be named",
		"host":                   "no library can be named", // of host.to_upper
		"dylibso_observe":        "no library can be named",
		"hosts":                  "", // the control
	} {
		s := subject{module: assembled(name, []string{"f"}, 0, written{"run", "\x10\x00"}), libraries: map[string][]byte{name: library}}
		loaded, err := loadTool(t, s, "run")
		require.NoError(t, err)
		if want == "" {
			require.NoError(t, loaded.Prepare(t.Context()))
			continue
		}
		require.ErrorContains(t, loaded.Prepare(t.Context()), want, name)
	}
	_, err := manifests.Parse("tool.yaml", []byte("schema: caisson/v1\nname: a\ndescription: b\nmodule: {path: a.wasm, abi: extism, libraries: {'extism:host/env': b.wasm}}\n"))
	require.ErrorIs(t, err, manifests.ErrInvalid)
}

// TestChangedLibraries: a plug-in of a manifest of Extism with a hash does not run with another library that takes the
// place of the first after it was loaded.
func TestChangedLibraries(t *testing.T) {
	modules := sdkModules(t)
	s := subject{module: modules["main"], libraries: map[string][]byte{"lib": modules["lib"]}}
	const hash = "06722442359e22194cefed6a489047b2adf0961613a266223c464ce52caf2d6e"
	for name, c := range map[string]struct {
		library []byte
		wants   error
	}{
		"changed": {slices.Concat(modules["lib"], []byte{0, 1, 0}), runtime.ErrDigest},
		"control": {modules["lib"], nil},
	} {
		dir := t.TempDir()
		m := translated(t, dir, s, `{"path": "lib.wasm", "name": "lib", "hash": "`+hash+`"}, {"path": "main.wasm"}`)
		loaded, err := shared.Load(t.Context(), m, manifests.Grants{})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "lib.wasm"), c.library, 0o600))
		require.ErrorIs(t, loaded.Prepare(t.Context()), c.wants, name)
	}
}
