package manifests

import (
	"slices"
	"strconv"

	"github.com/caisson-run/caisson/internal/keypath"
	"github.com/caisson-run/caisson/internal/permission"
)

// Each of these kinds names one thing: a context value, an environment variable, a tool, a function.

// ContextGrant lets the host fill in a context value for tools.
type ContextGrant struct {
	Binding
	Name string
}

// GrantContext grants context values by name.
func GrantContext(names ...string) []ContextGrant {
	grants := make([]ContextGrant, len(names))
	for i, name := range names {
		grants[i].Name = name
	}
	return grants
}

// EnvGrant sets an environment variable for tools.
type EnvGrant struct {
	Binding
	Name, Value string
}

// CallGrant lets tools call another tool. The called tool runs with its own permissions.
type CallGrant struct {
	Binding
	// Tool is the exact name of the tool that may be called. An alias is a different name.
	Tool string
}

const maxEnvValue = 32 << 10 // bytes

func contextValues() kind {
	return kind{
		name: "context", // a manifest requests it in a separate list, beside its permissions
		gives: grants("context", func(g *Grants) *[]ContextGrant { return &g.Context },
			func(r *reader, n *node, at string) []ContextGrant {
				return namedGrants(r, n, at, maxContext, r.parameter, func(b Binding, name string) ContextGrant { return ContextGrant{b, name} })
			},
			listing(func(c ContextGrant) *node { return textOf(c.Name) }), func(c ContextGrant) Element { return contextElement(c.Name) }),
		takes: &taking{
			key: "context", read: func(r *reader, n *node, at string, d *Deny) { d.Context = r.parameter(n, at) },
			say: func(d Deny) (Element, bool) { return contextElement(d.Context), d.Context != "" },
		},
	}
}

func contextElement(name string) Element {
	return namedElement("the context value ", name, "write a name that a manifest has under context, or remove it", func(m *Manifest) []string { return m.Context })
}

func environment() kind {
	return kind{
		name: "env",
		asks: &asking{
			key: "env", read: func(r *reader, n *node, at string, p *Permissions) { p.Env = distinctOf(r, maxList, r.setting)(n, at) },
			write: func(p Permissions) *node { return listed(p.Env, textOf) },
		},
		gives: grants("env", func(g *Grants) *[]EnvGrant { return &g.Env },
			(*reader).envGrants, variablesNode, func(e EnvGrant) Element {
				s := envElement(e.Name)
				s.Key = keypath.Key("env", e.Name)
				s.canonical = func() (any, error) { return []string{e.Name, strconv.Quote(e.Value)}, nil }
				return s
			}),
		takes: &taking{
			key: "env", read: func(r *reader, n *node, at string, d *Deny) { d.Env = r.setting(n, at) },
			say: func(d Deny) (Element, bool) { return envElement(d.Env), d.Env != "" },
		},
	}
}

func (r *reader) envGrants(n *node, path string) []EnvGrant {
	var grants []EnvGrant
	r.mapping(n, path, maxList, func(m member, path string) {
		r.key(m, path, settingName, settingFix)
		grants = append(grants, EnvGrant{Binding{Origin: r.origin(m.at)}, m.key, r.value(maxEnvValue)(m.value, path)})
	})
	return grants
}

func variablesNode(variables []EnvGrant) *node {
	if len(variables) == 0 {
		return nil
	}
	n := objectOf()
	for _, variable := range variables {
		n.members = append(n.members, keyed(variable.Name, &node{}))
	}
	return n
}

func envElement(name string) Element {
	return namedElement("the variable ", name, "write a name that a manifest asks for, or remove it", func(m *Manifest) []string { return m.Permissions.Env })
}

// tools is the kind for calls of other tools. It has no globs, so that a tool added later is not callable already.
func tools() kind {
	return kind{
		name: "tools",
		asks: &asking{
			key: "tools", read: func(r *reader, n *node, at string, p *Permissions) { p.Tools = distinctOf(r, maxList, r.name)(n, at) },
			write: func(p Permissions) *node { return listed(p.Tools, textOf) },
		},
		gives: grants("calls", func(g *Grants) *[]CallGrant { return &g.Calls },
			func(r *reader, n *node, at string) []CallGrant {
				return namedGrants(r, n, at, maxList, r.name, func(b Binding, name string) CallGrant { return CallGrant{b, name} })
			},
			listing(func(c CallGrant) *node { return textOf(c.Tool) }), func(c CallGrant) Element { return callElement(c.Tool) }),
		takes: &taking{
			key: "call", read: func(r *reader, n *node, at string, d *Deny) { d.Call = r.name(n, at) },
			say: func(d Deny) (Element, bool) { return callElement(d.Call), d.Call != "" },
		},
	}
}

func callElement(name string) Element {
	s := namedElement("", name, "", func(m *Manifest) []string { return m.Permissions.Tools })
	s.About, s.Tool = "", name
	return s
}

// namedGrants reads a list of distinct names.
func namedGrants[G any](r *reader, n *node, path string, most int, read parser[string], grant func(Binding, string) G) []G {
	var grants []G
	for i, name := range distinctOf(r, most, read)(n, path) {
		grants = append(grants, grant(Binding{Origin: r.origin(n.elements[i].at)}, name))
	}
	return grants
}

func namedElement(what, name, fix string, asked func(*Manifest) []string) Element {
	return Element{
		name: name, About: what + name, Fix: fix, canonical: func() (any, error) { return name, nil },
		asked: func(m *Manifest) bool { return slices.Contains(asked(m), name) },
	}
}

// FunctionGrant lets tools call a function of the embedding program.
type FunctionGrant struct {
	Binding
	// Name is that of the function, behind its namespace and a dot unless that is extism:host/user.
	Name string
}

// functions is the kind for functions that the embedding program offers to Extism plug-ins.
func functions() kind {
	read := func(r *reader) parser[string] {
		return r.word(permission.FunctionName, "write the name of a function, such as lookup, or that of its namespace before it, such as env.lookup")
	}
	return kind{
		name: "functions",
		asks: &asking{
			key: "functions", read: func(r *reader, n *node, at string, p *Permissions) {
				p.Functions = distinctOf(r, maxList, read(r))(n, at)
			},
			write: func(p Permissions) *node { return listed(p.Functions, textOf) },
		},
		gives: grants("functions", func(g *Grants) *[]FunctionGrant { return &g.Functions },
			func(r *reader, n *node, at string) []FunctionGrant {
				return namedGrants(r, n, at, maxList, read(r), func(b Binding, name string) FunctionGrant { return FunctionGrant{b, name} })
			},
			listing(func(f FunctionGrant) *node { return textOf(f.Name) }), func(f FunctionGrant) Element { return functionElement(f.Name) }),
		takes: &taking{
			key: "function", read: func(r *reader, n *node, at string, d *Deny) { d.Function = read(r)(n, at) },
			say: func(d Deny) (Element, bool) { return functionElement(d.Function), d.Function != "" },
		},
	}
}

func functionElement(name string) Element {
	return namedElement("the function ", name, "write a name that a manifest asks for, or remove it", func(m *Manifest) []string { return m.Permissions.Functions })
}
