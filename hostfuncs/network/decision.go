package network

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-run/caisson/manifests"
	"github.com/caisson-run/caisson/manifests/permission"
	"github.com/caisson-run/caisson/tool"
)

// decisions says what became of each request of the manifest.
func (p *effective) decisions(requests []manifests.NetworkPermission) []tool.Decision {
	var all []tool.Decision
	for i := range p.requests {
		d := p.decision(i, requests[i])
		if d.Effective == "" {
			for _, grant := range p.outcomes[i].Elsewhere {
				d.Reason += "; " + p.grants[grant].statement().OtherModule("the grant", p.module)
			}
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
		granted = append(granted, g.String()+in(g.origin))
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
		decision.Allow.Grant = p.grantFor(manifests.NetworkGrant{NetworkPermission: requested})
	}
	return decision
}

// in names where something is written, in brackets.
func in(origin string) string {
	if origin == "" {
		return ""
	}
	return " (" + origin + ")"
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
		cuts = append(cuts, fmt.Sprintf("the grant%s covers fewer %s", at(g.origin), asked.cutBy(&g.rule)))
	}
	return strings.Join(cuts, "; ")
}

// cutBy names in what another rule, which overlaps, is narrower.
func (r *rule) cutBy(other *rule) string {
	var parts []string
	if !other.host.Covers(r.host) {
		parts = append(parts, "hosts")
	}
	if slices.ContainsFunc(r.endpoints, func(e endpoint) bool {
		return !slices.ContainsFunc(other.endpoints, func(wider endpoint) bool { return wider.covers(e) })
	}) {
		parts = append(parts, "schemes or ports")
	}
	if !other.everyMethod && (r.everyMethod || !isSubset(r.methods, other.methods)) {
		parts = append(parts, "methods")
	}
	if !other.coversPaths(r) {
		parts = append(parts, "paths")
	}
	return strings.Join(parts, ", ")
}

func (r *rule) coversPaths(other *rule) bool {
	return !slices.ContainsFunc(other.paths, func(wanted permission.URLPath) bool {
		return !slices.ContainsFunc(r.paths, func(prefix permission.URLPath) bool { return prefix.Covers(wanted) })
	})
}

func isSubset[T comparable](part, whole []T) bool {
	return !slices.ContainsFunc(part, func(value T) bool { return !slices.Contains(whole, value) })
}

// deniedText names the lines that may take something away from what was asked.
func (p *effective) deniedText(cut []int) string {
	var lines []string
	for _, i := range cut {
		lines = append(lines, writer(p.denials[i].origin))
	}
	if len(lines) == 0 {
		return ""
	}
	return "less what " + strings.Join(lines, " and ") + " denies"
}

// reason says who denies something.
func (d *denial) reason() string {
	if d.profile != "" {
		return fmt.Sprintf("the profile %s takes the network away", d.profile)
	}
	return "denied by " + writer(d.origin)
}

// writer names who wrote something, by where it is written.
func writer(origin string) string {
	if origin == "" {
		return "the operator"
	}
	return origin
}

// String describes the rule to people: "GET https://*.example.com below /v1".
func (r *rule) String() string {
	var origins []string
	for _, e := range r.endpoints {
		origins = append(origins, originText(r.host, e))
	}
	text := strings.Join(r.methods, ", ") + " " + strings.Join(origins, " or ")
	var below []string
	for _, path := range r.paths {
		if path.IsEvery() {
			return text
		}
		below = append(below, path.String())
	}
	return text + " below " + strings.Join(below, " or ")
}

func originText(host permission.Host, e endpoint) string {
	text := e.scheme + "://" + host.Bracketed()
	if e.port != defaultPort(e.scheme) {
		text += fmt.Sprintf(":%d", e.port)
	}
	return text
}
