// Package permit computes what a tool was granted: request ∩ grant − deny, once, when the tool is loaded. The values
// enforce it in each call.
package permit

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/hostfuncs/calls"
	"github.com/caisson-run/caisson/hostfuncs/files"
	"github.com/caisson-run/caisson/hostfuncs/network"
	"github.com/caisson-run/caisson/hostfuncs/secrets"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// Permit holds a tool's effective permissions. It is immutable, except that its owner may add mounts of the tool's own
// files before the first call.
type Permit struct {
	Mounts      []files.Mount
	Environment []string
	Context     map[string]int // the context values in effect, with the indexes of their grants
	Network     *network.Client
	Secrets     *secrets.Set
	Calls       *calls.Permission
	Enforcers   []Enforcer // of the other kinds
	// AsksHost reports whether the manifest requests any permission that host functions other
	// than WASI's need.
	AsksHost  bool
	Settings  []string // the names of the variables and secrets granted to the tool
	Decisions []tool.Decision

	manifest *manifests.Manifest
	grants   manifests.Grants
	module   string // see [Options.Module]
}

// Options configure a [Permit].
type Options struct {
	Manifest *manifests.Manifest
	Grants   manifests.Grants
	// Module is the digest of the tool's module. It is set only if some grant is bound to a
	// digest and the module could be read.
	Module    string
	LookupEnv func(name string) (value string, set bool)
	Resolver  *net.Resolver
	Logger    *slog.Logger
}

// Error is an error about a grant or a denial of a directory.
type Error struct {
	Path   string // the guest path
	Origin string // where the operator wrote it; may be empty
	Denied bool   // whether it is a denial
	Err    error  // its text names all of these
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New returns a tool's permit. It fails if a grant is invalid.
func New(o Options) (*Permit, error) {
	p := &Permit{manifest: o.Manifest, grants: o.Grants, module: o.Module}
	for _, k := range Kinds() {
		p.AsksHost = p.AsksHost || k.Module != "" && k.Asked(o.Manifest)
		enforcer, err := k.decide(p, o)
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		if enforcer != nil {
			p.Decisions = append(p.Decisions, enforcer.Decisions()...)
			p.Enforcers = append(p.Enforcers, enforcer)
		}
	}
	return p, nil
}

func (p *Permit) decideSecrets(o Options) (err error) {
	options := secrets.Options{
		Tool: o.Manifest.Name, Module: o.Module, Requests: o.Manifest.Permissions.Secrets, Grants: o.Grants.Secrets,
		Deny:    o.Grants.Deny,
		Network: o.Manifest.Permissions.Network, LookupEnv: o.LookupEnv,
	}
	if p.Secrets, err = secrets.New(options); err != nil {
		return err
	}
	p.Decisions = append(p.Decisions, p.Secrets.Decisions()...)
	p.Settings = append(p.Settings, p.Secrets.Names()...)
	return nil
}

// decideNetwork must run after decideSecrets, since requests carry secrets.
func (p *Permit) decideNetwork(o Options) (err error) {
	options := network.Options{
		Tool: o.Manifest.Name, Module: o.Module, Requests: o.Manifest.Permissions.Network, Grants: o.Grants.Network,
		Deny:      o.Grants.Deny,
		NoNetwork: o.Grants.NoNetwork, Secrets: p.Secrets, Resolver: o.Resolver, Logger: o.Logger,
	}
	if p.Network, err = network.New(options); err != nil {
		return messageOf(err)
	}
	p.Decisions = append(p.Decisions, p.Network.Decisions()...)
	return nil
}

// messageOf returns an error with only the message: the tool's own error has the rest.
func messageOf(err error) error {
	if wrong, ok := errors.AsType[*hostfuncs.Error](err); ok {
		return errors.New(wrong.Message)
	}
	return err
}

func (p *Permit) decideCalls(o Options) (err error) {
	if p.Calls, err = calls.New(o.Manifest.Name, o.Manifest.Permissions.Tools, o.Grants, o.Module); err != nil {
		return messageOf(err)
	}
	p.Decisions = append(p.Decisions, p.Calls.Decisions()...)
	return nil
}

// Close closes the permit's connections.
func (p *Permit) Close() error {
	if p.Network == nil {
		return nil
	}
	return p.Network.Close()
}

// notNamed is the reason why a name is not in effect if no grant has it.
const notNamed = "no grant names it"

func (p *Permit) decideContext(o Options) (err error) {
	rules := o.Grants.NameRules("context", o.Manifest.Context, o.Module)
	decisions, effective := rules.DecideNames(notNamed,
		func(name string) tool.Allow { return AllowContext(o.Manifest.Name, name) })
	p.Context, p.Decisions = effective, append(p.Decisions, decisions...)
	return nil
}

// AllowContext returns the grant that lets a tool have a context value.
func AllowContext(toolName, name string) tool.Allow {
	return tool.Allow{Grant: manifests.Grants{Context: manifests.GrantContext(name)}.Rule(toolName)}
}

func (p *Permit) decideEnv(o Options) (err error) {
	for _, grant := range o.Grants.Env {
		if strings.ContainsRune(grant.Name+grant.Value, 0) {
			return fmt.Errorf("grant for the variable %q: NUL is not allowed in environment variables", grant.Name)
		}
	}
	decisions, effective := o.Grants.NameRules("env", o.Manifest.Permissions.Env, o.Module).DecideNames(notNamed,
		func(name string) tool.Allow {
			return tool.Allow{Grant: manifests.Grants{Env: []manifests.EnvGrant{{Name: name}}}.Rule(o.Manifest.Name)}
		})
	for _, d := range decisions {
		if grant, granted := effective[d.Requested]; granted {
			p.Environment = append(p.Environment, d.Requested+"="+o.Grants.Env[grant].Value)
			p.Settings = append(p.Settings, d.Requested)
		}
	}
	p.Decisions = append(p.Decisions, decisions...)
	return nil
}
