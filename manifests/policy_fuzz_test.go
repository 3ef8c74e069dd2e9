package manifests_test

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
)

func FuzzParsePolicy(f *testing.F) {
	inputs, err := filepath.Glob("testdata/policy/*/*.*[nl]")
	require.NoError(f, err)
	require.NotEmpty(f, inputs)
	for _, input := range inputs {
		source, err := os.ReadFile(input)
		require.NoError(f, err)
		f.Add(source, filepath.Ext(input) == ".json")
	}
	for _, seed := range []string{
		"", "deny: [{network: {}}]", "profiles: {a: {extends: b}, b: {extends: a}}", "tools: [{path: /}]", "tools: [{path: ./~}]",
		"grants: [{tools: ['*'], files: [{path: /, host: '{a}'}]}]", "grants: [{tools: [a], env: {A: ''}}]",
		"grants: [{tools: [a], calls: [a, b]}]\ndeny: [{call: a}]",
	} {
		f.Add([]byte(policyHead+seed), false)
	}
	f.Fuzz(func(t *testing.T, source []byte, asJSON bool) {
		file := "caisson.yaml"
		if asJSON {
			file = "caisson.json"
		}
		p, err := manifests.ParsePolicy(file, source)
		if err != nil {
			require.Nil(t, p)
			checkProblems(t, file, err)
			checkPlaces(t, source, err)
			return
		}
		checkPolicy(t, p, file)
		again, err := manifests.ParsePolicy("caisson.json", renderPolicy(t, p))
		require.NoError(t, err)
		assert.Equal(t, normalise(p), normalise(again))
	})
}

// checkPlaces makes sure that problems stand inside the file. YAML knows more line breaks
// than the one.
func checkPlaces(t *testing.T, source []byte, err error) {
	var invalid *manifests.Error
	require.True(t, errors.As(err, &invalid))
	lines := 1
	for _, lineBreak := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} {
		lines += strings.Count(string(source), lineBreak)
	}
	for _, p := range invalid.Problems {
		assert.LessOrEqual(t, p.Line, lines, p.Message)
		assert.LessOrEqual(t, p.Column, len(source)+1, p.Message)
	}
}

func checkPolicy(t *testing.T, p *manifests.Policy, file string) {
	_, err := p.ProfileNamed("")
	require.NoError(t, err)
	for _, profile := range p.Profiles {
		assert.NotZero(t, profile.Limits.Memory)
		assert.NotZero(t, profile.Limits.Timeout)
	}
	for _, source := range p.Context {
		checkOrigin(t, file, source.Origin)
		assert.Equal(t, source.From == manifests.Fixed, source.Value != "")
	}
	for _, grant := range p.Grants {
		checkGrant(t, file, grant)
	}
	for _, deny := range p.Deny {
		checkOrigin(t, file, deny.Origin)
		checkPatterns(t, deny.Tools)
		if deny.Network != nil {
			checkHost(t, deny.Network.Host)
		}
	}
	for _, ask := range p.Ask {
		checkOrigin(t, file, ask.Origin)
		checkPatterns(t, []string{ask.Tool})
	}
	for _, approval := range p.Approve {
		checkOrigin(t, file, approval.Origin)
		require.NotEmpty(t, approval.Tools)
		checkPatterns(t, approval.Tools)
		assert.Regexp(t, `^([0-9a-f]{64})?$`, approval.SHA256)
	}
}

func checkGrant(t *testing.T, file string, grant manifests.Grant) {
	require.NotEmpty(t, grant.Tools)
	checkPatterns(t, grant.Tools)
	checkOrigin(t, file, grant.Origin)
	for _, g := range grant.Files {
		checkOrigin(t, file, g.Origin)
		assert.Equal(t, path.Clean(g.Path), g.Path)
		assert.True(t, path.IsAbs(g.Path))
		assert.Equal(t, filepath.Clean(g.Host), g.Host)
		assert.Equal(t, grant.SHA256, g.SHA256)
	}
	for _, g := range grant.Network {
		checkOrigin(t, file, g.Origin)
		checkHost(t, g.Host)
		assert.NotEmpty(t, g.Host)
		assert.NotEmpty(t, g.Methods)
		assert.NotEmpty(t, g.Schemes)
		assert.NotEmpty(t, g.Paths)
		assert.Equal(t, grant.SHA256, g.SHA256)
	}
	for _, g := range grant.Secrets {
		checkOrigin(t, file, g.Origin)
		checkHost(t, g.Host)
		assert.NotEmpty(t, g.Host)
		assert.NotContains(t, g.Host, "*")
		assert.NotEmpty(t, g.From.Env+g.From.File+g.From.Age)
		assert.Equal(t, grant.SHA256, g.SHA256)
	}
	for _, g := range grant.Calls {
		checkOrigin(t, file, g.Origin)
		assert.Regexp(t, `^[a-zA-Z0-9_-]{1,64}$`, g.Tool)
		assert.Equal(t, grant.SHA256, g.SHA256)
	}
	for _, g := range grant.Context {
		checkOrigin(t, file, g.Origin)
	}
	for _, g := range grant.Env {
		checkOrigin(t, file, g.Origin)
		assert.NotContains(t, g.Name+g.Value, "\x00")
	}
}

func checkOrigin(t *testing.T, file, origin string) {
	assert.Regexp(t, "^"+file+":[1-9][0-9]*$", origin)
}

func checkHost(t *testing.T, host string) {
	assert.Equal(t, strings.ToLower(host), host)
	assert.NotContains(t, host, "/")
}

func checkPatterns(t *testing.T, patterns []string) {
	for _, pattern := range patterns {
		_, err := path.Match(pattern, "fetch_page")
		assert.NoError(t, err)
	}
}
