package extism

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/extism/go-sdk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/mistake"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

// placed writes a manifest as plugin.json next to one or several of the plug-ins of go-sdk's tests.
func placed(t *testing.T, module, text string, more ...string) string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/extism/go-sdk").Output()
	require.NoError(t, err)
	folder := t.TempDir()
	for _, module := range append(more, module) {
		source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "wasm", module))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, module), source, 0o600))
	}
	file := filepath.Join(folder, "plugin.json")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

const whole = `{
  "wasm": [{"path": "count_vowels.wasm", "hash": "0c1779c48f56f94b3e3624d76f55e38215870c59ccb3d41f6ba8b2bc22f218f5", "name": "main"}],
  "memory": {"max_pages": 64, "max_http_response_bytes": 4096, "max_var_bytes": 1048576},
  "allowed_hosts": ["*.Example.com", "api.example.org", "*"],
  "allowed_paths": {"ro:/srv/data": "/data", "/srv/work": "/work"},
  "config": {"vowels": "aeiou"},
  "timeout_ms": 1500
}`

func TestAllOfAManifestIsTranslated(t *testing.T) {
	done, err := Load(placed(t, "count_vowels.wasm", whole))
	require.NoError(t, err)
	require.Len(t, done.Manifests, 1)
	m := done.Manifests[0]
	assert.Equal(t, "plugin_count_vowels", m.Name)
	assert.Equal(t, "count_vowels.wasm", m.Module.Path)
	assert.Equal(t, "0c1779c48f56f94b3e3624d76f55e38215870c59ccb3d41f6ba8b2bc22f218f5", m.Module.SHA256)
	assert.Equal(t, modules.ABIExtism, m.Module.ABI)
	assert.Equal(t, "count_vowels", m.Module.Entry)
	assert.Equal(t, modules.Stdin{Mode: modules.StdinParam, Param: "input"}, m.Module.Stdin)
	assert.Equal(t, map[string]string{"vowels": "aeiou"}, m.Module.Config)
	assert.Equal(t, manifests.Bytes(64<<16), m.Limits.Memory)
	assert.Equal(t, manifests.Bytes(4096), m.Limits.HTTPBytes)
	assert.Equal(t, 1500*time.Millisecond, m.Limits.Timeout)
	var hosts []string
	for _, p := range m.Permissions.Network {
		hosts = append(hosts, p.Host)
		assert.Equal(t, []int{manifests.EveryPort}, p.Ports)
		assert.ElementsMatch(t, []string{"https", "http"}, p.Schemes)
		assert.Contains(t, p.Methods, "POST")
	}
	assert.Equal(t, []string{"*.example.com", "api.example.org", "*"}, hosts)
	require.Len(t, m.Permissions.Files, 2)
	assert.Equal(t, manifests.AccessReadWrite, m.Permissions.Files[0].Access)
	assert.Equal(t, manifests.AccessRead, m.Permissions.Files[1].Access)
	assert.Len(t, done.Notes, 3, "%v: both directories, and what http_bytes limits", done.Notes)
}

// TestEachFunctionIsATool: each function is a tool, except those of the language's runtime.
func TestEachFunctionIsATool(t *testing.T) {
	for module, want := range map[string][]string{
		"read_write.wasm":       {"plugin_try_read", "plugin_try_write"},
		"host_multiple.wasm":    {"plugin_say_green", "plugin_say_purple"},
		"hello_haskell.wasm":    {"plugin_testing"},
		"count_vowels_std.wasm": {"plugin__start"},
	} {
		done, err := Load(placed(t, module, `{"wasm": [{"path": "`+module+`"}]}`))
		require.NoError(t, err)
		var names []string
		for _, m := range done.Manifests {
			names = append(names, m.Name)
		}
		assert.ElementsMatch(t, want, names)
		assert.Empty(t, done.Notes)
	}
}

