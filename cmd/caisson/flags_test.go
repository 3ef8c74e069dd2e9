package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson"
	"github.com/caisson-run/caisson/executor"
	"github.com/caisson-run/caisson/internal/noerr"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
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
		assert.Equal(t, manifests.FileGrant{Binding: binding, Path: permission.NewGuestPath(test.path), Host: permission.NewHostTemplate(test.host), Access: test.access}, grant, test.flag)
	}
}

func TestContextFlag(t *testing.T) {
	var o options
	require.NoError(t, o.addContext("project_id=a=b"))
	require.NoError(t, o.addContext("empty="))
	for text, wrong := range map[string]string{
		"project_id=x": "was set before", "Project_ID=x": "was set before", "PROJECT_ID=x": "was set before", "=x": "want KEY=VALUE", "x": "want KEY=VALUE",
	} {
		assert.ErrorContains(t, o.addContext(text), wrong, text)
	}
	op := noerr.Get(o.operator())(t)
	assert.Equal(t, map[string]string{"project_id": "a=b", "empty": ""}, op.context)
	want := manifests.GrantContext("project_id", "empty")
	want[0].Origin, want[1].Origin = "--context project_id", "--context empty"
	assert.Equal(t, want, o.policy().For("any", "").Context)
}

// TestParsedFlags checks which values single flags accept, and the advice for rejected ones.
func TestParsedFlags(t *testing.T) {
	digest := strings.Repeat("0a", 32)
	for flag, test := range map[string]struct {
		accepted, rejected []string
		advice             string
	}{
		"timeout":    {[]string{"1m30s", "24h"}, []string{"0s", "-1s", "25h", ""}, "want "},
		"memory":     {[]string{"64MiB", "65536", "64KiB", "2GiB"}, []string{"0", "-1", "64MB!", "", "4GiB", "2147483649", "8GiB", "63KiB", "65535B"}, "want "},
		"memory ":    {nil, []string{"1", "64", "65535"}, "write "},
		"timeout ":   {nil, []string{"1", "20"}, "write "},
		"fuel":       {[]string{"1"}, []string{"0", "-1", "1.5", ""}, "want a whole number above 0"},
		"max-output": {[]string{"1KiB", "unlimited"}, []string{"", "0", "-1", "1023", "lots", "Unlimited"}, "or unlimited"},
		"trust":      {[]string{digest}, []string{"", "0a", digest + "0a", strings.Repeat("x", 64)}, "64 hex digits"},
		"allow-call": {[]string{"fetch_page"}, []string{"fetch_*"}, "want NAME"},
		"cache-dir":  {[]string{"", "a"}, nil, ""},
	} {
		flag = strings.TrimSpace(flag)
		for _, text := range test.accepted {
			assert.NoError(t, newCall(options{}).ParseFlags([]string{"--" + flag, text}), "--%s %q", flag, text)
		}
		for _, text := range test.rejected {
			assert.ErrorContains(t, newCall(options{}).ParseFlags([]string{"--" + flag, text}), test.advice, "--%s %q", flag, text)
		}
	}
	for text, want := range map[string]sizeFlag{"64KiB": {bytes: 64 << 10}, "unlimited": {unlimited: true}} {
		got := noerr.Get(parseMaxOutput(text))(t)
		assert.Equal(t, want, got)
	}
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
	assert.EqualError(t, noerr.Error((&options{noRepair: true, tolerantJSON: true}).executorOptions(hint)), "--no-repair and --tolerant-json cannot be used together")
}
