package runtime

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/abi"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
	"github.com/caisson-run/caisson/tool"
)

const (
	seededGo   = "internal/guests/seeded/seeded.wasm"
	seededC    = "internal/guests/seeded/c/seeded.wasm"
	reseededGo = "internal/guests/reseeded/reseeded.wasm"
)

func TestSeededGeneratorsAreFound(t *testing.T) {
	_, err := guests.Compile(t.Context(), "internal/guests/seeded", "internal/guests/reseeded")
	require.NoError(t, err)
	for module, want := range map[string][]string{
		seededGo:                      {"Go's math/rand/v2"},
		seededC:                       {"C's srand"},
		reseededGo:                    {},
		"wasm-tools/files/files.wasm": {},
	} {
		info := inspect(t, manifest(t, module, ""))
		assert.Equal(t, want, info.SeededGenerators, module)
	}
}

// TestWhatASnapshotRepeats: which parts of the output, as words, are the same in all calls
// that resume one snapshot.
func TestWhatASnapshotRepeats(t *testing.T) {
	_, err := guests.Compile(t.Context(), "internal/guests/seeded", "internal/guests/reseeded")
	require.NoError(t, err)
	const repeated, fresh = true, false
	for _, test := range []struct {
		module, arguments, snapshot string
		words                       []bool
	}{
		{seededGo, "", "start", []bool{repeated, repeated, fresh}},
		{reseededGo, "", "start", []bool{fresh, repeated, repeated}},
		{seededC, "entropy, early", "start", []bool{repeated}},
		{seededC, "entropy, early", "auto", []bool{fresh}},
		{seededC, "entropy, early", "off", []bool{fresh}},
		{seededC, "entropy, late", "start", []bool{fresh}},
		{seededC, "clock, late", "start", []bool{fresh}},
		{seededC, "clock, early", "start", []bool{repeated}},
	} {
		t.Run(strings.Join([]string{test.module, test.arguments, test.snapshot}, " "), func(t *testing.T) {
			loaded := load(t, newRuntime(t, Options{}), manifest(t, test.module, fmt.Sprintf(
				"module: {path: guest.wasm, args: [%s], stdout: text}\nbehavior: {snapshot: %s}\n", test.arguments, test.snapshot)), manifests.Grants{})
			invokedForWords(t, loaded) // starts the program itself: it may remain the only call
			invokedForWords(t, loaded) // makes the host start the program in the background
			started, reason := loaded.program.settled(t)
			calls := [][]string{invokedForWords(t, loaded), invokedForWords(t, loaded), invokedForWords(t, loaded)}
			if test.snapshot == "start" {
				require.NotNil(t, started, reason)
			}
			for at, want := range test.words {
				given := []string{calls[0][at], calls[1][at], calls[2][at]}
				slices.Sort(given)
				if want == repeated {
					assert.Len(t, slices.Compact(given), 1, "word %d", at)
				} else {
					assert.Len(t, slices.Compact(given), 3, "word %d", at)
				}
			}
		})
	}
}

// invokedForWords makes a call, and returns the words that it printed.
func invokedForWords(t *testing.T, loaded *Tool) []string {
	t.Helper()
	outcome := mustInvoke(t, loaded, "{}")
	words := strings.Fields(outcome.Result.Output)
	require.NotEmpty(t, words, "%+v", outcome.Result)
	return words
}

// quadratic returns a WASI command that does nothing, but has a br_table with enough labels that compiling it takes
// time with the square of their number.
func quadratic() string {
	const labels = 50_001
	return bare("\x41\x00\x0e" + number(labels-1) + strings.Repeat("\x00", labels)) // i32.const 0, br_table
}

// TestUnusableModulesSaySoOnce: the reason is in the error once, whichever function finds it.
func TestUnusableModulesSaySoOnce(t *testing.T) {
	m := named(t, "guest", magic+"\x01\x05", "")
	const want = "module cannot be used: guest.wasm: the file is cut off: type section at byte 9: the section claims 5 bytes, 0 bytes are left; build or download it again"
	_, err := InspectModule(m)
	require.EqualError(t, err, want)
	loaded := load(t, newRuntime(t, Options{}), m, manifests.Grants{})
	require.EqualError(t, loaded.Prepare(t.Context()), want)
	_, err = invoke(t, loaded, `{}`)
	var failure *tool.Error
	require.ErrorAs(t, err, &failure)
	require.ErrorIs(t, err, engine.ErrModule)
	require.EqualError(t, failure.Err, want)
}

func TestTrustedModules(t *testing.T) {
	source := quadratic()
	m := named(t, "guest", source, "")
	cache := filepath.Join(t.TempDir(), "cache")

	err := load(t, newRuntime(t, Options{CacheDir: cache}), m, manifests.Grants{}).Prepare(t.Context())
	require.ErrorIs(t, err, ErrModule)
	require.ErrorIs(t, err, wasm.ErrLimit)

	trusting := Options{CacheDir: cache, TrustedModules: []string{engine.DigestOf([]byte(source)).String()}}
	outcome := mustInvoke(t, load(t, newRuntime(t, trusting), m, manifests.Grants{}), "{}")
	assert.True(t, outcome.Result.Success)
}

func TestTrustedModulesAreDigests(t *testing.T) {
	right := strings.Repeat("0a", 32)
	for _, wrong := range []string{"", "0a", right + "0a", strings.Repeat("x", 64), "sha256:" + right} {
		_, err := New(t.Context(), Options{TrustedModules: []string{right, wrong}})
		assert.ErrorContains(t, err, "64 hex digits", wrong)
	}
	_, err := New(t.Context(), Options{CacheDir: filepath.Join(t.TempDir(), "cache"), CacheBytes: -1})
	assert.ErrorContains(t, err, "negative")
	newRuntime(t, Options{TrustedModules: []string{right}})
}

