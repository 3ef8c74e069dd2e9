package runtime

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/hostfuncs/calls"
	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/hostfuncs/network"
	"github.com/caisson-run/caisson/hostfuncs/secrets"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/permission"
	"github.com/caisson-run/caisson/runtime/internal/engine"
	"github.com/caisson-run/caisson/tool"
)

// permit holds a tool's effective permissions: request ∩ grant, computed once. The same values
// enforce them.
type permit struct {
	// module is the digest of the tool's module. It is set only if some grant is bound to a
	// digest and the module could be read.
	module      string
	mounts      []files.Mount
	environment []string
	context     map[string]bool
	network     *network.Client
	secrets     *secrets.Set
	calls       *calls.Permission
	enforcers   []enforcer // of the other kinds
	// asksHost reports whether the manifest requests any permission that host functions other
	// than WASI's need.
	asksHost bool

	// settings are the names of the variables and secrets granted to the tool.
	settings  []string
	decisions []tool.Decision
}

// newPermit returns a tool's permit. It fails with [ErrGrant] on an invalid grant.
// The module is the digest of the tool's module, or empty if it is not known.
func (r *Runtime) newPermit(m *manifests.Manifest, grants manifests.Grants, module string) (*permit, error) {
	if grants.NoNetwork == "" && r.profile.NoNetwork {
		grants.NoNetwork = r.profile.Name
	}
	if grants.NoWrites == "" && r.profile.NoWrites {
		grants.NoWrites = r.profile.Name
	}
	p := &permit{context: map[string]bool{}, module: module}
	for _, k := range kinds() {
		p.asksHost = p.asksHost || k.module != "" && k.asked(m)
		e, err := k.decide(p, r, m, grants)
		if err != nil {
			if _, placed := errors.AsType[*grantError](err); !placed {
				err = &grantError{err: err}
			}
			return nil, errors.Join(err, p.close())
		}
		if e != nil {
			p.decisions = append(p.decisions, e.Decisions()...)
			p.enforcers = append(p.enforcers, e)
		}
	}
	return p, nil
}

func (p *permit) decideSecrets(r *Runtime, m *manifests.Manifest, grants manifests.Grants) (_ enforcer, err error) {
	options := secrets.Options{Tool: m.Name, Module: p.module, Requests: m.Permissions.Secrets, Grants: grants.Secrets, Network: m.Permissions.Network, LookupEnv: r.lookupEnv}
	for _, deny := range grants.Deny {
		if deny.Secret != "" {
			options.Deny = append(options.Deny, secrets.Denied{Origin: deny.Origin, Name: deny.Secret})
		}
	}
	if p.secrets, err = secrets.New(options); err != nil {
		return nil, err
	}
	p.decisions = append(p.decisions, p.secrets.Decisions()...)
	p.settings = append(p.settings, p.secrets.Names()...)
	return nil, nil
}

// decideNetwork must run after decideSecrets, since requests carry secrets.
func (p *permit) decideNetwork(r *Runtime, m *manifests.Manifest, grants manifests.Grants) (_ enforcer, err error) {
	options := network.Options{
		Tool: m.Name, Module: p.module, Requests: m.Permissions.Network, Grants: grants.Network, NoNetwork: grants.NoNetwork,
		Secrets: p.secrets, Resolver: r.resolver, Logger: r.logger,
	}
	for _, deny := range grants.Deny {
		if deny.Network != nil {
			options.Deny = append(options.Deny, network.Denied{Origin: deny.Origin, NetworkDeny: *deny.Network})
		}
	}
	if p.network, err = network.New(options); err != nil {
		if wrong, ok := errors.AsType[*network.Error](err); ok {
			return nil, errors.New(wrong.Message)
		}
		return nil, err
	}
	p.decisions = append(p.decisions, p.network.Decisions()...)
	return nil, nil
}

func (p *permit) decideCalls(_ *Runtime, m *manifests.Manifest, grants manifests.Grants) (_ enforcer, err error) {
	options := calls.Options{Tool: m.Name, Module: p.module, Requests: m.Permissions.Tools, Grants: grants.Calls}
	for _, deny := range grants.Deny {
		if deny.Call != "" {
			options.Deny = append(options.Deny, calls.Denied{Origin: deny.Origin, Tool: deny.Call})
		}
	}
	if p.calls, err = calls.New(options); err != nil {
		if wrong, ok := errors.AsType[*calls.Error](err); ok {
			return nil, errors.New(wrong.Message)
		}
		return nil, err
	}
	p.decisions = append(p.decisions, p.calls.Decisions()...)
	return nil, nil
}

// close frees what the permit holds open.
func (p *permit) close() error {
	if p.network == nil {
		return nil
	}
	return p.network.Close()
}

func (p *permit) decideContext(_ *Runtime, m *manifests.Manifest, grants manifests.Grants) (enforcer, error) {
	names := nameRules{kind: "context", module: p.module}
	for _, name := range m.Context {
		names.request(name)
	}
	for _, grant := range grants.Context {
		names.grant(grant.Name, grant.Binding)
	}
	for _, deny := range grants.Deny {
		names.deny(deny.Context, deny.Origin)
	}
	p.decisions = append(p.decisions, names.decide(
		func(name string, _ int) { p.context[name] = true },
		func(name string) tool.Allow { return contextAllow(m.Name, name) })...)
	return nil, nil
}

