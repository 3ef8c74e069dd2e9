package unapplied

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/manifests"
)

// statement is one element of what the operator gives or takes away.
type statement struct {
	manifests.Binding
	path     string                         // within its grant
	what     string                         // for people: "the directory /project"; empty for a call
	fix      string                         // empty for a call
	called   string                         // the tool to be called; empty for all else
	concerns func(*manifests.Manifest) bool // whether a manifest asks for it
}

// statementsIn returns the elements of grants, in their order.
func statementsIn(g manifests.Grants) []statement {
	var all []statement
	add := func(key string, b manifests.Binding, s statement) {
		s.path, s.Binding = key, b
		all = append(all, s)
	}
	for i, f := range g.Files {
		add(fmt.Sprintf("files[%d]", i), f.Binding, directoryStatement(f.Path, func(asked string) bool { return asked == f.Path }))
	}
	for i, n := range g.Network {
		add(fmt.Sprintf("network[%d]", i), n.Binding, hostStatement(n.Host))
	}
	for i, s := range g.Secrets {
		add(fmt.Sprintf("secrets[%d]", i), s.Binding, secretStatement(s.Name, s.Host))
	}
	for i, c := range g.Context {
		add(fmt.Sprintf("context[%d]", i), c.Binding, contextStatement(c.Name))
	}
	for _, e := range g.Env {
		add("env."+e.Name, e.Binding, envStatement(e.Name))
	}
	for i, c := range g.Calls {
		add(fmt.Sprintf("calls[%d]", i), c.Binding, callStatement(c.Tool))
	}
	return all
}

// denyStatement returns what a denial takes away.
func denyStatement(d manifests.Deny) statement {
	switch {
	case d.Files != nil:
		// A denial takes whole mounts away: those at its path and below.
		s := directoryStatement(d.Files.Path, func(asked string) bool {
			return asked == d.Files.Path || strings.HasPrefix(asked, strings.TrimSuffix(d.Files.Path, "/")+"/")
		})
		s.what += " or one below it"
		return s
	case d.Network != nil && d.Network.Host != "":
		return hostStatement(d.Network.Host)
	case d.Network != nil:
		return hostStatement("*")
	case d.Secret != "":
		return secretStatement(d.Secret, "")
	case d.Context != "":
		return contextStatement(d.Context)
	case d.Call != "":
		return callStatement(d.Call)
	}
	return envStatement(d.Env)
}

func directoryStatement(path string, is func(asked string) bool) statement {
	return statement{
		what: "the directory " + path, fix: "write a guest path that a manifest asks for, or remove it",
		concerns: func(m *manifests.Manifest) bool {
			return slices.ContainsFunc(m.Permissions.Files, func(p manifests.FilePermission) bool { return is(p.Path) })
		},
	}
}

func hostStatement(host string) statement {
	what := "requests to " + host
	if host == "*" {
		what = "the network"
	}
	return statement{
		what: what, fix: "write a host that a manifest asks for, or remove it",
		concerns: func(m *manifests.Manifest) bool {
			return slices.ContainsFunc(m.Permissions.Network, func(p manifests.NetworkPermission) bool {
				return coversHost(p.Host, host) || coversHost(host, p.Host)
			})
		},
	}
}

// coversHost reports whether a host, which may be *.NAME or *, has all of another one.
func coversHost(wide, narrow string) bool {
	if wide == "*" || wide == narrow {
		return true
	}
	below, wild := strings.CutPrefix(wide, "*")
	return wild && strings.HasSuffix(narrow, below)
}

// secretStatement is about a secret for one host; for any where the host is empty.
func secretStatement(name, host string) statement {
	what := "the secret " + name
	if host != "" {
		what += " for " + host
	}
	return statement{
		what: what, fix: "write a name and a host that a manifest asks for, or remove it",
		concerns: func(m *manifests.Manifest) bool {
			return slices.ContainsFunc(m.Permissions.Secrets, func(p manifests.SecretPermission) bool {
				return p.Name == name && (host == "" || p.Host == host)
			})
		},
	}
}

func contextStatement(name string) statement {
	return statement{
		what: "the context value " + name, fix: "write a name that a manifest has under context, or remove it",
		concerns: func(m *manifests.Manifest) bool { return slices.Contains(m.Context, name) },
	}
}

func envStatement(name string) statement {
	return statement{
		what: "the variable " + name, fix: "write a name that a manifest asks for, or remove it",
		concerns: func(m *manifests.Manifest) bool { return slices.Contains(m.Permissions.Env, name) },
	}
}

func callStatement(name string) statement {
	return statement{
		called:   name,
		concerns: func(m *manifests.Manifest) bool { return slices.Contains(m.Permissions.Tools, name) },
	}
}
