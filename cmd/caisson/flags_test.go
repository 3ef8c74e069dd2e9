package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/runtime"
	"github.com/caisson-run/caisson/tool"
)

func TestParseMount(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.MkdirAll(filepath.FromSlash("work=space/in"), 0o700))
	require.NoError(t, os.WriteFile("file", nil, 0o600))
	for _, test := range []struct {
		flag, path, host string
		access           manifests.Access
		problem          string
	}{
		{flag: "/project=work=space", path: "/project", host: "work=space", access: manifests.AccessRead},
		{flag: "/project=work=space:ro", path: "/project", host: "work=space", access: manifests.AccessRead},
		{flag: "/project=work=space:rw", path: "/project", host: "work=space", access: manifests.AccessReadWrite},
		{flag: "/project=./work=space/in:rw", path: "/project", host: "./work=space/in", access: manifests.AccessReadWrite},
		{flag: "/project=./work=space/{project_id}:rw", path: "/project", host: "./work=space/{project_id}", access: manifests.AccessReadWrite},
		{flag: `/project=C:\spaces\{project_id}:rw`, path: "/project", host: `C:\spaces\{project_id}`, access: manifests.AccessReadWrite},
		{flag: `/project=C:/spaces/{project_id}`, path: "/project", host: `C:/spaces/{project_id}`, access: manifests.AccessRead},
		{flag: "/project=work=space:wr", problem: `the access "wr" is neither ro nor rw`},
		{flag: "/project=work=space:", problem: `the access "" is neither ro nor rw`},
		{flag: "/project=work=space:RW", problem: `the access "RW" is neither ro nor rw`},
		{flag: "/project=.:x", problem: `the access "x" is neither ro nor rw`},
		{flag: "/project", problem: "want GUEST=HOSTDIR"},
		{flag: "/project=", problem: "want GUEST=HOSTDIR"},
		{flag: "=.", problem: "want GUEST=HOSTDIR"},
		{flag: "/project=:rw", problem: "host directory"},
		{flag: "project=.", problem: "must be absolute"},
		{flag: "/project=missing", problem: "missing"},
		{flag: "/project=file", problem: "file is not a directory"},
		{flag: "/project=./{project_id", problem: "host directory"},
	} {
		if filepath.Separator == '/' && test.host != "" && test.host[0] == 'C' && test.host[2] == '\\' {
			// Elsewhere than on Windows this is one element with braces in it.
			test.problem = "neither a literal path element nor one placeholder"
		}
		grant, err := parseMount(test.flag)
		if test.problem != "" {
			assert.ErrorContains(t, err, test.problem, test.flag)
			continue
		}
		require.NoError(t, err, test.flag)
		binding := manifests.Binding{Origin: "--mount " + test.path}
		assert.Equal(t, manifests.FileGrant{Binding: binding, Path: test.path, Host: test.host, Access: test.access}, grant, test.flag)
	}
}

func TestContextFlag(t *testing.T) {
	var o options
	require.NoError(t, o.context.Set("project_id=a=b"))
	require.NoError(t, o.context.Set("empty="))
	for _, twice := range []string{"project_id=x", "Project_ID=x", "PROJECT_ID=x"} {
		assert.ErrorContains(t, o.context.Set(twice), "was set before", twice)
	}
	assert.ErrorContains(t, o.context.Set("=x"), "want KEY=VALUE")
	assert.ErrorContains(t, o.context.Set("x"), "want KEY=VALUE")
	op, err := o.operator()
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"project_id": "a=b", "empty": ""}, op.context)
	want := manifests.GrantContext("project_id", "empty")
	want[0].Origin, want[1].Origin = "--context project_id", "--context empty"
	assert.Equal(t, want, o.policy().For("any", "").Context)
}

func TestLimitFlags(t *testing.T) {
	var o options
	assert.Zero(t, o.limits(), "no flag leaves the defaults to the runtime")
	require.NoError(t, o.timeout.Set("1m30s"))
	require.NoError(t, o.memory.Set("64MiB"))
	assert.Equal(t, runtime.Limits{Timeout: 90 * time.Second, Memory: 64 << 20}, o.limits())
	for _, wrong := range []string{"0s", "-1s", "10", ""} {
		assert.Error(t, o.timeout.Set(wrong), "%q", wrong)
	}
	for _, wrong := range []string{"0", "-1", "64MB!", ""} {
		assert.Error(t, o.memory.Set(wrong), "%q", wrong)
	}
}

