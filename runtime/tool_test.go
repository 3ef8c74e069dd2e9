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
	"github.com/caisson-run/caisson/internal/modules"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
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
				assert.NoError(t, err, "the tool came to an end of its own")
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

// TestCompileTimeIsApart: a call that waits for its module says how long, beside its own time.
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

// TestWhatDecidesTheKind: several things can have happened to a guest that failed.
func TestWhatDecidesTheKind(t *testing.T) {
	guest := load(t, newRuntime(t, Options{}), manifest(t, probe, ""), manifests.Grants{})
	denial := []tool.Denial{{Permission: "files", Value: "/etc/x.conf", Rule: "no"}}
	probed := []tool.Denial{{Permission: "files", Value: "/pyvenv.cfg", Rule: "no", Note: true}}
	const report = `{"success":false,"error":"no such city; try Oslo"}`
	const blames = `{"success":false,"error":"could not read x.conf","data":1}`
	refused := engine.Usage{MemoryRefused: 1 << 40}
	trap := &engine.Error{Op: "run", Kind: engine.ErrTrap, Reason: "unreachable", Trace: "main.crash()"}
	for _, c := range []struct {
		name    string
		used    engine.Usage
		err     error
		denials []tool.Denial
		stdout  string
		stderr  string
		want    tool.Kind
	}{
		{"exit", engine.Usage{}, &wasi.ExitError{Code: 1}, nil, "", "", tool.ToolFailed},
		{"exit for want of memory", refused, &wasi.ExitError{Code: 1}, nil, "half an outp", "", tool.Memory},
		{"exit with a report", refused, &wasi.ExitError{Code: 1}, nil, report, "", tool.ToolFailed},
		{"exit after a denial", refused, &wasi.ExitError{Code: 1}, denial, "", "", tool.Denied},
		{"report after a denial", engine.Usage{}, nil, denial, report, "", tool.ToolFailed},
		{"report that names what was denied", engine.Usage{}, nil, denial, blames, "", tool.Denied},
		{"report that names part of it", engine.Usage{}, nil, denial, `{"success":false,"error":"max.conf"}`, "", tool.ToolFailed},
		{"report without a reason", engine.Usage{}, nil, denial, `{"success":false}`, "", tool.Denied},
		{"output that names what was denied", engine.Usage{}, &wasi.ExitError{Code: 1}, denial, "open /etc/x.conf", "bye", tool.ToolFailed},
		{"malformed result after a denial", engine.Usage{}, &wasi.ExitError{Code: 1}, denial, `{"success":true`, "", tool.ToolFailed},
		{"words after a denial", engine.Usage{}, &wasi.ExitError{Code: 1}, denial, "", "near selec: syntax error", tool.ToolFailed},
		{"words that name what was denied", engine.Usage{}, &wasi.ExitError{Code: 1}, denial, "", "x: etc/x.conf: not there", tool.Denied},
		{"words that tell of a denial", engine.Usage{}, &wasi.ExitError{Code: 1}, denial, "", "Operation not permitted (os error 63)", tool.Denied},
		{"words that name a probe", engine.Usage{}, &wasi.ExitError{Code: 1}, probed, "", "cannot read pyvenv.cfg", tool.ToolFailed},
		{"words after a probe", engine.Usage{}, &wasi.ExitError{Code: 1}, probed, "", "ValueError: 1", tool.ToolFailed},
		{"nothing after a probe", engine.Usage{}, &wasi.ExitError{Code: 3}, probed, "", "", tool.ToolFailed},
		{"trap with words after a denial", refused, trap, denial, "", "index out of range", tool.Memory},
		{"trap with words", engine.Usage{}, trap, nil, "", "panicked", tool.Trap},
		{"success after a denial", refused, nil, denial, `{"success":true}`, "", ""},
		{"trap", engine.Usage{}, trap, nil, "", "", tool.Trap},
		{"trap for want of memory", refused, trap, nil, "", "", tool.Memory},
		{"trap after a denial", refused, trap, denial, "", "", tool.Denied},
		{"deadline after a denial", refused, context.DeadlineExceeded, denial, "", "", tool.Deadline},
		{"overflow after a denial", refused, &wasi.OutputError{}, denial, "", "", tool.Output},
	} {
		r := &run{tool: guest, denials: c.denials, began: true, stdout: wasi.Output{Bytes: []byte(c.stdout)}, log: guestLog{text: []byte(c.stderr)}, deadline: newDeadline(t.Context(), time.Now().Add(time.Hour))}
		outcome, _ := r.finish(t.Context(), c.used, c.err)
		assert.Equal(t, c.want, outcome.Result.Kind, c.name)
		assert.Len(t, outcome.Denials, len(c.denials), c.name)
		assert.Equal(t, c.err == error(trap), strings.Contains(outcome.Log, "main.crash()"), "%s: authors see where a trap was", c.name)
	}
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

func TestStandardOutput(t *testing.T) {
	data := func(raw string) tool.Result { return tool.Result{Success: true, Output: raw, Data: []byte(raw)} }
	failed := func(says string) tool.Result { return tool.Result{Error: says} }
	for _, c := range []struct {
		mode   modules.Stdout
		output string
		want   tool.Result
	}{
		{modules.StdoutAuto, `{"success":true,"output":"4","data":{"value": 4}}`, tool.Result{Success: true, Output: "4", Data: []byte(`{"value":4}`)}},
		{modules.StdoutAuto, `{"succes\u0073":false,"error":"no"}`, failed("no")},
		{modules.StdoutAuto, `{"success":false,"error":"no"}`, failed("no")},
		{modules.StdoutAuto, `{"success":"yes"}`, data(`{"success":"yes"}`)},
		{modules.StdoutAuto, `{"Success":true}`, data(`{"Success":true}`)},
		{modules.StdoutAuto, "[1,2]\n", data("[1,2]")},
		{modules.StdoutAuto, "1\n2\n", tool.Result{Success: true, Output: "1\n2\n"}},
		{modules.StdoutAuto, "", tool.Result{Success: true}},
		{modules.StdoutAuto, "caf\xe9", tool.Result{Success: true, Output: "caf\uFFFD"}},
		{modules.StdoutText, `{"success":false}`, tool.Result{Success: true, Output: `{"success":false}`}},
		{modules.StdoutJSON, `{"success":false}`, data(`{"success":false}`)},
		{modules.StdoutJSON, `hello`, failed("not JSON")},
		{modules.StdoutJSON, ``, failed("not JSON")},
		{modules.StdoutResult, `{"success":true}`, tool.Result{Success: true}},
		{modules.StdoutAuto, `{"success":true,"temperature":12}`, tool.Result{Success: true, Data: []byte(`{"temperature":12}`)}},
		{modules.StdoutResult, `{"success":true,"error":"a part is missing","kind":"denied","unknown": [1, 2]}`,
			tool.Result{Success: true, Data: []byte(`{"kind":"denied","unknown":[1,2],"error":"a part is missing"}`)}},
		{modules.StdoutResult, `{"success":true,"error":"","data":[1],"unit":"°C"}`, tool.Result{Success: true, Data: []byte(`{"unit":"°C","data":[1]}`)}},
		{modules.StdoutResult, `{"success":false,"data":null,"error":"no","code":7}`, failed("no")},
		{modules.StdoutResult, `{ "a" : ",}" , "success" : true, "b":{"success":false},"output":"y","c":[1, 2] }`,
			tool.Result{Success: true, Output: "y", Data: []byte(`{"a":",}","b":{"success":false},"c":[1,2]}`)}},
		{modules.StdoutResult, `{"success":true,"content":[{"type":"image","data":"AQI=","mime_type":"image/png"}]}`,
			tool.Result{Success: true, Content: []tool.Content{{Type: "image", Data: []byte{1, 2}, MIMEType: "image/png"}}}},
		{modules.StdoutResult, `{"success":1}`, failed(`"success"`)},
		{modules.StdoutResult, `{"output":"x"}`, failed(`"success"`)},
		{modules.StdoutResult, `hello`, failed("JSON object")},
	} {
		got, err := readOutput(t.Context(), c.mode, []byte(c.output))
		if err != nil {
			got.Error = err.Error()
		}
		if c.want.Error != "" {
			assert.False(t, got.Success, c.output)
			assert.Contains(t, got.Error, c.want.Error, c.output)
			continue
		}
		assert.Equal(t, c.want, got.Result, "%s: %s", c.mode, c.output)
	}
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
	// Not a module at all: only a check of the pin can be what refuses it.
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
	assert.NotEmpty(t, outcome.Log, "what it printed to stderr is for people")

	outcome = mustInvoke(t, packer, `{"folder":"missing"}`)
	assert.Equal(t, tool.ToolFailed, outcome.Result.Kind)
	assert.Contains(t, outcome.Result.Error, "exited with code")
}
