package calls

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/caisson-run/caisson/hostfuncs"
	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// Permission is the set of tools that one tool may call: request ∩ grant − deny. It is immutable.
type Permission struct {
	tool      string
	rules     permission.Rules
	allowed   map[string]int // the indexes of the grants
	decisions []tool.Decision
}

const kind permission.Kind = "tools"

// New returns the permission of a tool, whose manifest requests to call the tools of these names. The module is its
// digest in lower-case hex digits, or empty if it is not known. A denied name is excluded from every grant, but aliases
// of the tool are not. New fails with an [*hostfuncs.Error] if the name in a grant is not a valid tool name.
func New(toolName string, requests []string, grants manifests.Grants, module string) (*Permission, error) {
	for _, grant := range grants.Calls {
		if request(grant.Name) == nil {
			return nil, &hostfuncs.Error{
				Op: "new", Kind: hostfuncs.ErrInvalid,
				Message: fmt.Sprintf("%s: %q is not the name of a tool", cmp.Or(grant.Origin, permission.Operator), grant.Name),
			}
		}
	}
	p := &Permission{tool: toolName, rules: grants.NameRules(kind, requests, module)}
	p.decisions, p.allowed = p.rules.DecideNames(notGranted, p.allowGrant)
	return p, nil
}

const notGranted = "no grant lets it be called"

// request returns the rule with which a manifest requests to call a tool, or nil if the name is not a valid tool name.
func request(name string) json.RawMessage { return manifests.Permissions{Tools: []string{name}}.Rule() }

func (p *Permission) allowGrant(name string) tool.Allow {
	return tool.Allow{Grant: manifests.Grants{Calls: []manifests.NameGrant{{Name: name}}}.Rule(p.tool)}
}

// check returns nil if the tool may be called, else a receipt that the caller may keep. The name may be any text.
func (p *Permission) check(name string) *tool.Denial {
	if _, allowed := p.allowed[name]; allowed {
		return nil
	}
	wanted := permission.NewName(kind, name)
	outcome := p.rules.DecideOne(wanted)
	asked, given := slices.Contains(p.rules.Requests, permission.Rule(wanted)), len(outcome.Granted) > 0
	receipt := &tool.Denial{Permission: string(kind), Value: tool.Shown(name, maxShown)}
	switch {
	case request(name) == nil:
		receipt.Rule = "no tool can have this name"
		return receipt
	case len(outcome.Taken) > 0:
		receipt.Rule = p.rules.DeniedBy(outcome)
		return receipt
	case !asked && !given:
		receipt.Rule = "the manifest does not ask to call it, and no grant lets it be called"
	case !asked:
		receipt.Rule = "the manifest does not ask to call it"
	default:
		receipt.Rule = notGranted
	}
	if !given {
		receipt.Allow = p.allowGrant(name)
	}
	if !asked {
		receipt.Allow.Manifest = request(name)
	}
	return receipt
}

const maxShown = 128 // bytes of a name in receipts and records

// Decisions returns the decision on each request, in the order of the requests.
func (p *Permission) Decisions() []tool.Decision { return p.decisions }
