package runtime

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/extism"
	"github.com/caisson-run/caisson/runtime/internal/permit"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
	"github.com/caisson-run/caisson/runtime/internal/wasm"
	"github.com/caisson-run/caisson/tool"
)

// plugin returns a tool that is one of the plug-ins that github.com/extism/go-sdk is tested with. Its
// one parameter, input, is the plug-in's input.
func plugin(t *testing.T, r *Runtime, name, module string) *Tool {
	t.Helper()
	return pluginWith(t, r, name, module, "", manifests.Grants{})
}

// pluginWith is like plugin, with more in its manifest, and grants.
func pluginWith(t *testing.T, r *Runtime, name, module, more string, grants manifests.Grants) *Tool {
	t.Helper()
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/extism/go-sdk").Output()
	require.NoError(t, err)
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "wasm", name))
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plugin.wasm"), source, 0o600))
	text := "schema: caisson/v1\nname: plugin\ndescription: A plug-in.\nparameters: {properties: {input: {type: string}}}\n" +
		`module: {path: plugin.wasm, abi: extism, stdin: "{input}", ` + module + "}\n" + more
	m, err := manifests.Parse(filepath.Join(dir, "tool.yaml"), []byte(text))
	require.NoError(t, err)
	return load(t, r, m, grants)
}

func callPlugin(t *testing.T, loaded *Tool, input string) tool.Outcome {
	t.Helper()
	text, err := json.Marshal(input)
	require.NoError(t, err)
	outcome, _ := loaded.Invoke(t.Context(), tool.Invocation{CallID: "1", Tool: "plugin", Arguments: tool.Arguments{}.With("input", text)})
	return outcome
}

// TestPluginsRun: each function that the kernel and the host offer, in plug-ins of several languages.
// Each call gets the same answer, whatever those before it left.
func TestPluginsRun(t *testing.T) {
	r := newRuntime(t, Options{})
	type wanted struct {
		output, failure string
		kind            tool.Kind
		log             string
	}
	for name, c := range map[string]struct {
		file, module, input string
		want                wanted
	}{
		"blocks":                   {"alloc.wasm", "entry: run_test", "", wanted{}},
		"configuration":            {"config.wasm", "entry: run_test, config: {thing: hello}", "", wanted{output: `{"config": "hello"}`}},
		"input, output, a command": {"count_vowels_std.wasm", "entry: _start, stdout: text", "hello", wanted{output: `{"count": 2, "config": "<unset by host>", "a": "this is var a"}`}},
		"variables":                {"var.wasm", "entry: run_test, stdout: text", "", wanted{output: "a: 0"}},
		"exit":                     {"exit.wasm", "entry: _start, config: {code: '0'}", "", wanted{}},
		"exit with a code":         {"exit.wasm", "entry: _start, config: {code: '3'}", "", wanted{failure: "the tool exited with code 3", kind: tool.ToolFailed}},
		"an error":                 {"fail.wasm", "entry: run_test", "", wanted{failure: "Some error message", kind: tool.ToolFailed}},
		"Haskell":                  {"hello_haskell.wasm", "entry: testing, config: {greeting: Howdy}", "you", wanted{output: "Howdy, you"}},
		"the log":                  {"log.wasm", "entry: run_test", "", wanted{log: "info: this is an info log\nwarn: this is a warning log\nerror: this is an error log\n"}},
		"standard output":          {"println.wasm", "entry: run_test", "you", wanted{log: "this was printed from the plugin you\n"}},
		"nothing":                  {"noop.wasm", "entry: run_test", "you", wanted{}},
		"no network": {"http.wasm", "entry: run_test", "", wanted{kind: tool.Denied,
			failure: "denied: network https://jsonplaceholder.typicode.com/todos/1: the manifest does not ask for jsonplaceholder.typicode.com, and no grant covers it"}},
	} {
		t.Run(name, func(t *testing.T) {
			loaded := plugin(t, r, c.file, c.module)
			for range 3 {
				o := callPlugin(t, loaded, c.input)
				if c.want.output != "" && json.Valid([]byte(c.want.output)) {
					assert.JSONEq(t, c.want.output, o.Result.Output)
				} else {
					assert.Equal(t, c.want.output, o.Result.Output)
				}
				assert.Equal(t, c.want.failure, o.Result.Error)
				assert.Equal(t, c.want.kind, o.Result.Kind)
				assert.Equal(t, c.want.log, o.Log)
			}
		})
	}
}

// TestPluginsNeedWhatIsOffered: a plug-in whose imports or whose entry are missing is refused before
// it is compiled, and the message says which.
func TestPluginsNeedWhatIsOffered(t *testing.T) {
	r := newRuntime(t, Options{})
	for want, c := range map[string][2]string{
		`imports the function "mult" of "extism:host/user"`:                             {"host.wasm", "entry: run_test"},
		`offer them with Options.HostFunctions in Go`:                                   {"host_memory.wasm", "entry: run_test"},
		`imports the function "capitalize" of "lib"`:                                    {"main.wasm", "entry: run_test"},
		`exports no function "call"`:                                                    {"noop.wasm", ""},
		`exports "realloc" with parameters or with results other than one whole number`: {"noop.wasm", "entry: realloc"},
		`write one of its functions as entry: "count_vowels"`:                           {"count_vowels.wasm", "entry: vowels"},
		`write one of its functions as entry: "try_write", "try_read"`:                  {"read_write.wasm", "entry: try_rite"},
		`write one of its functions as entry: "testing"`:                                {"hello_haskell.wasm", "entry: nothing"}, // not _initialize
	} {
		err := plugin(t, r, c[0], c[1]).Prepare(t.Context())
		require.ErrorIs(t, err, ErrModule)
		assert.ErrorContains(t, err, want)
	}
}