const (
	wantsNetwork = "permissions: {network: [{host: api.example.com}]}"
	wantsSecrets = "permissions: {secrets: [{name: KEY, header: X-Key, host: api.example.com}]}"
	wantsBoth    = "permissions: {network: [{host: api.example.com}], secrets: [{name: KEY, header: X-Key, host: api.example.com}]}"
	wantsTools   = "permissions: {tools: [other]}"
	wantsFiles   = "permissions: {files: [{path: /project}], env: [LANG]}"
)

// importing returns a manifest for a command that imports one function and calls none. The function takes i32s and
// returns the given type.
func importing(t *testing.T, module, function string, params int, result byte, text string) *manifests.Manifest {
	t.Helper()
	return named(t, "guest", magic+section(1, "\x02\x60"+vector(strings.Repeat("\x7f", params))+vector(string(rune(result)))+"\x60\x00\x00")+
		section(2, "\x01"+vector(module)+vector(function)+"\x00\x00")+section(3, "\x01\x01")+section(5, "\x01\x00\x01")+
		section(7, "\x02"+vector("memory")+"\x02\x00"+vector("_start")+"\x00\x01")+section(10, "\x01"+vector("\x00\x0b")), text)
}

// TestEachImportNeedsItsOwnPermission: a permission for one host module opens no other one. A module is refused before
// any of its code runs. Host modules that give access to nothing need no permission.
func TestEachImportNeedsItsOwnPermission(t *testing.T) {
	const i32, i64 = 0x7f, 0x7e
	for _, c := range []struct {
		module, function string
		params           int
		result           byte
		text, missing    string // missing is the permission that the manifest does not request, or ""
	}{
		{abi.Network, "request", 4, i64, wantsNetwork, ""},
		{abi.Network, "request", 4, i64, wantsBoth, ""},
		{abi.Network, "request", 4, i64, wantsSecrets, "permissions.network;"},
		{abi.Network, "request", 4, i64, wantsFiles, "permissions.network;"},
		{abi.Secrets, "exists", 2, i64, wantsSecrets, ""},
		{abi.Secrets, "exists", 2, i64, wantsNetwork, "permissions.secrets;"},
		{abi.Secrets, "exists", 2, i64, "", "permissions.secrets;"},
		{abi.IO, "read", 2, i32, wantsNetwork, ""},
		{abi.IO, "read", 2, i32, wantsSecrets, ""},
		{abi.Tools, "call", 2, i64, wantsTools, ""},
		{abi.Tools, "call", 2, i64, wantsBoth, "permissions.tools;"},
		{abi.Tools, "call", 2, i64, "", "permissions.tools;"},
		{abi.Network, "request", 4, i64, wantsTools, "permissions.network;"},
		{abi.IO, "read", 2, i32, wantsTools, ""},
		{abi.IO, "read", 2, i32, wantsFiles, ""},
		{abi.IO, "read", 2, i32, "", ""},
		{abi.Stream, "emit", 2, i64, "", ""},
		{abi.Context, "get", 2, i64, "", ""},
	} {
		m := importing(t, c.module, c.function, c.params, c.result, c.text)
		_, err := InspectModule(m)
		if c.missing == "" {
			require.NoError(t, err, "%+v", c)
			continue
		}
		require.ErrorIs(t, err, ErrModule, "%+v", c)
		assert.ErrorContains(t, err, "does not ask for "+c.missing)
		_, err = invoke(t, load(t, newRuntime(t, Options{}), m, manifests.Grants{}), `{}`)
		require.ErrorIs(t, err, ErrModule, "%+v", c)
	}
}

// TestImportsHaveTheirType: a function of another type is not the one that is offered.
func TestImportsHaveTheirType(t *testing.T) {
	const i32, i64 = 0x7f, 0x7e
	for name, m := range map[string]*manifests.Manifest{
		"parameters":  importing(t, abi.Network, "request", 3, i64, wantsBoth),
		"result":      importing(t, abi.Network, "request", 4, i32, wantsBoth),
		"of WASI":     importing(t, "wasi_snapshot_preview1", "fd_close", 2, i32, ""),
		"no function": importing(t, abi.Network, "listen", 4, i64, wantsBoth),
		"no module":   importing(t, "caisson:shell@1", "run", 4, i64, wantsBoth),
	} {
		_, err := InspectModule(m)
		require.ErrorIs(t, err, ErrModule, name)
	}
}

// TestPermissionsThatAModuleCannotUse: InspectModule lists the permissions that a manifest asks for
// and the module cannot use.
func TestPermissionsThatAModuleCannotUse(t *testing.T) {
	const i32, i64 = 0x7f, 0x7e
	for _, c := range []struct {
		m      *manifests.Manifest
		unused []string
	}{
		{importing(t, abi.IO, "read", 2, i32, wantsBoth), []string{"permissions.network", "permissions.secrets"}},
		{importing(t, abi.Network, "request", 4, i64, wantsBoth), []string{}},
		{importing(t, abi.Secrets, "exists", 2, i64, wantsSecrets), []string{"permissions.secrets"}},
		{importing(t, abi.Tools, "call", 2, i64, wantsTools), []string{}},
		{importing(t, abi.IO, "read", 2, i32, wantsTools), []string{"permissions.tools"}},
		{importing(t, "wasi_snapshot_preview1", "fd_close", 1, i32, wantsFiles), []string{"permissions.env", "permissions.files"}},
		{importing(t, "wasi_snapshot_preview1", "environ_get", 2, i32, wantsFiles), []string{"permissions.files"}},
	} {
		info := inspect(t, c.m)
		assert.Equal(t, c.unused, info.Unused, "%v", info.Imports)
	}
}