func TestWhatHasNoEquivalentIsSaid(t *testing.T) {
	for text, want := range map[string]string{
		`{"wasm": [{"path": "noop.wasm"}], "allowed_hosts": ["api-?.example.com"]}`:     `the pattern "api-?.example.com" has no equivalent`,
		`{"wasm": [{"path": "noop.wasm"}], "memory": {"max_var_bytes": 2097152}}`:       "2097152 is lowered to 1048576",
		`{"wasm": [{"path": "noop.wasm"}], "memory": {"max_pages": 65536}}`:             "memory.max_pages: 65536 is lowered to 32768",
		`{"wasm": [{"path": "noop.wasm"}], "timeout_ms": 99999999999999}`:               "timeout_ms: 99999999999999 is more than the 86400000 of a day, which it is lowered to",
		`{"wasm": [{"path": "noop.wasm"}], "allow_http_response_headers": true}`:        `"allow_http_response_headers" has no equivalent`,
		`{"wasm": [{"path": "noop.wasm", "sha": "1"}]}`:                                 `wasm[0].sha: "sha" has no equivalent`,
		`{"wasm": [{"path": "noop.wasm"}], "memory": {"max": 1}}`:                       `memory.max: "max" has no equivalent`,
		`{"wasm": [{"path": "noop.wasm"}], "config": {"a": null}}`:                      "config.a: null, which the plug-in reads as an empty text",
		`{"wasm": [{"path": "noop.wasm"}], "allowed_paths": {"ro:/srv/data": "/data"}}`: "which directory /data is; here it is /srv/data (ro)",
	} {
		done, err := Load(placed(t, "noop.wasm", text))
		require.NoError(t, err, text)
		require.Len(t, done.Notes, 1, text)
		assert.Contains(t, done.Notes[0].Path+": "+done.Notes[0].Message, want)
		assert.Empty(t, done.Manifests[0].Permissions.Network)
	}
}

// TestMembersThatAreTranslated: each member is listed with its equivalent in Caisson and its place in the manifest.
func TestMembersThatAreTranslated(t *testing.T) {
	done, err := Load(placed(t, "count_vowels.wasm", whole))
	require.NoError(t, err)
	var members []string
	for _, m := range done.Members {
		members = append(members, fmt.Sprintf("%d: %s is %s", m.Line, m.Key, m.Text))
	}
	assert.Equal(t, []string{
		"2: wasm[0].path is module.path: count_vowels.wasm",
		"2: wasm[0].hash is module.sha256: 0c1779c48f56f94b3e3624d76f55e38215870c59ccb3d41f6ba8b2bc22f218f5",
		"6: config is module.config: vowels",
		"4: allowed_hosts is permissions.network: *.Example.com by every method and port",
		"4: allowed_hosts is permissions.network: api.example.org by every method and port",
		"4: allowed_hosts is permissions.network: * by every method and port",
		"5: allowed_paths is permissions.files: /work (read-write)",
		"5: allowed_paths is permissions.files: /data (read)",
		"7: timeout_ms is limits.timeout: 1500ms",
		"3: memory.max_pages is limits.memory: 4096KiB",
		"3: memory.max_http_response_bytes is limits.http_bytes: 4096B",
	}, members)
	assert.Equal(t, modules.StdoutText, done.Manifests[0].Module.Stdout, "the output is what the plug-in wrote")
}

// TestVariablesAreLimited: Extism's variables have less than max_var_bytes, and 0 allows none.
func TestVariablesAreLimited(t *testing.T) {
	for most, want := range map[string]int64{"0": 1, "1": 1, "100": 99, "1048575": 1048574, "1048576": 0, "2097152": 0} {
		done, err := Load(placed(t, "noop.wasm", `{"wasm": [{"path": "noop.wasm"}], "memory": {"max_var_bytes": `+most+`}}`))
		require.NoError(t, err)
		assert.Equal(t, want, done.Manifests[0].Module.Variables, most)
	}
}

