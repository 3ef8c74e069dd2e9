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
	context     map[string]int // the context values in effect, with the indexes of their grants
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
	p := &permit{module: module}
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
	options := secrets.Options{
		Tool: m.Name, Module: p.module, Requests: m.Permissions.Secrets, Grants: grants.Secrets, Deny: grants.Deny,
		Network: m.Permissions.Network, LookupEnv: r.lookupEnv,
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
		Tool: m.Name, Module: p.module, Requests: m.Permissions.Network, Grants: grants.Network, Deny: grants.Deny,
		NoNetwork: grants.NoNetwork, Secrets: p.secrets, Resolver: r.resolver, Logger: r.logger,
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
	if p.calls, err = calls.New(m.Name, m.Permissions.Tools, grants, p.module); err != nil {
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

// notNamed is the reason why a name is not in effect if no grant has it.
const notNamed = "no grant names it"

func (p *permit) decideContext(_ *Runtime, m *manifests.Manifest, grants manifests.Grants) (enforcer, error) {
	rules := grants.NameRules("context", m.Context, p.module)
	decisions, effective := rules.DecideNames(notNamed, func(name string) tool.Allow { return contextAllow(m.Name, name) })
	p.context, p.decisions = effective, append(p.decisions, decisions...)
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
	decisions, effective := grants.NameRules("env", m.Permissions.Env, p.module).DecideNames(notNamed, func(name string) tool.Allow {
		return tool.Allow{Grant: manifests.Grant{Tools: []string{m.Name}, Env: []manifests.EnvGrant{{Name: name}}}.Rule()}
	})
	for _, d := range decisions {
		if grant, granted := effective[d.Requested]; granted {
			p.environment = append(p.environment, d.Requested+"="+grants.Env[grant].Value)
			p.settings = append(p.settings, d.Requested)
		}
	}
	p.decisions = append(p.decisions, decisions...)
	return nil, nil
}

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
	return slices.ContainsFunc(g.Elements(), func(e manifests.Element) bool { return e.SHA256 != "" }) ||
		slices.ContainsFunc(g.Approved, func(a manifests.ApprovalGrant) bool { return a.SHA256 != "" })
}
