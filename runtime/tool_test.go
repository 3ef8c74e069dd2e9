package runtime

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// TestEveryEndHasItsKind: the host knows how a guest ended, whatever it prints.
func TestEveryEndHasItsKind(t *testing.T) {
	r := newRuntime(t, Options{})
	lie := `{\"success\":false,\"error\":\"denied\",\"kind\":\"internal\"}`
	for _, c := range []struct {
		name, manifest, arguments string
		kind                      tool.Kind
		says                      string
	}{
		{name: "returns", arguments: `{"do":"print","text":"fine"}`},
		{name: "exits with 0", arguments: `{"do":"exit","text":"fine"}`},
		{name: "exits with 3", arguments: `{"do":"exit","code":3}`, kind: tool.ToolFailed, says: "code 3"},
		{name: "claims success and exits with 1", arguments: `{"do":"exit","code":1,"text":"{\"success\":true}"}`, kind: tool.ToolFailed, says: "code 1"},
		{name: "reports failure", arguments: `{"do":"print","text":"{\"success\":false,\"error\":\"no luck\"}"}`, kind: tool.ToolFailed, says: "no luck"},
		{name: "reports failure and no reason", arguments: `{"do":"print","text":"{\"success\":false}"}`, kind: tool.ToolFailed, says: "did not say why"},
		{name: "claims another kind", arguments: `{"do":"print","text":"` + lie + `"}`, kind: tool.ToolFailed, says: "denied"},
		{name: "panics", arguments: `{"do":"panic","text":"oh"}`, kind: tool.ToolFailed, says: "code 2"},
		{name: "loops", manifest: "limits: {timeout: 200ms}", arguments: `{"do":"spin"}`, kind: tool.Deadline, says: "200ms"},
		{name: "sleeps", manifest: "limits: {timeout: 200ms}", arguments: `{"do":"sleep","millis":60000}`, kind: tool.Deadline, says: "200ms"},
		{name: "allocates within its limit", manifest: "limits: {memory: 64MiB}", arguments: `{"do":"allocate","mib":16}`},
		{name: "allocates over its limit", manifest: "limits: {memory: 64MiB}", arguments: `{"do":"allocate","mib":100}`, kind: tool.Memory, says: "64MiB"},
		{name: "starts over its limit", manifest: "limits: {memory: 1MiB}", arguments: `{}`, kind: tool.Memory, says: "1MiB"},
		{name: "runs on enough fuel", manifest: "limits: {fuel: 1000000000}", arguments: `{"do":"print","text":"fine"}`},
		{name: "runs out of fuel", manifest: "limits: {fuel: 1000000}", arguments: `{"do":"spin"}`, kind: tool.Fuel, says: "1000000 instructions"},
		{name: "prints up to its limit", manifest: "limits: {output: 1KiB}", arguments: `{"do":"print","text":"0123456789abcdef","times":64}`},
		{name: "prints over its limit", manifest: "limits: {output: 1KiB}", arguments: `{"do":"print","text":"0123456789abcdef","times":65}`, kind: tool.Output, says: "1KiB"},
		{name: "prints without end", arguments: `{"do":"print","text":"0123456789abcdef","times":2000000000}`, kind: tool.Output, says: "256KiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			guest := load(t, r, manifest(t, probe, c.manifest), manifests.Grants{})
			require.NoError(t, guest.Prepare(t.Context()))
			start := time.Now()
			outcome, err := invoke(t, guest, c.arguments)
			assert.Less(t, time.Since(start), 20*time.Second)
			assert.Equal(t, c.kind, outcome.Result.Kind, outcome.Result.Error)
			assert.Equal(t, c.kind == "", outcome.Result.Success)
			assert.Contains(t, outcome.Result.Error, c.says)
			if c.kind == "" || c.kind == tool.ToolFailed {
				assert.NoError(t, err, "the tool ended by itself")
			} else {
				assert.ErrorIs(t, err, c.kind)
			}
			if c.name != "starts over its limit" {
				assert.Positive(t, outcome.Usage.MemoryBytes)
				assert.Positive(t, outcome.Usage.Wall)
			}
			assert.LessOrEqual(t, outcome.Usage.MemoryBytes, int64(guest.Limits().Memory))
			assert.Zero(t, outcome.Usage.Compile, "it was compiled before the call")
			assert.NotNil(t, guest.Manifest())
		})
	}
}