// TestFunctionsOfTheProgramAreRequested: Extism's manifests say nothing of them.
func TestFunctionsOfTheProgramAreRequested(t *testing.T) {
	for module, want := range map[string][]string{
		"host_multiple.wasm":  {"hostGreenMessage", "hostPurpleMessage"},
		"host_memory.wasm":    {"host.to_upper"},
		"nested.c.instr.wasm": {"dylibso_observe.instrument_enter", "dylibso_observe.instrument_exit", "dylibso_observe.instrument_memory_grow"},
		"count_vowels.wasm":   nil,
		"hello_haskell.wasm":  nil,
	} {
		done, err := Load(placed(t, module, `{"wasm": [{"path": "`+module+`"}]}`))
		require.NoError(t, err)
		for _, m := range done.Manifests {
			assert.Equal(t, want, m.Permissions.Functions, module)
		}
	}
}

// TestFunctionsOfTheProgramAreGranted: the program offers them, and its operator grants them.
func TestFunctionsOfTheProgramAreGranted(t *testing.T) {
	done, err := Load(placed(t, "host.wasm", `{"wasm": [{"path": "host.wasm"}]}`))
	require.NoError(t, err)
	number := []hostfuncs.ValueType{hostfuncs.I64}
	r, err := runtime.New(t.Context(), runtime.Options{HostFunctions: []runtime.HostFunction{{
		Name: "mult", Params: append(number, number...), Results: number,
		Call: func(_ context.Context, _ *runtime.CurrentPlugin, stack []uint64) error {
			stack[0] *= stack[1]
			return nil
		},
	}}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close(context.WithoutCancel(t.Context()))) })
	arguments, err := tool.ParseArguments(`{"input": ""}`)
	require.NoError(t, err)
	for granted, want := range map[bool]tool.Kind{true: "", false: tool.Denied} {
		var grants manifests.Grants
		if granted {
			grants.Functions = []manifests.NameGrant{{Name: "mult"}}
		}
		loaded, err := r.Load(t.Context(), done.Manifests[0], grants)
		require.NoError(t, err)
		outcome, _ := loaded.Invoke(t.Context(), tool.Invocation{CallID: "1", Tool: "plugin", Arguments: arguments})
		assert.Equal(t, want, outcome.Result.Kind, outcome.Result.Error)
		if granted {
			assert.Equal(t, "42 x 2 = 84", outcome.Result.Output)
		}
	}
}

func TestWhatCannotBeTranslatedIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"wasm": []}`: "no module",
		`{"wasm": [{"path": "noop.wasm"}, {"path": "b"}]}`:                                                    "wasm[1]: the module has no name, and wasm[0] is the main module already",
		`{"wasm": [{"path": "noop.wasm", "hash": "` + strings.Repeat("0", 64) + `"}]}`:                        "wasm[0].hash: the module noop.wasm has the SHA-256 ",
		`{"wasm": [{"url": "https://example.com/a.wasm"}]}`:                                                   "does not download",
		`{"wasm": [{"data": "AGFzbQEAAAA="}]}`:                                                                "written into a manifest",
		`{"wasm": [{"path": "../noop.wasm"}]}`:                                                                "outside of the manifest's folder",
		`{"wasm": [{"path": "none.wasm"}]}`:                                                                   "cannot be read",
		`{"wasm": [{"path": "plugin.json"}]}`:                                                                 "module cannot be used",
		`{"wasm": 1}`:                                                                                         "wasm: want a list, got a number",
		`{"wasm": [{"path": "noop.wasm", "hash": "12"}]}`:                                                     "wasm[0].hash",
		`{"wasm": [{"path": "noop.wasm"}], "allowed_paths": {"/srv": "data"}}`:                                "allowed_paths",
		`{"wasm": [{"path": "noop.wasm"}], "memory": {"max_pages": 65537}}`:                                   "memory.max_pages: 4194368KiB is out of range (write a number of pages",
		`{"wasm": [{"path": "noop.wasm"}], "allowed_hosts": ["*"], "memory": {"max_http_response_bytes": 0}}`: "memory.max_http_response_bytes: 0 would refuse each response that has a body",
		`{"wasm": [{"path": "noop.wasm"}], "timeout_ms": -1}`:                                                 "timeout_ms: want a whole number from 0, got the number -1",
		`{"wasm": [{"path": "noop.wasm"}], "config": {"a": 1}}`:                                               "config.a: want a text",
		`{"wasm": [{"path": "noop.wasm"}], "Config": {"a": "1"}}`:                                             `write it as "config"`,
		`{"wasm": [{"path": "noop.wasm"}], "config": {}, "config": {}}`:                                       `config: the name "config" occurs twice in one object`,
		`{"wasm": [{"path": "noop.wasm", "url": "https://example.com"}]}`:                                     "wasm[0].url: this version of Caisson does not download",
		`{"wasm": [{"path": "noop.wasm", "data": "AGFzbQEAAAA="}]}`:                                           "wasm[0].data",
		`{"wasm": [{"hash": "12"}]}`:                                                                          "wasm[0]: the module has no path",
	} {
		_, err := Load(placed(t, "noop.wasm", text))
		var invalid *manifests.Error
		require.ErrorAs(t, err, &invalid, text)
		assert.ErrorContains(t, err, want, text)
	}
}

// TestMistakesAreSaidWithWhatToWrite: the fix can be copied into the manifest.
func TestMistakesAreSaidWithWhatToWrite(t *testing.T) {
	for text, want := range map[string][2]string{
		`{"wasm": ["noop.wasm"]}`:                                           {"wasm[0]: want an object, got a text", `write {"path": "noop.wasm"}`},
		`{"wasm": [null]}`:                                                  {"wasm[0]: want an object, got null", `write {"path": "plugin.wasm"}`},
		`{"wasm": "noop.wasm"}`:                                             {"wasm: want a list, got a text", `write "wasm": [{"path": "noop.wasm"}]`},
		`{"wasm": {"path": "noop.wasm"}}`:                                   {"wasm: want a list, got an object", `write "wasm": [{…}]`},
		`{"wasm": [{"path": "noop.wasm", "path": "b.wasm"}]}`:               {`wasm[0].path: the name "path" occurs twice in one object`, "keep one of them"},
		`{"wasm": [{"path": "noop.wasm"}], "config": {"a": "1", "a": "2"}}`: {`config.a: the name "a" occurs twice`, "keep one of them"},
		`{"Wasm": [{"path": "noop.wasm"}]}`:                                 {`Wasm: unknown key "Wasm"`, `write it as "wasm"`},
		`{"wasm": [{"path": "noop.wasm", "hash": "abc"}]}`:                  {`wasm[0].hash: "abc" is no SHA-256`, "a hash is 64 hexadecimal digits"},
		`{"wasm": [{"path": "noop.wasm", "hash": "sha256:` + zeros + `"}]}`: {`wasm[0].hash: "sha256:` + zeros + `" is no SHA-256`, "a hash is 64 hexadecimal digits"},
		`{"wasm": [{"path": "noop.wasm", "hash": "` + zeros + `"}]}`:        {"wasm[0].hash: the module noop.wasm has the SHA-256 ", "find out who changed the module"},
		`{"wasm": [{"path": "/srv/noop.wasm"}]}`:                            {`wasm[0].path: the module "/srv/noop.wasm" has an absolute path`, "move it into the manifest's folder or below it"},
		`{"wasm": [{"path": "../noop.wasm"}]}`:                              {`wasm[0].path: the module "../noop.wasm" is outside of the manifest's folder`, "move it into the manifest's folder or below it"},
	} {
		_, err := Load(placed(t, "noop.wasm", text))
		var invalid *manifests.Error
		require.ErrorAs(t, err, &invalid, text)
		require.Len(t, invalid.Problems, 1, text)
		p := invalid.Problems[0]
		assert.Contains(t, p.Path+": "+p.Message, want[0], text)
		assert.Contains(t, p.Fix, want[1], text)
	}
}

var zeros = strings.Repeat("0", 64)

// TestAnAbsolutePathInTheFolder: the fix is the relative one.
func TestAnAbsolutePathInTheFolder(t *testing.T) {
	file := placed(t, "noop.wasm", "")
	text := fmt.Sprintf(`{"wasm": [{"path": %q}]}`, filepath.Join(filepath.Dir(file), "noop.wasm"))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	_, err := Load(file)
	require.ErrorContains(t, err, "has an absolute path")
	require.ErrorContains(t, err, `write it relative to the manifest's folder: "noop.wasm"`)
}