func TestCacheFlag(t *testing.T) {
	var c cacheFlag
	standard, err := runtime.DefaultCacheDir()
	require.NoError(t, err)
	path, err := c.path()
	require.NoError(t, err)
	assert.Equal(t, standard, path)
	require.NoError(t, c.Set(""))
	path, err = c.path()
	require.NoError(t, err)
	assert.Empty(t, path, "an empty flag is no folder")
}

func TestTrustFlag(t *testing.T) {
	var trusted trustFlag
	digest := strings.Repeat("0a", 32)
	require.NoError(t, trusted.Set(digest))
	for _, wrong := range []string{"", "0a", digest + "0a", strings.Repeat("x", 64)} {
		assert.ErrorContains(t, trusted.Set(wrong), "64 hex digits", wrong)
	}
	assert.Equal(t, trustFlag{digest}, trusted)
}

func TestSizeFlag(t *testing.T) {
	for text, want := range map[string]sizeFlag{"64KiB": {bytes: 64 << 10}, "1KiB": {bytes: 1024}, "unlimited": {unlimited: true}} {
		flag := sizeFlag{unlimited: true}
		require.NoError(t, flag.Set(text), text)
		assert.Equal(t, want, flag, text)
	}
	for _, text := range []string{"", "0", "-1", "1023", "lots", "Unlimited"} {
		flag := sizeFlag{unlimited: true}
		assert.ErrorContains(t, flag.Set(text), "or unlimited", text)
	}
}

func TestCallFlag(t *testing.T) {
	var flag callFlag
	require.NoError(t, flag.Set("fetch_page"))
	require.NoError(t, flag.Set("fetch_page"))
	require.Error(t, flag.Set("fetch_*"))
	assert.Equal(t, callFlag{{Binding: manifests.Binding{Origin: "--allow-call fetch_page"}, Tool: "fetch_page"}}, flag)
	o := options{calls: flag}
	assert.Equal(t, []manifests.CallGrant(flag), o.policy().For("any", "").Calls)
}

// TestExecutorOptions: whatever the flags say makes an executor.
func TestExecutorOptions(t *testing.T) {
	hint := func(tool.Cut) string { return "" }
	for name, o := range map[string]options{
		"none":      {},
		"all":       {parallel: 100, noRepair: true, noReuse: true, maxOutput: sizeFlag{bytes: leastOutput}},
		"tolerant":  {parallel: 1, tolerantJSON: true},
		"unlimited": {maxOutput: sizeFlag{unlimited: true}},
	} {
		made, err := o.executorOptions(hint)
		require.NoError(t, err, name)
		opened, err := caisson.Open(t.Context(), caisson.Options{NoCache: true, Executor: made})
		require.NoError(t, err, name)
		require.NoError(t, opened.Close(t.Context()), name)
		assert.Equal(t, o.noReuse, made.Reuse.Scope == executor.ReuseNone, name)
		assert.Equal(t, o.parallel, made.Limits.PerTool, "%s: as many at a time as the flag says, also of one tool", name)
	}
	_, err := (&options{noRepair: true, tolerantJSON: true}).executorOptions(hint)
	assert.EqualError(t, err, "--no-repair and --tolerant-json exclude each other")
}

// TestReuseOf: what inspect says is what the executor is told.
func TestReuseOf(t *testing.T) {
	for _, test := range []struct {
		behavior manifests.Behavior
		want     time.Duration
	}{
		{manifests.Behavior{}, 0},
		{manifests.Behavior{ReadOnly: true}, reuseFor},
		{manifests.Behavior{ReadOnly: true, Cache: time.Minute}, time.Minute},
		{manifests.Behavior{ReadOnly: true, Cache: manifests.CacheOff}, 0},
	} {
		found := reuseOf(test.behavior)
		assert.InDelta(t, test.want.Seconds(), found.Seconds, 0)
		assert.NotEmpty(t, found.Reason)
	}
}
