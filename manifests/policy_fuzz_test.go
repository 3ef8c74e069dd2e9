package manifests_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"slices"
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
		assert.Equal(t, normalise(p), normalise(must(manifests.ParsePolicy("caisson.json", renderPolicy(t, p)))))
	})
}

// checkPlaces checks that problems have positions inside the file. YAML knows more line breaks than the one.
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
	require.NoError(t, errOf(p.ProfileNamed("")))
	for _, profile := range p.Profiles {
		assert.NotZero(t, profile.Limits.Memory)
		assert.NotZero(t, profile.Limits.Timeout)
	}
	for _, source := range p.Context {
		checkOrigin(t, file, source.Origin)
		assert.Equal(t, source.From == manifests.FromFixed, source.Value != "")
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
		assert.Equal(t, path.Clean(g.Path.String()), g.Path.String())
		assert.True(t, path.IsAbs(g.Path.String()))
		assert.Equal(t, filepath.Clean(g.Host.String()), g.Host.String())
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
		assert.Regexp(t, `^[a-zA-Z0-9_-]{1,64}$`, g.Name)
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
		assert.NoError(t, errOf(path.Match(pattern, "fetch_page")))
	}
}

// object is a JSON object without the members that are zero; empty objects stay.
type object map[string]any

func (o object) MarshalJSON() ([]byte, error) {
	given := map[string]any{}
	for key, value := range o {
		switch text, _ := json.Marshal(value); string(text) {
		case `""`, "0", "null", "false":
		default:
			given[key] = json.RawMessage(text)
		}
	}
	return json.Marshal(given)
}

// renderPolicy writes a policy as a file that reads as the same policy.
func renderPolicy(t *testing.T, p *manifests.Policy) []byte {
	t.Helper()
	context, profiles := object{}, object{}
	for _, source := range p.Context {
		context[source.Name] = object{"from": source.From, "value": source.Value}
	}
	for _, profile := range p.Profiles {
		profiles[profile.Name] = object{
			"extends": "standard", "limits": renderLimits(profile.Limits),
			"network": noneIf(profile.NoNetwork), "writes": noneIf(profile.NoWrites),
		}
	}
	text, err := json.Marshal(object{
		"schema": manifests.PolicyV1, "profile": p.Profile, "profiles": profiles, "context": context,
		"tools":  each(p.Tools, func(path string) any { return object{"path": hostPath(path)} }),
		"grants": each(p.Grants, renderGrant), "deny": each(p.Deny, renderDeny),
		"ask": each(p.Ask, func(a manifests.PolicyAsk) any { return a.Tool }),
		"approve": each(p.Approve, func(a manifests.PolicyApproval) any {
			return object{"tools": a.Tools, "source": hostPath(a.Source), "sha256": a.SHA256}
		}),
	})
	require.NoError(t, err)
	return text
}

func renderLimits(l manifests.Limits) any {
	return object{
		"memory": l.Memory, "timeout": l.Timeout.String(), "fuel": l.Fuel, "output": l.Output, "stderr": l.Stderr,
		"http_calls": l.HTTPCalls, "http_bytes": l.HTTPBytes, "open_files": l.OpenFiles, "disk_bytes": l.DiskBytes,
	}
}

