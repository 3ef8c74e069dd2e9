package network

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"github.com/caisson-run/caisson/internal/permission"
	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/tool"
)

// receipt returns why a request was denied and the rules that would allow it. Its Value is not set.
func (p *effective) receipt(l *location, method string) tool.Denial {
	refused := tool.Denial{Permission: "network"}
	if d := p.denialOf(l, method); d != nil {
		refused.Rule = d.reason()
		return refused
	}
	asked := closest(p.requests, func(r *rule) *rule { return r }, l, method)
	given := closest(p.grants, (*grant).here, l, method)
	refused.Rule = p.ruleText(asked, given, l, method)
	if asked.gap != 0 {
		if wanted, ok := p.need(asked, l, method); ok {
			refused.Allow.Manifest = manifests.Permissions{Network: []manifests.NetworkPermission{wanted}}.Rule()
		}
	}
	if given.gap != 0 {
		if wanted, ok := p.need(given, l, method); ok {
			refused.Allow.Grant = p.grantFor(manifests.NetworkGrant{NetworkPermission: wanted})
		}
	}
	return refused
}

// candidate is the rule closest to a request.
type candidate struct {
	index int
	rule  *rule // nil if no rule matches the host
	gap   gap   // zero: the rule allows the request
}

func closest[T any](all []T, ruleOf func(*T) *rule, l *location, method string) candidate {
	best := candidate{gap: gapHost}
	for i := range all {
		r := ruleOf(&all[i])
		if r == nil {
			continue
		}
		if differs := r.gap(l, method); differs < best.gap {
			best = candidate{i, r, differs}
		}
	}
	return best
}

func (p *effective) ruleText(asked, given candidate, l *location, method string) string {
	what := hostText(l)
	switch {
	case asked.rule == nil && given.rule == nil:
		return fmt.Sprintf("the manifest does not ask for %s, and no grant covers it", what)
	case asked.rule == nil:
		return fmt.Sprintf("the manifest does not ask for %s", what)
	case asked.gap != 0:
		return fmt.Sprintf("the manifest asks for %s, but not %s", what, asked.gap.text(l, method))
	case given.rule == nil:
		return fmt.Sprintf("no grant covers %s", what)
	}
	return fmt.Sprintf("the grant%s covers %s, but not %s", at(p.grants[given.index].Origin), what,
		given.gap.text(l, method))
}

// hostText returns the host, if it is short enough for a sentence.
func hostText(l *location) string {
	if host := l.Host.String(); len(host) <= 100 {
		return host
	}
	return "this host"
}

func (g gap) text(l *location, method string) string {
	var parts []string
	if g&gapEndpoint != 0 {
		parts = append(parts, fmt.Sprintf("%s on port %d", l.Scheme, l.Port))
	}
	if g&gapMethod != 0 {
		parts = append(parts, method)
	}
	if g&gapPath != 0 && l.path.IsAmbiguous() {
		parts = append(parts, "a path that can be read in two ways")
	} else if g&gapPath != 0 {
		parts = append(parts, "this path")
	}
	return strings.Join(parts, ", and not ")
}

// need returns the smallest permission that closes the gap, or false if none can be written or should be suggested.
func (p *effective) need(c candidate, l *location, method string) (manifests.NetworkPermission, bool) {
	wanted := manifests.NetworkPermission{Host: l.Host.String(), Methods: []string{method}, Schemes: []string{l.Scheme}}
	if l.Port != permission.DefaultPort(l.Scheme) {
		wanted.Ports = []int{l.Port}
	}
	if address := l.Host.Address(); address.IsValid() {
		if s, is := p.known.special(address); is && !s.own {
			return wanted, false
		}
	}
	switch {
	case c.rule == nil:
	case c.rule.allowsPath(l):
		wanted.Paths = []string{c.rule.prefixOf(l)}
	case l.path.IsAmbiguous() || len(l.path.String()) > maxShown:
		return wanted, false
	default:
		wanted.Paths = []string{l.path.String()}
	}
	return wanted, true
}

