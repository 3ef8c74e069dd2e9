package manifests

import (
	"slices"
	"strconv"

	"github.com/caisson-run/caisson/internal/keypath"
	"github.com/caisson-run/caisson/internal/permission"
)

// Each of these kinds names one thing: a context value, an environment variable, a tool, a function.

// NameGrant grants a named resource: it lets the host fill in a context value for tools, or lets tools call another
// tool, which runs with its own permissions, or a function of the embedding program.
type NameGrant struct {
	Binding
	// Name of a tool is its exact name; an alias is a different name. Name of a function follows its namespace and a dot
	// unless that is extism:host/user.
	Name string
}

// GrantContext grants context values by name.
func GrantContext(names ...string) []NameGrant {
	grants := make([]NameGrant, len(names))
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

const maxEnvValue = 32 << 10 // bytes

type nameReader = func(r *reader, n *node, at string) string

// asksNames returns an asking for a kind of which a manifest has a list of names.
func asksNames(key string, of func(*Permissions) *[]string, read nameReader) *asking {
	return &asking{
		key: key,
		read: func(r *reader, n *node, at string, p *Permissions) {
			*of(p) = distinctOf(r, maxList, func(n *node, at string) string { return read(r, n, at) })(n, at)
		},
		write: func(p Permissions) *node { return listed(*of(&p), textOf) },
	}
}

// givesNames returns a giving for a kind of which a grant has a list of names.
func givesNames(
	key string, of func(*Grants) *[]NameGrant, limit int, read nameReader, about func(name string) Element,
) *giving {
	return grants(key, of, func(r *reader, n *node, at string) []NameGrant {
		var grants []NameGrant
		names := distinctOf(r, limit, func(n *node, at string) string { return read(r, n, at) })(n, at)
		for i, name := range names {
			grants = append(grants, NameGrant{Binding{Origin: r.origin(n.elements[i].at)}, name})
		}
		return grants
	}, listing(func(g NameGrant) *node { return textOf(g.Name) }), func(g NameGrant) Element { return about(g.Name) })
}

// takesName returns a taking for a kind of which a denial has one name.
func takesName(key string, of func(*Deny) *string, read nameReader, about func(name string) Element) *taking {
	return &taking{
		key:    key,
		read:   func(r *reader, n *node, at string, d *Deny) { *of(d) = read(r, n, at) },
		covers: func(d Deny) bool { return *of(&d) != "" },
		say:    func(d Deny) Element { return about(*of(&d)) },
	}
}

func contextValues() kind {
	return kind{
		name: "context", // a manifest requests it in a separate list, next to its permissions
		gives: givesNames("context", func(g *Grants) *[]NameGrant { return &g.Context },
			maxContext, (*reader).parameter, contextElement),
		takes: takesName("context", func(d *Deny) *string { return &d.Context }, (*reader).parameter, contextElement),
	}
}

func contextElement(name string) Element {
	const fix = "write a name that a manifest has under context, or remove it"
	return namedElement("the context value ", name, fix, func(m *Manifest) []string { return m.Context })
}

func environment() kind {
	return kind{
		name: "env",
		asks: asksNames("env", func(p *Permissions) *[]string { return &p.Env }, (*reader).setting),
		gives: grants("env", func(g *Grants) *[]EnvGrant { return &g.Env },
			(*reader).envGrants, variablesNode, func(e EnvGrant) Element {
				s := envElement(e.Name)
				s.Key = keypath.Key("env", e.Name)
				s.canonical = func() (any, error) { return []string{e.Name, strconv.Quote(e.Value)}, nil }
				return s
			}),
		takes: takesName("env", func(d *Deny) *string { return &d.Env }, (*reader).setting, envElement),
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

const nameFixOfElement = "write a name that a manifest asks for, or remove it"

func envElement(name string) Element {
	return namedElement("the variable ", name, nameFixOfElement, func(m *Manifest) []string { return m.Permissions.Env })
}

// tools is the kind for calls of other tools. It has no globs, so that a tool added later is not callable already.
func tools() kind {
	return kind{
		name:  "tools",
		asks:  asksNames("tools", func(p *Permissions) *[]string { return &p.Tools }, (*reader).name),
		gives: givesNames("calls", func(g *Grants) *[]NameGrant { return &g.Calls }, maxList, (*reader).name, callElement),
		takes: takesName("call", func(d *Deny) *string { return &d.Call }, (*reader).name, callElement),
	}
}

func callElement(name string) Element {
	s := namedElement("", name, "", func(m *Manifest) []string { return m.Permissions.Tools })
	s.About, s.Tool = "", name
	return s
}

// functions is the kind for functions that the embedding program offers to Extism plug-ins.
func functions() kind {
	return kind{
		name: "functions",
		asks: asksNames("functions", func(p *Permissions) *[]string { return &p.Functions }, (*reader).functionName),
		gives: givesNames("functions", func(g *Grants) *[]NameGrant { return &g.Functions },
			maxList, (*reader).functionName, functionElement),
		takes: takesName("function", func(d *Deny) *string { return &d.Function }, (*reader).functionName, functionElement),
	}
}

func (r *reader) functionName(n *node, at string) string {
	const fix = "write the name of a function, such as lookup, or that of its namespace before it, such as env.lookup"
	return r.word(permission.FunctionName, fix)(n, at)
}

func functionElement(name string) Element {
	asked := func(m *Manifest) []string { return m.Permissions.Functions }
	return namedElement("the function ", name, nameFixOfElement, asked)
}

func namedElement(what, name, fix string, asked func(*Manifest) []string) Element {
	return Element{
		name: name, About: what + name, Fix: fix, canonical: func() (any, error) { return name, nil },
		asked: func(m *Manifest) bool { return slices.Contains(asked(m), name) },
	}
}
