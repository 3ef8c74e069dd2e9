package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// TestContextNote: no flag is suggested that the policy would refuse.
func TestContextNote(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ops.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`schema: caisson-config/v1
context:
  by_token: {from: token}
  by_session: {from: session}
  by_flag: {from: flag}
  by_policy: {from: fixed, value: demo}
`), 0o600))
	o := options{config: file}
	op, err := o.operator()
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"by_policy": "demo"}, op.context)
	missing := tool.Allow{Manifest: manifests.ContextRule("a"), Grant: manifests.ContextSource{Name: "a", From: manifests.Fixed}.Rule()}
	full := remedy{"context: [a]", "--context a=VALUE", "context: {a: {from: fixed, value: VALUE}}"}
	flagAlone := remedy{manifest: full.manifest, flags: full.flags}
	neither := remedy{manifest: full.manifest}
	for _, test := range []struct {
		permission, name string
		want             remedy
		note             string
	}{
		{"context", "by_token", neither, `ops.yaml:3 says that by_token comes from the token, and the command line has none; say "from: flag" there to set it with --context`},
		{"context", "by_session", neither, `ops.yaml:4 says that by_session comes from the session, and the command line has none; say "from: flag" there to set it with --context`},
		{"context", "by_policy", neither, ""},
		{"context", "by_flag", flagAlone, "or write {from: fixed, value: VALUE} for it at ops.yaml:5"},
		{"context", "unnamed", full, ""},
		{"files", "by_token", full, ""},
	} {
		got, note := op.contextNote(tool.Denial{Permission: test.permission, Value: test.name, Allow: missing})
		assert.Equal(t, test.want, got, test.name)
		if test.note == "" {
			assert.Empty(t, note, test.name)
			continue
		}
		assert.Equal(t, []string{test.note}, note)
	}
	ungranted := tool.Allow{Grant: json.RawMessage(`{"tools":["a"],"context":["by_token"]}`)}
	got, _ := op.contextNote(tool.Denial{Permission: "context", Value: "by_token", Allow: ungranted})
	assert.Equal(t, remedy{policy: "- {tools: [a], context: [by_token]}"}, got, "a grant is another element of its list")
}

// TestFlagsAreAPolicy: flags give to all tools, with where each stands.
func TestFlagsAreAPolicy(t *testing.T) {
	dir := t.TempDir()
	var o options
	assert.Empty(t, o.policy().Grants, "nothing is given where nothing is said")
	require.NoError(t, o.networks.Set("b.test"))
	require.NoError(t, o.secrets.Set("KEY=env:VAR@b.test"))
	require.NoError(t, o.mounts.Set("/project="+dir))
	require.NoError(t, o.context.Set("b=value"))
	origins := func(g manifests.Grants) (all []string) {
		for _, grant := range g.Files {
			all = append(all, grant.Origin)
		}
		for _, grant := range g.Network {
			all = append(all, grant.Origin)
		}
		for _, grant := range g.Secrets {
			all = append(all, grant.Origin)
		}
		for _, grant := range g.Context {
			all = append(all, grant.Origin)
		}
		return all
	}
	flags := []string{"--mount /project", "--allow-net b.test", "--secret KEY=…@b.test", "--context b"}
	assert.Equal(t, flags, origins(o.policy().For("any", "")))
}

// TestSecretsStandInNoMessage: what is wrong with a --secret flag is told without the flag.
func TestSecretsStandInNoMessage(t *testing.T) {
	for _, flag := range []string{"sk-live-1", "KEY=sk-live-1", "KEY=sk-live-1@a.test", "KEY=env:sk-live-1@a.test"} {
		code, stdout, stderr := start(t.Context(), nil, "list", "--secret", flag)
		assert.Equal(t, exitUsage, code, flag)
		assert.Empty(t, stdout, flag)
		assert.Contains(t, stderr, "caisson: error: --secret: ", flag)
		assert.NotContains(t, stderr, "sk-live", flag)
	}
}