// TestCompileTimeIsApart: the usage of a call that waits for its module has the time of the wait separately.
func TestCompileTimeIsApart(t *testing.T) {
	guest := load(t, newRuntime(t, Options{}), manifest(t, probe, ""), manifests.Grants{})
	began := time.Now()
	first, err := invoke(t, guest, `{}`)
	require.NoError(t, err)
	assert.Positive(t, first.Usage.Compile)
	assert.LessOrEqual(t, first.Usage.Compile+first.Usage.Wall, time.Since(began))
	second, err := invoke(t, guest, `{}`)
	require.NoError(t, err)
	assert.Zero(t, second.Usage.Compile)

	broken := load(t, newRuntime(t, Options{}), manifest(t, probe, ""), manifests.Grants{})
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(broken.Manifest().File), broken.Manifest().Module.Path), []byte("nothing"), 0o600))
	refused, err := invoke(t, broken, `{}`)
	require.Error(t, err)
	assert.Positive(t, refused.Usage.Compile)
}

func TestCallersContextEndsTheCall(t *testing.T) {
	guest := load(t, newRuntime(t, Options{}), manifest(t, probe, "limits: {timeout: 10s}"), manifests.Grants{})
	require.NoError(t, guest.Prepare(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	outcome, err := guest.Invoke(ctx, invocation(t, `{"do":"spin"}`, nil))
	assert.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, tool.Cancelled, outcome.Result.Kind)

	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	outcome, err = guest.Invoke(ctx, invocation(t, `{"do":"sleep","millis":60000}`, nil))
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, tool.Deadline, outcome.Result.Kind)
}

func TestLogIsCappedAndKeptApart(t *testing.T) {
	guest := load(t, newRuntime(t, Options{}), manifest(t, probe, "limits: {stderr: 1KiB}"), manifests.Grants{})
	outcome := mustInvoke(t, guest, `{"do":"log","text":"a secret of the log"}`)
	assert.Equal(t, "a secret of the log", outcome.Log)
	assert.NotContains(t, outcome.Result.Output+string(outcome.Result.Data), "secret")
	outcome = mustInvoke(t, guest, `{"do":"log","text":"0123456789abcdef","times":1000000}`)
	assert.Less(t, len(outcome.Log), 3200)
	assert.Contains(t, outcome.Log, "\n[cut after 1KiB: 15996928 bytes left out]\n")
	outcome = mustInvoke(t, guest, `{"do":"log","text":"\n[cut after 64KiB]\n\n[trap at]\n"}`)
	assert.Equal(t, "\n\\[cut after 64KiB]\n\n\\[trap at]\n", outcome.Log, "which the host did not write")
}

type echoed struct {
	Args        []string `json:"args"`
	Environment []string `json:"environment"`
	Stdin       string   `json:"stdin"`
}