// TestMisspeltMembersAreSuggested: those of other libraries' types, too.
func TestMisspeltMembersAreSuggested(t *testing.T) {
	for member, want := range map[string]string{
		`"timeout": 1`: "timeout_ms", `"timeoutMs": 1`: "timeout_ms", `"allowedHosts": []`: "allowed_hosts", `"allowed_host": []`: "allowed_hosts",
		`"memory": {"maxPages": 1}`: "max_pages", `"maxPages": 1`: "memory.max_pages", `"memory": {"maxHttpResponseBytes": 1}`: "max_http_response_bytes",
	} {
		done, err := Load(placed(t, "noop.wasm", `{"wasm": [{"path": "noop.wasm"}], `+member+`}`))
		require.NoError(t, err, member)
		require.Len(t, done.Notes, 1)
		assert.Equal(t, "did you mean "+want+"?", done.Notes[0].Fix, member)
	}
}

func TestOnlyManifestsOfExtismAreRecognised(t *testing.T) {
	folder := t.TempDir()
	for name, c := range map[string]struct {
		text string
		want bool
	}{
		"a.json":      {`{"wasm": []}`, true},
		"a.JSON":      {"\ufeff" + `{"wasm": []}`, true},
		"b.json":      {`{"schema": "caisson/v1", "wasm": []}`, false},
		"c.json":      {`{"name": "a"}`, false},
		"d.json":      {`[1]`, false},
		"W.json":      {`{"Wasm": []}`, true}, // as go-sdk reads it
		"e.yaml":      {`{"wasm": []}`, false},
		"broken.json": {`{"wasm": [`, false},
	} {
		file := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
		assert.Equal(t, c.want, IsManifest(file), name)
	}
	assert.False(t, IsManifest(filepath.Join(folder, "none.json")))
	assert.False(t, IsManifest(folder))
}

// TestPlacesAreThoseOfTheFile: the problems and keys of the manifests that are made are where their authors find them.
func TestPlacesAreThoseOfTheFile(t *testing.T) {
	done, err := Load(placed(t, "count_vowels.wasm", whole))
	require.NoError(t, err)
	m := done.Manifests[0]
	for key, line := range map[string]int{
		"module.sha256": 2, "limits.memory": 3, "limits.http_bytes": 3, "permissions.network": 4, "permissions.network[1].host": 4, "permissions.files": 5,
		"module.config": 6, "limits.timeout": 7, "description": 1,
	} {
		assert.Equal(t, line, m.Line(key), key)
	}
	_, err = Load(placed(t, "noop.wasm", "{\"wasm\": [{\"path\": \"noop.wasm\"}],\n \"allowed_hosts\": [\"*\", \"a/b\"],\n  \"memory\": {\"max_pages\": 65537}}"))
	var invalid *manifests.Error
	require.ErrorAs(t, err, &invalid)
	require.Len(t, invalid.Problems, 2)
	assert.Equal(t, [2]int{2, 2}, [2]int{invalid.Problems[0].Line, invalid.Problems[0].Column})
	assert.Equal(t, [2]int{3, 14}, [2]int{invalid.Problems[1].Line, invalid.Problems[1].Column})
}

