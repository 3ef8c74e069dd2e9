package runtime

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime/internal/wasi"
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

// TestPrivateLastWords: what a program writes to standard error stays out of the failure that a
// model reads, and still decides what the failure was.
func TestPrivateLastWords(t *testing.T) {
	private := manifest(t, "internal/guests/failing/failing.wasm", "module: {path: guest.wasm, stderr: private}")
	guest := load(t, newRuntime(t, Options{}), private, manifests.Grants{})
	outcome, err := invoke(t, guest, `{"log":"customer 4711 has no city","code":1}`)
	require.NoError(t, err)
	assert.Equal(t, tool.Result{Kind: tool.ToolFailed, Error: "the tool exited with code 1"}, outcome.Result)
	assert.Equal(t, "customer 4711 has no city", outcome.Log, "people read it")

	outcome, err = invoke(t, guest, `{"open":"/etc/x.conf","log":"customer 4711: cannot open /etc/x.conf","code":1}`)
	require.ErrorIs(t, err, tool.Denied)
	assert.True(t, strings.HasPrefix(outcome.Result.Error, "the tool exited with code 1; denied: files /etc/x.conf: "), outcome.Result.Error)
	assert.NotContains(t, outcome.Result.Error, "4711")

	outcome, err = invoke(t, guest, `{"open":"/etc/x.conf","log":"customer 4711 has no city","code":1}`)
	require.NoError(t, err, "the log gives another reason than the denial")
	assert.Equal(t, tool.Result{Kind: tool.ToolFailed, Error: "the tool exited with code 1"}, outcome.Result)

	private = manifest(t, probe, "module: {path: guest.wasm, stderr: private}")
	outcome, err = invoke(t, load(t, newRuntime(t, Options{}), private, manifests.Grants{}), `{"do":"panic","text":"customer 4711"}`)
	require.NoError(t, err)
	assert.Equal(t, "the tool exited with code 2", outcome.Result.Error, "nor is it in what a crash says")
}

// TestSuccessCodes: an exit code that the manifest lists is no failure of its own.
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

func TestLastWords(t *testing.T) {
	guest := load(t, newRuntime(t, Options{}), manifest(t, probe, ""), manifests.Grants{})
	long := strings.Repeat("a line of a log\n", 1000)
	for log, want := range map[string]string{
		"":                        "",
		" \n":                     "",
		"no\n":                    "no",
		"a\nb\n":                  "a\nb",
		"caf\xe9":                 "caf\uFFFD",
		long + "why":              "… " + strings.Repeat("a line of a log\n", 127) + "why",
		strings.Repeat("é", 3000): "… " + strings.Repeat("é", 1024),
		unmaskedLog:               "",
	} {
		r := &run{tool: guest, stderr: wasi.Output{Bytes: []byte(log)}}
		assert.Equal(t, want, r.lastWords())
	}
	cut := &run{tool: guest, stderr: wasi.Output{Bytes: []byte("the begin"), Dropped: true}}
	assert.Equal(t, "the begin …", cut.lastWords())
}

// TestProbesBeforeTheInputAreNotes: language runtimes look for files of their own as they start. No
// failure comes of that, though nothing else explains it.
func TestProbesBeforeTheInputAreNotes(t *testing.T) {
	guest := load(t, newRuntime(t, Options{}), manifest(t, "internal/guests/failing/failing.wasm", ""), manifests.Grants{})
	outcome, err := invoke(t, guest, `{"code":3}`)
	require.NoError(t, err)
	assert.Equal(t, tool.Result{Kind: tool.ToolFailed, Error: "the tool exited with code 3"}, outcome.Result)
	require.Len(t, outcome.Denials, 1)
	assert.Equal(t, "/pyvenv.cfg", outcome.Denials[0].Value)
	assert.True(t, outcome.Denials[0].Note)
	assert.Zero(t, outcome.Denials[0].Allow, "nobody should mount anything at /")

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

// TestReasonsAreSearchedInPart: a guest that is denied much and gives a long reason keeps the host
// no longer than one with a short reason.
func TestReasonsAreSearchedInPart(t *testing.T) {
	guest := load(t, newRuntime(t, Options{}), manifest(t, probe, ""), manifests.Grants{})
	r := &run{tool: guest, denials: []tool.Denial{{Permission: "files", Value: "/etc/x.conf", Rule: "no"}}}
	_, denied := r.cause(strings.Repeat("a", maxReason-20)+" /etc/x.conf", "")
	assert.True(t, denied)
	_, denied = r.cause(strings.Repeat("a", maxReason)+" /etc/x.conf", "")
	assert.False(t, denied)
}