// prefixOf returns the rule's prefix that matches a path, or "/".
func (r *rule) prefixOf(l *location) string {
	for _, prefix := range r.paths {
		if !prefix.IsEvery() && prefix.Matches(l.path) {
			return prefix.String()
		}
	}
	return "/"
}

// addressReceipt returns the receipt for an allowed request to a host none of whose addresses may
// be connected to. It names the address range, never the address.
func (p *effective) addressReceipt(l *location, method string, why *refusal) tool.Denial {
	refused := tool.Denial{Permission: "network"}
	if why.denied {
		refused.Rule = fmt.Sprintf("%s leads to an address that the operator denies%s", hostText(l), at(why.origin))
		return refused
	}
	refused.Rule = fmt.Sprintf("%s leads to %s address, and no grant says that it may", hostText(l), why.special.name)
	if !why.special.own {
		return refused
	}
	given := closest(p.grants, (*grant).here, l, method)
	wanted, ok := p.need(given, l, method)
	if !ok {
		return refused
	}
	grant := manifests.NetworkGrant{NetworkPermission: wanted}
	if !l.Host.Address().IsValid() && l.Host.String() != "localhost" {
		grant.Addresses = []netip.Prefix{why.special.Prefix}
	}
	refused.Allow.Grant = p.grantFor(grant)
	return refused
}

func (p *effective) grantFor(grant manifests.NetworkGrant) json.RawMessage {
	return manifests.Grants{Network: []manifests.NetworkGrant{grant}}.Rule(p.tool)
}

func (p *effective) decisions(requests []manifests.NetworkPermission) []tool.Decision {
	var all []tool.Decision
	for i := range p.requests {
		d := p.decision(i, requests[i])
		if d.Effective == "" {
			d.Reason += p.rules.ForOthers(p.outcomes[i], "the grant")
		}
		all = append(all, d)
	}
	return all
}

func (p *effective) decision(index int, requested manifests.NetworkPermission) tool.Decision {
	asked, outcome := &p.requests[index], p.outcomes[index]
	decision := tool.Decision{Permission: string(kind), Requested: asked.String()}
	var granted, effective []string
	for _, permit := range outcome.Granted {
		g := &p.grants[permit.Grant]
		granted = append(granted, permission.Written(g.String(), g.Origin))
	}
	var cuts []*grant
	complete := false
	for _, permit := range outcome.Effective {
		effective = append(effective, permit.Rule.(*rule).String())
		cuts = append(cuts, &p.grants[permit.Grant])
		complete = complete || permit.Rule.Covers(asked)
	}
	decision.Granted = strings.Join(granted, "; ")
	if len(effective) == 0 && len(outcome.Taken) > 0 {
		decision.Reason = p.denials[outcome.Taken[0]].reason()
		return decision
	}
	decision.Effective = strings.Join(effective, "; ")
	decision.Reason = reasonText(asked, cuts, complete)
	if less := p.deniedText(outcome.Cut); less != "" {
		decision.Reason += "; " + less
	}
	if !complete && len(asked.methods) > 0 {
		if isEveryPort(requested.Ports) {
			requested.Ports = nil // a grant names its ports
		}
		decision.Allow.Grant = p.grantFor(manifests.NetworkGrant{NetworkPermission: requested})
	}
	return decision
}

func reasonText(asked *rule, given []*grant, complete bool) string {
	switch {
	case len(given) == 0:
		return "no grant covers it"
	case complete:
		return "granted as asked"
	}
	var cuts []string
	for _, g := range given {
		cuts = append(cuts, fmt.Sprintf("the grant%s covers fewer %s", at(g.Origin), asked.cutBy(&g.rule)))
	}
	return strings.Join(cuts, "; ")
}

// deniedText returns the origins of the denials that may cut the request.
func (p *effective) deniedText(cut []int) string {
	var lines []string
	for _, i := range cut {
		lines = append(lines, cmp.Or(p.denials[i].origin, permission.Operator))
	}
	switch len(lines) {
	case 0:
		return ""
	case 1:
		return "except what " + lines[0] + " denies"
	}
	return "except what " + strings.Join(lines, " and ") + " deny"
}
