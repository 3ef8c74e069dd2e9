package runtime

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/guests"
	"github.com/caisson-run/caisson/internal/replay"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// recorded returns the grants, with recording.
func recorded(grants manifests.Grants) manifests.Grants {
	grants.RecordInputs = true
	return grants
}

// replayIn replays a call of a manifest's tool in a runtime, without any grant.
func replayIn(t testing.TB, r *Runtime, m *manifests.Manifest, inputs json.RawMessage) (tool.Outcome, error) {
	t.Helper()
	return load(t, r, m, manifests.Grants{}).Invoke(t.Context(), tool.Invocation{CallID: "the-replay", Tool: m.Name, Replay: inputs})
}

// requireReplays fails the test unless the replay of a call has the same result and the same fuel, in a runtime whose
// host functions do nothing but fail.
func requireReplays(t testing.TB, m *manifests.Manifest, outcome tool.Outcome) replay.Inputs {
	t.Helper()
	in, _, err := replay.Decode(outcome.Inputs)
	require.NoError(t, err)
	r := shared
	if in.Image == nil { // the start of a program is made again
		r = hostless(t)
	}
	again, err := replayIn(t, r, m, outcome.Inputs)
	require.NoError(t, err)
	require.Empty(t, replay.Compare(outcome.Result, again.Result, outcome.Usage.Fuel, again.Usage.Fuel))
	assert.Empty(t, again.HostCalls)
	return in
}

// hostless returns a runtime whose host functions end each call.
func hostless(t testing.TB) *Runtime {
	t.Helper()
	functions := offeredFunctions()
	for i := range functions {
		functions[i].Call = func(context.Context, hostfuncs.Memory, []uint64) error { return fmt.Errorf("the host is asked") }
	}
	r, err := newWith(t.Context(), Options{CacheDir: cacheDir, Running: 1}, functions)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	return r
}