func renderGrant(g manifests.Grant) any {
	environment := map[string]string{}
	for _, e := range g.Env {
		environment[e.Name] = e.Value
	}
	return object{
		"tools": g.Tools, "source": hostPath(g.Source), "sha256": g.SHA256, "env": environment,
		"calls":   each(g.Calls, func(c manifests.NameGrant) any { return c.Name }),
		"context": each(g.Context, func(c manifests.NameGrant) any { return c.Name }),
		"files": each(g.Files, func(f manifests.FileGrant) any {
			return object{"path": f.Path, "host": hostPath(f.Host.String()), "access": f.Access, "quota": f.Quota.Bytes, "quota_files": f.Quota.Files}
		}),
		"network": each(g.Network, func(n manifests.NetworkGrant) any {
			return object{
				"host": n.Host, "ports": n.Ports, "methods": n.Methods, "schemes": n.Schemes, "paths": n.Paths,
				"addresses": prefixes(n.Addresses), "connect": n.Connect, "authorities": hostPath(n.Authorities),
			}
		}),
		"secrets": each(g.Secrets, func(s manifests.SecretGrant) any {
			return object{
				"name": s.Name, "host": s.Host, "ports": s.Ports, "schemes": s.Schemes, "force": s.Force,
				"header": s.Place.Header, "prefix": s.Place.Prefix, "query": s.Place.Query, "body": s.Place.Body,
				"from": object{"env": s.From.Env, "file": hostPath(s.From.File), "age": hostPath(s.From.Age), "identity": hostPath(s.From.Identity), "key": s.From.Key},
			}
		}),
	}
}

func renderDeny(d manifests.PolicyDeny) any {
	o := object{"tools": d.Tools, "secret": d.Secret, "context": d.Context, "env": d.Env, "call": d.Call}
	if d.Files != nil {
		o["files"] = object{"path": d.Files.Path, "access": d.Files.Access}
	}
	if n := d.Network; n != nil {
		o["network"] = object{
			"host": n.Host, "ports": n.Ports, "methods": n.Methods, "schemes": n.Schemes, "paths": n.Paths,
			"addresses": prefixes(n.Addresses),
		}
	}
	return o
}

func each[T any](elements []T, render func(T) any) []any {
	var rendered []any
	for _, element := range elements {
		rendered = append(rendered, render(element))
	}
	return rendered
}

// hostPath writes a relative path so that it is not taken for anything else.
func hostPath(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return "./" + path
}

func prefixes(list []netip.Prefix) []string {
	var texts []string
	for _, prefix := range list {
		texts = append(texts, prefix.String())
	}
	return texts
}

func noneIf(taken bool) string {
	if taken {
		return "none"
	}
	return "granted"
}

// normalise removes from a policy its origins and the order of the keys of its objects. It changes the policy.
func normalise(p *manifests.Policy) *manifests.Policy {
	slices.SortFunc(p.Profiles, func(a, b manifests.Profile) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(p.Context, func(a, b manifests.ContextSource) int { return strings.Compare(a.Name, b.Name) })
	for i := range p.Context {
		p.Context[i].Origin = ""
	}
	for i := range p.Grants {
		g := &p.Grants[i]
		slices.SortFunc(g.Env, func(a, b manifests.EnvGrant) int { return strings.Compare(a.Name, b.Name) })
		g.Origin = ""
		forget(g.Files, func(g *manifests.FileGrant) *manifests.Binding { return &g.Binding })
		forget(g.Network, func(g *manifests.NetworkGrant) *manifests.Binding { return &g.Binding })
		forget(g.Secrets, func(g *manifests.SecretGrant) *manifests.Binding { return &g.Binding })
		forget(g.Context, func(g *manifests.NameGrant) *manifests.Binding { return &g.Binding })
		forget(g.Calls, func(g *manifests.NameGrant) *manifests.Binding { return &g.Binding })
		forget(g.Env, func(g *manifests.EnvGrant) *manifests.Binding { return &g.Binding })
	}
	for i := range p.Deny {
		p.Deny[i].Origin = ""
	}
	for i := range p.Ask {
		p.Ask[i].Origin = ""
	}
	for i := range p.Approve {
		p.Approve[i].Origin = ""
	}
	return &manifests.Policy{ // without the places of its keys
		Tools: p.Tools, Profile: p.Profile, Profiles: p.Profiles, Context: p.Context, Grants: p.Grants, Deny: p.Deny, Ask: p.Ask, Approve: p.Approve,
	}
}

func forget[T any](elements []T, binding func(*T) *manifests.Binding) {
	for i := range elements {
		binding(&elements[i]).Origin = ""
	}
}