func contextAllow(toolName, name string) tool.Allow {
	return tool.Allow{Grant: manifests.Grant{Tools: []string{toolName}, Context: manifests.GrantContext(name)}.Rule()}
}

func (p *permit) decideEnv(_ *Runtime, m *manifests.Manifest, grants manifests.Grants) (enforcer, error) {
	for _, grant := range grants.Env {
		if strings.ContainsRune(grant.Name+grant.Value, 0) {
			return nil, fmt.Errorf("grant for the variable %q: NUL is not allowed in environment variables", grant.Name)
		}
	}
	names := nameRules{kind: "env", module: p.module}
	for _, name := range m.Permissions.Env {
		names.request(name)
	}
	for _, grant := range grants.Env {
		names.grant(grant.Name, grant.Binding)
	}
	for _, deny := range grants.Deny {
		names.deny(deny.Env, deny.Origin)
	}
	p.decisions = append(p.decisions, names.decide(
		func(name string, grant int) {
			p.environment = append(p.environment, name+"="+grants.Env[grant].Value)
			p.settings = append(p.settings, name)
		},
		func(name string) tool.Allow {
			return tool.Allow{Grant: manifests.Grant{Tools: []string{m.Name}, Env: []manifests.EnvGrant{{Name: name}}}.Rule()}
		})...)
	return nil, nil
}

// from describes what is granted and where the grant is written.
func from(what, origin string) string {
	if origin == "" {
		return what
	}
	return what + " (" + origin + ")"
}

// denies names the rule that denied something.
func denies(origin string) string { return "denied by " + or(origin, "the operator") }

// digestOfBound returns the digest of the tool's module if some grant is bound to a digest. It
// returns zero if none is, or if the module cannot be read. Then no bound grant holds.
func digestOfBound(m *manifests.Manifest, grants manifests.Grants) (engine.Digest, error) {
	if !isBound(grants) {
		return engine.Digest{}, nil
	}
	digest, err := moduleDigest(m)
	if err != nil && !errors.Is(err, ErrModule) {
		return engine.Digest{}, err
	}
	return digest, nil
}

// moduleText returns a digest in the form that grants use, or "" for the zero value.
func moduleText(digest engine.Digest) string {
	if digest == (engine.Digest{}) {
		return ""
	}
	return digest.String()
}

// isBound reports whether any grant is bound to a digest.
func isBound(g manifests.Grants) bool {
	return slices.ContainsFunc(g.Statements(), func(s manifests.Statement) bool { return s.SHA256 != "" }) ||
		slices.ContainsFunc(g.Approved, func(a manifests.ApprovalGrant) bool { return a.SHA256 != "" })
}

// holds reports whether a grant with this binding holds for the permit's module.
func (p *permit) holds(binding manifests.Binding) bool {
	return permission.Statement{SHA256: binding.SHA256}.Holds(p.module)
}

// nameRules holds the rules of a kind of permission that is a plain name, such as env or context.
type nameRules struct {
	kind                      permission.Kind
	module                    string // its digest, or empty if unknown
	requests, grants, denials []permission.Statement
}

func (n *nameRules) rule(name string) permission.Rule { return permission.NewName(n.kind, name) }

func (n *nameRules) request(name string) {
	n.requests = append(n.requests, permission.Statement{Rule: n.rule(name)})
}

func (n *nameRules) grant(name string, binding manifests.Binding) {
	n.grants = append(n.grants, permission.Statement{Rule: n.rule(name), Origin: binding.Origin, SHA256: binding.SHA256})
}

// deny adds a denial. The name is empty for denials of other kinds, which match no request.
func (n *nameRules) deny(name, origin string) {
	n.denials = append(n.denials, permission.Statement{Rule: n.rule(name), Origin: origin})
}

// decide returns the decisions in the order of the requests. It calls give for each effective name,
// with the first grant that covers it. For each name without a grant, allow returns the rule that
// would grant it.
func (n *nameRules) decide(give func(name string, grant int), allow func(name string) tool.Allow) []tool.Decision {
	var decisions []tool.Decision
	for i, outcome := range permission.Decide(n.requests, n.grants, n.denials, n.module) {
		name := n.requests[i].Rule.(permission.Name).String()
		d := tool.Decision{Permission: string(n.kind), Requested: name}
		if len(outcome.Granted) > 0 {
			d.Granted = from(name, n.grants[outcome.Granted[0].Grant].Origin)
		}
		switch {
		case len(outcome.Taken) > 0:
			d.Reason = denies(n.denials[outcome.Taken[0]].Origin)
		case len(outcome.Effective) > 0:
			give(name, outcome.Effective[0].Grant)
			d.Effective, d.Reason = name, "granted"
		default:
			d.Reason, d.Allow = "no grant names it", allow(name)
		}
		if d.Effective == "" {
			d.Reason += elsewhere(outcome, n.grants, n.module)
		}
		decisions = append(decisions, d)
	}
	return decisions
}

// elsewhere names the grants that are bound to other modules. The text is appended to a reason.
func elsewhere(outcome permission.Outcome, grants []permission.Statement, module string) string {
	text := ""
	for _, i := range outcome.Elsewhere {
		text += "; " + grants[i].OtherModule("the grant", module)
	}
	return text
}