// TestAttackPluginTellsASecret: a plug-in's error, output and log hold no secret, however it got the secret.
func TestAttackPluginTellsASecret(t *testing.T) {
	const asks = "permissions: {network: [{host: api.example.com}], secrets: [{name: KEY, host: api.example.com, header: X-Key}]}\n"
	source, err := os.ReadFile("../internal/plugins/c/plugin.wasm")
	require.NoError(t, err)
	for _, entry := range []string{"fail", "echo", "log_levels"} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "plugin.wasm"), source, 0o600))
		text := "schema: caisson/v1\nname: plugin\ndescription: A plug-in.\nparameters: {properties: {input: {type: string}}}\n" +
			`module: {path: plugin.wasm, abi: extism, stdin: "{input}", stdout: text, entry: ` + entry + "}\n"
		for more, holds := range map[string]bool{asks: false, "": true} { // control: a tool without the secret
			m, err := manifests.Parse(filepath.Join(dir, "tool.yaml"), []byte(text+more))
			require.NoError(t, err)
			r := newRuntime(t, Options{LookupEnv: func(string) (string, bool) { return secretValue, true }})
			loaded := load(t, r, m, manifests.Grants{Secrets: []manifests.SecretGrant{{Name: "KEY", Host: "api.example.com", Schemes: []string{"https"}, From: manifests.SecretSource{Env: "KEY"}}}})
			o := callPlugin(t, loaded, "the key is "+secretValue)
			told := o.Result.Error + o.Result.Output + o.Log
			assert.Contains(t, told, "the key is ", entry)
			assert.Equal(t, holds, strings.Contains(told, secretValue), "%s: %s", entry, told)
		}
	}
}

// TestPluginsWithoutWASIHaveNoFiles: only for a plug-in that cannot use files, and is granted none, none are
// opened.
func TestPluginsWithoutWASIHaveNoFiles(t *testing.T) {
	from := func(modules ...string) *wasm.Module {
		description := &wasm.Module{}
		for _, module := range modules {
			description.Imports = append(description.Imports, wasm.Import{Module: module, Name: "f"})
		}
		return description
	}
	for name, c := range map[string]struct {
		imports   *wasm.Module
		mounts    []files.Mount
		libraries map[string]string
		want      bool
	}{
		"nothing":       {imports: from()},
		"the kernel":    {imports: from(extism.Module, "caisson:context@1", "extism:host/user")},
		"WASI":          {imports: from(extism.Module, wasi.ModuleName), want: true},
		"WASI first":    {imports: from(wasi.ModuleName, extism.Module), want: true},
		"a directory":   {imports: from(extism.Module), mounts: make([]files.Mount, 1), want: true},
		"a linked part": {imports: from(extism.Module), libraries: map[string]string{"lib": "lib.wasm"}, want: true},
	} {
		guest := &Tool{manifest: &manifests.Manifest{Module: modules.Module{Libraries: c.libraries}}, permit: &permit.Permit{Mounts: c.mounts}}
		assert.Equal(t, c.want, guest.mayUseFiles(c.imports), name)
	}
}

// callingWithoutEnd is a plug-in that calls a function of the host in a loop, with zeros.
func callingWithoutEnd(f hostfuncs.Function) string {
	params, zeros := "", ""
	for _, p := range f.Params {
		params += string([]byte{byte(p)})
		zeros += map[hostfuncs.ValueType]string{hostfuncs.I32: "\x41\x00", hostfuncs.I64: "\x42\x00"}[p]
	}
	results, drops := "", strings.Repeat("\x1a", len(f.Results))
	for _, r := range f.Results {
		results += string([]byte{byte(r)})
	}
	body := "\x00\x03\x40" + zeros + "\x10\x00" + drops + "\x0c\x00\x0b\x0b" // loop { call 0; br 0 }
	return magic + section(1, "\x02\x60"+vector(params)+vector(results)+"\x60\x00\x00") + section(2, "\x01"+vector(f.Module)+vector(f.Name)+"\x00\x00") +
		section(3, "\x01\x01") + section(7, "\x01"+vector("call")+"\x00\x01") + section(10, "\x01"+vector(body))
}

// TestAttackEndlessCallsOfEachFunction: a loop around any function of Extism's ends at the deadline, unless the
// function ends the call because of its arguments, or the call runs out of a resource.
func TestAttackEndlessCallsOfEachFunction(t *testing.T) {
	r := newRuntime(t, Options{})
	atDeadline := 0
	for _, f := range extism.Offered() {
		loaded := load(t, r, linkedIn(t, t.TempDir(), callingWithoutEnd(f), nil, "limits: {timeout: 50ms}\n"), manifests.Grants{})
		require.NoError(t, loaded.Prepare(t.Context()), f.Name)
		outcome, err := invoke(t, loaded, "{}")
		require.Error(t, err, f.Name)
		assert.Less(t, outcome.Usage.Wall, time.Second, f.Name)
		assert.Contains(t, []tool.Kind{tool.Deadline, tool.Trap, tool.ToolFailed}, outcome.Result.Kind, "%s: %s", f.Name, outcome.Result.Error)
		if outcome.Result.Kind == tool.Deadline {
			atDeadline++
		}
	}
	assert.GreaterOrEqual(t, atDeadline, 20, "most functions take zeros")
}
