package runtime

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// TestFailuresHoldTheToolsLastWords: a program that fails as most do, with a line on standard error
// and an exit code, tells the model why.
func TestFailuresHoldTheToolsLastWords(t *testing.T) {
	guest := load(t, newRuntime(t, Options{}), manifest(t, probe, ""), manifests.Grants{})
	outcome, err := invoke(t, guest, `{"do":"fails for want of a city"}`)
	require.NoError(t, err)
	assert.Equal(t, tool.Result{Kind: tool.ToolFailed, Error: `the tool exited with code 1: cannot do "fails for want of a city"`}, outcome.Result)

	outcome, err = invoke(t, guest, `{"do":"panic","text":"out of range"}`)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(outcome.Result.Error, "the tool exited with code 2:\npanic: out of range\n"), outcome.Result.Error)

	outcome, err = invoke(t, guest, `{"do":"exit","code":3}`)
	require.NoError(t, err)
	assert.Equal(t, "the tool exited with code 3", outcome.Result.Error)
}

// TestPrivateLastWords: a private standard error is not in the failure that a model reads, and still decides the
// failure's kind.
func TestPrivateLastWords(t *testing.T) {
	private := manifest(t, "internal/guests/failing/failing.wasm", "module: {path: guest.wasm, stderr: private}")
	guest := load(t, newRuntime(t, Options{}), private, manifests.Grants{})
	outcome, err := invoke(t, guest, `{"log":"customer 4711 has no city","code":1}`)
	require.NoError(t, err)
	assert.Equal(t, tool.Result{Kind: tool.ToolFailed, Error: "the tool exited with code 1"}, outcome.Result)
	assert.Equal(t, "customer 4711 has no city", outcome.Log, "people read it")

	outcome, err = invoke(t, guest, `{"open":"/etc/x.conf","log":"customer 4711: cannot open /etc/x.conf","code":1}`)
	require.ErrorIs(t, err, tool.Denied)
	assert.True(t, strings.HasPrefix(outcome.Result.Error, "denied: files /etc/x.conf: no granted directory holds this path; the tool exited with code 1"), outcome.Result.Error)
	assert.NotContains(t, outcome.Result.Error, "4711")

	outcome, err = invoke(t, guest, `{"open":"/etc/x.conf","log":"customer 4711 has no city","code":1}`)
	require.NoError(t, err, "the log gives another reason than the denial")
	assert.Equal(t, tool.Result{Kind: tool.ToolFailed, Error: "the tool exited with code 1"}, outcome.Result)

	private = manifest(t, probe, "module: {path: guest.wasm, stderr: private}")
	outcome, err = invoke(t, load(t, newRuntime(t, Options{}), private, manifests.Grants{}), `{"do":"panic","text":"customer 4711"}`)
	require.NoError(t, err)
	assert.Equal(t, "the tool exited with code 2", outcome.Result.Error, "nor is it in what a crash says")
}

// TestSuccessCodes: an exit code that the manifest lists is not by itself a failure.
func TestSuccessCodes(t *testing.T) {
	m := manifest(t, "internal/guests/failing/failing.wasm", "module: {path: guest.wasm, success_codes: [0, 1]}")
	guest := load(t, newRuntime(t, Options{}), m, manifests.Grants{})
	for arguments, want := range map[string]tool.Result{
		`{"code":1}`:                       {Success: true},
		`{"code":0,"print":"a match"}`:     {Success: true, Output: "a match"},
		`{"code":1,"print":"a match"}`:     {Success: true, Output: "a match"},
		`{"code":1,"log":"no matches"}`:    {Success: true},
		`{"code":2,"print":"half a line"}`: {Kind: tool.ToolFailed, Output: "half a line", Error: "the tool exited with code 2"},
		`{"code":1,"print":"{\"success\":false,\"error\":\"no such city\"}"}`: {Kind: tool.ToolFailed, Error: "no such city"},
		`{"code":257}`: {Kind: tool.ToolFailed, Error: "the tool exited with code 257"},
	} {
		outcome, err := invoke(t, guest, arguments)
		require.NoError(t, err, arguments)
		assert.Equal(t, want, outcome.Result, arguments)
	}
}