// TestReplays: however a call ends, and whatever the host answers it, its replay does the same without the host.
func TestReplays(t *testing.T) {
	m := manifest(t, probe, "limits: {fuel: 2000000000, output: 64KiB}")
	guest := load(t, shared, m, recorded(manifests.Grants{}))
	for name, c := range map[string]struct {
		arguments string
		kind      tool.Kind
	}{
		"output":    {`{"do":"echo"}`, ""},
		"a failure": {`{"do":"exit","code":3,"text":"no"}`, tool.ToolFailed}, "a trap": {`{"do":"panic","text":"no"}`, tool.ToolFailed},
		"fuel": {`{"do":"spin"}`, tool.Fuel}, "too much output": {`{"do":"print","text":"0123456789abcdef","times":5000}`, tool.Output},
		"memory": {`{"do":"allocate","mib":500}`, tool.Memory}, "a long log": {`{"do":"log","text":"0123456789abcdef","times":5000}`, ""},
		"sleep": {`{"do":"sleep","millis":3}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			outcome, _ := invoke(t, guest, c.arguments)
			require.Equal(t, c.kind, outcome.Result.Kind, outcome.Result.Error)
			requireReplays(t, m, outcome)
		})
	}
}

// TestNothingIsRecordedByDefault is the control of TestReplays.
func TestNothingIsRecordedByDefault(t *testing.T) {
	assert.Nil(t, mustInvoke(t, load(t, shared, manifest(t, probe, ""), manifests.Grants{}), `{"do":"echo"}`).Inputs)
}

// TestReplaysOfResumedCalls: the replay of a call that resumed a program starts an equal one, with the same random
// bytes, clock, variables and directories, in another runtime. The controls change the seed and the clock.
func TestReplaysOfResumedCalls(t *testing.T) {
	_, err := guests.Compile(t.Context(), "internal/guests/seeded")
	require.NoError(t, err)
	const starts = "stdout: text}\nbehavior: {snapshot: start}\npermissions: {env: [SETTING], files: [{path: /project, access: read}]}\n"
	for name, c := range map[string]struct {
		module, text string
		changed      func(image *replay.Image) // nil if the call does not depend on it
	}{
		"Go": {seededGo, "module: {path: guest.wasm, " + starts, func(image *replay.Image) { image.Seed[0]++ }},
		"C, random bytes": {seededC, "module: {path: guest.wasm, args: [entropy, early], " + starts,
			func(image *replay.Image) { image.Seed[0]++ }},
		"C, the time": {seededC, "module: {path: guest.wasm, args: [clock, early], " + starts, func(image *replay.Image) { image.Clock += 1e9 }},
		"variables": {probe, "module: {path: guest.wasm, " + strings.Replace(starts, "text", "auto", 1),
			func(image *replay.Image) { image.Environment = []string{"SETTING=other"} }},
	} {
		t.Run(name, func(t *testing.T) {
			m := manifest(t, c.module, c.text)
			dir := t.TempDir()
			guest := load(t, newRuntime(t, Options{Running: 3}), m, recorded(manifests.Grants{Env: []manifests.EnvGrant{{Name: "SETTING", Value: "set"}},
				Files: []manifests.FileGrant{manifests.GrantDirectory("/project", dir, manifests.AccessRead)}}))
			for range 2 {
				mustInvoke(t, guest, "{}")
			}
			started, reason := guest.program.settled(t)
			require.NotNil(t, started, reason)
			outcome := mustInvoke(t, guest, "{}")
			require.NoError(t, os.RemoveAll(dir))
			in := requireReplays(t, m, outcome)
			require.NotNil(t, in.Image)
			assert.Equal(t, []string{"SETTING=set"}, in.Image.Environment)
			c.changed(in.Image)
			again, err := replayIn(t, shared, m, json.RawMessage(encode(t, in)))
			assert.True(t, err != nil || len(replay.Compare(outcome.Result, again.Result, outcome.Usage.Fuel, again.Usage.Fuel)) > 0, "control")
		})
	}
}

// TestReplaysOfCopiedPlugins: so does that of a plug-in whose started state is copied.
func TestReplaysOfCopiedPlugins(t *testing.T) {
	guest := pluginWith(t, newRuntime(t, Options{Running: 3}), "hello_haskell.wasm", "entry: testing, config: {greeting: Howdy}", "behavior: {snapshot: start}\n", recorded(manifests.Grants{}))
	for range 2 {
		callPlugin(t, guest, "you")
	}
	started, reason := guest.program.settled(t)
	require.NotNil(t, started, reason)
	outcome := callPlugin(t, guest, "you")
	require.Equal(t, "Howdy, you", outcome.Result.Output)
	assert.NotNil(t, requireReplays(t, guest.Manifest(), outcome).Image)
}

// TestReplaysWithoutTheNetwork: a replay needs no server, and has none of the tool's secrets.
func TestReplaysWithoutTheNetwork(t *testing.T) {
	var asked atomic.Int32
	grant := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		echo(w, r)
	})
	r := newRuntime(t, Options{LookupEnv: func(name string) (string, bool) { return secretValue, name == "HOST_KEY" }})
	m := manifest(t, netprobe, "permissions: {network: [{host: api.example.com}], secrets: [{name: API_KEY, header: X-Api-Key, host: api.example.com}]}")
	guest := load(t, r, m, recorded(manifests.Grants{
		Network: []manifests.NetworkGrant{grant},
		Secrets: []manifests.SecretGrant{{Name: "API_KEY", From: manifests.SecretSource{Env: "HOST_KEY"}, Host: "api.example.com", Place: m.Permissions.Secrets[0].Place}},
	}))
	_, outcome := mustFetch(t, guest, get("https://api.example.com/a"), get("https://other.example/b"))
	require.EqualValues(t, 1, asked.Load())
	require.Contains(t, string(outcome.Result.Data), "[secret API_KEY]")
	in := requireReplays(t, m, outcome)
	assert.EqualValues(t, 1, asked.Load(), "the replay asks nobody")
	assert.NotEmpty(t, in.Denials)
	assertHolds(t, false, secretValue, string(stepsOf(t, in))+string(outcome.Inputs), "inputs")
}

// TestAttackSecretInInputs: a secret that is in what the guest got, such as its arguments, is not in the record. The
// control gets something else.
func TestAttackSecretInInputs(t *testing.T) {
	r := newRuntime(t, Options{LookupEnv: func(name string) (string, bool) { return secretValue, name == "HOST_KEY" }})
	m := manifest(t, callprobe, "permissions: {tools: [other], secrets: [{name: API_KEY, header: X-Api-Key, host: api.example.com}]}")
	guest := load(t, r, m, recorded(manifests.Grants{Secrets: []manifests.SecretGrant{{Name: "API_KEY",
		From: manifests.SecretSource{Env: "HOST_KEY"}, Host: "api.example.com", Place: m.Permissions.Secrets[0].Place}}}))
	for text, kept := range map[string]bool{secretValue: false, "nothing of that kind": true} {
		outcome, _ := guest.Invoke(t.Context(), invocation(t, steps(echoes(text)), nil))
		var in replay.Inputs
		require.NoError(t, json.Unmarshal(outcome.Inputs, &in))
		assert.Equal(t, kept, in.NotReplayable == "", in.NotReplayable)
		assert.Equal(t, kept, in.Log != nil)
	}
}

// stepsOf returns the steps of inputs.
func stepsOf(t testing.TB, in replay.Inputs) []byte {
	t.Helper()
	steps, err := io.ReadAll(flate.NewReader(bytes.NewReader(in.Log)))
	require.NoError(t, err)
	return steps
}

// TestReplaysWithoutFiles: a replay needs no file that the call has read, changed or removed.
func TestReplaysWithoutFiles(t *testing.T) {
	for _, c := range []struct{ name, arguments string }{
		{"file_read", `{"path":"notes.txt"}`}, {"file_list", `{}`}, {"file_write", `{"path":"new.txt","content":"new"}`},
		{"file_delete", `{"path":"notes.txt"}`}, {"file_read", `{"path":"nothing.txt"}`},
	} {
		m, err := manifests.Load(filepath.Join(root, "wasm-tools", "files", c.name+".tool.yaml"))
		require.NoError(t, err)
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("what was there"), 0o600))
		access := manifests.AccessRead
		if strings.Contains("file_write file_delete", c.name) {
			access = manifests.AccessReadWrite
		}
		grants := manifests.Grants{Context: manifests.GrantContext(m.Context...), Files: []manifests.FileGrant{manifests.GrantDirectory("/project", dir, access)}}
		guest := load(t, shared, m, recorded(grants))
		arguments, err := tool.ParseArguments(c.arguments)
		require.NoError(t, err)
		values := map[string]string{}
		for _, name := range m.Context {
			values[name] = "demo"
			arguments = arguments.With(name, []byte(`"demo"`))
		}
		outcome, _ := guest.Invoke(t.Context(), tool.Invocation{CallID: "the-call", Tool: c.name, Arguments: arguments, Context: values})
		require.NoError(t, os.RemoveAll(dir))
		requireReplays(t, m, outcome)
		assert.NoDirExists(t, dir)
	}
}

// TestReplaysOfNestedCalls: a replay calls no other tool, and gets the record that the call got. The nested call is
// replayed by itself, on the fuel that its caller had left.
func TestReplaysOfNestedCalls(t *testing.T) {
	h := newHousehold(t, Options{})
	outer, inner := named(t, "outer", callprobe, "permissions: {tools: [inner]}\nlimits: {fuel: 900000000}"), named(t, "inner", callprobe, "permissions: {tools: [nobody]}")
	h.load(t, outer, recorded(calling("inner")))
	guest := h.load(t, inner, recorded(manifests.Grants{}))
	var nested []tool.Outcome
	h.tools["inner"] = goTool(func(ctx context.Context, invocation tool.Invocation) (tool.Outcome, error) {
		outcome, err := guest.Invoke(ctx, invocation)
		nested = append(nested, outcome)
		return outcome, err
	})
	outcome := h.mustCall(t, "outer", steps(asks("inner", echoes("found")), asks("inner", `{"do":"fail"}`)))
	require.Len(t, nested, 2)
	requireReplays(t, outer, outcome)
	for _, call := range nested {
		assert.True(t, requireReplays(t, inner, call).CallersFuel)
	}
	assert.Len(t, nested, 2, "a replay calls no tool")
}

// TestReplaysOfPluginsThatCallTheProgram: a function of the program that uses blocks of the plug-in's memory is not
// called in a replay, although the kernel, which has the blocks, does the same again.
func TestReplaysOfPluginsThatCallTheProgram(t *testing.T) {
	calls := 0
	r := newRuntime(t, Options{HostFunctions: []HostFunction{rewriting("host", "to_upper", func(text string) (string, error) {
		calls++
		return strings.ToUpper(text), nil
	})}})
	grants := offering("host.to_upper")
	guest := pluginWith(t, r, "host_memory.wasm", "stdout: text, entry: run_test", "permissions: {functions: [host.to_upper]}\n", recorded(grants))
	outcome := callPlugin(t, guest, "Frodo")
	require.Equal(t, 1, calls)
	again, err := replayIn(t, r, guest.Manifest(), outcome.Inputs)
	require.NoError(t, err)
	assert.Equal(t, "HELLO FRODO!", again.Result.Output)
	assert.Empty(t, replay.Compare(outcome.Result, again.Result, outcome.Usage.Fuel, again.Usage.Fuel))
	assert.Equal(t, 1, calls)
}

// TestChangedAnswersAreNoticed: a changed byte of a record leads to another result or is reported, unless the guest does
// not use it. The control is the record as it is.
func TestChangedAnswersAreNoticed(t *testing.T) {
	m := manifest(t, probe, "")
	guest := load(t, shared, m, recorded(manifests.Grants{}))
	outcome := mustInvoke(t, guest, `{"do":"echo","text":"the text that it is given"}`)
	in := requireReplays(t, m, outcome)
	all := stepsOf(t, in)
	unnoticed := 0
	step := max(1, len(all)/200)
	for at := 0; at < len(all); at += step {
		changed := bytes.Clone(all)
		changed[at] ^= 1
		text, err := in.Encode(changed)
		require.NoError(t, err)
		again, err := replayIn(t, shared, m, text)
		if err == nil && len(replay.Compare(outcome.Result, again.Result, outcome.Usage.Fuel, again.Usage.Fuel)) == 0 {
			unnoticed++
		}
	}
	// What the guest does not use may be changed: most of the random bytes, the time, and what it overwrites.
	assert.LessOrEqual(t, unnoticed, 40)

	text := bytes.Replace(all, []byte("the text that it is given"), []byte("the text that it was sent"), 1)
	require.NotEqual(t, all, text)
	changed, err := in.Encode(text)
	require.NoError(t, err)
	again, err := replayIn(t, shared, m, changed)
	if differs, ok := errors.AsType[*replay.Divergence](err); ok {
		assert.Regexp(t, `^step [0-9]+: the guest called [a-z_]+\([0-9, ]*\) as in the record, but with other bytes in its memory$`, differs.Error())
	} else {
		require.NoError(t, err)
		assert.NotEqual(t, outcome.Result, again.Result)
	}

	short, err := in.Encode(all[:len(all)-1])
	require.NoError(t, err)
	_, err = replayIn(t, shared, m, short)
	assert.Error(t, err)
}

// TestCallsThatCannotBeReplayed: they say why.
func TestCallsThatCannotBeReplayed(t *testing.T) {
	m := manifest(t, probe, "limits: {timeout: 300ms}")
	guest := load(t, shared, m, recorded(manifests.Grants{}))
	good := mustInvoke(t, guest, `{"do":"echo"}`)
	in, _, err := replay.Decode(good.Inputs)
	require.NoError(t, err)
	late, _ := invoke(t, guest, `{"do":"spin"}`)
	require.Equal(t, tool.Deadline, late.Result.Kind)
	other := manifest(t, probe, "limits: {timeout: 300ms, output: 1KiB}")
	for name, c := range map[string]struct {
		of     *manifests.Manifest
		inputs json.RawMessage
		want   string
	}{
		"late":             {m, late.Inputs, "its deadline ended it, which is a matter of time and not of fuel"},
		"another manifest": {other, good.Inputs, "the manifest of its tool has changed"},
		"another module":   {manifest(t, netprobe, "limits: {timeout: 300ms}"), good.Inputs, "the module of its tool was " + in.Module},
		"no JSON":          {m, json.RawMessage(`{`), "its recorded inputs cannot be read"},
		"another version":  {m, json.RawMessage(`{"version":2}`), "recorded in version 2 of the format"},
		"no limits":        {m, json.RawMessage(`{"version":1}`), "its recorded inputs are damaged"},
		"no log":           {m, json.RawMessage(strings.Replace(string(good.Inputs), base64.StdEncoding.EncodeToString(in.Log), "AAAA", 1)), "its recorded inputs are damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := replayIn(t, shared, c.of, c.inputs)
			var refusal *replay.Refusal
			require.ErrorAs(t, err, &refusal)
			assert.Contains(t, refusal.Error(), c.want)
		})
	}
	digest := digestOf(t, m)
	assert.Equal(t, hex.EncodeToString(digest[:]), in.Module)
}

// TestTooManyAnswers: a call whose answers are beyond the bound is not recorded, and succeeds. The control is below.
func TestTooManyAnswers(t *testing.T) {
	r := newRuntime(t, Options{Limits: Limits{Memory: 512 << 20, Timeout: time.Minute}})
	guest := pluginWith(t, r, "println.wasm", "entry: run_test", "", recorded(manifests.Grants{}))
	long := string(bytes.Repeat([]byte("0123456789abcdef"), replay.MaxBytes/16))
	outcome := callPlugin(t, guest, long+"!")
	_, _, err := replay.Decode(outcome.Inputs)
	assert.ErrorContains(t, err, "the host's answers have more than 8 MiB, which are not recorded")
	control := callPlugin(t, guest, long[:replay.MaxBytes/2])
	requireReplays(t, guest.Manifest(), control)
	assert.Less(t, len(outcome.Inputs), 1<<10)
}
