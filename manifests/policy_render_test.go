package manifests_test

import (
	"encoding/json"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/caisson-run/caisson/manifests"
)

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
		"calls":   each(g.Calls, func(c manifests.CallGrant) any { return c.Tool }),
		"context": each(g.Context, func(c manifests.ContextGrant) any { return c.Name }),
		"files": each(g.Files, func(f manifests.FileGrant) any {
			return object{"path": f.Path, "host": hostPath(f.Host), "access": f.Access, "quota": f.Quota.Bytes, "quota_files": f.Quota.Files}
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

// normalise takes from a policy where it stands, and the order in which the keys of its
// objects stood. It changes the policy.
func normalise(p *manifests.Policy) *manifests.Policy {
	p.File = ""
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
		forget(g.Context, func(g *manifests.ContextGrant) *manifests.Binding { return &g.Binding })
		forget(g.Calls, func(g *manifests.CallGrant) *manifests.Binding { return &g.Binding })
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
	return p
}

func forget[T any](elements []T, binding func(*T) *manifests.Binding) {
	for i := range elements {
		binding(&elements[i]).Origin = ""
	}
}