// TestProbesBeforeTheInputAreNotes: language runtimes look for their own files as they start. These denials do not
// explain a failure, even if nothing else does.
func TestProbesBeforeTheInputAreNotes(t *testing.T) {
	guest := load(t, newRuntime(t, Options{}), manifest(t, "internal/guests/failing/failing.wasm", ""), manifests.Grants{})
	outcome, err := invoke(t, guest, `{"code":3}`)
	require.NoError(t, err)
	assert.Equal(t, tool.Result{Kind: tool.ToolFailed, Error: "the tool exited with code 3"}, outcome.Result)
	require.Len(t, outcome.Denials, 1)
	assert.Equal(t, "/pyvenv.cfg", outcome.Denials[0].Value)
	assert.True(t, outcome.Denials[0].Note)
	assert.Zero(t, outcome.Denials[0].Allow, "a mount at / is never proposed")

	outcome, err = invoke(t, guest, `{"open":"/pyvenv.cfg","code":3}`)
	require.ErrorIs(t, err, tool.Denied, "control: the same after the input")
	require.Len(t, outcome.Denials, 1)
	assert.False(t, outcome.Denials[0].Note)

	outcome, err = invoke(t, guest, `{"open":"/etc/x.conf","print":"{\"success\":false,\"error\":\"no such city; try Oslo\"}"}`)
	require.NoError(t, err)
	assert.Equal(t, tool.Result{Kind: tool.ToolFailed, Error: "no such city; try Oslo"}, outcome.Result)
	assert.Len(t, outcome.Denials, 2)
}

// TestDenialsOfAResumedProgramAreNoNotes: a program that resumes a snapshot reads its input in the
// call, as any other does.
func TestDenialsOfAResumedProgramAreNoNotes(t *testing.T) {
	guest := load(t, newRuntime(t, Options{}), manifest(t, "internal/guests/failing/c/failing.wasm", ""), manifests.Grants{})
	require.Eventually(t, func() bool {
		_, err := invoke(t, guest, `{}`)
		guest.program.mu.Lock()
		defer guest.program.mu.Unlock()
		return err == nil && guest.program.started != nil
	}, time.Minute, time.Millisecond)
	outcome, err := invoke(t, guest, `{}`)
	require.NoError(t, err)
	assert.Equal(t, tool.Result{Kind: tool.ToolFailed, Error: "the tool exited with code 1: no such city: {}; try Oslo"}, outcome.Result)
	require.NotEmpty(t, outcome.Denials)
	for _, d := range outcome.Denials {
		assert.False(t, d.Note, d.Value)
	}
}

// TestFailuresHoldWhatWasPrinted: a failed program's output is in the result even if it is not in the manifest's mode.
func TestFailuresHoldWhatWasPrinted(t *testing.T) {
	for _, c := range []struct {
		mode, print, log string
		code             int
		want             tool.Result
	}{
		{"result", "Error: no such city\n", "", 1, tool.Result{Output: "Error: no such city", Error: "the tool exited with code 1"}},
		{"json", "Error: no such city\n", "", 1, tool.Result{Output: "Error: no such city", Error: "the tool exited with code 1"}},
		{"result", `{"ok":false,"error":"boo"}`, "", 1, tool.Result{Output: `{"ok":false,"error":"boo"}`, Error: "the tool exited with code 1"}},
		{"result", `{"success":false,"error":"boo"}`, "", 1, tool.Result{Error: "boo"}},
		{"result", "looking", "no such city", 1, tool.Result{Output: "looking", Error: "the tool exited with code 1: no such city"}},
		{"json", "no such city", "", 0, tool.Result{Output: "no such city", Error: "the tool's output is not JSON"}},
		{"result", strings.Repeat("line\n", 1000) + "why", "", 1, tool.Result{Output: "… " + strings.Repeat("line\n", 408) + "why", Error: "the tool exited with code 1"}},
		{"auto", `{"success":false}`, "", 0, tool.Result{Error: "the tool reported a failure and did not say why"}},
		{"auto", `{"success":false}`, "no such city", 0, tool.Result{Error: "the tool reported a failure: no such city"}},
		{"auto", `{"success":false,"output":"no such city"}`, "", 0, tool.Result{Output: "no such city", Error: "the tool reported a failure"}},
	} {
		m := manifest(t, "internal/guests/failing/failing.wasm", "module: {path: guest.wasm, stdout: "+c.mode+"}")
		arguments := encode(t, map[string]any{"print": c.print, "log": c.log, "code": c.code})
		outcome, err := invoke(t, load(t, newRuntime(t, Options{}), m, manifests.Grants{}), string(arguments))
		require.NoError(t, err)
		c.want.Kind = tool.ToolFailed
		assert.Equal(t, c.want, outcome.Result, "%s: %s", c.mode, c.print)
	}
}