func TestStandardInput(t *testing.T) {
	r := newRuntime(t, Options{})
	const parameters = "parameters: {type: object, properties: {text: {}, n: {}}}\n"
	for _, c := range []struct{ name, stdin, arguments, want string }{
		{"the arguments object", "arguments", `{"text":"x", "n":1.50}`, `{"text":"x","n":1.50}`},
		{"no arguments", "arguments", `{}`, `{}`},
		{"a string as it is", "'{text}'", `{"text":"line\n"}`, "line\n"},
		{"a number as it was written", "'{n}'", `{"n":1.50}`, "1.50"},
		{"an object", "'{n}'", `{"n":{"b":1}}`, `{"b":1}`},
		{"an absent parameter", "'{text}'", `{}`, ""},
		{"nothing", "none", `{"text":"x"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			guest := load(t, r, manifest(t, probe, parameters+"module: {path: guest.wasm, stdin: "+c.stdin+"}"), manifests.Grants{})
			outcome := mustInvoke(t, guest, c.arguments)
			assert.Equal(t, c.want, decode[echoed](t, outcome.Result.Data).Stdin)
		})
	}
}

func TestArgumentTemplates(t *testing.T) {
	guest := load(t, newRuntime(t, Options{}), manifest(t, probe, `
module: {path: guest.wasm, stdin: none, args: [-v, "{name}", "--size={size}", "{tags}", --, "{rest}"]}
parameters: {type: object, properties: {name: {type: string}, size: {}, tags: {type: array}, rest: {type: string}}, required: [size]}
`), manifests.Grants{})
	outcome := mustInvoke(t, guest, `{"name":"x y","size":1.50,"tags":["a",true],"rest":"-rf"}`)
	assert.Equal(t, []string{"-v", "x y", "--size=1.50", "a", "true", "--", "-rf"}, decode[echoed](t, outcome.Result.Data).Args)
	outcome = mustInvoke(t, guest, `{"size":2}`)
	assert.Equal(t, []string{"-v", "--size=2", "--"}, decode[echoed](t, outcome.Result.Data).Args)
	outcome, err := invoke(t, guest, `{"size":2,"name":"--delete-all"}`)
	require.ErrorIs(t, err, tool.InvalidArguments, "a value cannot become an option")
	assert.Contains(t, outcome.Result.Error, "name")
	_, err = invoke(t, guest, `{"size":2,"name":"a\u0000b"}`)
	require.ErrorIs(t, err, tool.InvalidArguments)
}

func TestResultSchema(t *testing.T) {
	guest := load(t, newRuntime(t, Options{}), manifest(t, probe, "result: {type: object, required: [n]}"), manifests.Grants{})
	outcome := mustInvoke(t, guest, `{"do":"print","text":"{\"n\":1}"}`)
	assert.True(t, outcome.Result.Success)
	outcome = mustInvoke(t, guest, `{"do":"print","text":"{\"m\":1}"}`)
	assert.Equal(t, tool.ToolFailed, outcome.Result.Kind)
	assert.Contains(t, outcome.Result.Error, "result schema")
}

func TestPinIsCheckedBeforeAnythingElse(t *testing.T) {
	r := newRuntime(t, Options{})
	dir := t.TempDir()
	// Not a module at all: only a check of the pin can refuse it with ErrDigest.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "guest.wasm"), []byte("no module"), 0o600))
	pinned := manifestIn(t, dir, "guest", "module: {path: guest.wasm, sha256: "+strings.Repeat("ab", 32)+"}")
	guest := load(t, r, pinned, manifests.Grants{})
	require.ErrorIs(t, guest.Prepare(t.Context()), ErrDigest)
	outcome, err := invoke(t, guest, `{}`)
	require.ErrorIs(t, err, tool.Internal)
	assert.Equal(t, "internal error (id the-call)", outcome.Result.Error, "the model learns an id and nothing else")
	_, err = InspectModule(pinned)
	require.ErrorIs(t, err, ErrDigest)

	unpinned := load(t, r, manifestIn(t, dir, "guest", ""), manifests.Grants{})
	require.ErrorIs(t, unpinned.Prepare(t.Context()), ErrModule)

	good := manifest(t, probe, "")
	info := inspect(t, good)
	assert.Contains(t, info.Imports, "wasi_snapshot_preview1.fd_write")
	pinned = manifestIn(t, filepath.Dir(good.File), "guest", "module: {path: guest.wasm, sha256: "+info.SHA256+"}")
	require.NoError(t, load(t, r, pinned, manifests.Grants{}).Prepare(t.Context()))
}

func TestModulesThatAreRefused(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside.wasm")
	require.NoError(t, os.WriteFile(outside, []byte(magic), 0o600))
	holds := func(module string) func(string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, "guest.wasm"), []byte(module), 0o600) }
	}
	for name, prepare := range map[string]func(dir string) error{
		"absent":             func(string) error { return nil },
		"a directory":        func(dir string) error { return os.Mkdir(filepath.Join(dir, "guest.wasm"), 0o700) },
		"a link that leaves": func(dir string) error { return os.Symlink(outside, filepath.Join(dir, "guest.wasm")) },
		"no start function":  holds(magic),
		"a foreign type": holds(magic + section(1, "\x01\x60\x00\x00") + section(2, "\x01"+vector("wasi_snapshot_preview1")+vector("fd_write")+"\x00\x00") +
			section(7, "\x01"+vector("_start")+"\x00\x00")),
		"a foreign import": holds(magic + section(1, "\x01\x60\x00\x00") + section(2, "\x01"+vector("env")+vector("f")+"\x00\x00") +
			section(7, "\x01"+vector("_start")+"\x00\x00")),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, prepare(dir))
			m := manifestIn(t, dir, "guest", "")
			_, err := InspectModule(m)
			assert.ErrorIs(t, err, ErrModule)
			assert.ErrorIs(t, load(t, newRuntime(t, Options{}), m, manifests.Grants{}).Prepare(t.Context()), ErrModule)
		})
	}
}

func TestLimitsAreRequestsUnderACeiling(t *testing.T) {
	m := manifest(t, probe, "limits: {timeout: 20s, memory: 32MiB, output: 1KiB}")
	limits := load(t, newRuntime(t, Options{}), m, manifests.Grants{}).Limits()
	assert.Equal(t, Limits{Timeout: 10 * time.Second, Memory: 32 << 20, Output: 1 << 10, Stderr: 64 << 10, OpenFiles: 64, DiskBytes: 64 << 20, HTTPCalls: 20, HTTPBytes: 8 << 20}, limits)
	limits = load(t, newRuntime(t, Options{Limits: Limits{Timeout: time.Minute, Memory: 16 << 20}}), m, manifests.Grants{}).Limits()
	assert.Equal(t, 20*time.Second, limits.Timeout)
	assert.EqualValues(t, 16<<20, limits.Memory)
	for _, c := range []struct{ asked, ceiling, want int64 }{{0, 0, 0}, {5, 0, 5}, {0, 7, 7}, {5, 7, 5}, {7, 5, 5}} {
		assert.Equal(t, c.want, effective(Limits{Fuel: c.ceiling}, manifests.Limits{Fuel: c.asked}).Fuel)
	}
	_, err := New(t.Context(), Options{Limits: Limits{Timeout: -1}})
	assert.ErrorContains(t, err, "negative")
	_, err = New(t.Context(), Options{Limits: Limits{Memory: 4 << 30}})
	assert.ErrorContains(t, err, "the memory limit is over 2GiB, the most that a tool may have: 4GiB")
}

func TestClosedRuntime(t *testing.T) {
	r, err := New(t.Context(), Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	require.NoError(t, err)
	guest := load(t, r, manifest(t, probe, ""), manifests.Grants{})
	require.NoError(t, r.Close(t.Context()))
	require.NoError(t, r.Close(t.Context()))
	_, err = invoke(t, guest, `{}`)
	assert.ErrorIs(t, err, tool.Internal)
}

// TestThirdPartyProgram runs programs that know nothing of Caisson, txtar-c and txtar-x
// of rogpeppe/go-internal, as tools with nothing but a manifest.
func TestThirdPartyProgram(t *testing.T) {
	r := newRuntime(t, Options{})
	project := t.TempDir()
	thirdParty := func(program, manifest string, access manifests.Access, grants ...manifests.FileGrant) *Tool {
		dir := t.TempDir()
		require.NoError(t, guests.Build(t.Context(), root, "github.com/rogpeppe/go-internal/cmd/"+program, filepath.Join(dir, "guest.wasm")))
		return load(t, r, manifestIn(t, dir, "guest", manifest+"\npermissions: {files: [{path: /project, access: "+string(access)+"}]}"), manifests.Grants{Files: grants})
	}
	const unpack = `
module: {path: guest.wasm, args: [-C, "/project/{folder}"], stdin: "{archive}", stdout: text}
parameters: {type: object, properties: {folder: {type: string}, archive: {type: string}}, required: [folder, archive]}`
	const pack = `
module: {path: guest.wasm, args: ["/project/{folder}"], stdin: none, stdout: text}
parameters: {type: object, properties: {folder: {type: string}}, required: [folder]}`
	writable := manifests.GrantDirectory("/project", project, manifests.AccessReadWrite)

	const archive = `-- docs/one.txt --\none\n-- two.txt --\ntwo\n`
	outcome := mustInvoke(t, thirdParty("txtar-x", unpack, manifests.AccessReadWrite, writable), `{"folder":"new","archive":"`+archive+`"}`)
	require.True(t, outcome.Result.Success, outcome.Log)
	content, err := os.ReadFile(filepath.Join(project, "new", "docs", "one.txt"))
	require.NoError(t, err)
	assert.Equal(t, "one\n", string(content))

	packer := thirdParty("txtar-c", pack, manifests.AccessRead, writable)
	outcome = mustInvoke(t, packer, `{"folder":"new"}`)
	assert.Equal(t, strings.ReplaceAll(archive, `\n`, "\n"), outcome.Result.Output)

	outcome, err = invoke(t, packer, `{"folder":"../etc"}`)
	require.ErrorIs(t, err, tool.Denied)
	assert.Equal(t, "/etc", outcome.Denials[0].Value)
	assert.NotEmpty(t, outcome.Log, "its output to stderr is for people")

	outcome = mustInvoke(t, packer, `{"folder":"missing"}`)
	assert.Equal(t, tool.ToolFailed, outcome.Result.Kind)
	assert.Contains(t, outcome.Result.Error, "exited with code")
}