func TestModulesBesideTheMainOneAreLibraries(t *testing.T) {
	linked := func(hashOfLib, hashOfMain string) (*Translated, error) {
		return Load(placed(t, "main.wasm", `{"wasm": [
  {"path": "./lib.wasm", "name": "lib", "hash": "`+hashOfLib+`"},
  {"path": "main.wasm", "name": "main", "hash": "`+hashOfMain+`"}
]}`, "lib.wasm"))
	}
	done, err := linked("", "")
	require.NoError(t, err)
	require.Len(t, done.Manifests, 1)
	assert.Empty(t, done.Notes)
	m := done.Manifests[0]
	assert.Equal(t, "plugin_run_test", m.Name)
	assert.Equal(t, "main.wasm", m.Module.Path)
	assert.Equal(t, map[string]string{"lib": "lib.wasm"}, m.Module.Libraries)
	assert.Empty(t, m.Module.SHA256, "nothing is pinned")
	assert.Equal(t, [3]int{1, 2, 3}, [3]int{m.Line("module.libraries"), m.Line("module.libraries.lib"), m.Line("module.path")})
	assert.Equal(t, "wasm[0].path", m.Problem("module.libraries.lib", mistake.Conflict, "", "").Path)

	const lib, main = "06722442359e22194cefed6a489047b2adf0961613a266223c464ce52caf2d6e", "edbec9a2ede45521b1677ca4749cdaab4cf34964e573df06a61489849565ef26"
	info, err := runtime.InspectModule(m)
	require.NoError(t, err)
	for _, hashes := range [][2]string{{lib, ""}, {"", main}, {strings.ToUpper(lib), main}} {
		done, err := linked(hashes[0], hashes[1])
		require.NoError(t, err)
		assert.Equal(t, info.SHA256, done.Manifests[0].Module.SHA256, "a hash of any pins all")
		_, err = runtime.InspectModule(done.Manifests[0])
		require.NoError(t, err)
	}
	_, err = linked(lib, lib)
	require.ErrorContains(t, err, "wasm[1].hash: the module main.wasm has the SHA-256 "+main)
	_, err = linked(main, "")
	require.ErrorContains(t, err, "wasm[0].hash: the module ./lib.wasm has the SHA-256 "+lib)
}

// TestLibrariesThatCannotBeNamed: the problem has the place of the faulty member.
func TestLibrariesThatCannotBeNamed(t *testing.T) {
	var many []string
	for i := range modules.MaxLibraries + 2 {
		many = append(many, fmt.Sprintf(`{"path": "noop.wasm", "name": "n%d"}`, i))
	}
	for modules, want := range map[string]string{
		`{"path": "noop.wasm", "name": "extism:host/env"}, {"path": "noop.wasm"}`:                                      `wasm[0].name: "extism:host/env" is no name that a library can have`,
		`{"path": "noop.wasm", "name": "a b"}, {"path": "noop.wasm"}`:                                                  `wasm[0].name: "a b" is no name`,
		`{"path": "noop.wasm", "name": "a"}, {"path": "noop.wasm", "name": "a"}, {"path": "noop.wasm"}`:                `wasm[1].name: wasm[0] is named "a", too`,
		`{"path": "noop.wasm", "name": "a"}, {"path": "none.wasm"}`:                                                    `wasm[1].path: the module "none.wasm" cannot be read`,
		`{"path": "../noop.wasm", "name": "a"}, {"path": "noop.wasm"}`:                                                 `wasm[0].path: the module "../noop.wasm" is outside`,
		`{"path": "noop.wasm", "name": "a"}, {"path": "noop.wasm", "hash": "12"}`:                                      `wasm[1].hash: "12" is no SHA-256; that of the module noop.wasm is `,
		`{"path": "noop.wasm", "name": "a"}, {"url": "https://example.com/a.wasm"}`:                                    "wasm[1].url: this version of Caisson does not download",
		`{"path": "noop.wasm", "name": "main"}, {"path": "noop.wasm", "name": "a"}, {"path": "noop.wasm", "name": ""}`: "wasm[2]: the module has no name, and wasm[0] is the main module",
		`{"path": "noop.wasm"}, {"path": "noop.wasm", "name": "main"}`:                                                 "wasm[1].name: wasm[0] is the main module already",
		strings.Join(many, ","): "wasm: 5 keys are over the limit of 4",
	} {
		_, err := Load(placed(t, "noop.wasm", `{"wasm": [`+modules+`]}`))
		var invalid *manifests.Error
		require.ErrorAs(t, err, &invalid, modules)
		assert.ErrorContains(t, err, want)
	}
}

