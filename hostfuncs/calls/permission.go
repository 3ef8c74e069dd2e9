package calls

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// Options are what a [Permission] is made of.
type Options struct {
	Tool     string   // whose it is, for suggestions
	Requests []string // what its manifest asks for, each name once
	Grants   []manifests.CallGrant
	Deny     []Denied
}

// Denied takes a name away from every grant. An alias of the tool is another name.
type Denied struct {
	Origin string // where that is written; may be empty
	Tool   string
}

// Permission is request ∩ grant − deny: the tools that one tool may call. It is immutable.
type Permission struct {
	tool     string
	requests []string
	granted  map[string]string // the origin by name
	denied   map[string]string // the same
}

// New returns the permission. The error, an [*Error], is for a grant of what no tool can be
// called.
func New(options Options) (*Permission, error) {
	p := &Permission{tool: options.Tool, requests: options.Requests, granted: map[string]string{}, denied: map[string]string{}}
	for _, grant := range options.Grants {
		if request(grant.Tool) == nil {
			return nil, &Error{Op: "new", Kind: ErrInvalid, Message: fmt.Sprintf("%s: %q is not the name of a tool", writer(grant.Origin), grant.Tool)}
		}
		if _, twice := p.granted[grant.Tool]; !twice {
			p.granted[grant.Tool] = grant.Origin
		}
	}
	for _, deny := range options.Deny {
		if _, twice := p.denied[deny.Tool]; !twice {
			p.denied[deny.Tool] = deny.Origin
		}
	}
	return p, nil
}

// request returns the rule by which a manifest asks to call a tool, which is nil where no tool can
// have the name.
func request(name string) json.RawMessage {
	return manifests.Permissions{Tools: []string{name}}.Rule()
}

// Check returns nil if the tool of that name, which may be any text, may be called, else the
// receipt. That is the caller's to keep.
func (p *Permission) Check(name string) *tool.Denial {
	asked := slices.Contains(p.requests, name)
	_, given := p.granted[name]
	by, denied := p.denied[name]
	if asked && given && !denied {
		return nil
	}
	receipt := &tool.Denial{Permission: "tools", Value: tool.Shown(name, maxShown)}
	switch {
	case request(name) == nil:
		receipt.Rule = "no tool can have this name"
		return receipt
	case denied:
		receipt.Rule = "denied by " + writer(by)
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

const maxShown = 128 // bytes of a name that receipts and records show

// Decisions says what became of each request, in their order.
func (p *Permission) Decisions() []tool.Decision {
	var decisions []tool.Decision
	for _, name := range p.requests {
		d := tool.Decision{Permission: "tools", Requested: name, Reason: "granted"}
		origin, given := p.granted[name]
		if given {
			d.Granted, d.Effective = name, name
			if origin != "" {
				d.Granted += " (" + origin + ")"
			}
		}
		if receipt := p.Check(name); receipt != nil {
			d.Effective, d.Reason, d.Allow = "", receipt.Rule, receipt.Allow
		}
		decisions = append(decisions, d)
	}
	return decisions
}

// writer names who wrote a grant or a denial.
func writer(origin string) string {
	if origin == "" {
		return "the operator"
	}
	return origin
}
