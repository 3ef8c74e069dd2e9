package calls

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/permission"
	"github.com/caisson-run/caisson/tool"
)

// Options configure a [Permission].
type Options struct {
	Tool     string   // the calling tool, named in suggested grants
	Module   string   // its module's SHA-256 in lower-case hex; if empty, no grant bound to a module applies
	Requests []string // the names its manifest requests, without duplicates
	Grants   []manifests.CallGrant
	Deny     []Denied
}

// Denied excludes a name from every grant. It does not exclude aliases of the tool.
type Denied struct {
	Origin string // where the denial is written; may be empty
	Tool   string
}

// Permission is the set of tools that one tool may call: request ∩ grant − deny. It is immutable.
type Permission struct {
	tool     string
	module   string
	requests []permission.Statement
	grants   []permission.Statement
	denials  []permission.Statement
	allowed  map[string]bool
}

const (
	kind permission.Kind = "tools"
	// operator stands for the origin of a grant or a denial that has none.
	operator = "the operator"
)

// New returns the permission. It fails with an [*Error] if a grant names what is not a valid tool
// name.
func New(options Options) (*Permission, error) {
	p := &Permission{tool: options.Tool, module: options.Module, allowed: map[string]bool{}}
	for _, name := range options.Requests {
		p.requests = append(p.requests, permission.Statement{Rule: permission.NewName(kind, name)})
	}
	for _, grant := range options.Grants {
		if request(grant.Tool) == nil {
			return nil, &Error{Op: "new", Kind: ErrInvalid, Message: fmt.Sprintf("%s: %q is not the name of a tool", cmp.Or(grant.Origin, operator), grant.Tool)}
		}
		p.grants = append(p.grants, permission.Statement{Rule: permission.NewName(kind, grant.Tool), Origin: grant.Origin, SHA256: grant.SHA256})
	}
	for _, deny := range options.Deny {
		p.denials = append(p.denials, permission.Statement{Rule: permission.NewName(kind, deny.Tool), Origin: deny.Origin})
	}
	for i, outcome := range permission.Decide(p.requests, p.grants, p.denials, p.module) {
		if len(outcome.Effective) > 0 {
			p.allowed[options.Requests[i]] = true
		}
	}
	return p, nil
}

// request returns the rule with which a manifest requests to call a tool, or nil if the name is not
// a valid tool name.
func request(name string) json.RawMessage {
	return manifests.Permissions{Tools: []string{name}}.Rule()
}

// Check returns nil if the tool may be called, else a receipt that the caller may keep. The name
// may be any text.
func (p *Permission) Check(name string) *tool.Denial {
	if p.allowed[name] {
		return nil
	}
	wanted := permission.Statement{Rule: permission.NewName(kind, name)}
	outcome := permission.Decide([]permission.Statement{wanted}, p.grants, p.denials, p.module)[0]
	asked, given := slices.Contains(p.requests, wanted), len(outcome.Granted) > 0
	receipt := &tool.Denial{Permission: string(kind), Value: tool.Shown(name, maxShown)}
	switch {
	case request(name) == nil:
		receipt.Rule = "no tool can have this name"
		return receipt
	case len(outcome.Taken) > 0:
		receipt.Rule = "denied by " + cmp.Or(p.denials[outcome.Taken[0]].Origin, operator)
		return receipt
	case !asked && !given:
		receipt.Rule = "the manifest does not ask to call it, and no grant lets it be called"
	case !asked:
		receipt.Rule = "the manifest does not ask to call it"
	default:
		receipt.Rule = "no grant lets it be called"
	}
	if !asked {
		receipt.Allow.Manifest = request(name)
	}
	if !given {
		receipt.Allow.Grant = manifests.Grant{Tools: []string{p.tool}, Calls: []manifests.CallGrant{{Tool: name}}}.Rule()
	}
	return receipt
}

const maxShown = 128 // bytes of a name in receipts and records

// Decisions returns the decision on each request, in the order of the requests.
func (p *Permission) Decisions() []tool.Decision {
	var decisions []tool.Decision
	for i, outcome := range permission.Decide(p.requests, p.grants, p.denials, p.module) {
		name := p.requests[i].Rule.(permission.Name).String()
		d := tool.Decision{Permission: string(kind), Requested: name, Reason: "granted"}
		if len(outcome.Granted) > 0 {
			d.Granted, d.Effective = name, name
			if origin := p.grants[outcome.Granted[0].Grant].Origin; origin != "" {
				d.Granted += " (" + origin + ")"
			}
		}
		if receipt := p.Check(name); receipt != nil {
			d.Effective, d.Reason, d.Allow = "", receipt.Rule, receipt.Allow
			for _, i := range outcome.Elsewhere {
				d.Reason += "; " + p.grants[i].OtherModule("the grant", p.module)
			}
		}
		decisions = append(decisions, d)
	}
	return decisions
}