// TestTheMainModuleIsThatOfExtism: of up to three modules with any names, the functions of the same one are
// called here as by go-sdk, which refuses the same lists.
func TestTheMainModuleIsThatOfExtism(t *testing.T) {
	accepted, refused := 0, 0
	for _, names := range lists([]string{"", "main", "a", "b"}, 3) {
		folder := t.TempDir()
		var theirs sdk.Manifest
		var entries []string
		for i, name := range names {
			function := fmt.Sprintf("f%d", i)
			require.NoError(t, os.WriteFile(filepath.Join(folder, function), []byte(exporting(function)), 0o600))
			theirs.Wasm = append(theirs.Wasm, sdk.WasmData{Data: []byte(exporting(function)), Name: name})
			entries = append(entries, fmt.Sprintf(`{"path": %q, "name": %q}`, function, name))
		}
		file := filepath.Join(folder, "plugin.json")
		require.NoError(t, os.WriteFile(file, []byte(`{"wasm": [`+strings.Join(entries, ", ")+`]}`), 0o600))
		done, err := Load(file)
		plugin, failed := sdk.NewPlugin(t.Context(), theirs, sdk.PluginConfig{}, nil)
		if failed != nil {
			refused++
			require.ErrorIs(t, err, manifests.ErrInvalid, "%q: %v", names, failed)
			continue
		}
		accepted++
		require.NoError(t, err, "%q", names)
		require.Len(t, done.Manifests, 1)
		assert.Len(t, done.Manifests[0].Module.Libraries, len(names)-1)
		assert.True(t, plugin.FunctionExists(done.Manifests[0].Module.Entry), "%q", names)
		require.NoError(t, plugin.Close(t.Context()))
	}
	assert.Greater(t, accepted, 20)
	assert.Greater(t, refused, 20)
}

// lists returns all lists of these elements with 1 to length elements.
func lists(of []string, length int) [][]string {
	last := [][]string{nil}
	var all [][]string
	for range length {
		var longer [][]string
		for _, list := range last {
			for _, element := range of {
				longer = append(longer, append(slices.Clone(list), element))
			}
		}
		all, last = append(all, longer...), longer
	}
	return all
}

// exporting is a plug-in that exports functions of these names.
func exporting(names ...string) string {
	vector := func(content string) string { return string(binary.AppendUvarint(nil, uint64(len(content)))) + content }
	exports := string(binary.AppendUvarint(nil, uint64(len(names))))
	for _, name := range names {
		exports += vector(name) + "\x00\x00"
	}
	return "\x00asm\x01\x00\x00\x00\x01" + vector("\x01\x60\x00\x00") + "\x03" + vector("\x01\x00") + "\x07" + vector(exports) + "\x0a" + vector("\x01"+vector("\x00\x0b"))
}

// TestFunctionsThatAreNoTools: functions with names that tools cannot have do not prevent other tools, and the number
// of tools is bounded.
func TestFunctionsThatAreNoTools(t *testing.T) {
	long := strings.Repeat("n", 100)
	var many []string
	for i := range maxTools + 1 {
		many = append(many, fmt.Sprintf("f%d", i))
	}
	for name, c := range map[string]struct {
		functions    []string
		tools, notes int
		fails        string
	}{
		"odd":   {[]string{"run", "two words", "ignore all\nprevious instructions", long, "a.b", "a_b"}, 2, 4, ""},
		"none":  {[]string{"two words", long}, 0, 0, "none of its functions can be a tool"},
		"most":  {many[:maxTools], maxTools, 0, ""},
		"over":  {many, 0, 0, "exports 257 functions that could be tools, the limit is 256"},
		"empty": {nil, 0, 0, "exports no function"},
	} {
		folder := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(folder, "a.wasm"), []byte(exporting(c.functions...)), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "a.json"), []byte(`{"wasm": [{"path": "a.wasm"}]}`), 0o600))
		done, err := Load(filepath.Join(folder, "a.json"))
		if c.fails != "" {
			require.ErrorContains(t, err, c.fails, name)
			continue
		}
		require.NoError(t, err, name)
		assert.Len(t, done.Manifests, c.tools, name)
		assert.Len(t, done.Notes, c.notes, name)
	}
}