// keptOfEnd is the number of last bytes that are kept of a long log.
const keptOfEnd = 2 << 10

// TestLongLogsEndWithTheReason: of a log that is too long, the end is kept too, and the model reads it.
func TestLongLogsEndWithTheReason(t *testing.T) {
	for _, limit := range []int{1, 100, 1 << 10} {
		m := manifest(t, "internal/guests/failing/failing.wasm", fmt.Sprintf("limits: {stderr: %d}", limit))
		guest := load(t, newRuntime(t, Options{}), m, manifests.Grants{})
		noise := strings.Repeat("busy\n", 100_000)
		outcome, err := invoke(t, guest, string(encode(t, map[string]any{"log": noise + "no such city", "code": 1})))
		require.NoError(t, err)
		assert.True(t, strings.HasPrefix(outcome.Result.Error, "the tool exited with code 1:\n… busy\n"), outcome.Result.Error)
		assert.True(t, strings.HasSuffix(outcome.Result.Error, "busy\nno such city"), outcome.Result.Error)
		assert.LessOrEqual(t, len(outcome.Result.Error), keptOfEnd+40)
		log := noise + "no such city"
		mark := fmt.Sprintf("\n[cut after %s: %d bytes left out]\n", manifests.Bytes(limit), len(log)-limit-keptOfEnd)
		assert.Equal(t, log[:limit]+mark+log[len(log)-keptOfEnd:], outcome.Log)

		whole := strings.Repeat("a", limit+keptOfEnd)
		outcome, err = invoke(t, guest, string(encode(t, map[string]any{"log": whole})))
		require.NoError(t, err)
		assert.Equal(t, whole, outcome.Log, "it is kept whole if nothing is missing between the two")
	}
}

// lateGuest is a guest that may write 4 MiB in a second, with a secret to be masked.
func lateGuest(t *testing.T, stdout string) *Tool {
	t.Helper()
	r := newRuntime(t, Options{LookupEnv: func(string) (string, bool) { return secretValue, true }})
	m := manifest(t, probe, "module: {path: guest.wasm, stdout: "+stdout+"}\nlimits: {timeout: 1s, output: 4MiB, stderr: 1MiB}\n"+
		"permissions: {secrets: [{name: API_KEY, header: X-Api-Key, host: api.example.com}]}")
	guest := load(t, r, m, manifests.Grants{
		Secrets: []manifests.SecretGrant{{Name: "API_KEY", From: manifests.SecretSource{Env: "HOST_KEY"}, Host: "api.example.com"}},
	})
	mustInvoke(t, guest, `{"do":"print","text":"{\"success\":true}"}`)
	return guest
}

// TestAttackLongTraces: the trace of a trap names the types of functions, which may have a thousand parameters and
// results each. The control has one.
func TestAttackLongTraces(t *testing.T) {
	const depth = 35
	for _, values := range []int{1, 1000} {
		kinds, bodies := "", ""
		for n := range depth {
			kinds += "\x01"
			body := "\x00" + strings.Repeat("\xd0\x6f", values) + "\x10" + number(n+2) + "\x0b" // ref.null extern, call
			if n == depth-1 {
				body = "\x00\x00\x0b" // unreachable
			}
			bodies += vector(body)
		}
		types := strings.Repeat(number(values)+strings.Repeat("\x6f", values), 2)
		start := vector("\x00" + strings.Repeat("\xd0\x6f", values) + "\x10\x01" + strings.Repeat("\x1a", values) + "\x0b")
		module := magic + section(1, "\x02\x60\x00\x00\x60"+types) + section(3, number(depth+1)+"\x00"+kinds) + section(5, "\x01\x00\x01") +
			section(7, "\x02"+vector("_start")+"\x00\x00"+vector("memory")+"\x02\x00") + section(10, number(depth+1)+start+bodies)
		guest := load(t, newRuntime(t, Options{}), named(t, "guest", module, "limits: {stderr: 1KiB}\n"), manifests.Grants{})
		outcome, err := guest.Invoke(t.Context(), tool.Invocation{CallID: "1", Tool: "guest"})
		require.Error(t, err)
		assert.Equal(t, tool.Trap, outcome.Result.Kind)
		assert.Contains(t, outcome.Log, "[trap at]")
		assert.LessOrEqual(t, len(outcome.Log), 4<<10+100)
	}
}
